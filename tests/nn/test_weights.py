"""Weights from files go into the networks they belong to."""

import numpy as np
import pytest
import torch
from torch import nn

from contrafact.nn import FCN, MLP, BiLSTM, InceptionTime, ResNet8, SmallCNN, load_model
from saved_models import Net, answers, net


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize("stored", ["plain", "checkpoint", "legacy"])
@pytest.mark.parametrize("network", ["class", "instance"])
def test_weights_go_into_the_network(tmp_path, stored, network):
    module, path = net(), tmp_path / "weights.pth"
    weights = module.state_dict()
    content = {"epoch": 3, "model_state_dict": weights} if stored == "checkpoint" else weights
    torch.save(content, path, _use_new_zipfile_serialization=stored != "legacy")
    given = Net if network == "class" else Net()
    np.testing.assert_allclose(answers(load_model(path, network=given)), answers(module), atol=1e-6)


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize(
    ("name", "network", "shape"),
    [
        ("fcn", FCN(2, 3, widths=(4, 6), kernels=(5, 3)), (2, 12)),
        ("inceptiontime", InceptionTime(2, 3, (7, 3), width=4, depth=9, n_members=2), (2, 12)),
        ("inceptiontime", InceptionTime(1, 3, (5,), width=3, depth=3), (1, 12)),
        ("bilstm", BiLSTM(2, 3, hidden=5, n_layers=2), (2, 12)),
        ("smallcnn", SmallCNN(1, 4, widths=(3, 5)), (1, 8, 8)),
        ("resnet8", ResNet8(3, 4, widths=(2, 4, 6)), (3, 8, 8)),
        ("mlp", MLP(7, 3, hidden=(5, 4)), (7,)),
        ("mlp", MLP(7, 3, hidden=()), (7,)),
    ],
)
def test_reference_networks_are_built_from_their_weights(tmp_path, name, network, shape):
    torch.save(network.state_dict(), tmp_path / "w.pt")
    x = torch.randn(2, *shape)
    torch.testing.assert_close(load_model(tmp_path / "w.pt", network=name)(x), network.eval()(x))


@pytest.mark.usefixtures("own_random_numbers")
def test_weights_without_their_network_are_explained(tmp_path, module_file):
    path = tmp_path / "w.pt"
    torch.save(nn.Linear(4, 2).state_dict(), path)
    assert load_model(path, network="my_models:Tiny").weight.shape == (2, 4)
    for network, kind, reason in [
        (None, ValueError, r"weights of a network, not the network.*--network.*fcn"),
        ("my_models:make", ValueError, r"does not fit the network Tiny: 'weight' has shape"),
        ("my_models:needs", TypeError, r"cannot be made without arguments.*size"),
        ("my_models:text", TypeError, r"gives str\. Accepted: a torch module"),
        ("fcm", ValueError, r"'fcm' is unknown\. Did you mean fcn\? Accepted: fcn, "),
        ("fcn", ValueError, r"not those of network 'fcn': they lack 'standardize\.mean'"),
    ]:
        with pytest.raises(kind, match=reason):
            load_model(path, network=network)
    torch.save({"lr": 0.1}, path)
    with pytest.raises(ValueError, match=r"holds a dict, not the weights"):
        load_model(path, network="fcn")
    with pytest.raises(ValueError, match="network applies to a file of weights"):
        load_model("my_models:trained", network="fcn")
