"""Weights in safetensors files: written, read, and refused where the header lies."""

import json
import struct

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import contrafact as cf
from contrafact.models.files import find_model
from contrafact.nn import FCN, MLP, load_model, save_weights
from saved_models import Net, answers, net

pytestmark = pytest.mark.usefixtures("own_random_numbers")


def write(path, header, content=b""):
    """A file with this header, as text or as an object."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + content)
    return path


def test_weights_go_into_the_network(tmp_path):
    module, path = net(), tmp_path / "weights.safetensors"
    save_file(module.state_dict(), path)
    np.testing.assert_allclose(answers(load_model(path, network=Net)), answers(module), atol=1e-6)
    with pytest.raises(ValueError, match=r"weights of a network, not the network.*--network"):
        load_model(path)


def test_a_trained_network_needs_nothing_else(tmp_path):
    data = cf.load_dataset("ItalyPowerDemand")
    trained = cf.fit_classifier("fcn", data.X_train, data.y_train, max_epochs=2, random_state=0)
    save_weights(trained, tmp_path / "weights.safetensors")
    loaded = cf.as_classifier(load_model(tmp_path / "weights.safetensors"))
    assert loaded.classes.tolist() == trained.classes.tolist() == ["1", "2"]
    X = data.X_test[:20]
    np.testing.assert_array_equal(loaded.predict_proba(X), trained.predict_proba(X))
    renamed = cf.as_classifier(loaded.module, classes=["winter", "summer"])
    assert renamed.classes.tolist() == ["winter", "summer"]


@pytest.mark.parametrize("suffix", [".safetensors", ".pt", ".pkl", ""])
def test_the_content_decides(tmp_path, suffix):
    """Also where the length of the header begins with the byte of pickles."""
    path = tmp_path / f"w{suffix}"
    header = json.dumps({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})
    write(path, header.ljust(128).encode(), bytes(4))
    assert path.read_bytes()[0] == 0x80 and find_model(path).kind == "safetensors"
    with pytest.raises(ValueError, match=r"they lack 'standardize\.mean'"):
        load_model(path, network="mlp")


def test_shared_weights_and_other_modules_are_written(tmp_path):
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    module[1].weight = module[0].weight
    save_weights(module, tmp_path / "w")
    loaded = load_model(
        tmp_path / "w", network=lambda: nn.Sequential(*map(nn.Linear, *[[4, 4]] * 2))
    )
    x = torch.randn(3, 4)
    torch.testing.assert_close(loaded(x), module(x))
    assert not hasattr(loaded, "classes_")


def test_only_networks_are_written(tmp_path):
    with pytest.raises(TypeError, match="model must be a torch module or a classifier made of one"):
        save_weights(cf.as_classifier(lambda X: X), tmp_path / "w")
    with pytest.raises(TypeError, match="path must be a path"):
        save_weights(MLP(2, 2), "")
    assert not (tmp_path / "w").exists()


def test_a_file_does_not_choose_what_is_imported(tmp_path, module_file):
    weights = nn.Linear(4, 2).state_dict()
    save_file(weights, tmp_path / "w", {"network": "my_models:Tiny"})
    with pytest.raises(ValueError, match=r"belong to 'my_models:Tiny'\. Files may name fcn"):
        load_model(tmp_path / "w")
    assert load_model(tmp_path / "w", network="my_models:Tiny").weight.shape == (2, 4)


@pytest.mark.parametrize("text", ["a,b", '{"a": 1}', "[[1]]", "[" * 100_000, "[null]"])
def test_classes_are_a_list_of_labels(tmp_path, text):
    save_file(MLP(2, 2).state_dict(), tmp_path / "w", {"network": "mlp", "classes": text})
    with pytest.raises(ValueError, match=r"w: its metadata name the classes .*JSON list") as told:
        load_model(tmp_path / "w")
    assert len(str(told.value)) < 400


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 2**60]},
        {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]},
        {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2**62, 2**62], "data_offsets": [0, 8]},
        {"dtype": "O", "shape": [1], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]},
        {"dtype": "F32"},
        "text",
    ],
)
def test_headers_that_lie_are_refused(tmp_path, entry):
    path = write(tmp_path / "w", {"weight": entry}, bytes(8))
    with pytest.raises(ValueError, match="w cannot be opened as safetensors: it is dam") as told:
        load_model(path, network="mlp")
    assert "\n" not in str(told.value)


def test_empty_tensors_do_not_make_large_networks(tmp_path):
    """(10^13, 0) values take no place, but a network with 10^13 inputs would."""
    weights = MLP(3, 2).state_dict()
    weights["standardize.mean"] = torch.zeros(10**13, 0)
    save_file(weights, tmp_path / "w")
    with pytest.raises(ValueError, match=r"w: the weights do not have the shapes of network 'mlp'"):
        load_model(tmp_path / "w", network="mlp")


def test_one_stored_number_does_not_make_large_networks(tmp_path):
    weights = MLP(3, 2).state_dict()
    weights["standardize.mean"] = torch.zeros(1).expand(10**12)
    torch.save(weights, tmp_path / "w.pt")
    with pytest.raises(ValueError, match=r"w\.pt holds weights of 4,000,000,001,556 bytes, more"):
        load_model(tmp_path / "w.pt", network="mlp")


@pytest.mark.parametrize("header", [b"{", b"[1]", b"{} x", b"[" * 10**6, b"", b"\xff"])
def test_other_files_are_not_taken_for_safetensors(tmp_path, header):
    write(tmp_path / "w", header)
    with pytest.raises(ValueError, match="not a model of a known kind"):
        load_model(tmp_path / "w", network="mlp")


def test_damaged_weights_end_in_one_line_or_answer(tmp_path):
    path = tmp_path / "w"
    save_weights(cf.as_classifier(FCN(1, 2, [2], [3]), classes=["a", "b"]), path)
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(200):
        content = bytearray(good)
        if rng.random() < 0.3:
            content = content[: rng.integers(len(content))]
        else:
            for place in rng.integers(len(good), size=rng.integers(1, 4)):
                content[place] = rng.integers(256)
        path.write_bytes(content)
        try:
            assert load_model(path)(torch.zeros(1, 1, 9)).shape == (1, 2)
        except ValueError as error:
            refused += 1
            assert str(path) in str(error) and "\n" not in str(error)
    assert 50 < refused < 200
