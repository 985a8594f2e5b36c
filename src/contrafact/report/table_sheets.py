"""One row of a table on the page: what it is now beside the options, as finished texts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..engine.constraints import Constraints
from ..engine.result import Counterfactuals
from ..engine.table_constraints import describe, table_limits
from ..models.classifier import Array
from ..tables import Table, TableSpace
from .change_words import Change, changes_of
from .grammar import counted, listed, one_line, shorten
from .panels import relevant_classes
from .sentences import evidence
from .table_words import rows_of, value_text, values_apart
from .words import class_probability, column_of, label_text, note

CAUTION = "An option says what the model would answer, not what a change would bring about."
#: why a column stays the same
REASONS = {"": "", "frozen": "kept as asked", "fixed": "never changed"}
#: what stands in place of a value that an option does not change
SAME = "same"


def sheet(
    result: Counterfactuals,
    rows: list[int],
    constraints: Constraints | None,
    figures: list[tuple[str, list[str]]],
) -> dict[str, Any]:
    """Collect what the page shows of one row of a table and its options.

    Parameters
    ----------
    result : Counterfactuals
        The result of a table.
    rows : list of int
        Rows of the result that belong to the instance, at least one.
    constraints : Constraints, optional
        Constraints that were asked for, to say what stays for them.
    figures : list of (str, list of str)
        Names of metrics, each with its text for every option.

    Returns
    -------
    dict
        Of texts that JSON can hold.
    """
    changes = [changes_of(result, i) for i in rows]
    names = [_option_name(result, i, at, len(rows)) for at, i in enumerate(rows)]
    table, before, _ = rows_of(result, rows[0])
    parts = list(table.schema.parts)
    kept = _kept_parts(table, constraints)
    frozen = [part for part in parts if kept.get(part) == "frozen"]
    moved = result.changed_parts[rows]
    rest = [part for j, part in enumerate(parts) if not moved[:, j].any()]
    return {
        "lead": _lead(result, rows),
        "options": names,
        "verdict": {
            "now": _verdict(result.proba[rows[0]], result, result.labels[rows[0]]),
            "cells": [
                {"text": _verdict_after(result, i), "good": bool(result.valid[i])} for i in rows
            ],
        },
        "lines": [_line(result, rows, part) for part in _by_size(changes, parts)],
        "frozen": _frozen_words(table, frozen, before),
        "limits": _limit_words(constraints),
        "caution": CAUTION,
        "stays": _stays_words(rest),
        "unchanged": [
            {
                "name": one_line(part, 40),
                "now": value_text(table, part, before),
                "why": REASONS[kept.get(part, "")],
            }
            for part in rest
        ],
        "words": [_option_words(*option) for option in zip(names, changes, strict=True)],
        "notes": _notes(result, rows, names),
        "figures": [
            *_probabilities(result, rows),
            *({"name": name, "now": "", "cells": texts} for name, texts in figures),
        ],
    }


def _option_name(result: Counterfactuals, i: int, at: int, n: int) -> str:
    """Name an option; one alone needs no number."""
    name = f"option {at + 1}" if n > 1 else "instead"
    return name if result.valid[i] else f"{name} (not reached)"


def _lead(result: Counterfactuals, rows: list[int]) -> str:
    """Say what the model says now, and what the options do to it."""
    first = rows[0]
    label = label_text(result.labels[first])
    target = label_text(result.target[first])
    column = column_of(result, result.labels[first])
    probability = class_probability(result.proba[first], column)
    now = f"The model says {label} of this row, with a probability of {probability}."
    if result.status[first] == "already_target":
        return f"{now} That is the class asked for, so nothing was changed."
    reached = int(result.valid[rows].sum())
    if reached == 0:
        return f"{now} No change was found that makes it say {target}."
    if len(rows) == 1:
        return f"{now} With the values below it would say {target}."
    if reached == len(rows):
        return f"{now} Each of these {reached} options alone would make it say {target}."
    verb = "makes" if reached == 1 else "make"
    return (
        f"{now} {reached} of these {len(rows)} options {verb} it say {target}; "
        "the others are the best that was found."
    )


def _verdict(proba: Array, result: Counterfactuals, label: Any) -> str:
    """Say a class with its probability."""
    return f"{label_text(label)} ({class_probability(proba, column_of(result, label))})"


def _verdict_after(result: Counterfactuals, i: int) -> str:
    """Say the class after the change."""
    if np.isnan(result.cf_proba[i]).any():
        return "no answer"
    return _verdict(result.cf_proba[i], result, result.cf_labels[i])


def _by_size(changes: list[list[Change]], parts: list[str]) -> list[str]:
    """Order the changed columns: those of the first option first, then those of the next."""
    ordered: dict[str, None] = {}
    for option in changes:
        by_size = sorted(option, key=lambda change: -change.size)
        ordered |= dict.fromkeys(parts[change.place[0]] for change in by_size)
    return list(ordered)


def _line(result: Counterfactuals, rows: list[int], part: str) -> dict[str, Any]:
    """Write a column: its value now and in every option."""
    table, before, _ = rows_of(result, rows[0])
    first = table.schema.parts[part][0]
    column = table.schema.columns[first]
    is_number = column.is_numeric and column.group is None
    cells = []
    for i in rows:
        _, _, after = rows_of(result, i)
        members = list(table.schema.parts[part])
        if np.array_equal(before[members], after[members], equal_nan=True):
            cells.append({"text": SAME, "changed": False})
            continue
        text = values_apart(table, part, before, after)[1]
        arrow = ""
        if is_number and not np.isnan(before[first]):
            arrow = "↑\u00a0" if after[first] > before[first] else "↓\u00a0"
        cells.append({"text": f"{arrow}{text}", "changed": True})
    now = value_text(table, part, before)
    return {"name": one_line(part, 40), "now": now, "number": is_number, "cells": cells}


def _kept_parts(table: Table, constraints: Constraints | None) -> dict[str, str]:
    """Return the columns that could not change: "frozen" as asked, or "fixed" by the schema."""
    limits = table_limits(constraints, TableSpace(table))
    kept = {}
    for part, members in table.schema.parts.items():
        if table.schema.columns[members[0]].kind == "fixed":
            kept[part] = "fixed"
        elif bool(limits.frozen[members[0]]):
            kept[part] = "frozen"
    return kept


def _frozen_words(table: Table, frozen: list[str], before: Array) -> str:
    """Say what was kept because it was asked for, with its values."""
    if not frozen:
        return ""
    values = [f"{one_line(part, 40)} ({value_text(table, part, before)})" for part in frozen]
    return shorten(f"Kept as asked: {listed(values)}.", 240)


def _limit_words(constraints: Constraints | None) -> str:
    """Say the limits besides what was frozen."""
    words = "" if constraints is None else describe(replace(constraints, frozen=None))
    return f"Limits asked for: {words}." if words else ""


def _stays_words(rest: list[str]) -> str:
    """Count the columns that no option changes, and name the first few."""
    if not rest:
        return ""
    verb = "stays" if len(rest) == 1 else "stay"
    named = shorten(", ".join(rest), 100)
    return f"{counted(len(rest), 'column')} {verb} the same: {named}"


def _option_words(name: str, changes: list[Change]) -> str:
    """Say an option in one line."""
    in_order = sorted(changes, key=lambda change: change.place)
    words = "; ".join(change.words for change in in_order) or "nothing changed"
    return f"{name[0].upper()}{name[1:]}: {words}."


def _notes(result: Counterfactuals, rows: list[int], names: list[str]) -> list[dict[str, Any]]:
    """Collect what else there is to know of the options; what is said of all is said once."""
    by_text: dict[str, list[str]] = {}
    is_bad = {}
    for i, name in zip(rows, names, strict=True):
        told = [note(result, i), *(evidence(result, i, None) if result.valid[i] else [])]
        for text in filter(None, told):
            by_text.setdefault(shorten(text, 1000), []).append(name)
            is_bad[shorten(text, 1000)] = not result.valid[i]
    notes = []
    for text, who in by_text.items():
        subject = listed(who)
        whose = "" if len(who) == len(rows) else f"{subject[0].upper()}{subject[1:]}: "
        notes.append({"text": f"{whose}{text}", "bad": is_bad[text]})
    return notes


def _probabilities(result: Counterfactuals, rows: list[int]) -> list[dict[str, Any]]:
    """Write the probabilities of the classes that matter, now and with every option."""
    shown = dict.fromkeys(column for i in rows for column in relevant_classes(result, i))
    return [
        {
            "name": f"P({label_text(result.classes[column])})",
            "now": class_probability(result.proba[rows[0]], column),
            "cells": [class_probability(result.cf_proba[i], column) for i in rows],
        }
        for column in shown
    ]
