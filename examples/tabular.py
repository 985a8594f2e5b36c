"""Find three different ways in which a tumour would have been classified as 'benign'.

The rows are the breast cancer measurements that come with scikit-learn, as a pandas DataFrame; the
model is a random forest in a pipeline. Columns keep their names throughout.

    python examples/tabular.py [folder]
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import contrafact as cf


def main(folder: Path, trees: int = 100) -> cf.Counterfactuals:
    """Train, explain, and write picture and report into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    table = load_breast_cancer(as_frame=True)
    y = table.target_names[table.target]
    X_train, X_test, y_train, y_test = train_test_split(table.data, y, random_state=0)
    forest = RandomForestClassifier(trees, random_state=0)
    model = make_pipeline(StandardScaler(), forest).fit(X_train, y_train)
    print(f"The forest gets {model.score(X_test, y_test):.0%} of {len(X_test)} test rows right.")

    # The columns that give the error of a measurement must not change, and no value may leave the
    # measured range.
    limits = cf.Constraints(
        frozen=table.data.columns.str.endswith("error"),
        lower=X_train.min().to_numpy(),
        upper=X_train.max().to_numpy(),
    )
    suspicious = X_test[model.predict(X_test) == "malignant"][:6]
    explainer = cf.CoMTE().fit(model, X_train, y_train)
    result = explainer.explain(suspicious, target="benign", constraints=limits, k=3)

    n_ways = result.valid.sum()
    n_rows = len(np.unique(result.source[result.valid]))
    print(f"{n_rows} of {len(suspicious)} rows have a way to 'benign', {n_ways} ways in all.")
    print("For the first row, one of these would do:")
    for i in np.flatnonzero((result.source == 0) & result.valid):
        changes = []
        for j in np.flatnonzero(result.changed[i]):
            changes.append(f"{result.names[j]} {result.X[i, j]:.3g} → {result.X_cf[i, j]:.3g}")
        print("  " + ", ".join(changes))

    result.plot(0, folder / "row.png")
    result.report(
        folder / "report.html",
        title="What would have made it benign?",
        reference=(X_train, y_train),
        constraints=limits,
    )
    print(f"Picture and report: {folder}")
    return result


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/examples/tabular"))
