"""The demo: train a small network on bundled data, ask what would change its mind, show the answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import contrafact as cf
from contrafact.engine import Counterfactuals
from contrafact.nn.networks import FCN, seeded
from contrafact.report import plot_many, plot_methods, write_report

#: two floors, then what has to beat them
METHODS = (cf.NearestUnlike(), cf.LineSearch(), cf.Glacier(), cf.NativeGuide(), cf.CELS())


def run(folder: Path, n_instances: int = 40, seed: int = 0, console: Console | None = None) -> Path:
    """Train on GunPoint, explain test instances with several methods, print a table, write a report."""
    console = console or Console()
    folder.mkdir(parents=True, exist_ok=True)
    data = cf.load_dataset("GunPoint")
    names = {"1": "gun", "2": "point"}
    y_train, y_test = (np.array([names[label] for label in y]) for y in (data.y_train, data.y_test))
    console.print(
        f"An actor draws a gun, or only points: {len(data.X_train)} recordings of the hand, "
        f"{data.X_train.shape[-1]} steps each. Training a small network to tell them apart."
    )
    with seeded(seed):
        network = FCN(1, 2, widths=(32, 64, 32))
    model = cf.fit_classifier(
        network, data.X_train, y_train, max_epochs=100, random_state=seed, progress=True
    )
    console.print(f"Test accuracy {np.mean(model.predict(data.X_test) == y_test):.2f}\n")

    chosen = np.random.default_rng(seed).permutation(len(data.X_test))[:n_instances]
    results = {}
    for method in METHODS:
        method.fit(model, data.X_train, y_train)
        results[type(method).__name__] = method.explain(
            data.X_test[chosen], random_state=seed, progress=True
        )
    best = results["CELS, refined"] = cf.refine(results["CELS"], model)
    console.print(comparison(results))
    console.print(
        f"{int(best.valid.sum())} of {len(best)} recordings now read as the other movement; "
        f"typical change: {np.median(best.changed_fraction):.0%} of the points.\n"
    )

    again = f"contrafact demo --folder {folder} --seed {seed}"
    report = write_report(
        {"CELS, refined": best} | results,  # the page opens with the first
        folder / "report.html",
        title="Gun or pointing hand: what would change the network's mind?",
        reference=(data.X_train, y_train),
        command=again,
    )
    plot_many(best, telling_rows(best), folder / "counterfactuals.png")
    plot_methods(results, int(best.source[telling_rows(best)[0]]), folder / "methods.png")
    best.save(folder / "counterfactuals.npz")
    torch.save(network.state_dict(), folder / "weights.pt")
    np.savez_compressed(
        folder / "series.npz",
        X_train=data.X_train,
        y_train=y_train,
        X_test=data.X_test[chosen],
        y_test=y_test[chosen],
    )
    tell_next(console, folder, report)
    return report


def tell_next(console: Console, folder: Path, report: Path) -> None:
    """Where everything is, and the three lines that a user needs next."""
    shown = f"{folder / 'counterfactuals.png'}, {folder / 'methods.png'}"
    ask = f"contrafact explain {folder}/weights.pt {folder}/series.npz --network fcn --target point"
    lines = [
        f"[bold]Report:[/] {report}   (open it in a browser)",
        f"Pictures: {shown}",
        "",
        "Next, the same from the shell, from Python, and with your own data:",
        f"  {ask} --report {folder}/mine.html",
        '  cf.CELS().fit(model, X_train, y_train).explain(X, refine=True).report("why.html")',
        "  contrafact explain MODEL DATA --report why.html",
    ]
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)


def comparison(results: dict[str, Counterfactuals]) -> Table:
    """Methods side by side; failures count in every average."""
    table = Table(title="What would make the network decide otherwise?")
    for name in ("method", "valid", "changed", "l2", "stretches", "model rows", "seconds"):
        table.add_column(name, justify="left" if name == "method" else "right")
    for name, result in results.items():
        scores = result.evaluate(["valid", "sparsity", "l2", "segments", "calls", "seconds"]).mean(
            numeric_only=True
        )
        table.add_row(
            name,
            f"{scores['valid']:.0%}",
            f"{scores['sparsity']:.0%}",
            f"{scores['l2']:.2f}",
            f"{scores['segments']:.1f}",
            f"{scores['calls']:.0f}",
            f"{scores['seconds']:.3f}",
        )
    return table


def telling_rows(result: Counterfactuals, most: int = 6) -> list[int]:
    """Valid rows that moved as far as most do, from every class in turn."""
    moved = result.evaluate("l2")["l2"].to_numpy()
    unusual = np.abs(moved - np.median(moved[result.valid]))
    order = np.argsort(np.where(result.status == "valid", unusual, np.inf), kind="stable")
    by_class = [order[result.labels[order] == label].tolist() for label in result.classes]
    turns = [row for group in zip(*by_class, strict=False) for row in group]
    return [int(row) for row in turns[:most]]
