"""From candidates to Counterfactuals: constraints are checked, the model is asked a last time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..models.classifier import Array, Classifier
from ..models.verdict import Verdict, target_value
from ..numerics import occurrence, row_seeds
from ..tables import Table
from .blanks import fill_blanks
from .candidates import Candidates
from .committee_info import committee_info, count_votes
from .instances import Instances
from .isolation import describe_exception, gather_verdicts, isolate
from .joining import join_infos
from .oracle import Oracle
from .result import Counterfactuals
from .statuses import describe_statuses
from .table_limits import TableLimits


@dataclass(frozen=True)
class Part:
    """What was found for some instances of a request, before the model is asked a last time.

    `searched` marks the instances that were worked on; all others are returned unchanged. `given`
    holds counterfactuals of a table, one per instance, that are returned as they are.
    """

    oracle: Oracle
    instances: Instances
    searched: Tensor
    found: Candidates
    given: Array | None = None


@dataclass(frozen=True)
class Entries:
    """One entry per counterfactual: its instance, its array, and the candidate it comes from.

    `candidate` is -1 where the method found none and the best attempt stands in.
    """

    row: Tensor
    x_cf: Tensor
    candidate: Tensor

    def take(self, which: Tensor) -> Entries:
        """Return some of the entries."""
        return Entries(self.row[which], self.x_cf[which], self.candidate[which])


def assemble(
    parts: Sequence[Part],
    instances: Instances,
    classifier: Classifier,
    provenance: dict[str, Any],
    seconds: float,
) -> Counterfactuals:
    """Make one result of all parts of a request.

    Parameters
    ----------
    parts : sequence of Part
        The request in order, split by instances.
    instances : Instances
        All instances.
    classifier : Classifier
        The model.
    provenance : dict
        Method, parameters, version, seed and options.
    seconds : float
        Wall time of the whole request.

    Returns
    -------
    Counterfactuals
        The result; `valid` is what the model says of the returned arrays.
    """
    columns: list[dict[str, Array]] = []
    infos: list[dict[str, Array]] = []
    exceptions: dict[int, Exception] = {}
    first_row = 0
    for part in parts:
        column, info = _assemble_part(part, classifier)
        column["source"] = column["source"] + first_row
        columns.append(column)
        infos.append(info)
        for row, error in part.oracle.states.exceptions.items():
            exceptions[first_row + row] = error
        first_row += len(part.instances)
    joined = {name: np.concatenate([column[name] for column in columns]) for name in columns[0]}
    size = len(joined["source"])
    return Counterfactuals(
        X=instances.restore(joined.pop("X")),
        X_cf=instances.restore(joined.pop("X_cf")),
        seconds=np.full(size, seconds / max(size, 1)),
        classes=classifier.classes,
        modality=instances.modality,
        info=join_infos(infos, [len(column["source"]) for column in columns]),
        provenance=provenance,
        names=instances.names,
        table=_table_of(instances, joined["source"]),
        exceptions=exceptions,
        **joined,
    )


def _table_of(instances: Instances, source: Array) -> Table | None:
    """Return the rows of a data frame, one per counterfactual; None where an array was given."""
    if instances.table is None or instances.names is None:
        return None
    return instances.table.take(source)


def _assemble_part(
    part: Part,
    classifier: Classifier,
) -> tuple[dict[str, Array], dict[str, Array]]:
    oracle = part.oracle
    entries = _one_or_more_per_instance(part)
    entries = _replace_nonfinite(oracle, entries)
    entries = _enforce_constraints(oracle, entries, part.searched)
    original, final = _exact_arrays(part, entries)
    kept = _distinct(final, entries.row.cpu().numpy(), oracle.request.k)
    entries = entries.take(torch.from_numpy(kept).to(entries.row.device))
    original = original[kept]
    final = final[kept]
    source = entries.row.cpu().numpy()
    moved = (final != original).any(tuple(range(1, final.ndim)))
    shown = part.instances.as_given(original, source), part.instances.as_given(final, source)
    if part.given is not None:
        shown = shown[0], part.given
    verdict = _final_verdict(oracle, entries.row, shown[1])
    votes = count_votes(oracle, entries.row, final)
    target = oracle.question.target[entries.row]
    reached = (verdict.label == target).cpu().numpy()
    p_target = target_value(verdict.proba, target).cpu().numpy()
    repeats = _repeated_columns(oracle, entries)
    status, message = describe_statuses(oracle, source, reached, moved, p_target, votes, repeats)
    before = oracle.question.before[entries.row]
    classes = classifier.classes
    column = {
        "X": shown[0],
        "X_cf": shown[1],
        "source": source,
        "labels": classes[before.label.cpu().numpy()],
        "cf_labels": classes[verdict.label.cpu().numpy()],
        "target": classes[target.cpu().numpy()],
        "proba": before.proba.cpu().numpy(),
        "cf_proba": verdict.proba.cpu().numpy(),
        "valid": reached & (status != "error"),
        "status": status,
        "message": message,
        "calls": _calls(oracle, source),
    }
    info = _info_of_entries(part.found, entries.candidate)
    if oracle.committee is not None and votes is not None:
        calls = _share(oracle.committee_rows.numpy(), source)
        info |= committee_info(votes, len(oracle.committee), calls)
    return column, info


def _one_or_more_per_instance(part: Part) -> Entries:
    """Collect the candidates by instance; the best attempt stands in where there is none."""
    found = part.found
    row = found.tasks.row
    has_candidate = torch.zeros(
        len(part.instances),
        dtype=torch.bool,
        device=row.device,
    )
    has_candidate[row] = True
    bare = (~has_candidate).nonzero().flatten()
    number = torch.arange(len(row), device=row.device)
    entries = Entries(
        row=torch.cat([row, bare]),
        x_cf=torch.cat([found.x, part.oracle.states.best_x_cf[bare]]),
        candidate=torch.cat([number, torch.full_like(bare, -1)]),
    )
    return entries.take(entries.row.argsort(stable=True))


def _replace_nonfinite(oracle: Oracle, entries: Entries) -> Entries:
    """Put the best attempt in place of a candidate with NaN or inf, and mark the failure."""
    broken = ~entries.x_cf.flatten(1).isfinite().all(1)
    if not bool(broken.any()):
        return entries
    rows = entries.row[broken]
    oracle.states.fail(rows, "the method returned NaN or inf")
    x_cf = entries.x_cf.clone()
    x_cf[broken] = oracle.states.best_x_cf[rows]
    return replace(entries, x_cf=x_cf)


def _enforce_constraints(
    oracle: Oracle,
    entries: Entries,
    searched: Tensor,
) -> Entries:
    """Bring within the constraints whatever a method returned; undo what cannot be."""
    feasible_set = oracle.feasible_set
    if feasible_set is None:
        return entries
    x = oracle.question.x[entries.row]
    x_cf = entries.x_cf.clone()
    limits = feasible_set.take(entries.row)
    broken = ~limits.allows(x_cf, x) & searched[entries.row]
    x_cf[broken] = feasible_set.take(entries.row[broken]).project(x_cf[broken], x[broken])
    stuck = broken & ~limits.allows(x_cf, x)
    x_cf[stuck] = x[stuck]
    reason = f"no change was found that keeps {feasible_set.describe()}"
    oracle.states.refuse(entries.row[stuck], reason)
    return replace(entries, x_cf=x_cf)


def _exact_arrays(part: Part, entries: Entries) -> tuple[Array, Array]:
    """Return instances and counterfactuals in the user's numbers.

    What was not changed is the user's own number to the last bit. The dtype holds both the user's
    numbers and the model's, so nothing is rounded after the model decided.
    """
    oracle = part.oracle
    found = entries.x_cf.detach().cpu().numpy()
    values = part.instances.values
    dtype = np.result_type(values.dtype, found.dtype)
    original = values[entries.row.cpu().numpy()].astype(dtype)
    found = found.astype(dtype)
    unchanged = (entries.x_cf == oracle.question.x[entries.row]).cpu().numpy()
    final = np.where(unchanged, original, found)
    if oracle.feasible_set is None:
        return original, final
    return original, oracle.feasible_set.finish(final, original, found)


def _distinct(final: Array, source: Array, k: int) -> Array:
    """Return the positions to keep: up to k counterfactuals of an instance, no two alike."""
    keys = source if k == 1 else row_seeds(final, 0, source)
    first = np.sort(np.unique(keys, return_index=True)[1])
    owner = source[first]
    place = np.arange(len(first)) - np.searchsorted(owner, owner)
    return first[place < k]


def _repeated_columns(oracle: Oracle, entries: Entries) -> Array | None:
    """Return the number, from 1, of the first option with the same columns, 0 where there is none.

    None where there is one counterfactual per instance, or no table.
    """
    limits = oracle.feasible_set
    if oracle.request.k == 1 or not isinstance(limits, TableLimits):
        return None
    x = oracle.question.x[entries.row]
    changed = limits.take(entries.row).changed_parts(entries.x_cf, x)
    repeats = np.zeros(len(x), dtype=int)
    first_with: dict[tuple[int, bytes], int] = {}
    place = occurrence(entries.row).tolist()
    for i, (row, columns) in enumerate(zip(entries.row.tolist(), changed.numpy(), strict=True)):
        number = first_with.setdefault((row, columns.tobytes()), place[i] + 1)
        repeats[i] = number if number <= place[i] else 0
    return repeats


def _final_verdict(oracle: Oracle, row: Tensor, final: Array) -> Verdict:
    """Ask the model about the arrays as they are returned."""
    classifier = oracle.classifier
    answers = isolate(
        lambda rows: classifier.final_verdict(final[rows.numpy()]),
        len(final),
        oracle.request.on_error,
    )
    n_classes = len(classifier.classes)
    verdict = gather_verdicts(answers.results, len(final), n_classes, row.device)
    for entry, error in answers.exceptions.items():
        oracle.states.fail(row[entry : entry + 1], describe_exception(error), error)
    unusable = ~verdict.is_finite()
    if bool(unusable.any()):
        reason = "the model returned NaN or inf for the counterfactual"
        oracle.states.fail(row[unusable], reason)
    return verdict


def _calls(oracle: Oracle, source: Array) -> Array:
    """Count the model rows of each counterfactual: its share of the search, and the last one."""
    spent = oracle.meter.spent.numpy()
    per_verdict = oracle.classifier.rows_per_verdict
    return _share(spent + per_verdict, source) + per_verdict


def _share(rows: Array, source: Array) -> Array:
    """Share the rows of an instance among its counterfactuals.

    The shares are whole numbers, so that the column adds up to the number of rows.
    """
    total = rows[source]
    count = np.bincount(source, minlength=len(rows))[source]
    place = np.arange(len(source)) - np.searchsorted(source, source)
    return np.asarray(total // count + (place < total % count))


def _info_of_entries(found: Candidates, candidate: Tensor) -> dict[str, Array]:
    """Return the method's info, one value per counterfactual."""
    position = candidate.cpu().numpy()
    has_candidate = position >= 0
    info = {}
    for name, values in found.info.items():
        known = values.detach().cpu().numpy()[position[has_candidate]]
        info[name] = fill_blanks(known, has_candidate)
    return info
