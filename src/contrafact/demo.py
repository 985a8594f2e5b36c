"""The demo: train a small network on bundled data, explain its decisions, write a report."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

import contrafact as cf
from contrafact.data import Dataset
from contrafact.data.cleaning import Array
from contrafact.data.writing import complete_file
from contrafact.engine import Counterfactuals
from contrafact.explainers.support.explainer import Explainer
from contrafact.metrics import Reference
from contrafact.models import Classifier
from contrafact.models.adapters import TorchClassifier
from contrafact.nn.networks import FCN, seeded
from contrafact.report import plot_many, plot_methods, write_report

CLASS_NAMES = {"1": "winter", "2": "summer"}
N_RETRAINED = 3
GRAFT, LASTING, REFINED = "Graft", "Graft (lasting)", "CELS (refined)"


def run(folder: Path, n_instances: int = 40, seed: int = 0, console: Console | None = None) -> Path:
    """Train on ItalyPowerDemand, explain test instances, print a comparison, write a report.

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
        f"Electricity demand of {len(data.X_train)} days, hour by hour: winter or summer half-year?"
        f" Training a small network to tell them apart, and {N_RETRAINED} more to judge answers."
    )
    model = train(data, seed)
    retrained = [train(data, seed + 1 + number) for number in range(N_RETRAINED)]
    accuracy = np.mean(model.predict(data.X_test) == data.y_test)
    console.print(f"Test accuracy {accuracy:.2f}\n")

    chosen = np.random.default_rng(seed).permutation(len(data.X_test))[:n_instances]
    results = explain_with_all(model, data, data.X_test[chosen], seed)
    grafted = results[GRAFT]
    console.print(comparison(results, data, model, retrained))
    console.print(
        f"{int(grafted.valid.sum())} of {len(grafted)} days now read as the other half of the year;"
        f" typical change: {np.median(grafted.changed_fraction):.0%} of the hours.\n"
    )
    report = write_results(results, data, folder, seed)
    write_inputs(model.module, data, chosen, folder)
    print_next_steps(console, folder, report)
    return report


def explore(seed: int = 0) -> None:
    """Train the demo's network and open the explorer on all test days, until Ctrl-C.

    Parameters
    ----------
    seed : int, default=0
        Seed of training.
    """
    data = load_data()
    with cf.explore(train(data, seed), data, names=["demand"]) as explorer:
        Console().print(f"Explorer: {explorer.url}", soft_wrap=True, highlight=False)
        explorer.open()
        with suppress(KeyboardInterrupt):
            explorer.wait()


def load_data() -> Dataset:
    """Return ItalyPowerDemand with readable class names."""
    data: Dataset = cf.load_dataset("ItalyPowerDemand")
    return replace(
        data,
        y_train=np.array([CLASS_NAMES[label] for label in data.y_train]),
        y_test=np.array([CLASS_NAMES[label] for label in data.y_test]),
    )


def train(data: Dataset, seed: int) -> TorchClassifier:
    """Train a small network.

    Parameters
    ----------
    data : Dataset
        Its training part is learned.
    seed : int
        Seed of the initial weights and of training.

    Returns
    -------
    TorchClassifier
        The trained network.
    """
    with seeded(seed):
        network = FCN(1, 2, widths=(32, 64, 32))
    model: TorchClassifier = cf.fit_classifier(
        network,
        data.X_train,
        data.y_train,
        max_epochs=100,
        random_state=seed,
        progress=True,
    )
    return model


def explain_with_all(
    model: Classifier, data: Dataset, X: Array, seed: int
) -> dict[str, Counterfactuals]:
    """Explain instances by grafts of two levels; for contrast by refined CELS and a baseline.

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
    methods: dict[str, tuple[Explainer, bool]] = {
        GRAFT: (cf.Graft(), False),
        LASTING: (cf.Graft("lasting"), False),
        REFINED: (cf.CELS(), True),
        "NearestUnlike": (cf.NearestUnlike(), False),
    }
    results = {}
    for name, (explainer, refine) in methods.items():
        explainer.fit(model, data.X_train, data.y_train)
        result = explainer.explain(X, refine=refine, random_state=seed, progress=True)
        results[name] = replace(result, names=np.array(["demand"]))
    return results


def comparison(
    results: dict[str, Counterfactuals],
    data: Dataset,
    model: Classifier,
    retrained: Sequence[Classifier],
) -> Table:
    """Return a table that compares methods by means over all rows, failures included.

    Parameters
    ----------
    results : dict of str to Counterfactuals
        By the name of the method.
    data : Dataset
        Its training part shows how real series run.
    model : Classifier
        The network that was explained.
    retrained : sequence of Classifier
        Networks trained with other seeds, which no method has seen.

    Returns
    -------
    rich.table.Table
        One line per method.
    """
    columns = {
        "valid": ("valid", "{:.0%}"),
        "changed": ("sparsity", "{:.0%}"),
        "stretches": ("segments", "{:.1f}"),
        "unreal joins": ("unreal_join", "{:.0%}"),
        "noise": ("noise_survival", "{:.0%}"),
        "others agree": ("survival", "{:.0%}"),
        "model rows": ("calls", "{:.0f}"),
    }
    table = Table(
        title="What would make the network decide otherwise?",
        caption="unreal joins: answers with a jump or kink that real days do not show. noise: "
        "copies with a little noise that the network still puts in the class. others agree: "
        "networks trained with other seeds that put it there, too.",
        box=SIMPLE_HEAD,
        padding=(0, 0, 0, 1),  # so that it fits 80 characters
    )
    table.add_column("method", no_wrap=True)
    for name in columns:
        longest_word = max(map(len, name.split()))
        table.add_column(name, justify="right", min_width=longest_word)
    reference = Reference(data.X_train)
    metrics = [metric for metric, _ in columns.values()]
    for name, result in results.items():
        scores = result.evaluate(metrics, reference, model=model, other_models=retrained)
        means = scores.mean(numeric_only=True)
        table.add_row(name, *(form.format(means[metric]) for metric, form in columns.values()))
    return table


def write_results(
    results: dict[str, Counterfactuals], data: Dataset, folder: Path, seed: int
) -> Path:
    """Write the report, two pictures and the arrays of the grafts.

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
    grafted = results[GRAFT]
    report = write_report(
        results,  # the report opens with the first
        folder / "report.html",
        title="Winter or summer: what would change the network's mind?",
        reference=(data.X_train, data.y_train),
        command=f"contrafact demo --folder {folder} --seed {seed}",
    )
    rows = typical_rows(grafted)
    plot_many(grafted, rows, folder / "counterfactuals.png")
    first_row = rows[0]
    plot_methods(results, int(grafted.source[first_row]), folder / "methods.png")
    grafted.save(folder / "counterfactuals.npz")
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
    with complete_file(folder / "weights.pt") as draft:
        torch.save(network.state_dict(), draft)
    with complete_file(folder / "series.npz") as draft:
        np.savez_compressed(
            draft,
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
        f"contrafact explain {folder}/weights.pt {folder}/series.npz --network fcn --target summer"
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
