"""Strange models: they answer in odd shapes, lie, break down, or never do as they should."""

import numpy as np
import torch
from torch import nn


class Broken(Exception):
    """What strange models raise."""


def p_of(X):
    """The honest probabilities of two classes."""
    p = 1 / (1 + np.exp(-3 * np.asarray(X, dtype=float).reshape(len(X), -1).mean(1)))
    return np.stack([1 - p, p], 1)


def honest(X):
    return p_of(X)


def raises(X):
    raise Broken("the model broke down")


class RaisesAtTimes:
    """Answers three times, then breaks down now and then."""

    def __init__(self):
        self.asked = 0

    def __call__(self, X):
        self.asked += 1
        if self.asked > 3 and self.asked % 2:
            raise Broken("the model broke down")
        return p_of(X)


class Wavering:
    """Answers differently when asked again."""

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __call__(self, X):
        p = self.rng.uniform(size=len(X))
        return np.stack([1 - p, p], 1)


class Estimator:
    """Looks like a fitted estimator; its probabilities go through a function."""

    def __init__(self, change, predict=None, classes=(0, 1)):
        self.classes_ = np.array(classes)
        self.change = change
        self.lies = predict

    def predict_proba(self, X):
        return self.change(p_of(X))

    def predict(self, X):
        if self.lies is not None:
            return self.lies(X)
        return self.classes_[p_of(X).argmax(1)]


class Through(nn.Module):
    """A module whose two logits go through a function."""

    def __init__(self, change):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.change = change

    def forward(self, x):
        mean = 3 * self.scale * x.flatten(1).mean(1)
        return self.change(torch.stack([-mean, mean], 1))


def give(answer):
    """A function that gives the same answer to any question."""
    return lambda X: answer


FUNCTIONS = {
    "raises": lambda: raises,
    "raises at times": RaisesAtTimes,
    "wavering": Wavering,
    "gives None": lambda: give(None),
    "gives 1": lambda: give(1),
    "gives a text": lambda: give("yes"),
    "gives a list of None": lambda: lambda X: [None] * len(X),
    "gives P(1) alone": lambda: lambda X: p_of(X)[:, 1],
    "gives one column": lambda: lambda X: p_of(X)[:, 1:],
    "gives integers": lambda: lambda X: p_of(X).argmax(1),
    "gives three dimensions": lambda: lambda X: p_of(X)[:, :, None],
    "gives one row": lambda: lambda X: p_of(X)[:1],
    "gives a row too many": lambda: lambda X: np.r_[p_of(X), p_of(X[:1])],
    "gives no columns": lambda: lambda X: p_of(X)[:, :0],
    "gives nan": lambda: lambda X: p_of(X) * np.nan,
    "gives nan at times": lambda: (
        lambda X: np.where(np.arange(len(X))[:, None] % 3, p_of(X), np.nan)
    ),
    "gives inf": lambda: lambda X: p_of(X) + np.inf,
    "gives 7 p": lambda: lambda X: 7 * p_of(X),
    "gives -p": lambda: lambda X: -p_of(X),
    "gives complex": lambda: lambda X: p_of(X) + 0j,
    "gives texts": lambda: lambda X: p_of(X).astype(str),
    "gives a tensor": lambda: lambda X: torch.tensor(p_of(X)),
    "gives a ragged list": lambda: lambda X: [[0.5, 0.5]] * (len(X) - 1) + [[1.0]],
    "gives objects": lambda: lambda X: p_of(X).astype(object),
    "gives columns by batch": lambda: (
        lambda X: np.full((len(X), 2 + len(X) % 2), 1 / (2 + len(X) % 2))
    ),
    "works in place": lambda: lambda X: p_of(np.multiply(X, 2, out=X)),
    "takes nothing": lambda: lambda: 0,
    "takes two": lambda: lambda X, y: p_of(X),
}

ESTIMATORS = {
    "estimator 7 p": lambda: Estimator(lambda p: 7 * p),
    "estimator -p": lambda: Estimator(lambda p: -p),
    "estimator nan": lambda: Estimator(lambda p: p * np.nan),
    "estimator None": lambda: Estimator(lambda p: None),
    "estimator (n,)": lambda: Estimator(lambda p: p[:, 1]),
    "estimator three columns": lambda: Estimator(lambda p: np.c_[p, p] / 2),
    "estimator of lists": lambda: Estimator(lambda p: [p, p]),
    "estimator predicts None": lambda: Estimator(lambda p: p, lambda X: None),
    "estimator predicts other labels": lambda: Estimator(lambda p: p, lambda X: np.full(len(X), 9)),
    "estimator predicts the contrary": lambda: Estimator(
        lambda p: p, lambda X: 1 - p_of(X).argmax(1)
    ),
    "estimator predicts floats": lambda: Estimator(lambda p: p, lambda X: p_of(X)[:, 1]),
    "estimator predicts 2-D": lambda: Estimator(lambda p: p, lambda X: np.zeros((len(X), 2))),
    "estimator raises in predict": lambda: Estimator(lambda p: p, raises),
    "estimator of one class": lambda: Estimator(lambda p: p[:, :1] + p[:, 1:], classes=(0,)),
    "estimator of classes twice": lambda: Estimator(lambda p: p, classes=(1, 1)),
    "estimator without classes": lambda: Estimator(lambda p: p, classes=()),
}

MODULES = {
    "module None": lambda: Through(lambda out: None),
    "module tuple": lambda: Through(lambda out: (out, out)),
    "module dict": lambda: Through(lambda out: {"logits": out}),
    "module 0-d": lambda: Through(lambda out: out.sum()),
    "module (n,)": lambda: Through(lambda out: out[:, 1]),
    "module one column": lambda: Through(lambda out: out[:, 1:]),
    "module three dimensions": lambda: Through(lambda out: out[:, :, None]),
    "module one row": lambda: Through(lambda out: out[:1]),
    "module no columns": lambda: Through(lambda out: out[:, :0]),
    "module nan": lambda: Through(lambda out: out * torch.nan),
    "module integers": lambda: Through(lambda out: out.long()),
    "module booleans": lambda: Through(lambda out: out > 0),
    "module complex": lambda: Through(lambda out: out + 0j),
    "module detached": lambda: Through(lambda out: out.detach()),
    "module of NumPy": lambda: Through(lambda out: out.detach().numpy()),
    "module meta": lambda: Through(lambda out: out.to("meta")),
    "module float64": lambda: Through(lambda out: out.double()),
    "module half": lambda: Through(lambda out: out.half()),
    "module huge": lambda: Through(lambda out: out * 1e30),
    "module tiny": lambda: Through(lambda out: out * 1e-30),
    "module probabilities": lambda: Through(lambda out: out.softmax(1)),
    "module raises": lambda: Through(raises),
    "module without parameters": nn.Flatten,
    "module on meta": lambda: nn.Linear(4, 2, device="meta"),
    "module of wrong width": lambda: nn.Linear(3, 2),
    "module of one class": lambda: nn.Linear(4, 1),
    "module embedding": lambda: nn.Embedding(4, 2),
    "module LSTM": lambda: nn.LSTM(4, 2),
    "module with batch norm in train mode": lambda: nn.Sequential(
        Through(lambda out: out), nn.BatchNorm1d(2), nn.Dropout(0.5)
    ),
}

MODELS = {**FUNCTIONS, **ESTIMATORS, **MODULES}
