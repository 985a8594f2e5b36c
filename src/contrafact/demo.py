"""The demo: train a small network on bundled data, ask what would change its mind, show the answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import contrafact as cf
from contrafact.engine import Counterfactuals
from contrafact.models.networks import FCN, seeded
from contrafact.report import plot_many

METHODS = (cf.NearestUnlike(), cf.LineSearch(), cf.RandomMask(), cf.Glacier(), cf.CELS())


def run(folder: Path, n_instances: int = 40, seed: int = 0, console: Console | None = None) -> Path:
    """Train on GunPoint, explain test instances with several methods, print a table, write a picture."""
    console = console or Console()
    data = cf.load_dataset("GunPoint")
    names = {"1": "gun", "2": "point"}
    y_train, y_test = (np.array([names[label] for label in y]) for y in (data.y_train, data.y_test))
    console.print(
        f"Training a small FCN on {data.name}: {len(data.X_train)} series of {data.X_train.shape[-1]} steps"
    )
    with seeded(seed):
        network = FCN(1, 2, widths=(32, 64, 32))
    model = cf.fit_classifier(
        network, data.X_train, y_train, max_epochs=100, random_state=seed, progress=True
    )
    console.print(f"Test accuracy {np.mean(model.predict(data.X_test) == y_test):.2f}\n")

    chosen = np.random.default_rng(seed).permutation(len(data.X_test))[:n_instances]
    results = []
    for method in METHODS:
        method.fit(model, data.X_train, y_train)
        results.append(method.explain(data.X_test[chosen], random_state=seed, progress=True))
    best = cf.refine(results[-1], model)
    console.print(comparison([*results, best]))

    folder.mkdir(parents=True, exist_ok=True)
    picture = folder / "counterfactuals.png"
    plot_many(best, telling_rows(best), picture)
    best.save(folder / "counterfactuals.npz")
    reached = int(best.valid.sum())
    console.print(
        f"{reached} of {len(best)} series now read as the other movement; "
        f"typical change: {np.median(best.changed_fraction):.0%} of the points."
    )
    console.print(f"Picture: {picture}\nArrays:  {folder / 'counterfactuals.npz'}")
    return picture


def comparison(results: list[Counterfactuals]) -> Table:
    """Methods side by side; failures count in every average."""
    table = Table(title="What would make the network decide otherwise?")
    for name in ("method", "valid", "changed", "l2", "stretches", "model rows", "seconds"):
        table.add_column(name, justify="left" if name == "method" else "right")
    for result in results:
        scores = result.evaluate(["valid", "sparsity", "l2", "segments", "calls", "seconds"]).mean(
            numeric_only=True
        )
        refined = " + refine" if "refined" in result.provenance else ""
        table.add_row(
            result.provenance["method"] + refined,
            f"{scores['valid']:.0%}",
            f"{scores['sparsity']:.0%}",
            f"{scores['l2']:.2f}",
            f"{scores['segments']:.1f}",
            f"{scores['calls']:.0f}",
            f"{scores['seconds']:.3f}",
        )
    return table


def telling_rows(result: Counterfactuals, most: int = 6) -> list[int]:
    """Valid rows that change least, from every class in turn."""
    order = np.argsort(np.where(result.status == "valid", result.changed_fraction, np.inf), kind="stable")
    by_class = [order[result.labels[order] == label].tolist() for label in result.classes]
    turns = [row for group in zip(*by_class, strict=False) for row in group]
    return [int(row) for row in turns[:most]]
