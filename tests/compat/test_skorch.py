"""skorch, whose networks take float32 only."""

import numpy as np
import pytest
import torch
from compat_checks import check_explained, rows_of_data, series_data
from torch import nn

LIBRARY = "skorch"
BESIDE = ("torch",)
skorch = pytest.importorskip(LIBRARY)


class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv1d(1, 8, 9), nn.ReLU(), nn.Flatten(), nn.Linear(448, 2))

    def forward(self, x):
        return self.layers(x)


def fitted(module, X, y):
    torch.manual_seed(0)
    model = skorch.NeuralNetClassifier(
        module,
        max_epochs=30,
        lr=0.1,
        criterion=nn.CrossEntropyLoss,
        train_split=None,
        verbose=0,
    )
    return model.fit(X.astype(np.float32), y)


def check(ledger, name, model, X, y):
    check_explained(ledger, name, model, X, y, lambda x: model.predict(x.astype(np.float32)))


def test_rows(ledger):
    X, y = rows_of_data()
    model = fitted(nn.Sequential(nn.Linear(4, 3)), X, y)
    check(ledger, "NeuralNetClassifier", model, X, y)


def test_series(ledger):
    X, y = series_data()
    number = (y == "fast").astype(np.int64)
    model = fitted(Convolution, X, number)
    check(ledger, "NeuralNetClassifier, series", model, X, number)
