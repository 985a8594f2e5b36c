import socket

import numpy as np
import pytest

from contrafact.data import list_datasets, load_dataset


@pytest.mark.parametrize(
    "row", list(list_datasets().itertuples(index=False)), ids=lambda row: row.name
)
def test_bundled_sets_are_as_listed_and_need_no_network(row, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    unequal = None in row.shape
    data = load_dataset(row.name.upper(), pad=unequal)
    assert (data.name, data.modality) == (row.name, row.modality)
    assert (len(data.X_train), len(data.X_test), len(data.classes)) == (
        row.train,
        row.test,
        row.classes,
    )
    assert data.X_train.dtype == np.float64
    shape = data.X_train.shape[1:]
    assert (shape[0], None) == row.shape if unequal else shape == row.shape


def test_known_values():
    gun = load_dataset("GunPoint")
    assert gun.classes.tolist() == ["1", "2"]
    assert gun.X_train[0, 0, 0] == pytest.approx(-0.6478854)
    assert load_dataset("basicmotions").classes.tolist() == [
        "badminton",
        "running",
        "standing",
        "walking",
    ]
    assert load_dataset("iris").classes.tolist() == ["setosa", "versicolor", "virginica"]
    digits = load_dataset("digits")
    assert (digits.X_train.min(), digits.X_train.max(), digits.classes.tolist()) == (
        0,
        16,
        list(range(10)),
    )
    assert repr(digits) == (
        "Dataset('digits', image, train (1258, 1, 8, 8), test (539, 1, 8, 8), "
        "classes 0, 1, 2, 3, 4, 5, 6, 7, 8, 9)"
    )
