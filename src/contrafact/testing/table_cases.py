"""Make the table of the checks: a column of every kind, and models that were trained on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from ..models.classifier import Array
from .case_models import with_quick_votes

if TYPE_CHECKING:
    import pandas as pd

#: Kinds of model that take a table with texts.
TABLE_MODELS = ("linear", "forest", "callable")
TABLE_LABELS = np.array(["high", "low"])

_LEVELS = ["sex", "ward", "risk"]
_NUMBERS = ["age", "bmi", "hba1c", "dose", "prior"]
_FLAGS = ["smokes", "color_blue", "color_green", "color_red"]


def make_table(n: int, seed: int) -> tuple[pd.DataFrame, Array]:
    """Draw patients: numbers, whole numbers, a grid, levels, a one-hot group, dates, gaps.

    Parameters
    ----------
    n : int
        Number of rows.
    seed : int
        Seed of the values.

    Returns
    -------
    frame : pandas.DataFrame
        The rows, with labels of their own.
    y : array of shape (n,)
        "high" or "low".
    """
    import pandas as pd

    rng = np.random.default_rng(seed)
    color = rng.integers(0, 3, n)
    hba1c = rng.normal(6.5, 1.0, n)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 85, n),
            "bmi": rng.normal(27.0, 4.0, n).round(1),
            "hba1c": np.where(rng.random(n) < 0.2, np.nan, hba1c),
            "dose": 5 * rng.integers(0, 30, n),
            "prior": pd.Series(rng.integers(0, 6, n), dtype="Int64").mask(rng.random(n) < 0.2),
            "sex": rng.choice(["f", "m"], n),
            "ward": rng.choice(np.array(["A", "B", "C", None], dtype=object), n),
            "risk": pd.Categorical(
                rng.choice(["low", "middle", "high"], n), ["low", "middle", "high"], ordered=True
            ),
            "smokes": rng.random(n) < 0.4,
            "color_blue": (color == 0).astype(int),
            "color_green": (color == 1).astype(int),
            "color_red": (color == 2).astype(int),
            "admitted": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D"),
        }
    )
    frame.index = pd.Index([f"p{seed}-{row}" for row in range(n)], name="patient")
    score = (
        (frame["bmi"] - 27) / 4
        + np.nan_to_num(hba1c - 6.5)
        + 1.5 * frame["smokes"]
        + (frame["age"] - 50) / 20
        + (color == 2)
        - 0.8
    )
    return frame, np.where(score > 0, "high", "low")


def train_on_table(model_kind: str, frame: pd.DataFrame, y: Array) -> Any:
    """Train a small model of one kind on the frame itself.

    Parameters
    ----------
    model_kind : str
        One of `TABLE_MODELS`.
    frame : pandas.DataFrame
        The rows.
    y : array of shape (n,)
        Their labels.

    Returns
    -------
    object
        A fitted pipeline, or a function of a frame.
    """
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    # A quick first step, since the checks ask some ten thousand times: the usual one of
    # scikit-learn takes several milliseconds a call. The pipeline has a twin only with one code
    # per level.
    if model_kind == "linear":
        first_step = FrameNumbers(one_hot=True)
        return make_pipeline(first_step, LogisticRegression(max_iter=500)).fit(frame, y)
    if model_kind == "forest":
        forest = RandomForestClassifier(15, random_state=0, n_jobs=1)
        pipeline = make_pipeline(FrameNumbers(), forest).fit(frame, y)
        with_quick_votes(forest)
        return pipeline
    quick = make_pipeline(FrameNumbers(), LogisticRegression(max_iter=2000)).fit(frame, y)
    return AskedInUnits(quick, {})


class FrameNumbers(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # has no types
    """Turn a frame into numbers; missing ones become the mean of their column.

    Parameters
    ----------
    one_hot : bool, default=False
        Whether a level becomes a column that is 1 where it stands; otherwise levels become ranks.
    """

    def __init__(self, one_hot: bool = False) -> None:
        self.one_hot = one_hot

    def fit(self, frame: pd.DataFrame, y: Array | None = None) -> FrameNumbers:
        """Learn levels, means and spreads."""
        self.levels_ = {name: sorted(frame[name].dropna().unique()) for name in _LEVELS}
        numbers = frame[_NUMBERS].astype(np.float64)
        self.mean_ = numbers.mean().to_numpy()
        self.spread_ = numbers.std().to_numpy()
        if self.one_hot:  # so that the checks see models with the names of columns and without
            self.feature_names_in_ = np.asarray(frame.columns, dtype=object)
        return self

    def transform(self, frame: pd.DataFrame) -> Array:
        """Return an array of shape (n, columns)."""
        numbers = [frame[name].to_numpy(np.float64, na_value=np.nan) for name in _NUMBERS]
        scaled = (np.column_stack(numbers) - self.mean_) / self.spread_
        flags = [frame[name].to_numpy(np.float64) for name in _FLAGS]
        ranks = [
            np.array([levels.index(value) if value in levels else -1 for value in frame[name]])
            for name, levels in self.levels_.items()
        ]
        if self.one_hot:
            sizes = map(len, self.levels_.values())
            ranks = [
                rank[:, None] == np.arange(size) for rank, size in zip(ranks, sizes, strict=True)
            ]
        return np.column_stack([np.nan_to_num(scaled), *flags, *ranks])


class AskedInUnits:
    """A function of a frame whose columns have other units than those of a model.

    Parameters
    ----------
    model : estimator
        The model.
    factors : dict of str to float
        By column, what its numbers were multiplied by.
    """

    def __init__(self, model: Any, factors: dict[str, float]) -> None:
        self.model = model
        self.factors = factors

    def __call__(self, frame: pd.DataFrame) -> Array:
        """Return probabilities of shape (n, classes)."""
        own = frame.assign(**{name: frame[name] / by for name, by in self.factors.items()})
        return np.asarray(self.model.predict_proba(own))
