"""A small table of mixed columns, and models of it, for the methods for rows."""

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from quick_columns import QuickColumns

NUMBERS = ["age", "bmi", "hba1c", "visits"]
LEVELS = ["sex", "ward", "smokes"]


def make_table(n, seed=0):
    """Patients: numbers, integers, categories, a boolean, and missing values."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "bmi": rng.normal(27, 5, n).round(1),
            "hba1c": rng.gamma(9, 0.65, n).round(1),
            "visits": rng.poisson(1.2, n),
            "sex": rng.choice(["f", "m"], n),
            "ward": rng.choice(["A", "B", "C"], n),
            "smokes": rng.random(n) < 0.3,
        }
    )
    risk = (
        0.04 * (frame.age - 55)
        + 0.1 * (frame.bmi - 27)
        + 0.5 * (frame.hba1c - 6)
        + 0.4 * (frame.visits - 1)
        + 0.8 * frame.smokes
        + 0.6 * (frame.ward == "C")
    )
    y = np.where(risk + rng.logistic(0, 0.5, n) > 0, "high", "low")
    frame.loc[rng.random(n) < 0.1, "bmi"] = np.nan
    return frame, y


TABLE, LABELS = make_table(300)


def fit_model(kind):
    """A pipeline on the table: "logistic" or "trees"."""
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = QuickColumns(
        [("numbers", numbers, NUMBERS), ("levels", OneHotEncoder(), LEVELS)], sparse_threshold=0
    )
    last = {
        "logistic": LogisticRegression(),
        "trees": HistGradientBoostingClassifier(max_iter=30, random_state=0),
    }[kind]
    return make_pipeline(columns, last).fit(TABLE, LABELS)


def at_risk(model, n):
    """Return n patients that the model calls high-risk."""
    frame, _ = make_table(200, seed=1)
    return frame[model.predict(frame) == "high"][:n]


def column_sets(result, i):
    """Return the sets of changed columns of the options of instance i."""
    own = result.source == i
    before, after = result.X[own], result.X_cf[own]
    changed = ~((before == after) | (np.isnan(before) & np.isnan(after)))
    return [frozenset(np.flatnonzero(row).tolist()) for row in changed]


def assert_rows_of_the_table(result):
    """Assert that every counterfactual is a row that the schema allows."""
    after = result.frame_cf
    for column in LEVELS:
        assert after[column].isin(TABLE[column].unique()).all()
    assert (after[["age", "visits"]] % 1 == 0).all(axis=None)
    assert (after["bmi"].isna() <= result.frame["bmi"].isna()).all()
