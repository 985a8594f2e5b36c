"""Five models per table, as people train them: all are asked with a frame.

Pipelines of scikit-learn, gradient boosting with native categories and missing values, and a
torch module behind a preprocessing function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from torch import nn

from _common import Array
from _tables import Table


class TorchOnFrames:
    """A torch module behind a preprocessing step: a frame in, probabilities out.

    Parameters
    ----------
    encoder : transformer
        Turns frames into arrays.
    module : Module
        Returns logits.
    classes : array of str
    """

    def __init__(self, encoder: Any, module: nn.Module, classes: Array) -> None:
        self.encoder = encoder
        self.module = module.eval()
        self.classes_ = classes

    def predict_proba(self, frame: pd.DataFrame) -> Array:
        rows = torch.as_tensor(self.encoder.transform(frame), dtype=torch.float32)
        with torch.no_grad():
            return self.module(rows).softmax(1).numpy().astype(float)

    def predict(self, frame: pd.DataFrame) -> Array:
        return self.classes_[self.predict_proba(frame).argmax(1)]


def encoder(table: Table) -> ColumnTransformer:
    """Impute and scale numbers, number ordered categories, one-hot encode the others."""
    categories = table.columns("category")
    ranked = [name for name in categories if table.X_train[name].cat.ordered]
    levels = [list(table.X_train[name].cat.categories) for name in ranked]
    unranked = [name for name in categories if name not in ranked] + table.columns("boolean")
    return ColumnTransformer(
        [
            (
                "numbers",
                make_pipeline(SimpleImputer(strategy="median"), StandardScaler()),
                table.columns("number", "integer"),
            ),
            ("ranked", make_pipeline(OrdinalEncoder(categories=levels), StandardScaler()), ranked),
            ("names", OneHotEncoder(handle_unknown="ignore", sparse_output=False), unranked),
        ]
    )


def fit_logistic(table: Table) -> Any:
    model = make_pipeline(encoder(table), LogisticRegression(max_iter=2000))
    return model.fit(table.X_train, table.y_train)


def fit_forest(table: Table) -> Any:
    model = make_pipeline(encoder(table), RandomForestClassifier(100, random_state=0))
    return model.fit(table.X_train, table.y_train)


def fit_boosting(table: Table) -> Any:
    model = HistGradientBoostingClassifier(max_iter=100, random_state=0)
    return model.fit(table.X_train, table.y_train)


def fit_mlp(table: Table) -> Any:
    network = MLPClassifier((32,), alpha=0.1, learning_rate_init=0.01, max_iter=500, random_state=0)
    return make_pipeline(encoder(table), network).fit(table.X_train, table.y_train)


def fit_torch(table: Table) -> TorchOnFrames:
    """Train a small network on the encoded table for 200 steps of the whole batch."""
    transform = encoder(table).fit(table.X_train)
    rows = torch.as_tensor(transform.transform(table.X_train), dtype=torch.float32)
    classes, labels = np.unique(table.y_train, return_inverse=True)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(rows.shape[1], 32), nn.ReLU(), nn.Linear(32, len(classes)))
        optimizer = torch.optim.Adam(module.parameters(), lr=0.01, weight_decay=1e-3)
        for _ in range(200):
            optimizer.zero_grad()
            nn.functional.cross_entropy(module(rows), torch.as_tensor(labels)).backward()
            optimizer.step()
    return TorchOnFrames(transform, module, classes)


MODELS: dict[str, Callable[[Table], Any]] = {
    "logistic regression": fit_logistic,
    "random forest": fit_forest,
    "gradient boosting": fit_boosting,
    "MLP": fit_mlp,
    "torch": fit_torch,
}
