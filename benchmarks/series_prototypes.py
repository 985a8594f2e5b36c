"""Compare prototype models of series with nearest neighbors under DTW.

    make bench-series-prototypes DATA=folder

Each model is fitted to the archive's training series and asked about at most 300 test series, drawn
once. Everything runs on one thread; times are processor times, the least of three, in the same
process. Data sets that are done are read from build/series_prototypes.csv. Writes
series_prototypes.md, .png and _warping.png to benchmarks/results.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from aeon.classification.distance_based import KNeighborsTimeSeriesClassifier

import contrafact as cf
from _common import RESULTS, Array, conditions, make_parser, timed, write_page
from _series_prototypes_page import draw_figure, page
from contrafact.prototypes import GLVQ, GRLVQ, MedianLVQ, SoftDTW
from contrafact.prototypes.dissimilarity import nearest_by_dtw
from contrafact.report import plot_warping

BUNDLED = ("GunPoint", "ItalyPowerDemand", "ArrowHead", "BasicMotions")
FROM_FOLDER = ("TwoLeadECG", "CBF", "ECG200", "MoteStrain", "Coffee", "Chinatown")
WINDOW = 0.1
ROWS = 300
CACHE = Path("build/series_prototypes.csv")


class PrunedNeighbor:
    """1-NN under DTW by the search that `MedianLVQ.predict` uses, over all training series."""

    def fit(self, X: Array, y: Array) -> PrunedNeighbor:
        """Keep the training series."""
        self.X = X
        self.y = y
        return self

    def predict(self, X: Array) -> Array:
        """Return the class of the nearest."""
        nearest, _ = nearest_by_dtw(X, self.X, WINDOW)
        return np.asarray(self.y[nearest])


def models(per_class: int, seed: int) -> dict[str, Any]:
    """Return unfitted prototype models, by name."""
    warped = SoftDTW(window=WINDOW)
    return {
        "GLVQ, Euclidean": GLVQ(per_class, random_state=seed),
        "GLVQ, soft-DTW": GLVQ(per_class, distance_fn=warped, random_state=seed),
        "GRLVQ, soft-DTW": GRLVQ(per_class, distance_fn=warped, random_state=seed),
    }


def medians(per_class: int) -> dict[str, Any]:
    """Return unfitted models whose prototypes are training series; they need no seed."""
    return {
        "MedianLVQ, Euclidean": MedianLVQ(per_class),
        "MedianLVQ, DTW": MedianLVQ(per_class, metric="dtw", window=WINDOW),
        "MedianLVQ, MSM": MedianLVQ(per_class, metric="msm", window=WINDOW),
    }


def neighbors() -> dict[str, Any]:
    """Return unfitted 1-NN models."""
    return {
        "1-NN DTW, aeon": KNeighborsTimeSeriesClassifier(
            distance="dtw", distance_params={"window": WINDOW}
        ),
        "1-NN DTW, pruned": PrunedNeighbor(),
    }


def load(name: str, folder: Path | None) -> tuple[Array, Array, Array, Array]:
    """Return training and test series, at most `ROWS` of the latter, in double precision."""
    if name in BUNDLED:
        data = cf.load_dataset(name)
        X, y, X_test, y_test = data.X_train, data.y_train, data.X_test, data.y_test
    else:
        assert folder is not None
        with np.load(folder / f"{name}.npz") as file:
            X, y, X_test, y_test = (file[k] for k in ("X_train", "y_train", "X_test", "y_test"))
    rows = np.random.default_rng(0).permutation(len(X_test))[:ROWS]
    return X.astype(float), y, X_test[rows].astype(float), y_test[rows]


def least_time(call: Callable[[], Any]) -> float:
    """Return the least processor time of three calls."""
    return min(timed(call)[1].cpu for _ in range(3))


def measure(name: str, folder: Path | None, seeds: int) -> list[dict[str, Any]]:
    """Return one line per model, number of prototypes and seed."""
    X, y, X_test, y_test = load(name, folder)
    lines = []

    def add(label: str, model: Any, per_class: int, seed: int) -> None:
        _, fitting = timed(lambda: model.fit(X, y))
        predicted = model.predict(X_test)
        lines.append(
            {
                "data": name,
                "model": label,
                "per_class": per_class,
                "seed": seed,
                "accuracy": np.mean(predicted == y_test),
                "fit": fitting.cpu,
                "predict": least_time(lambda: model.predict(X_test)),
                "train": len(X),
                "test": len(X_test),
                "shape": "×".join(map(str, X.shape[1:])),
                "classes": len(np.unique(y)),
            }
        )
        print(name, label, per_class, seed, round(lines[-1]["accuracy"], 3), flush=True)

    for label, model in neighbors().items():
        add(label, model, 0, 0)
    for per_class in (1, 3):
        for label, model in medians(per_class).items():
            add(label, model, per_class, 0)
        for seed in range(seeds):
            for label, model in models(per_class, seed).items():
                add(label, model, per_class, seed)
    return lines


def compile_all() -> None:
    """Run every model once on few series: the first call compiles."""
    X = np.random.default_rng(0).normal(size=(6, 1, 20))
    y = np.arange(6) % 2
    for shape in ((6, 1, 20), (6, 2, 10)):
        for model in (*neighbors().values(), *medians(1).values(), *models(1, 0).values()):
            model.fit(X.reshape(shape), y).predict(X.reshape(shape))


def main() -> None:
    """Run the study; page and figure are written after each data set."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, help="folder with the .npz files of further data sets")
    parser.add_argument("--seeds", type=int, default=3, help="seeds of the gradient models")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    frame = pd.read_csv(CACHE) if CACHE.exists() else pd.DataFrame({"data": []})
    command = f"python benchmarks/series_prototypes.py --data FOLDER --seeds {args.seeds}"
    head = conditions(command, ["aeon", "numba"])
    compile_all()
    for name in BUNDLED + (FROM_FOLDER if args.data else ()):
        if name in set(frame["data"]):
            continue
        frame = pd.concat([frame, pd.DataFrame(measure(name, args.data, args.seeds))])
        CACHE.parent.mkdir(exist_ok=True)
        frame.to_csv(CACHE, index=False)
        write_results(frame, head)
    write_results(frame, head)
    draw_warping()


def write_results(frame: pd.DataFrame, head: str) -> None:
    """Write the page and the figure."""
    whole = ["per_class", "seed", "train", "test", "classes"]
    frame = frame.astype(dict.fromkeys(whole, int))
    write_page("series_prototypes.md", *page(frame, head, WINDOW, ROWS))
    draw_figure(frame, RESULTS / "series_prototypes.png")


def draw_warping() -> None:
    """Draw one decision on GunPoint: a test series that Euclidean GLVQ gets wrong."""
    X, y, X_test, y_test = load("GunPoint", None)
    euclidean, warped, _ = (model.fit(X, y) for model in models(1, 0).values())
    saved = (euclidean.predict(X_test) != y_test) & (warped.predict(X_test) == y_test)
    clearest = np.where(saved, warped.margins(X_test), -1).argmax()
    plot_warping(warped, X_test[clearest], path=RESULTS / "series_prototypes_warping.png")


if __name__ == "__main__":
    main()
