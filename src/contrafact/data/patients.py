"""A made-up hospital table, for examples and tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..validation import Integer, check_parameters
from .arrays import Array

if TYPE_CHECKING:
    import pandas as pd

_RULES = {
    "n": Integer(at_least=2, at_most=10**6),
    "random_state": Integer(at_least=0, at_most=2**63),
}


def make_patients(n: int = 600, random_state: int = 0) -> tuple[pd.DataFrame, Array]:
    """Make a table of patients who do not exist, with columns of many kinds.

    Whole numbers, numbers with decimals, a number that was not measured for some, booleans,
    categories with and without an order, and a date. The risk depends on age, blood pressure,
    HbA1c, smoking, weight and earlier admissions.

    Parameters
    ----------
    n : int, default=600
        Number of patients.
    random_state : int, default=0
        Seed.

    Returns
    -------
    frame : pandas.DataFrame
        One row per patient, labeled "P0001", "P0002" and so on.
    risk : array of str, shape (n,)
        High or low, as "high" and "low".

    Examples
    --------
    >>> frame, risk = make_patients(5)
    >>> frame.columns.tolist()[:4]
    ['age', 'sex', 'bmi', 'systolic']
    """
    import pandas as pd

    check_parameters("make_patients", _RULES, {"n": n, "random_state": random_state})
    rng = np.random.default_rng(random_state)
    age = rng.integers(20, 90, n)
    sex = rng.choice(["female", "male"], n)
    bmi = np.clip(rng.normal(26 + 0.03 * age, 4.5), 16, 48).round(1)
    systolic = np.rint(np.clip(rng.normal(95 + 0.35 * age + 0.6 * bmi, 13), 85, 210))
    hba1c = np.clip(rng.normal(4.2 + 0.012 * age + 0.04 * bmi, 0.7), 4, 13).round(1)
    smokes = rng.random(n) < 0.28
    prior = rng.poisson(0.012 * age)
    activity = rng.choice(3, n, p=[0.35, 0.4, 0.25])
    ward = rng.choice(["cardiology", "medicine", "surgery"], n, p=[0.25, 0.5, 0.25])
    score = (
        0.045 * (age - 58)
        + 0.03 * (systolic - 135)
        + 0.9 * (hba1c - 5.9)
        + 0.07 * (bmi - 27)
        + 1.1 * smokes
        + 0.5 * prior
        - 0.5 * activity
        + 0.5 * (ward == "cardiology")
    )
    is_high = rng.random(n) < 1 / (1 + np.exp(-1.6 * score + 0.9))
    levels = ["low", "moderate", "high"]
    frame = pd.DataFrame(
        {
            "age": age,
            "sex": pd.Categorical(sex),
            "bmi": bmi,
            "systolic": systolic.astype(int),
            "hba1c": np.where(rng.random(n) < 0.15, np.nan, hba1c),
            "smokes": smokes,
            "prior_admissions": prior,
            "activity": pd.Categorical(np.array(levels)[activity], levels, ordered=True),
            "ward": pd.Categorical(ward),
            "admitted": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D"),
        },
        index=[f"P{number:04d}" for number in range(1, n + 1)],
    )
    return frame, np.where(is_high, "high", "low")
