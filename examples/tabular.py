"""Find three different ways in which a patient would have been at low risk.

The patients are made up. The table has whole numbers, decimals, booleans, categories with and
without an order, a date and missing values; the model is gradient boosting behind one-hot codes.

    python examples/tabular.py [folder]
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import contrafact as cf
from contrafact.data import make_patients


def main(folder: Path, n: int = 1000) -> cf.Counterfactuals:
    """Train, explain, and write picture and report into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    patients, risk = make_patients(n)
    known, new = np.split(np.arange(n), [3 * n // 4])
    prepare = make_column_transformer(
        (OneHotEncoder(), ["sex", "smokes", "activity", "ward"]),
        ("drop", ["admitted"]),
        remainder="passthrough",
        sparse_threshold=0,
    )
    model = make_pipeline(prepare, HistGradientBoostingClassifier(random_state=0))
    model.fit(patients.iloc[known], risk[known])
    accuracy = model.score(patients.iloc[new], risk[new])
    print(f"The model gets {accuracy:.0%} of {len(new)} new patients right.")

    # Nobody gets younger or was never admitted, sex stays, and HbA1c moves within what treatment
    # can reach.
    limits = cf.Constraints(
        frozen=["sex", "ward"],
        increasing=["age"],
        bounds={"hba1c": (5.0, 9.0), "prior_admissions": (0, None)},
        max_changed=3,
    )
    unseen = patients.iloc[new]
    at_risk = unseen[model.predict(unseen) == "high"][:6]
    explainer = cf.Graft().fit(model, patients.iloc[known], risk[known])
    result = explainer.explain(at_risk, target="low", constraints=limits, k=3)

    n_patients = len(np.unique(result.source[result.valid]))
    print(f"{n_patients} of {len(at_risk)} patients have a way to low risk.")
    print(f"For {at_risk.index[0]}, one of these would do:")
    print(result[result.source == 0].changes().to_string(index=False))

    result.plot(0, folder / "row.png")
    result.report(
        folder / "report.html",
        title="What would have made the risk low?",
        reference=(patients.iloc[known], risk[known]),
        constraints=limits,
    )
    print(f"Picture and report: {folder}")
    return result


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/tabular"))
