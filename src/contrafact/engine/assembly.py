"""From candidates to Counterfactuals: the audit, the model's last word, status and messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..models.classifier import Array, Classifier
from ..numerics.randomness import row_seeds
from .batch import Batch, Candidates
from .instances import Instances
from .isolation import gather, isolate
from .result import Counterfactuals


@dataclass(frozen=True)
class Outcome:
    """What became of some rows of a request, before the model is asked for the last time."""

    batch: Batch
    instances: Instances
    found: Candidates
    already: Tensor
    impossible: list[str]


def assemble(
    parts: Sequence[Outcome],
    instances: Instances,
    classifier: Classifier,
    provenance: dict[str, Any],
    seconds: float,
) -> Counterfactuals:
    """One result of all parts of a request."""
    columns: list[dict[str, Array]] = []
    infos: list[dict[str, Array]] = []
    first_row = 0
    for part in parts:
        column, info = _part(part, classifier)
        column["source"] = column["source"] + first_row
        first_row += len(part.batch)
        columns.append(column)
        infos.append(info)
    joined = {key: np.concatenate([column[key] for column in columns]) for key in columns[0]}
    keys = {key for info in infos for key in info}
    size = len(joined["source"])
    return Counterfactuals(
        X=instances.restore(joined.pop("X")),
        X_cf=instances.restore(joined.pop("X_cf")),
        seconds=np.full(size, seconds / max(size, 1)),
        classes=classifier.classes,
        modality=instances.modality,
        info={key: _join_info(key, infos, columns) for key in sorted(keys)},
        provenance=provenance,
        names=instances.names,
        **joined,
    )


def _part(part: Outcome, classifier: Classifier) -> tuple[dict[str, Array], dict[str, Array]]:
    batch, instances = part.batch, part.instances
    found, owner, x_cf = _rows(part)
    x_cf = _audit(batch, _finite(batch, x_cf, owner), owner, part)
    original, final = _exact(instances, x_cf, owner, batch)
    keep = _distinct(final, owner.cpu().numpy(), batch.k)
    owner, found, original, final = owner[keep], found[keep], original[keep], final[keep]

    answers, unanswered = isolate(lambda rows: classifier.verdict(final[rows.numpy()]), len(final))
    verdict = gather(answers, len(final), len(classifier.classes), batch.x.device)
    target = batch.target[owner]
    valid = (verdict.label == target).cpu().numpy()
    for row, reason in unanswered.items():
        batch.fail(owner[row : row + 1], reason)
    mute = ~(verdict.proba.isfinite().all(1) & verdict.score.isfinite().all(1))
    batch.fail(owner[mute], "the model returned NaN or inf for the counterfactual")
    after = verdict.proba.gather(1, target[:, None])[:, 0].cpu().numpy()
    source = owner.cpu().numpy()
    status, message = _status(part, source, valid, after, classifier)
    classes = classifier.classes
    column = {
        "X": original,
        "X_cf": final,
        "source": source,
        "labels": classes[batch.label[owner].cpu().numpy()],
        "cf_labels": classes[verdict.label.cpu().numpy()],
        "target": classes[target.cpu().numpy()],
        "proba": batch.verdict.proba[owner].cpu().numpy(),
        "cf_proba": verdict.proba.cpu().numpy(),
        "valid": valid & (status != "error"),
        "status": status,
        "message": message,
        "calls": _calls(batch.meter.spent.numpy(), source, classifier.rows_per_verdict),
    }
    info = {
        key: _spread_info(
            values[found[found >= 0]].detach().cpu().numpy(), found.cpu().numpy() >= 0
        )
        for key, values in part.found.info.items()
    }
    return column, info


def _rows(part: Outcome) -> tuple[Tensor, Tensor, Tensor]:
    """One entry per counterfactual: its candidate (−1: none), the row it belongs to, its array.

    A row without a candidate is represented by its best attempt.
    """
    batch, found = part.batch, part.found
    has = torch.zeros(len(batch), dtype=torch.bool, device=batch.x.device)
    has[found.rows] = True
    bare = (~has).nonzero().flatten()
    which = torch.cat(
        [torch.arange(len(found.rows), device=bare.device), torch.full_like(bare, -1)]
    )
    owner = torch.cat([found.rows, bare])
    x_cf = torch.cat([found.x, batch.best_attempts(bare)])
    order = owner.argsort(stable=True)
    return which[order], owner[order], x_cf[order]


def _finite(batch: Batch, x_cf: Tensor, owner: Tensor) -> Tensor:
    """NaN is no counterfactual, whatever the model makes of it: the row's best attempt stands in."""
    broken = ~x_cf.flatten(1).isfinite().all(1)
    batch.fail(owner[broken], "the method returned NaN or inf")
    x_cf = x_cf.clone()
    x_cf[broken] = batch.best_attempts(owner[broken])
    return x_cf


def _audit(batch: Batch, x_cf: Tensor, owner: Tensor, part: Outcome) -> Tensor:
    """Whatever a method returns, nothing leaves that breaks a constraint."""
    if batch.feasible is None:
        return x_cf
    impossible = torch.tensor([bool(reason) for reason in part.impossible], dtype=torch.bool)
    untouched = part.already | impossible.to(x_cf.device)
    broken = ~batch.feasible.allows(x_cf, batch.x[owner]) & ~untouched[owner]
    x, x_cf = batch.x[owner], x_cf.clone()
    x_cf[broken] = batch.feasible.project(x_cf[broken], x[broken])
    stuck = broken & ~batch.feasible.allows(x_cf, x)
    x_cf[stuck] = x[stuck]
    batch.refuse(owner[stuck], f"no change was found that keeps {batch.feasible.describe()}")
    return x_cf


def _exact(instances: Instances, x_cf: Tensor, owner: Tensor, batch: Batch) -> tuple[Array, Array]:
    """The arrays as returned: what was not changed is the user's own number, to the last bit.

    The dtype holds both the user's numbers and the model's, so nothing is rounded after the model decided.
    """
    found = x_cf.detach().cpu().numpy()
    dtype = np.result_type(instances.values.dtype, found.dtype)
    rows = owner.cpu().numpy()
    original = instances.values[rows].astype(dtype)
    kept = (x_cf == batch.x[owner]).cpu().numpy()
    final = np.where(kept, original, found.astype(dtype))
    if batch.feasible is not None:
        lower, upper = batch.feasible.bounds(dtype)
        changed = (final != original).any(tuple(range(1, final.ndim)), keepdims=True)
        free = ~batch.feasible.frozen.cpu().numpy() & changed
        final = np.where(free, np.clip(final, lower, upper), final)
        if batch.feasible.max_step is not None:
            # Two numbers that the model sees one step apart may be a hair more in the user's precision.
            steep = (
                np.abs(np.diff(final, axis=-1)).max((1, 2), keepdims=True, initial=0)
                > batch.feasible.max_step
            )
            final = np.where(free & steep, found.astype(dtype), final)
    return original, final


def _distinct(final: Array, source: Array, k: int) -> Array:
    """Positions of the rows to keep: up to k counterfactuals of one instance, no two alike."""
    keys = source if k == 1 else row_seeds(final, 0, source)
    first = np.sort(np.unique(keys, return_index=True)[1])
    return first[np.arange(len(first)) - np.searchsorted(source[first], source[first]) < k]


def _calls(spent: Array, source: Array, rows_per_verdict: int) -> Array:
    """Model rows per counterfactual; those of one instance share its search, so that the sum is the truth."""
    counts = np.bincount(source, minlength=len(spent))
    position = np.arange(len(source)) - np.searchsorted(source, source)
    total = spent + rows_per_verdict
    share = total[source] // counts[source] + (position < total[source] % counts[source])
    return np.asarray(share + rows_per_verdict)


def _spread_info(known: Array, has: Array) -> Array:
    """One value per counterfactual; NaN, −1 or False where there was no candidate."""
    blank = {"f": np.nan, "i": -1, "b": False}[known.dtype.kind]
    out = np.full((len(has), *known.shape[1:]), blank, dtype=known.dtype)
    out[has] = known
    return out


def _join_info(key: str, infos: list[dict[str, Array]], columns: list[dict[str, Array]]) -> Array:
    """One key of all parts; a part where the method had nothing to do has none of its own."""
    known = next(info[key] for info in infos if key in info)[:0]
    return np.concatenate(
        [
            info[key] if key in info else _spread_info(known, np.zeros(len(column["source"]), bool))
            for info, column in zip(infos, columns, strict=True)
        ]
    )


def _status(
    part: Outcome, source: Array, valid: Array, after: Array, classifier: Classifier
) -> tuple[Array, Array]:
    """Why each row is as it is."""
    batch = part.batch
    counts = np.bincount(source, minlength=len(batch))
    already, exhausted = part.already.cpu().numpy(), batch.meter.exhausted.numpy()
    classes, target = classifier.classes.tolist(), batch.target.tolist()
    status, message = [], []
    for j, row in enumerate(source.tolist()):
        wanted = repr(classes[target[row]])
        best = f"best P({wanted}) = {after[j]:.2f}"
        if batch.failures[row]:
            entry = ("error", batch.failures[row])
        elif already[row]:
            entry = ("already_target", "")
        elif part.impossible[row]:
            entry = ("infeasible", part.impossible[row])
        elif valid[j]:
            entry = ("valid", "")
            if counts[row] < batch.k:
                why = batch.refusals[row] or (
                    "the budget ran out" if exhausted[row] else "no more were found"
                )
                entry = ("valid", f"{counts[row]} of {batch.k} counterfactuals: {why}")
            elif batch.confidence is not None and after[j] < batch.confidence:
                entry = (
                    "valid",
                    f"P({wanted}) = {after[j]:.2f}, below the {batch.confidence:g} asked for",
                )
        elif exhausted[row]:
            entry = ("budget", f"the budget ran out; {best}")
        elif batch.refusals[row]:
            entry = ("infeasible", batch.refusals[row])
        elif batch.feasible is not None:
            entry = ("infeasible", f"not reached with {batch.feasible.describe()}; {best}")
        else:
            entry = ("invalid", f"not reached; {best}")
        status.append(entry[0])
        message.append(entry[1])
    return np.array(status, dtype="U14"), np.array(message, dtype=str)
