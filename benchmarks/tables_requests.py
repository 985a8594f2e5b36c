"""Ask 10,000 times for counterfactuals of tables under random limits, and check every answer.

    make bench-tables-requests

Twenty rows per call, with random limits, targets and numbers of answers, spread evenly over tables
and models; slow methods get fewer calls (SHARES). All checks are made here, from result.frame_cf
and by asking the model (_table_limits.py, _table_metrics.py). `--call 123` repeats one call and
shows it. A stopped run goes on where it was: the records are in tables_requests.jsonl. Writes
benchmarks/results/tables_requests.md.
"""

from __future__ import annotations

import json
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import contrafact as cf
from _common import (
    RESULTS,
    Array,
    OutOfTime,
    conditions,
    make_parser,
    table_head,
    table_row,
    time_limit,
    write_page,
)
from _table_limits import Limits, draw_limits, kept, one_hot_kept, reference_answers
from _table_metrics import broken_values, typed
from _table_models import MODELS
from _tables import Table, load_tables, one_hot

REQUESTS = 10_000
ROWS = 20
#: processor time after which a call counts as hanging
PATIENCE = 120.0
#: calls of each method, in proportion
SHARES = {
    "Graft": 4,
    "CoMTE": 4,
    "DiCE": 2,
    "NICE": 3,
    "GrowingSpheres": 2,
    "FACE": 3,
    "Wachter": 1,
    "LineSearch": 3,
    "NearestUnlike": 3,
    "SVCE": 1,
}
RECORDS = RESULTS / "tables_requests.jsonl"
#: what may be wrong with an answer that is called valid, or with a refusal
FAULTS = (
    "not valid",
    "category",
    "integer",
    "missing",
    "one-hot",
    "frozen",
    "increasing",
    "decreasing",
    "bounds",
    "max_changed",
    "relations",
    "forbidden",
    "no reason",
    "missed",
    "input changed",
    "error",
    "hang",
)


@dataclass(frozen=True)
class Call:
    """One call of explain: what is asked, by a number that repeats it."""

    number: int
    table: str
    model: str
    method: str


@cache
def tables() -> dict[str, Table]:
    """Return the tables, and two of them in one-hot form."""
    found = load_tables()
    more = [one_hot(found[name]) for name in ("adult", "german")]
    return found | {table.name: table for table in more}


@cache
def fitted_model(table: str, model: str) -> tuple[Any, Array]:
    """Return a model, and the classes it gives the training rows, by place."""
    found = MODELS[model](tables()[table])
    return found, found.predict_proba(tables()[table].X_train).argmax(1)


@cache
def fitted_explainer(table: str, model: str, method: str) -> Any:
    """Return an explainer of a model."""
    data = tables()[table]
    return getattr(cf, method)().fit(fitted_model(table, model)[0], data.X_train, data.y_train)


def constraints(limits: Limits) -> cf.Constraints | None:
    """Say the limits in the words of contrafact."""
    given = {name: value for name, value in asdict(limits).items() if value}
    return cf.Constraints(**given) if given else None


def plan(total: int) -> list[Call]:
    """Spread the calls over tables, models and methods."""
    rng = np.random.default_rng(0)
    cells = list(product(tables(), MODELS))
    wheel = [name for name, share in SHARES.items() for _ in range(share)]
    calls = []
    for number in range(-(-total // ROWS)):
        if number % len(cells) == 0:
            order = rng.permutation(len(cells))
        if number % len(wheel) == 0:
            methods = rng.permutation(wheel)
        cell = cells[order[number % len(cells)]]
        calls.append(Call(number, *cell, str(methods[number % len(wheel)])))
    return calls


def make_question(call: Call) -> dict[str, Any]:
    """Draw rows, target, limits and the number of answers of a call."""
    rng = np.random.default_rng([1, call.number])
    table = tables()[call.table]
    model, _ = fitted_model(call.table, call.model)
    rows = rng.choice(len(table.X_test), ROWS, replace=False)
    X = table.X_test.iloc[rows]
    proba = model.predict_proba(X)
    others = np.argsort(-proba, axis=1, kind="stable")[:, 1:]
    target = others[np.arange(ROWS), rng.integers(0, others.shape[1], ROWS)]
    return {
        "X": X,
        "target": target,
        "limits": draw_limits(rng, table),
        "k": int(rng.choice([1, 3])),
    }


def judge(call: Call) -> tuple[Counter[str], Counter[str], list[str]]:
    """Run a call; return counts of what was found, of faults, and lines that describe faults."""
    table = tables()[call.table]
    model, labels = fitted_model(call.table, call.model)
    question = make_question(call)
    X, target, limits = question["X"], question["target"], question["limits"]
    untouched = X.copy(deep=True)
    seen: Counter[str] = Counter(requests=ROWS)
    try:
        with warnings.catch_warnings(), time_limit(PATIENCE):
            warnings.simplefilter("ignore")
            explainer = fitted_explainer(call.table, call.model, call.method)
            result = explainer.explain(
                X,
                target=model.classes_[target],
                constraints=constraints(limits),
                k=question["k"],
                random_state=call.number,
            )
    except OutOfTime:
        return seen, Counter(hang=ROWS), ["hang"]
    except Exception as error:  # what an unclear error says is what is looked for
        place = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {error} ({place.name}, line {place.lineno})"
        return seen, Counter(error=ROWS), [text]
    faults: Counter[str] = Counter()
    lines = []
    if not X.equals(untouched):
        faults["input changed"] += ROWS
    before = X.iloc[result.source].reset_index(drop=True)
    after = result.frame_cf.reset_index(drop=True)
    right = model.predict_proba(typed(table, after)).argmax(1) == target[result.source]
    wrong = {
        "not valid": ~right,
        "one-hot": ~one_hot_kept(table, before, after),
        **{name: ~good for name, good in kept(table, limits, before, after).items()},
        **{
            name: bad
            for name, bad in broken_values(table, before, after).items()
            if name != "frozen"
        },
    }
    claimed = np.asarray(result.valid)
    for name, bad in wrong.items():
        for answer in np.flatnonzero(bad & claimed):
            faults[name] += 1
            lines.append(f"{name}: answer {answer}")
    for i in range(ROWS):
        answers = np.flatnonzero(result.source == i)
        has_answer = claimed[answers].any()
        seen["answered"] += int(has_answer)
        possible = reference_answers(table, limits, model, X.iloc[[i]], target[i], labels) > 0
        seen["possible"] += int(possible)
        seen["possible, answered"] += int(possible and has_answer)
        if has_answer:
            continue
        states = {str(result.status[answer]) for answer in answers}
        seen.update(states)
        if "error" in states:
            faults["error"] += 1
            lines.append(f"error: row {i}: {result.message[answers[0]]}")
        if not all(str(result.message[answer]).strip() for answer in answers):
            faults["no reason"] += 1
            lines.append(f"no reason: row {i}, {states}")
        if possible:
            faults["missed"] += 1
            lines.append(f"missed: row {i}, {states}: {result.message[answers[0]]}")
    return seen, faults, lines


def show(call: Call) -> None:
    """Print one call and what was found."""
    question = make_question(call)
    print(call, question["limits"], question["target"], f"k = {question['k']}", sep="\n")
    print(question["X"].T.to_string())
    print(*judge(call), sep="\n")


def run(calls: list[Call]) -> Iterator[dict[str, Any]]:
    """Yield one record per call."""
    for call in calls:
        start = time.process_time()
        seen, faults, lines = judge(call)
        seconds = time.process_time() - start
        for line in lines:
            print(
                f"call {call.number}: {call.method}, {call.table}, {call.model}: {line}", flush=True
            )
        yield {
            **asdict(call),
            "seconds": seconds,
            **seen,
            **{f"fault {k}": v for k, v in faults.items()},
            "lines": lines,
        }


def count(records: pd.DataFrame, by: str) -> list[str]:
    """Return a table of counts by method, table or model."""
    seen = [
        "requests",
        "answered",
        "possible",
        "possible, answered",
        "infeasible",
        "invalid",
        "budget",
    ]
    faults = [name for name in FAULTS if f"fault {name}" in records]
    lines = table_head(by, *seen, *faults)
    for name, group in records.groupby(by, sort=False):
        numbers = [int(group[column].sum()) if column in group else 0 for column in seen]
        numbers += [int(group[f"fault {fault}"].sum()) for fault in faults]
        lines.append(table_row(name, *numbers))
    return lines


def main() -> None:
    """Run all calls, or show one."""
    parser = make_parser(__doc__)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--call", type=int, help="repeat one call and show it")
    arguments = parser.parse_args()
    calls = plan(arguments.requests)
    if arguments.call is not None:
        show(calls[arguments.call])
        return
    done = set()
    if RECORDS.exists():
        done = {json.loads(line)["number"] for line in RECORDS.read_text().splitlines()}
    with RECORDS.open("a") as file:
        for record in run([call for call in calls if call.number not in done]):
            print(json.dumps(record), file=file, flush=True)
    write()


def write() -> None:
    """Write the page from the records."""
    records = pd.read_json(RECORDS, lines=True).fillna(0)
    page = [
        "# Requests about tables under random limits",
        "",
        conditions("make bench-tables-requests", ["scikit-learn", "pandas"]),
        f"{int(records.requests.sum()):,} requests in calls of {ROWS} rows. Possible: a training "
        "row of the target class keeps all limits, so that there is an answer. The columns after "
        "budget count faults: answers called valid that break something, refusals without a "
        "reason, requests without an answer although one is possible (missed), and errors.",
    ]
    for by in ("method", "table", "model"):
        page += ["", f"## By {by}", "", *count(records, by)]
    write_page("tables_requests.md", *page, "")


if __name__ == "__main__":
    main()
