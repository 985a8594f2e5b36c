"""The command `contrafact bench sensitivity`."""

from __future__ import annotations

import ast
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .console import print_table, print_text

if TYPE_CHECKING:
    import pandas as pd

ACCEPTED = "NAME=VALUE,VALUE[,VALUE], e.g. threshold=0.3,0.5,0.7"


def bench_sensitivity(
    dataset: Annotated[str, typer.Argument(help="Name or path of a data set.")],
    method: Annotated[str, typer.Argument(help="Name of a method, e.g. CELS.")],
    vary: Annotated[
        list[str], typer.Option(help=f"A parameter and two or three values: {ACCEPTED}.")
    ],
    classifier: Annotated[
        str, typer.Option(help="A reference network, or module:Class of an estimator.")
    ] = "sklearn.linear_model:LogisticRegression",
    metric: Annotated[
        list[str] | None,
        typer.Option(help="A metric to measure; default: valid, sparsity, l2 and calls."),
    ] = None,
    array: Annotated[
        str, typer.Option(help="L9, L18 or L27; default: the smallest that has room.")
    ] = "auto",
    instances: Annotated[int, typer.Option(min=1, help="Test instances to explain.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the model and of every run.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="A .csv file that gets the runs, one per line.")
    ] = None,
) -> None:
    """Run a method over an orthogonal array of its parameters; print what each of them does.

    Main effects are means over the runs with a value; shares are of the variance among the runs,
    for parameters and for pairs. A share in brackets is mixed with the effect of another parameter.
    """
    from contrafact.benchmark import parameter_effects
    from contrafact.benchmark.parts import (
        as_model,
        make_explainer,
        read_dataset,
        select_instances,
        train_classifier,
    )

    levels = _read_levels(vary)
    data = read_dataset(dataset)
    model = as_model(train_classifier(classifier, data, seed), data)
    rows, target = select_instances(model, data.X_test, instances, "stratified", seed)
    metrics = metric or ["valid", "sparsity", "l2", "calls"]
    effects = parameter_effects(
        make_explainer(method),
        model,
        (data.X_train, data.y_train),
        data.X_test[rows],
        levels,
        metrics,
        array=array,  # type: ignore[arg-type]  # checked there
        target=target,
        random_state=seed,
    )
    n_runs = len(effects.runs)
    print_table(_rounded(effects.main, metrics), f"{method}: means over {n_runs} runs")
    print_table(_shares(effects.shares, metrics), "Shares of the variance among the runs")
    if out is not None:
        effects.runs.to_csv(out, index=False)
        print_text(f"Runs: {out}")


def _read_levels(vary: list[str]) -> dict[str, list[Any]]:
    """Read all parameters to vary; each may be named once."""
    levels: dict[str, list[Any]] = {}
    for spec in vary:
        name, values = _parse_levels(spec)
        if name in levels:
            raise ValueError(f"--vary names {name!r} twice; give its values at once: {ACCEPTED}.")
        levels[name] = values
    return levels


def _parse_levels(spec: str) -> tuple[str, list[Any]]:
    """Read a parameter and its values; numbers, True, False and None, else text."""
    from .specs import parse_assignment

    name, text = parse_assignment("--vary", spec, ACCEPTED)
    values = [_parse_value(part.strip()) for part in text.split(",")]
    if len(values) not in (2, 3):
        raise ValueError(f"--vary {spec!r} is not understood. Accepted: {ACCEPTED}.")
    return name, values


def _parse_value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):  # a word
        return text


def _rounded(frame: pd.DataFrame, metrics: list[str]) -> pd.DataFrame:
    """Return the table with four digits."""
    shown = frame.astype(object)
    for name in metrics:
        shown[name] = [f"{value:.4g}" for value in frame[name]]
    return shown


def _shares(frame: pd.DataFrame, metrics: list[str]) -> pd.DataFrame:
    """Return shares in percent, in brackets where they are mixed with another effect."""
    shown = frame[["term"]].astype(object)
    for name in metrics:
        percent = ["" if math.isnan(share) else f"{share:.0%}" for share in frame[name]]
        pairs = zip(percent, frame["clear"], strict=True)
        shown[name] = [share if clear or not share else f"({share})" for share, clear in pairs]
    return shown
