"""The command `contrafact evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import completion
from .console import print_json, print_table, print_text


def evaluate(
    results: Annotated[
        list[Path],
        typer.Argument(
            help="Files that `contrafact explain --save` or Counterfactuals.save wrote."
        ),
    ],
    reference: Annotated[
        str | None,
        typer.Option(
            help="Data to compare with: a file like DATA of explain, or the name of a bundled set; "
            "the training part where there is one.",
            autocompletion=completion.datasets,
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="A metric; may be repeated. Default: all that can be computed.",
            autocompletion=completion.metrics,
        ),
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="The label column of a .csv given as reference.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Write the scores as a table, .csv.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout.")
    ] = False,
) -> None:
    """Score saved results: the mean of every metric over all instances, failures included."""
    from .output_files import check_output

    inputs = [str(path) for path in results]
    if reference is not None:
        inputs.append(reference)
    check_output("--save", save, (".csv",), inputs)

    from .score_tables import left_out_lines, score_files, score_table, summarize, write_csv

    scores = score_files(results, metric, reference, label)
    if save is not None:
        write_csv(scores, save)
    if as_json:
        print_json({"results": summarize(scores), "files": {"save": save}})
        return
    print_table(score_table(scores), ", ".join(scores))
    print_text("Means over all instances, failures included. Better: ↑ more, ↓ less.")
    for line in left_out_lines(scores):
        print_text(line)
    if save is not None:
        print_text(f"Table: {save}")
