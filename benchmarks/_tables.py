"""Tables for the studies of tabular data: mixed columns, fixed seeds, nothing is downloaded.

Three tables are generated: columns depend on each other, labels are noisy, and the columns have
the dtypes that people's frames have (category, ordered category, bool, int64, Int64 with missing
entries, floats of one decimal with NaN). Three come with scikit-learn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.random import Generator
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.model_selection import train_test_split

from _common import Array

Kind = Literal["number", "integer", "boolean", "category"]


@dataclass(frozen=True)
class Table:
    """A frame with labels, split into training and test rows.

    Parameters
    ----------
    name : str
    X_train, X_test : DataFrame
    y_train, y_test : array of str
    frozen : tuple of str
        Columns that no method may change in the study.
    groups : dict of str to list of str
        One-hot groups: of their columns one is 1, or none where the category was missing.
    """

    name: str
    X_train: pd.DataFrame
    y_train: Array
    X_test: pd.DataFrame
    y_test: Array
    frozen: tuple[str, ...]
    groups: dict[str, list[str]] = field(default_factory=dict)

    @cached_property
    def kinds(self) -> dict[str, Kind]:
        """The kind of every column."""
        return {name: column_kind(self.X_train[name]) for name in self.X_train}

    def columns(self, *kinds: Kind) -> list[str]:
        """Return the columns of some kinds."""
        return [name for name, kind in self.kinds.items() if kind in kinds]

    @cached_property
    def decimals(self) -> dict[str, int]:
        """Decimals of the values of every column of numbers."""
        return {name: count_decimals(self.X_train[name]) for name in self.columns("number")}

    @cached_property
    def scales(self) -> dict[str, float]:
        """Median absolute deviation of every column of numbers, or deviation where that is 0."""
        scales = {}
        for name in self.columns("number", "integer"):
            values = self.X_train[name].dropna().to_numpy(float)
            mad = float(np.median(np.abs(values - np.median(values))))
            scales[name] = mad if mad > 0 else float(values.std())
        return scales


def column_kind(column: pd.Series) -> Kind:
    """Return the kind of a column, from its dtype."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return "category"
    if pd.api.types.is_bool_dtype(column):
        return "boolean"
    return "integer" if pd.api.types.is_integer_dtype(column) else "number"


def count_decimals(column: pd.Series) -> int:
    """Return the smallest number of decimals that writes all values of a column."""
    values = column.dropna().to_numpy(float)
    return next(digits for digits in range(10) if np.allclose(values, values.round(digits), 1e-9))


def load_tables() -> dict[str, Table]:
    """Return all tables by name."""
    makers = (adult, german, hospital, iris, wine, breast_cancer)
    return {make.__name__.replace("_", " "): make() for make in makers}


# --- generated tables ----------------------------------------------------------------------------


def adult(seed: int = 0, n: int = 3000) -> Table:
    """Return a table like UCI Adult: who earns more than 50K."""
    rng = np.random.default_rng(seed)
    age = whole(17 + rng.gamma(2.6, 8.5, n), 17, 90)
    sex = choose(rng, ("female", "male"), logits(n, 0, 0.7))
    skill = rng.normal(0, 1, n)
    degrees = ("school", "hs-grad", "some-college", "bachelors", "masters", "doctorate")
    education = rank(skill + 0.02 * (age > 24), (0.12, 0.44, 0.68, 0.88, 0.97))
    education = np.where(age < 22, np.minimum(education, 2), education)
    marital_status = choose(
        rng,
        ("never-married", "married", "divorced", "widowed"),
        logits(n, 2.2 - 0.08 * (age - 20), 0.9, 0.02 * (age - 30) - 0.6, 0.09 * (age - 75)),
    )
    white_collar = 0.9 * education - 2.2
    occupation = choose(
        rng,
        ("service", "manual", "sales", "clerical", "technical", "professional", "managerial"),
        logits(
            n, 0.3, 0.9 * (sex == "male"), 0, 0.3, 0, white_collar, white_collar + 0.02 * (age - 30)
        ),
    )
    years_employed = whole((age - 17 - education) * rng.beta(2, 1.6, n), 0, 60)
    workclass = choose(
        rng,
        ("private", "government", "self-employed", "not-working"),
        logits(n, 1.8, 0.2 * education - 0.4, 0.02 * (age - 40), -1.6),
    )
    hours = 40 + 3 * (workclass == "self-employed") + rng.normal(0, 9, n)
    hours = np.where(workclass == "not-working", rng.integers(1, 20, n), hours)
    wealth = skill + 0.03 * (age - 38) + rng.normal(0, 1, n)
    gain = np.where(wealth > 1.9, np.exp(rng.normal(8.4, 0.9, n)), 0)
    loss = np.where((gain == 0) & (rng.random(n) < 0.05), rng.normal(1850, 350, n), 0)
    score = (
        -4.4
        + 0.75 * education
        + 1.7 * (marital_status == "married")
        + 0.055 * (np.minimum(age, 60) - 38)
        + 0.9 * np.isin(occupation, ("professional", "managerial"))
        + 0.05 * (hours - 40)
        + 0.0006 * np.minimum(gain, 12000)
        + 0.03 * years_employed
        + 0.3 * (sex == "male")
    )
    frame = pd.DataFrame(
        {
            "age": age,
            "workclass": categories(lose(rng, workclass, 0.05)),
            "education": ordered(degrees, education),
            "marital_status": categories(marital_status),
            "occupation": categories(lose(rng, occupation, 0.05)),
            "race": categories(
                choose(rng, ("white", "black", "asian", "other"), logits(n, 2.2, 0.4, -0.6, -1))
            ),
            "sex": categories(sex),
            "years_employed": years_employed,
            "capital_gain": whole(gain, 0, 99999),
            "capital_loss": whole(loss, 0, 4000),
            "hours_per_week": whole(hours, 1, 99),
        }
    )
    y = draw_labels(rng, score, ("<=50K", ">50K"))
    return split("adult", frame, y, frozen=("race", "sex"))


def german(seed: int = 1, n: int = 1500) -> Table:
    """Return a table like Statlog's German credit: 20 columns, most of them categories."""
    rng = np.random.default_rng(seed)
    means = rng.normal(0, 1, n)
    age = whole(19 + rng.gamma(2.2, 7.5, n), 19, 75)
    savings = rank(means + rng.normal(0, 0.8, n), (0.55, 0.7, 0.8, 0.9))
    employment = rank(means + 0.05 * (age - 35) + rng.normal(0, 0.8, n), (0.06, 0.23, 0.57, 0.75))
    checking = choose(
        rng,
        ("none", "<0", "0-200", ">200"),
        logits(n, 0.6 + 0.4 * means, 0.3 - 0.8 * means, 0.3 - 0.3 * means, -1 + 0.6 * means),
    )
    purpose = choose(
        rng,
        (
            "car-new",
            "car-used",
            "furniture",
            "radio-tv",
            "appliance",
            "repairs",
            "education",
            "business",
        ),
        logits(n, 0.9, 0.2 + 0.4 * means, 0.6, 0.8, -2, -1.6, -1, 0.1),
    )
    duration = 6 * whole(rng.gamma(2.6, 1.4, n) + 0.5 * (purpose == "business"), 1, 12)
    log_amount = (
        6.6 + 0.035 * duration + 0.25 * means + 0.3 * np.isin(purpose, ("car-used", "business"))
    )
    amount = whole(np.exp(log_amount + rng.normal(0, 0.45, n)), 250, 18500)
    history = choose(
        rng,
        ("no-credits", "all-paid", "existing-paid", "delayed", "critical"),
        logits(n, -1.2, -1, 1.4, -0.4, 0.6 + 0.03 * (age - 35)),
    )
    housing = choose(
        rng, ("rent", "own", "free"), logits(n, 0.03 * (35 - age), 1.4 + 0.3 * means, -0.8)
    )
    score = (
        0.1
        + 0.9 * (checking == "none")
        + 0.5 * (checking == ">200")
        - 0.6 * (checking == "<0")
        - 0.035 * (duration - 18)
        - 0.00012 * (amount - 2500)
        + 0.25 * savings
        + 0.2 * (employment - 2)
        + 0.7 * (history == "critical")
        - 0.8 * np.isin(history, ("no-credits", "all-paid"))
        + 0.4 * (housing == "own")
        + 0.015 * (age - 33)
        + 0.6 * (purpose == "car-used")
    )
    frame = pd.DataFrame(
        {
            "checking_status": categories(checking),
            "duration": duration,
            "credit_history": categories(history),
            "purpose": categories(purpose),
            "credit_amount": amount,
            "savings": ordered(("<100", "100-500", "500-1000", ">1000", "unknown"), savings),
            "employment": ordered(("unemployed", "<1", "1-4", "4-7", ">7"), employment),
            "installment_rate": whole(4.4 - amount / 3000 + rng.normal(0, 0.8, n), 1, 4),
            "personal_status": categories(
                choose(
                    rng,
                    ("male-single", "male-married", "male-divorced", "female"),
                    logits(n, 1, -0.6, -1.2, 0.5),
                )
            ),
            "other_debtors": categories(
                choose(rng, ("none", "co-applicant", "guarantor"), logits(n, 2.6, -0.4, -0.2))
            ),
            "residence_since": whole(rng.uniform(0.5, 4.5, n) + 0.02 * (age - 35), 1, 4),
            "property": categories(
                choose(
                    rng,
                    ("real-estate", "life-insurance", "car", "none"),
                    logits(n, 0.3 * means, 0, 0.3, -0.4 - 0.3 * means),
                )
            ),
            "age": age,
            "other_plans": categories(
                choose(rng, ("none", "bank", "stores"), logits(n, 1.9, 0, -1))
            ),
            "housing": categories(housing),
            "existing_credits": whole(
                0.9 + rng.gamma(1.2, 0.45, n) + 0.4 * (history == "critical"), 1, 4
            ),
            "job": categories(
                choose(
                    rng,
                    ("unskilled", "skilled", "management"),
                    logits(n, 0.1 - 0.4 * means, 1.2, -0.4 + 0.6 * means),
                )
            ),
            "dependents": 1 + (rng.random(n) < 0.15).astype(int),
            "telephone": rng.random(n) < sigmoid(0.6 * means - 0.4),
            "foreign_worker": rng.random(n) < 0.9,
        }
    )
    y = draw_labels(rng, score, ("bad", "good"))
    return split("german", frame, y, frozen=("age", "personal_status", "foreign_worker"))


def hospital(seed: int = 2, n: int = 2000) -> Table:
    """Return a table of patients with missing values: whose risk is high."""
    rng = np.random.default_rng(seed)
    age = whole(rng.normal(58, 17, n), 18, 98)
    sex = choose(rng, ("female", "male"), logits(n, 0, 0))
    smokes = rng.random(n) < sigmoid(-0.9 - 0.02 * (age - 50) + 0.4 * (sex == "male"))
    bmi = (26.5 + rng.gamma(2, 2.2, n) - 2.2 + 0.02 * (age - 50)).round(1)
    systolic = whole(118 + 0.45 * (age - 40) + 0.9 * (bmi - 26) + rng.normal(0, 12, n), 85, 220)
    hba1c = np.clip(5.3 + 0.09 * (bmi - 26) + 0.012 * (age - 50) + rng.gamma(1.2, 0.5, n), 4, 14)
    sickness = 0.03 * (age - 58) + 0.5 * smokes + 0.35 * (hba1c - 6) + 0.02 * (systolic - 130)
    admissions = rng.poisson(np.exp(np.clip(0.35 * sickness - 0.4, -3, 2)))
    ward = choose(
        rng,
        ("general", "cardiology", "surgery", "geriatrics", "endocrinology"),
        logits(n, 1, 0.04 * (systolic - 135), 0.3, 0.08 * (age - 72), 0.5 * (hba1c - 7.2)),
    )
    score = (
        -0.5 + sickness + 0.55 * admissions + 0.05 * (bmi - 28) + 0.5 * (ward == "cardiology") - 0.9
    )
    # The laboratory value is missing more often where nobody suspected anything.
    unmeasured = rng.random(n) < sigmoid(-1.2 - 0.5 * (hba1c - 6))
    frame = pd.DataFrame(
        {
            "age": age,
            "sex": categories(sex),
            "bmi": np.where(rng.random(n) < 0.03, np.nan, bmi),
            "systolic": systolic,
            "hba1c": np.where(unmeasured, np.nan, hba1c.round(1)),
            "smokes": smokes,
            "prior_admissions": pd.array(admissions, dtype="Int64"),
            "ward": categories(ward),
        }
    )
    frame.loc[rng.random(n) < 0.04, "prior_admissions"] = pd.NA
    y = draw_labels(rng, score, ("low", "high"))
    return split("hospital", frame, y, frozen=("age", "sex"))


def one_hot(table: Table) -> Table:
    """Return a table with 0/1 columns in place of its unordered categories."""
    names = [name for name in table.columns("category") if not table.X_train[name].cat.ordered]
    X_train, X_test = (
        pd.get_dummies(X, columns=names, dtype=int) for X in (table.X_train, table.X_test)
    )
    groups = {
        name: [f"{name}_{level}" for level in table.X_train[name].cat.categories] for name in names
    }
    frozen = [column for name in table.frozen for column in groups.get(name, [name])]
    return replace(
        table,
        name=f"{table.name}, one-hot",
        X_train=X_train,
        X_test=X_test,
        frozen=tuple(frozen),
        groups=groups,
    )


# --- scikit-learn's tables -----------------------------------------------------------------------


def iris() -> Table:
    """Return scikit-learn's iris."""
    return bundled("iris", load_iris(as_frame=True))


def wine() -> Table:
    """Return scikit-learn's wine."""
    return bundled("wine", load_wine(as_frame=True))


def breast_cancer() -> Table:
    """Return scikit-learn's breast cancer."""
    return bundled("breast cancer", load_breast_cancer(as_frame=True))


def bundled(name: str, bunch: Any) -> Table:
    """Name the columns as people do, and the classes by their names."""
    columns = bunch.data.columns.str.replace(r"[ /]", "_", regex=True).str.replace("_(cm)", "")
    labels = np.asarray(bunch.target_names, dtype=object)[bunch.target]
    return split(name, bunch.data.set_axis(columns, axis=1), labels, frozen=())


# --- parts ---------------------------------------------------------------------------------------


def split(name: str, frame: pd.DataFrame, y: Array, frozen: tuple[str, ...]) -> Table:
    """Keep 30 % of the rows for testing."""
    parts = train_test_split(frame, y, test_size=0.3, random_state=0, stratify=y)
    X_train, X_test, y_train, y_test = parts
    return Table(
        name,
        X_train.reset_index(drop=True),
        y_train,
        X_test.reset_index(drop=True),
        y_test,
        frozen,
    )


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def whole(values: Array, low: int, high: int) -> Array:
    """Round to integers within limits."""
    return np.clip(np.round(values), low, high).astype(np.int64)


def logits(n: int, *columns: Any) -> Array:
    """Stack scalars and arrays of n values to (n, columns)."""
    return np.stack([np.broadcast_to(np.asarray(column, float), n) for column in columns], axis=1)


def choose(rng: Generator, names: Sequence[str], scores: Array) -> Array:
    """Draw one name per row with the softmax of its scores."""
    return np.asarray(names, dtype=object)[(scores + rng.gumbel(size=scores.shape)).argmax(1)]


def rank(values: Array, shares: Sequence[float]) -> Array:
    """Cut values at quantiles: levels 0, 1, 2, ..."""
    return np.searchsorted(np.quantile(values, shares), values)


def lose(rng: Generator, values: Array, share: float) -> Array:
    """Make a share of the values missing."""
    return np.where(rng.random(len(values)) < share, None, values)


def categories(values: Array) -> pd.Series:
    return pd.Series(values).astype("category")


def ordered(names: Sequence[str], levels: Array) -> pd.Categorical:
    return pd.Categorical.from_codes(levels, categories=list(names), ordered=True)


def draw_labels(
    rng: Generator, score: Array, names: tuple[str, str], flipped: float = 0.03
) -> Array:
    """Draw labels with the sigmoid of the score; a share of them is wrong."""
    positive = rng.random(len(score)) < sigmoid(1.6 * score)
    wrong = rng.random(len(score)) < flipped
    return np.asarray(names, dtype=object)[(positive ^ wrong).astype(int)]
