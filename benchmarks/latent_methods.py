"""TS-NUC and LatentCF++ beside Glacier, CELS and the floors: one model, one protocol. One command:

    make bench-latent                 ItalyPowerDemand, which comes with aeon
    make bench-latent DATA=folder     and TwoLeadECG, MoteStrain, FordA_subset, FordB_subset (.npz) from there

Writes benchmarks/results/latent_study.md, latent_study.png and latent_speed.md.
"""

from __future__ import annotations

import argparse
import platform
import time
import warnings
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors

import contrafact as cf
from contrafact.models import Classifier
from contrafact.models.classifier import Array
from contrafact.nn import Autoencoder, BiLSTM
from contrafact.nn.networks import seeded

RESULTS = Path(__file__).parent / "results"
SMALL = ("TwoLeadECG", "MoteStrain")
LONG = ("FordA_subset", "FordB_subset")
REPORTED = {"ItalyPowerDemand": 0.951, "TwoLeadECG": 0.969, "MoteStrain": 0.982}
COLORS = {
    "TSNUC": "#0072B2",
    "TSNUC, predict only": "#56B4E9",
    "LatentCF": "#009E73",
    "Glacier": "#D55E00",
    "Glacier, autoencoder": "#E69F00",
    "CELS": "#000000",
    "NearestUnlike": "#999999",
    "LineSearch": "#666666",
}


def load(name: str, folder: Path | None) -> cf.Dataset:
    return cf.load_dataset(name if folder is None else str(folder / f"{name}.npz"))


def sample(data: cf.Dataset, n: int) -> Array:
    """Random test rows: archive files are often sorted by class."""
    return data.X_test[np.random.default_rng(0).permutation(len(data.X_test))[:n]]


def bilstm(data: cf.Dataset) -> Classifier:
    with seeded(0):
        module = BiLSTM(data.X_train.shape[1], len(np.unique(data.y_train)), hidden=64)
    return cf.fit_classifier(module, data.X_train, data.y_train, max_epochs=200, learning_rate=5e-3)


def fcn(data: cf.Dataset) -> Classifier:
    """For the long series: over 500 steps the BiLSTM stays at chance (FordA_subset: 0.51 after 30 epochs)."""
    return cf.fit_classifier("fcn", data.X_train, data.y_train, max_epochs=20)


def methods(autoencoder: Autoencoder, paper: bool) -> dict[str, cf.Explainer]:
    listed: dict[str, cf.Explainer] = {
        "TSNUC": cf.TSNUC(autoencoder=autoencoder),
        "TSNUC, predict only": cf.TSNUC("predict_only", autoencoder=autoencoder),
        "LatentCF": cf.LatentCF(autoencoder),
        "Glacier": cf.Glacier(),
        "Glacier, autoencoder": cf.Glacier(autoencoder=autoencoder),
        "CELS": cf.CELS(),
        "NearestUnlike": cf.NearestUnlike(),
        "LineSearch": cf.LineSearch(),
    }
    if (
        paper
    ):  # not on the long series: an LSTM autoencoder over 500 steps trains for hours on two cores
        listed["TSNUC, paper preset"] = cf.TSNUC(preset="paper", max_epochs=300)
    return listed


def plausibility(result: cf.Counterfactuals, data: cf.Dataset, said: Array) -> tuple[float, float]:
    """Over the target's reference rows: share of inliers by LOF, and the mean distance to the nearest one as
    a multiple of how far these rows lie from each other."""
    inlier, distance = [], []
    for label in np.unique(result.target):
        rows = result.target == label
        own = data.X_train[said == label].reshape((said == label).sum(), -1)
        x_cf = result.X_cf[rows].reshape(rows.sum(), -1)
        lof = LocalOutlierFactor(n_neighbors=min(20, len(own) - 1), novelty=True).fit(own)
        inlier += list(lof.predict(x_cf) == 1)
        near = NearestNeighbors(n_neighbors=2).fit(own)
        among = near.kneighbors(own)[0][:, 1].mean()
        distance += list(near.kneighbors(x_cf, 1)[0][:, 0] / among)
    return float(np.mean(inlier)), float(np.mean(distance))


def study(name: str, folder: Path | None, n: int) -> pd.DataFrame:
    data, long = load(name, folder), name in LONG
    model = fcn(data) if long else bilstm(data)
    accuracy = float(np.mean(model.predict(data.X_test) == data.y_test))
    autoencoder = cf.fit_autoencoder("cnn", data.X_train)
    X, said = sample(data, n), model.predict(data.X_train)
    flips = cf.reconstruction_report(autoencoder, model, X).loc["all", "flip_rate"]
    print(
        f"{name}: test accuracy {accuracy:.3f}, plain reconstruction flips {flips:.3f}", flush=True
    )
    rows = []
    for method, explainer in methods(autoencoder, paper=not long).items():
        explainer.fit(model, data.X_train, data.y_train)
        start = time.perf_counter()
        # All methods get the same targets: two classes leave no choice.
        result = explainer.explain(X, budget=cf.Budget(calls=2000 * n))
        seconds = time.perf_counter() - start
        names = ["valid", "rmse", "mae", "sparsity", "calls"]
        scores = result.evaluate(names)[names].mean()
        lof, knn = plausibility(result, data, said)
        fallback = result.info["fallback"].mean() if "fallback" in result.info else 0.0
        rows.append(
            {
                "data": name,
                "model": "FCN" if long else "BiLSTM (hidden 64)",
                "method": method,
                "accuracy": accuracy,
                "flips": flips,
                "n": len(X),
                **scores.to_dict(),
                "lof": lof,
                "knn": knn,
                "fallback": fallback,
                "seconds": seconds / len(X),
            }
        )
        print(f"  {method}: {rows[-1]}", flush=True)
        if method == "TSNUC":
            refined = cf.refine(result, model)
            rows[-1]["refined"] = refined.evaluate(["sparsity"])["sparsity"].mean()
            rows[-1]["refined_valid"] = refined.valid.mean()
    return pd.DataFrame(rows)


def page(frame: pd.DataFrame) -> list[str]:
    lines = []
    for name, part in frame.groupby("data", sort=False):
        first, ours = part.iloc[0], part[part["method"] == "TSNUC"].iloc[0]
        lines += [
            f"## {name}",
            "",
            f"{first['model']}, test accuracy {first['accuracy']:.3f}; {int(first['n'])} random test "
            f"series; 1-D CNN autoencoder, whose plain reconstructions flip {first['flips']:.3f} of them. "
            f"TSNUC after `refine`: changed {ours['refined']:.2f}, valid {ours['refined_valid']:.3f}.",
            "",
            "| method | valid | fallback | rmse | mae | changed | LOF inliers | kNN distance | model rows | "
            "s per row / NearestUnlike's |",
            "|---|---|---|---|---|---|---|---|---|---|",
        ]
        floor = part.loc[part["method"] == "NearestUnlike", "seconds"].item()
        for _, row in part.sort_values("rmse").iterrows():
            lines.append(
                f"| {row['method']} | {row['valid']:.3f} | {row['fallback']:.3f} | {row['rmse']:.3f} | "
                f"{row['mae']:.3f} | {row['sparsity']:.2f} | {row['lof']:.3f} | {row['knn']:.2f} | "
                f"{row['calls']:.0f} | {row['seconds'] / floor:.0f} |"
            )
        if name in REPORTED:
            lines.append(
                f"| TS-NUC as reported, not comparable | {REPORTED[str(name)]:.3f} |" + "  |" * 8
            )
        lines.append("")
    return lines


def picture(frame: pd.DataFrame, path: Path) -> None:
    """Close against believable, one panel per data set."""
    names = frame["data"].unique()
    figure = Figure(figsize=(3.6 * len(names), 3.9), layout="constrained")
    FigureCanvasAgg(figure)
    for ax, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        part = frame[frame["data"] == name]
        others = part[part["method"] != "TSNUC, paper preset"]
        ax.set_xlim(0, 1.15 * others["rmse"].max())
        ax.set_ylim(-0.03 * others["knn"].max(), 1.15 * others["knn"].max())
        for _, row in part.iterrows():
            if row["method"] not in others["method"].to_numpy():
                said = f"paper preset: {row['rmse']:.1f}, {row['knn']:.0f}\n(off the scale)"
                ax.text(0.98, 0.98, said, transform=ax.transAxes, ha="right", va="top", fontsize=8)
                continue
            floor = row["method"] in ("NearestUnlike", "LineSearch")
            ax.scatter(
                row["rmse"], row["knn"], s=70, color=COLORS[row["method"]], marker="s" if floor else "o",
                label=row["method"], edgecolor="white",
            )  # fmt: skip
        ax.set_title(
            f"{name} ({int(frame[frame['data'] == name]['n'].iloc[0])} series)", fontsize=10
        )
        ax.set_xlabel("rmse of the change (less is closer)", fontsize=9)
        ax.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel(
        "distance to the nearest real series of\nthe target (1 = as real ones)", fontsize=9
    )
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8, frameon=False)
    figure.savefig(path, dpi=130)


def speed() -> list[str]:
    """Per instance: 256 in one batch against one at a time; and the same for the bare model."""
    data = cf.load_dataset("ItalyPowerDemand")
    X = sample(data, 256)
    autoencoder = cf.fit_autoencoder("cnn", data.X_train)
    lines = [
        "| model | mode | batch of 256, ms per instance | one at a time | ratio | bare passes, ratio |",
        "|---|---|---|---|---|---|",
    ]
    models: dict[str, Callable[[], Classifier]] = {
        "BiLSTM(64)": lambda: bilstm(data),
        "MLP": lambda: cf.fit_classifier("mlp", data.X_train, data.y_train, max_epochs=100),
    }
    for name, make in models.items():
        model = make()
        module: Any = model.module  # type: ignore[attr-defined]

        def bare(size: int, module: Any = module) -> float:
            x = torch.as_tensor(X[:size], dtype=torch.float32).requires_grad_()
            start = time.perf_counter()
            for _ in range(20):
                torch.autograd.grad(module(x).sum(), x)
            return (time.perf_counter() - start) / 20 / size

        for mode in ("gradient", "predict_only"):
            explainer = cf.TSNUC(mode, autoencoder=autoencoder).fit(
                model, data.X_train, data.y_train
            )
            explainer.explain(X[:8])
            start = time.perf_counter()
            explainer.explain(X)
            together = (time.perf_counter() - start) / len(X)
            start = time.perf_counter()
            for i in range(32):
                explainer.explain(X[i : i + 1])
            alone = (time.perf_counter() - start) / 32
            lines.append(
                f"| {name} | {mode} | {1e3 * together:.1f} | {1e3 * alone:.1f} | "
                f"**{alone / together:.1f}** | {bare(1) / bare(256):.1f} |"
            )
            print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with TwoLeadECG.npz, …")
    parser.add_argument(
        "--parts", nargs="+", default=["speed", "study"], choices=["speed", "study"]
    )
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    head = (
        f"`make bench-latent`, {date.today()}, contrafact {cf.__version__}, "
        f"torch {torch.__version__.split('+')[0]}, Python {platform.python_version()}, "
        f"{torch.get_num_threads()} threads."
    )
    RESULTS.mkdir(exist_ok=True)
    if "speed" in args.parts:
        title = [
            "# TS-NUC: a batch against one at a time, ItalyPowerDemand, 1-D CNN autoencoder",
            "",
        ]
        (RESULTS / "latent_speed.md").write_text("\n".join([head, "", *title, *speed(), ""]))
    if "study" in args.parts:
        wanted: list[tuple[str, Path | None, int]] = [("ItalyPowerDemand", None, 200)]
        if args.data is not None:
            wanted += [(name, args.data, 200) for name in SMALL] + [
                (name, args.data, 20) for name in LONG
            ]
        frame = pd.DataFrame()
        for name, folder, n in wanted:  # written after each: the long ones take their time
            frame = pd.concat([frame, study(name, folder, n)], ignore_index=True)
            picture(frame, RESULTS / "latent_study.png")
            (RESULTS / "latent_study.md").write_text(
                "\n".join([head, "", *INTRODUCTION, *page(frame)])
            )


INTRODUCTION = [
    "# Latent methods beside Glacier, CELS and the floors",
    "",
    "Means over all requests. *fallback*: share of rows a method could not turn by itself (they took the "
    "line to the nearest unlike neighbor). *LOF inliers*: share of counterfactuals that a local outlier "
    "factor fitted on the training series of the target class takes for one of them. *kNN distance*: to the "
    "nearest of these, over the mean distance of these to each other's nearest. Times are ratios within this "
    "run.",
    "",
    "The validity reported for TS-NUC (Ghosh et al. 2024) is not comparable: another black box (8-layer "
    "BiLSTM), another validation split, unknown seeds and no released code. FordA_subset and FordB_subset "
    "are parts of the archive's training sets; there the black box is an FCN, since the BiLSTM stays at "
    "chance over 500 steps, and there is no paper preset, whose LSTM autoencoder would train for hours.",
    "",
    "![rmse against distance to real series](latent_study.png)",
    "",
]

if __name__ == "__main__":
    main()
