"""Damaged model files: one line that names the file, whatever torch and zipfile raise."""

import warnings

import numpy as np
import pytest
import torch

from contrafact.nn import MLP, load_model


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize("in_archive", [True, False], ids=["archive", "stream"])
def test_damaged_weights_end_in_one_line(tmp_path, in_archive):
    torch.save(
        MLP(n_features=2, n_classes=2, hidden=[3]).state_dict(),
        tmp_path / "good.pt",
        _use_new_zipfile_serialization=in_archive,
    )
    good = (tmp_path / "good.pt").read_bytes()
    path = tmp_path / "bad.pt"
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(200):
        content = bytearray(good)
        if rng.random() < 0.3:
            content = content[: rng.integers(len(content))]
        else:
            for place in rng.integers(min(len(good), 1500), size=rng.integers(1, 6)):
                content[place] = rng.integers(256)
        path.write_bytes(content)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                load_model(path, network="mlp")
        except ValueError as error:
            refused += 1
            assert str(path) in str(error) and "\n" not in str(error)
    assert refused > 100


def test_an_archive_in_parts_is_damaged(tmp_path):
    """zipfile raises where it is only asked whether a file is an archive."""
    path = tmp_path / "parts.pt"
    end = b"PK\5\6" + bytes(18)
    locator = b"PK\6\7" + bytes([9] * 16)
    path.write_bytes(b"PK" + bytes(40) + locator + end)
    with pytest.raises(ValueError, match=r"parts\.pt"):
        load_model(path)


@pytest.mark.usefixtures("own_random_numbers")
def test_the_first_difference_of_weights_is_named(tmp_path):
    path = tmp_path / "w.pt"
    weights = torch.nn.Linear(3, 2).state_dict()
    torch.save(weights, path)
    with pytest.raises(ValueError, match=r"w\.pt does not fit .* 'weight' has shape \(2, 3\)"):
        load_model(path, network=torch.nn.Linear(4, 2))
    with pytest.raises(ValueError, match=r"the network has no 'bias'; it has 'weight'"):
        load_model(path, network=torch.nn.Linear(3, 2, bias=False))
    torch.save({"weight": weights["weight"]}, path)
    with pytest.raises(ValueError, match="the file has no 'bias'"):
        load_model(path, network=torch.nn.Linear(3, 2))
    with pytest.raises(ValueError, match="Did you mean resnet8"):
        load_model(path, network="resnet")
