"""Compare contrafact's methods on tables with DiCE: same models, same rows, same frozen columns.

    make bench-tables

Six tables, five models each, k = 3 counterfactuals per row, target: the runner-up class. All
figures come from the frames and from asking the model again (_table_metrics.py). Writes
benchmarks/results/tables.md; the records of all requests are kept in tables.parquet, so that
`--methods` renews some methods and leaves the others.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import contrafact as cf
from _common import (
    RESULTS,
    Array,
    conditions,
    make_parser,
    table_head,
    table_row,
    write_page,
)
from _table_metrics import Answers, measure
from _table_models import MODELS
from _table_peer import explain_with_dice
from _tables import Table, load_tables

K = 3
#: test rows per model, from this one on; methods were tuned with a look at earlier ones
ROWS = 10
FIRST_ROW = 32
#: processor time that DiCE may take for one row
DICE_SECONDS = 20.0
RECORDS = RESULTS / "tables.parquet"

Explain = Callable[[Table, Any, pd.DataFrame, Array, int], Answers]


class Method(NamedTuple):
    """A way to get answers, and the number of test rows it is asked about."""

    explain: Explain
    rows: int


def explain_with_contrafact(
    table: Table, model: Any, X: pd.DataFrame, target: Array, k: int, *, name: str
) -> Answers:
    """Ask one of our explainers; only what it calls valid counts as an answer."""
    start = time.process_time()
    explainer = getattr(cf, name)().fit(model, table.X_train, table.y_train)
    fitted = time.process_time()
    result = explainer.explain(
        X,
        target=model.classes_[target],
        constraints=cf.Constraints(frozen=list(table.frozen)) if table.frozen else None,
        k=k,
        random_state=0,
    )
    seconds = time.process_time() - fitted
    return Answers(
        result.frame_cf[result.valid],
        result.source[result.valid],
        np.full(len(X), seconds / len(X)),
        fitted - start,
    )


#: explainers of contrafact that take tables; those that this version lacks are left out
OURS = (
    "Graft",
    "CoMTE",
    "DiCE",
    "NICE",
    "GrowingSpheres",
    "FACE",
    "Wachter",
    "LineSearch",
    "NearestUnlike",
)

METHODS: dict[str, Method] = {
    **{
        name: Method(partial(explain_with_contrafact, name=name), rows=ROWS)
        for name in OURS
        if hasattr(cf, name)
    },
    "dice-ml random": Method(
        partial(explain_with_dice, method="random", seconds=DICE_SECONDS), rows=ROWS
    ),
    "dice-ml kdtree": Method(
        partial(explain_with_dice, method="kdtree", seconds=DICE_SECONDS), rows=ROWS
    ),
    "dice-ml genetic": Method(
        partial(explain_with_dice, method="genetic", seconds=DICE_SECONDS), rows=ROWS
    ),
}
PEER = "dice-ml random"


def run(methods: list[str], tables: list[str]) -> Iterator[pd.DataFrame]:
    """Yield the records of every table, model and method."""
    for table_name, table in load_tables().items():
        if table_name not in tables:
            continue
        for model_name, train in MODELS.items():
            model = train(table)
            for method_name in methods:
                method = METHODS[method_name]
                X = table.X_test.iloc[FIRST_ROW : FIRST_ROW + method.rows]
                target = runner_up_index(model.predict_proba(X))
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    answers = method.explain(table, model, X, target, K)
                records = measure(table, model, X, target, K, answers)
                reasons = dict(Counter(answers.failures.values()))
                print(table_name, model_name, method_name, reasons, flush=True)
                yield records.assign(
                    table=table_name, model=model_name, method=method_name, setup=answers.setup
                )


def runner_up_index(proba: Array) -> Array:
    """Return the place of the second most likely class of every row."""
    return np.argsort(-proba, axis=1, kind="stable")[:, 1]


def store(records: pd.DataFrame) -> pd.DataFrame:
    """Replace the records of a table, model and method; return all."""
    key = ["table", "model", "method"]
    if RECORDS.exists():
        old = pd.read_parquet(RECORDS)
        new = records[key].drop_duplicates()
        kept = old.merge(new, on=key, how="left", indicator=True)["_merge"].eq("left_only")
        records = pd.concat([old[kept.to_numpy()], records], ignore_index=True)
    RESULTS.mkdir(exist_ok=True)
    records.to_parquet(RECORDS)
    return records


# --- the page ------------------------------------------------------------------------------------

FIGURES = (
    "requests",
    "≥ 1 answer",
    f"{K} answers",
    "≥ 1 valid",
    f"{K} valid",
    "not valid",
    "broken",
    "fewest",
    "changed",
    "nearest",
    "l1",
    "different",
    "Jaccard",
    "s/row",
)


def figures(records: pd.DataFrame) -> list[str]:
    """Return the figures of one or more cells as text."""
    means = records.mean(numeric_only=True)
    broken = records.filter(like="broken_").to_numpy().sum()
    return [
        str(len(records)),
        f"{(records.given > 0).mean():.2f}",
        f"{(records.given >= K).mean():.2f}",
        f"{(records.valid > 0).mean():.2f}",
        f"{(records.valid >= K).mean():.2f}",
        f"{(records.given - records.valid).sum()}",
        f"{broken}",
        *(
            f"{means[name]:.2f}"
            for name in ("fewest", "changed", "nearest", "l1", "different", "jaccard")
        ),
        f"{means.seconds:.3f}",
    ]


def beside_peer(records: pd.DataFrame, peer: pd.DataFrame) -> list[str]:
    """Compare with the peer on the requests that both answered validly."""
    both = records.merge(peer, on=["table", "model", "row"], suffixes=("", "_peer"))
    both = both[(both.valid > 0) & (both.valid_peer > 0)]
    return [
        str(len(both)),
        *(
            f"{both[name].mean():.2f} / {both[f'{name}_peer'].mean():.2f}"
            for name in ("fewest", "changed", "nearest", "l1", "jaccard")
        ),
        f"{both.seconds.mean() / both.seconds_peer.mean():.3f}",
    ]


def write(records: pd.DataFrame) -> None:
    """Write the page."""
    methods = [name for name in METHODS if name in set(records.method)]
    groups = dict(tuple(records.groupby("method")))
    lines = ["## All tables and models", "", *table_head("method", *FIGURES)]
    lines += [table_row(name, *figures(groups[name])) for name in methods]
    if PEER in groups:
        lines += ["", f"## Beside {PEER}, on the requests that both answered", ""]
        lines += table_head(
            "method", "requests", "fewest", "changed", "nearest", "l1", "Jaccard", "time ratio"
        )
        lines += [
            table_row(name, *beside_peer(groups[name], groups[PEER]))
            for name in methods
            if name != PEER
        ]
    for table in load_tables():
        if table not in set(records.table):
            continue
        lines += ["", f"## {table}", "", *table_head("model", "method", *FIGURES)]
        for model in MODELS:
            for method in methods:
                cell = records.query("table == @table and model == @model and method == @method")
                if len(cell):
                    lines.append(table_row(model, method, *figures(cell)))
    write_page(
        "tables.md",
        "# Tables: contrafact beside DiCE",
        "",
        conditions("make bench-tables", ["dice-ml", "scikit-learn", "pandas"]),
        *NOTES,
        "",
        *lines,
        "",
    )


NOTES = (
    f"k = {K} counterfactuals per test row, target: the runner-up class; columns frozen: race and "
    "sex (adult), age, personal_status and foreign_worker (german), age and sex (hospital). The "
    f"same model and rows for all: {ROWS} test rows of each model from row {FIRST_ROW} on, which "
    "no method was tuned with. Measured in one process; processor times, on a machine with other "
    "work.",
    "Options of contrafact change different sets of columns where such options are found, else the "
    "columns of an earlier option to clearly other values.",
    f"dice-ml: default settings, {DICE_SECONDS:.0f} s of processor time per row; categories as "
    "text, missing numbers as the median while it searches and missing again when the model is "
    "asked; it is asked row by row, contrafact in one batch.",
    "",
    "Answers: different answers to one request. Valid: the model, asked again, says the target "
    "class; shares are of all requests. Not valid: answers given as valid that are not. Broken: "
    "answers with an unknown category, an integer that is none, a value gone missing or a frozen "
    "column changed. Of the valid answers to a request: fewest and mean number of changed columns, "
    "nearest and mean l1 (numbers over their median absolute deviation, or standard deviation "
    "where that is 0; 1 for anything else), share of pairs that change different columns and their "
    "mean Jaccard distance. s/row: processor time without preparation.",
)


def main() -> None:
    """Measure, and write the page after every cell."""
    parser = make_parser(__doc__)
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--tables", nargs="*", default=list(load_tables()))
    arguments = parser.parse_args()
    for records in run(arguments.methods, arguments.tables):
        write(store(records))


if __name__ == "__main__":
    main()
