"""The demo: train a small network on bundled data, explain its decisions, write a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import contrafact as cf
from contrafact.data import Dataset
from contrafact.data.cleaning import Array
from contrafact.engine import Counterfactuals
from contrafact.explainers.support.explainer import Explainer
from contrafact.models import Classifier
from contrafact.nn.networks import FCN, seeded
from contrafact.report import plot_many, plot_methods, write_report

CLASS_NAMES = {"1": "gun", "2": "point"}
REFINED = "CELS, refined"


def run(folder: Path, n_instances: int = 40, seed: int = 0, console: Console | None = None) -> Path:
    """Train on GunPoint, explain test instances, print a comparison, write a report.

    Parameters
    ----------
    folder : Path
        Where everything is written; created if needed.
    n_instances : int, default=40
        How many test instances are explained.
    seed : int, default=0
        Seed of training, choice of instances and search.
    console : rich.console.Console, optional
        Where to print; default: the terminal.

    Returns
    -------
    Path
        The report.
    """
    console = console or Console()
    folder.mkdir(parents=True, exist_ok=True)
    data = load_data()
    console.print(
        f"An actor draws a gun, or only points: {len(data.X_train)} recordings of the hand, "
        f"{data.X_train.shape[-1]} steps each. Training a small network to tell them apart."
    )
    with seeded(seed):
        network = FCN(1, 2, widths=(32, 64, 32))
    model = cf.fit_classifier(
        network,
        data.X_train,
        data.y_train,
        max_epochs=100,
        random_state=seed,
        progress=True,
    )
    accuracy = np.mean(model.predict(data.X_test) == data.y_test)
    console.print(f"Test accuracy {accuracy:.2f}\n")

    chosen = np.random.default_rng(seed).permutation(len(data.X_test))[:n_instances]
    results = explain_with_all(model, data, data.X_test[chosen], seed)
    refined = results[REFINED]
    console.print(comparison(results))
    console.print(
        f"{int(refined.valid.sum())} of {len(refined)} recordings now read as the other movement; "
        f"typical change: {np.median(refined.changed_fraction):.0%} of the points.\n"
    )
    report = write_results(results, data, folder, seed)
    write_inputs(network, data, chosen, folder)
    print_next_steps(console, folder, report)
    return report


def load_data() -> Dataset:
    """Return GunPoint with readable class names."""
    data: Dataset = cf.load_dataset("GunPoint")
    return replace(
        data,
        y_train=np.array([CLASS_NAMES[label] for label in data.y_train]),
        y_test=np.array([CLASS_NAMES[label] for label in data.y_test]),
    )


def explain_with_all(
    model: Classifier, data: Dataset, X: Array, seed: int
) -> dict[str, Counterfactuals]:
    """Explain instances with two baselines and three methods, the last one also refined.

    Parameters
    ----------
    model : Classifier
        The trained network.
    data : Dataset
        Its training part is the reference.
    X : array of shape (n, channels, length)
        Instances to explain.
    seed : int
        Seed of the search.

    Returns
    -------
    dict of str to Counterfactuals
        By the name of the method.
    """
    baselines: list[Explainer] = [cf.NearestUnlike(), cf.LineSearch()]
    methods: list[Explainer] = [cf.Glacier(), cf.NativeGuide(), cf.CELS()]
    results = {}
    for explainer in baselines + methods:
        explainer.fit(model, data.X_train, data.y_train)
        name = type(explainer).__name__
        results[name] = explainer.explain(X, random_state=seed, progress=True)
    results[REFINED] = cf.refine(results["CELS"], model)
    return results


def comparison(results: dict[str, Counterfactuals]) -> Table:
    """Return a table that compares methods by means over all rows, failures included."""
    table = Table(title="What would make the network decide otherwise?")
    table.add_column("method")
    for name in ("valid", "changed", "l2", "stretches", "model rows", "seconds"):
        table.add_column(name, justify="right")
    for name, result in results.items():
        scores = result.evaluate(["valid", "sparsity", "l2", "segments", "calls", "seconds"])
        means = scores.mean(numeric_only=True)
        table.add_row(
            name,
            f"{means['valid']:.0%}",
            f"{means['sparsity']:.0%}",
            f"{means['l2']:.2f}",
            f"{means['segments']:.1f}",
            f"{means['calls']:.0f}",
            f"{means['seconds']:.3f}",
        )
    return table


def write_results(
    results: dict[str, Counterfactuals], data: Dataset, folder: Path, seed: int
) -> Path:
    """Write the report, two pictures and the arrays of the refined result.

    Parameters
    ----------
    results : dict of str to Counterfactuals
        By the name of the method.
    data : Dataset
        Its training part is the reference of the report.
    folder : Path
        Where to write.
    seed : int
        For the command that repeats the demo.

    Returns
    -------
    Path
        The report.
    """
    refined = results[REFINED]
    report = write_report(
        {REFINED: refined, **results},  # the report opens with the first
        folder / "report.html",
        title="Gun or pointing hand: what would change the network's mind?",
        reference=(data.X_train, data.y_train),
        command=f"contrafact demo --folder {folder} --seed {seed}",
    )
    rows = typical_rows(refined)
    plot_many(refined, rows, folder / "counterfactuals.png")
    first_row = rows[0]
    plot_methods(results, int(refined.source[first_row]), folder / "methods.png")
    refined.save(folder / "counterfactuals.npz")
    return report


def write_inputs(network: torch.nn.Module, data: Dataset, chosen: Array, folder: Path) -> None:
    """Write weights and series, so that the same can be asked from the shell.

    Parameters
    ----------
    network : torch.nn.Module
        The trained network.
    data : Dataset
        The data.
    chosen : array of int
        Rows of the test part that were explained.
    folder : Path
        Where to write.
    """
    torch.save(network.state_dict(), folder / "weights.pt")
    np.savez_compressed(
        folder / "series.npz",
        X_train=data.X_train,
        y_train=data.y_train,
        X_test=data.X_test[chosen],
        y_test=data.y_test[chosen],
    )


def print_next_steps(console: Console, folder: Path, report: Path) -> None:
    """Print where everything is and what to run next.

    Parameters
    ----------
    console : rich.console.Console
        Where to print.
    folder : Path
        What was written to.
    report : Path
        The report.
    """
    command = (
        f"contrafact explain {folder}/weights.pt {folder}/series.npz --network fcn --target point"
    )
    lines = [
        f"[bold]Report:[/] {report}   (open it in a browser)",
        f"Pictures: {folder / 'counterfactuals.png'}, {folder / 'methods.png'}",
        "",
        "Next, the same from the shell, from Python, and with your own data:",
        f"  {command} --report {folder}/mine.html",
        '  cf.explain(model, X, reference=(X_train, y_train)).report("why.html")',
        "  contrafact explain MODEL DATA --report why.html",
    ]
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)


def typical_rows(result: Counterfactuals, most: int = 6) -> list[int]:
    """Choose valid rows whose change is of typical size, from every class in turn.

    Parameters
    ----------
    result : Counterfactuals
        The result.
    most : int, default=6
        How many rows to choose.

    Returns
    -------
    list of int
        Positions in the result.
    """
    distance = result.evaluate("l2")["l2"].to_numpy()
    deviation = np.abs(distance - np.median(distance[result.valid]))
    ranked = np.where(result.status == "valid", deviation, np.inf)
    order = np.argsort(ranked, kind="stable")
    labels = result.labels[order]
    by_class = [order[labels == label].tolist() for label in result.classes]
    rows = [row for group in zip(*by_class, strict=False) for row in group]
    return [int(row) for row in rows[:most]]
