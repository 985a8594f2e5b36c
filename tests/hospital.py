"""A small table of a hospital, with every kind of column, and counterfactuals written by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from contrafact import Counterfactuals

CLASSES = np.array(["high risk", "low risk"])


def patients(n: int = 60, seed: int = 0) -> pd.DataFrame:
    """Rows of a table: numbers, whole numbers, categories, booleans, dates, gaps, one-hot."""
    rng = np.random.default_rng(seed)
    ward = rng.integers(0, 3, n)
    hba1c = np.round(rng.normal(6.5, 1.0, n), 1)
    hba1c[1::7] = np.nan
    creatinine = pd.array(rng.integers(60, 130, n), dtype="Int64")
    creatinine[2::5] = pd.NA
    return pd.DataFrame(
        {
            "age": rng.integers(25, 90, n),
            "bmi": np.round(rng.normal(29, 4, n), 1),
            "hba1c": hba1c,
            "creatinine": creatinine,
            "smokes": rng.random(n) < 0.5,
            "activity": pd.Categorical(
                rng.choice(["none", "some", "daily"], n), ["none", "some", "daily"], ordered=True
            ),
            "sex": rng.choice(["female", "male"], n),
            "ward_A": (ward == 0).astype(int),
            "ward_B": (ward == 1).astype(int),
            "ward_C": (ward == 2).astype(int),
            "admitted": pd.Timestamp("2026-01-01")
            + pd.to_timedelta(rng.integers(0, 300, n), unit="D"),
        },
        index=[f"P-{1000 + i}" for i in range(n)],
    )


def risk(frame: pd.DataFrame) -> np.ndarray:
    """A model of frames: probabilities of high and low risk."""
    bmi = np.asarray(frame["bmi"], dtype=float)
    smokes = np.asarray(frame["smokes"], dtype=float)
    age = np.asarray(frame["age"], dtype=float)
    score = 0.4 * (bmi - 29) + 2.0 * (smokes - 0.5) + 0.02 * (age - 60)
    low = 1 / (1 + np.exp(score))
    return np.stack([1 - low, low], axis=1)


def two_patients() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two patients, two options each, before and after; the fourth option does not suffice."""
    before = patients().iloc[[0, 0, 1, 1]].copy()
    before["smokes"] = [True, True, True, True]
    before["bmi"] = [31.4, 31.4, 38.0, 38.0]
    before["activity"] = pd.Categorical(["some"] * 4, ["none", "some", "daily"], ordered=True)
    after = before.copy()
    after["smokes"] = [False, True, False, True]
    after["bmi"] = [27.1, 24.0, 25.0, 36.5]
    after["hba1c"] = [before["hba1c"].iloc[0], before["hba1c"].iloc[1], 6.1, np.nan]
    ward = before[["ward_A", "ward_B", "ward_C"]].to_numpy()
    moved = ward.copy()
    moved[1] = np.roll(ward[1], 1)
    after[["ward_A", "ward_B", "ward_C"]] = moved
    after["activity"] = pd.Categorical(
        ["some", "some", "daily", "daily"],
        ["none", "some", "daily"],
        ordered=True,
    )
    return before, after


def hospital_result() -> Counterfactuals:
    """The result of the two patients."""
    from contrafact import Schema

    before, after = two_patients()
    schema = Schema.infer(pd.concat([patients(), before, after]))
    result = Counterfactuals.from_arrays(
        risk_model(), before, after, "low risk", method="Hand", schema=schema
    )
    options = {**result.provenance["options"], "k": 2}
    return replace(
        result,
        source=np.array([0, 0, 1, 1]),
        provenance={**result.provenance, "options": options},
    )


class RiskModel:
    """The model as a trained estimator of frames."""

    classes_ = CLASSES
    feature_names_in_ = np.array(patients(2).columns, dtype=object)

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return risk(X)

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        return CLASSES[risk(X).argmax(1)]


def risk_model() -> RiskModel:
    return RiskModel()
