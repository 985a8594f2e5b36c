"""contrafact evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import completion
from .console import print_json, say, show

if TYPE_CHECKING:
    import pandas as pd

    from ..engine import Counterfactuals

#: What a metric can need, as the command line has it.
HOW = {
    "reference": "need --reference",
    "labels": "need --reference with labels",
    "saliency": "need a method that gives saliency, as CELS and NativeGuide do",
}


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
            help="Data to compare with: a file as DATA of explain, or the name of a bundled set; the "
            "training part where there is one.",
            autocompletion=completion.datasets,
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="A metric, several times if need be. Default: all that can be computed.",
            autocompletion=completion.metrics,
        ),
    ] = None,
    label: Annotated[
        str | None, typer.Option(help="The label column of a .csv given as reference.")
    ] = None,
    save: Annotated[Path | None, typer.Option(help="Write the figures as a table, .csv.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Score saved results: the mean of every metric over all instances, failures included."""
    from .explain_request import check_output

    check_output(
        "--save", save, (".csv",), [*map(str, results), *([] if reference is None else [reference])]
    )

    import pandas as pd

    from ..engine import Counterfactuals
    from ..metrics import aggregate
    from ..metrics import evaluate as score

    tables, left_out, loaded = {}, {}, {}
    for name, path in _names(results).items():
        loaded[name] = Counterfactuals.load(path)
        scores = score(loaded[name], metric or None, _reference(reference, label, loaded[name]))
        tables[name], left_out[name] = aggregate(scores), scores.left_out
    if save is not None:
        pd.concat(tables, names=["result", "metric"]).to_csv(save)
    if as_json:
        told = {
            name: {
                "method": loaded[name].provenance.get("method"),
                "instances": len(set(loaded[name].source.tolist())),
                "metrics": table.to_dict(orient="index"),
                "left_out": left_out[name],
            }
            for name, table in tables.items()
        }
        print_json({"results": told, "files": {"save": save}})
        return
    show(
        _single(*tables.values()) if len(tables) == 1 else _side_by_side(tables), ", ".join(tables)
    )
    say("Means over all instances, failures included. Better: ↑ more, ↓ less.")
    for line in _left_out(left_out):
        say(line)
    if save is not None:
        say(f"Table: {save}")


def _names(paths: list[Path]) -> dict[str, Path]:
    """Files by their name, or by their path where two share a name."""
    stems = [path.stem for path in paths]
    return {path.stem if stems.count(path.stem) == 1 else str(path): path for path in paths}


def _reference(path: str | None, label: str | None, result: Counterfactuals) -> Any:
    from ..data.loaders import read_parts
    from .explain_request import as_classes

    if path is None:
        return None
    columns = (
        None
        if result.names is None or result.modality != "row"
        else [str(name) for name in result.names]
    )
    X, y = read_parts(path, label=label, modality=result.modality, columns=columns).parts[0]
    return X if y is None else (X, as_classes(y, result.classes))


def _single(table: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        {
            "metric": table.index,
            "better": table["direction"].map(_arrow),
            "mean": [_figure(value) for value in table["mean"]],
            "95 % interval": [
                _figure(low) if low != low else f"{_figure(low)} … {_figure(high)}"
                for low, high in zip(table["low"], table["high"], strict=True)
            ],
            "coverage": [f"{value:.0%}" for value in table["coverage"]],
        }
    )


def _side_by_side(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    import pandas as pd

    direction = pd.concat([table["direction"] for table in tables.values()])
    direction = direction[~direction.index.duplicated()]
    columns = {
        name: [_figure(value) for value in table["mean"].reindex(direction.index)]
        for name, table in tables.items()
    }
    return pd.DataFrame(
        {"metric": direction.index, "better": direction.map(_arrow).to_numpy(), **columns}
    )


def _arrow(direction: str) -> str:
    return "↑" if direction == "max" else "↓"


def _figure(value: float) -> str:
    return "–" if value != value else f"{value:.4g}"


def _left_out(reasons: dict[str, dict[str, str]]) -> list[str]:
    """What was not computed, by reason."""
    from ..metrics.evaluation import METRICS

    found: dict[str, list[str]] = {}
    for name in dict.fromkeys(name for left_out in reasons.values() for name in left_out):
        needs = METRICS[name].needs
        if any(left_out.get(name, "").startswith("is for") for left_out in reasons.values()):
            why = f"are for {' and '.join(METRICS[name].modalities)} data"
        elif needs & {"model", "explainer", "other_model", "autoencoder"}:
            why = "ask a model or a method again (contrafact.metrics.evaluate in Python)"
        else:
            why = " and ".join(
                HOW[need]
                for need in sorted(needs - ({"reference"} if "labels" in needs else set()))
            )
        found.setdefault(why, []).append(name)
    return [f"Left out, as they {why}: {', '.join(names)}." for why, names in found.items()]
