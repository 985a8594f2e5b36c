"""Compare patches of real and of prototype images with other ways for models without gradients.

    make bench-patches

Digits, a random forest and 5 nearest neighbors. `Graft` takes its donors from the reference data:
the training images, or prototypes of them. Writes benchmarks/results/patches.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

import contrafact as cf
from _common import (
    Array,
    conditions,
    flatten_rows,
    make_parser,
    random_rows,
    table_head,
    table_row,
    write_page,
)
from contrafact.prototypes import GLVQ, MedianLVQ

N_IMAGES = 40
PER_CLASS = 5

Fit = Callable[[Any, Array, Array], cf.Explainer]


def graft_from(kind: Any) -> Fit:
    """Return a function that fits Graft to the prototypes of a model of this kind."""

    def fit(model: Any, X: Array, y: Array) -> cf.Explainer:
        prototypes = kind(PER_CLASS, random_state=0).fit(X, y)
        return cf.Graft().fit(model, prototypes.prototypes_, prototypes.prototype_labels_)

    return fit


METHODS: dict[str, Fit] = {
    "Graft, donors: training images": lambda *given: cf.Graft().fit(*given),
    "Graft, donors: GLVQ prototypes": graft_from(GLVQ),
    "Graft, donors: MedianLVQ prototypes": graft_from(MedianLVQ),
    "RandomMask": lambda *given: cf.RandomMask().fit(*given),
    "LineSearch": lambda *given: cf.LineSearch().fit(*given),
    "NearestUnlike": lambda *given: cf.NearestUnlike().fit(*given),
}


def measure(result: cf.Counterfactuals, X: Array, y: Array, oracle: Any) -> list[str]:
    """Return the cells of a line; means over all images, failures included in the first alone."""
    valid = result.valid
    x, x_cf = (flatten_rows(np.asarray(part, float))[valid] for part in (result.X, result.X_cf))
    target = result.target[valid]
    nearest = [
        np.linalg.norm(flatten_rows(X[y == c]) - row, axis=1).min()
        for row, c in zip(x_cf, target, strict=True)
    ]
    return [
        f"{valid.mean():.2f}",
        f"{(np.abs(x_cf - x) > 1e-6).mean():.2f}",
        f"{np.linalg.norm(x_cf - x, axis=1).mean():.2f}",
        f"{np.mean(nearest):.2f}",
        f"{np.mean(oracle.predict(x_cf) == target):.2f}",
        f"{result.calls.mean():.0f}",
    ]


def main() -> None:
    """Measure and write the page."""
    make_parser(__doc__).parse_args()
    digits = cf.load_dataset("digits")
    X, y = digits.X_train / 16, digits.y_train
    instances = random_rows(digits.X_test / 16, N_IMAGES)
    oracle = SVC().fit(flatten_rows(X), y)
    models = {
        "random forest, 100 trees": RandomForestClassifier(100, random_state=0),
        "5 nearest neighbors": KNeighborsClassifier(5),
    }
    lines = [
        "# Patches for models without gradients",
        "",
        conditions("make bench-patches", ["scikit-learn"]),
        "",
        f"Digits (8 × 8, values from 0 to 1), {N_IMAGES} random test images, one run, target: the "
        f"runner-up class. Prototypes: {PER_CLASS} of each class. *Distance to the nearest real "
        "image*: l2, to training images of the target class; *oracle*: share that a support "
        "vector machine, trained on the same images, puts in the target class. All but the share "
        "of valid ones are means over valid counterfactuals.",
    ]
    for name, model in models.items():
        model.fit(flatten_rows(X), y)
        lines += [
            "",
            f"## {name}",
            "",
            *table_head(
                "method",
                "valid",
                "changed area",
                "l2 of the change",
                "distance to the nearest real image",
                "oracle",
                "model rows",
            ),
        ]
        target = None
        for method, fit in METHODS.items():
            result = fit(model, X, y).explain(instances, target)
            target = result.target if target is None else target  # the same for all
            lines.append(table_row(method, *measure(result, X, y, oracle)))
            print(lines[-1], flush=True)
    write_page("patches.md", *lines, "")


if __name__ == "__main__":
    main()
