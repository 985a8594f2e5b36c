"""The grid of TSCFEval (xAI 2026) with our methods and floors, beside its published table. One command:

    make bench-tscfeval                 ArrowHead, which comes with aeon
    make bench-tscfeval DATA=folder     and CBF, Chinatown, ECG200, Lightning7 (.npz) from there

The run survives being killed: started again, it goes on. Writes benchmarks/results/tscfeval.md and figures.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import contrafact as cf
from contrafact.benchmark import Benchmark
from contrafact.report import write_benchmark

RESULTS = Path(__file__).parent / "results"
GIVEN = ("CBF", "Chinatown", "ECG200", "Lightning7")
METRICS = ["valid", "sparsity", "rmse", "segments", "dtw_lof_inlier", "dtw_lof", "knn_distance"]
FLOORS = ("NearestUnlike", "LineSearch", "RandomMask", "RandomTarget")
# Means of the publication: seconds (for 3 counterfactuals), validity, changed fraction, dtw_lof, segments.
PUBLISHED = {
    "ng_blend": (5.2, 0.70, 1.0, 0.99, 1.2),
    "comte": (0.35, 1.00, 1.0, 0.99, 1.0),
    "sets": (0.38, 0.88, 0.56, 0.82, 1.2),
    "tsevo": (2.7, 0.97, 0.13, 0.93, 2.1),
    "glacier": (22.4, 0.24, 0.78, 0.98, 9.1),
    "cels": (24.1, 0.24, 0.15, 0.97, 10.0),
}


def classifiers() -> dict[str, Any]:
    """The five of the publication, or what comes nearest without further packages."""
    catch22 = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    return {
        "FCN (for TimeCNN)": {"model": "fcn", "max_epochs": 100},
        "TSF": {
            "model": "aeon.classification.interval_based:TimeSeriesForestClassifier",
            "n_estimators": 100,
        },
        "ROCKET": {
            "model": "aeon.classification.convolution_based:RocketClassifier",
            "n_kernels": 1000,
        },
        "RDST": {
            "model": "aeon.classification.shapelet_based:RDSTClassifier",
            "max_shapelets": 1000,
        },
        "Catch22+LR (for TSFresh+LR)": {
            "model": "aeon.classification.feature_based:Catch22Classifier",
            "estimator": catch22,
        },
    }


def explainers() -> dict[str, Any]:
    refined = {"options": {"refine": True}}
    return {
        "NearestUnlike": "NearestUnlike",
        "LineSearch": "LineSearch",
        "RandomMask": "RandomMask",
        "RandomTarget": "RandomTarget",
        "NativeGuide": "NativeGuide",
        "NativeGuide, refined": {"method": "NativeGuide", **refined},
        "CoMTE": "CoMTE",
        "SETS": "SETS",
        "TSEvo": "TSEvo",
        "CELS, refined": {"method": "CELS", "max_iter": 200, **refined},
        "Glacier": "Glacier",
    }


def grid(folder: Path | None, seeds: int) -> Benchmark:
    data: dict[str, Any] = {"ArrowHead": "ArrowHead"}
    data |= {name: str(folder / f"{name}.npz") for name in GIVEN} if folder else {}
    return Benchmark(
        {name: cf.load_dataset(place) for name, place in data.items()},
        classifiers(),
        explainers(),
        seeds=range(seeds),
        instances=12,
        metrics=METRICS,
        time_limit=900,
    )


def page(frame: pd.DataFrame, path: Path) -> None:
    """Our table, the published one, and every cell that misses the bar."""
    write_benchmark(frame, path, [*METRICS, "calls", "seconds"])
    best, short = bars(frame)
    published = [
        f"| {name} | {' | '.join(f'{value:g}' for value in values)} |"
        for name, values in PUBLISHED.items()
    ]
    more = [
        "",
        "## Beside the publication",
        "",
        "Published means (their classifiers, 5 seeds, 3 counterfactuals per instance; other machine):",
        "",
        "| | s per instance | validity | changed fraction | dtw_lof | segments |",
        "|---|---|---|---|---|---|",
        *published,
        "",
        "TimeCNN needs TensorFlow and TSFresh its own package; our FCN, and aeon's Catch22 features with "
        "logistic regression, take their places. ROCKET has 1,000 kernels, RDST 1,000 shapelets. "
        "`dtw_lof_inlier` is the publication's dtw_lof.",
        "",
        f"## The bar, for {best}",
        "",
        "Validity 1.0, changed fraction at most 0.10, `dtw_lof_inlier` at least 0.96, and at most 0.5 s or, "
        "where the classifier needs more than 2 ms a row, at most 250 model rows per instance.",
        "",
        *short,
    ]
    path.write_text(path.read_text(encoding="utf-8") + "\n".join(more) + "\n", encoding="utf-8")


def misses(means: pd.Series) -> list[str]:
    """What falls short of the bar, in words."""
    # Seconds per model row, the method's own work included: an upper bound on what the classifier needs.
    slow = means["seconds"] / max(means["calls"], 1) > 2e-3
    told = [
        f"validity {means['valid']:.3f}" if means["valid"] != 1 else "",
        f"changed {means['sparsity']:.3f}" if not means["sparsity"] <= 0.10 else "",
        f"dtw_lof_inlier {means['dtw_lof_inlier']:.3f}"
        if not means["dtw_lof_inlier"] >= 0.96
        else "",
        f"{means['seconds']:.2f} s" if not slow and not means["seconds"] <= 0.5 else "",
        f"{means['calls']:.0f} model rows" if slow and not means["calls"] <= 250 else "",
    ]
    return [part for part in told if part]


def bars(frame: pd.DataFrame) -> tuple[str, list[str]]:
    """The method that misses least of the bar over the whole grid, and the cells where it falls short."""
    columns = ["valid", "sparsity", "dtw_lof_inlier", "seconds", "calls"]
    ours = frame[~frame["explainer"].isin(FLOORS)].astype(dict.fromkeys(columns, float))
    whole = ours.groupby("explainer", sort=False)[columns].mean()
    best = min(
        whole.index, key=lambda name: (len(misses(whole.loc[name])), whole.loc[name, "sparsity"])
    )
    mean = whole.loc[best]
    told = [
        f"Over the whole grid: validity {mean['valid']:.3f}, changed {mean['sparsity']:.3f}, dtw_lof_inlier "
        f"{mean['dtw_lof_inlier']:.3f}, {mean['seconds']:.2f} s and {mean['calls']:.0f} model rows per "
        f"instance. Missed: {', '.join(misses(mean)) or 'nothing'}. Cells that fall short by themselves (12 "
        "instances each):",
        "",
    ]
    cells = (
        ours[ours["explainer"] == best]
        .groupby(["dataset", "classifier"], sort=False)[columns]
        .mean()
    )
    short = {place: misses(means) for place, means in cells.iterrows()}
    lines = [
        f"- {data}, {model}: {', '.join(parts)}" for (data, model), parts in short.items() if parts
    ]
    return str(best), told + (lines or ["- none"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("build/tscfeval"))
    options = parser.parse_args()
    frame = grid(options.data, options.seeds).run(
        options.folder, n_jobs=options.jobs, retry_failed=True
    )
    page(frame, RESULTS / "tscfeval.md")
    print(
        frame.groupby("explainer", sort=False)[
            ["valid", "sparsity", "dtw_lof_inlier", "seconds", "calls"]
        ].mean()
    )


if __name__ == "__main__":
    main()
