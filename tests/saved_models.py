"""A module to save and load, shared by tests of model files and of weights."""

import numpy as np
import torch
from torch import nn

import contrafact as cf

X = torch.randn(6, 1, 8, generator=torch.Generator().manual_seed(0))


class Net(nn.Module):
    """Batch norm and dropout: in train mode it answers otherwise."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(), nn.Linear(8, 3), nn.BatchNorm1d(3), nn.Dropout(0.5)
        )

    def forward(self, x):
        return self.layers(x)


class Payload:
    """Unpickled, it writes a file."""

    def __init__(self, proof):
        self.proof = str(proof)

    def __reduce__(self):
        return (open, (self.proof, "w"))


def net() -> Net:
    torch.manual_seed(0)
    module = Net()
    module(X)
    return module


def answers(model) -> np.ndarray:
    return cf.as_classifier(model).predict_proba(X)
