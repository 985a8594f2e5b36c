"""Refinement: make edits smaller; here the minimal form, which undoes all that is not needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..engine import Budget, Constraints, Counterfactuals, Request, Tasks
from ..engine.given_arrays import Improve, from_arrays
from ..engine.instances import read_instances
from ..engine.request import RULES as REQUEST_RULES
from ..engine.request import Refinement
from ..engine.result import as_numpy
from ..models.adapters import as_classifier
from ..models.classifier import Classifier
from ..models.committee import Committee, as_committee
from ..numerics import broadcast_rows
from ..numerics.differences import RealDifferences
from ..validation import Instance, OneOf, check_parameters
from .believable_refinement import shrink_stretches
from .bisection import smallest_level
from .row_edits import reduce_numbers
from .segments import as_rows, count_segments, sum_by_segment, task_segments

RULES = {
    "result": Instance(Counterfactuals),
    "how": OneOf("minimal", "believable"),
    **{name: REQUEST_RULES[name] for name in ("constraints", "confidence", "budget")},
}
#: widths of the chunks that are undone at once, before single values
CHUNK_WIDTHS = (32, 16, 8, 4, 2)
#: resolution of the amplitude
AMPLITUDE_LEVELS = 64
#: numbers built at once; more trials are made in turn
MAX_ELEMENTS = 2**24


def refine(
    result: Counterfactuals,
    model: Any,
    *,
    how: Refinement = "minimal",
    reference: Any = None,
    constraints: Constraints | None = None,
    confidence: float | None = None,
    budget: Budget | None = None,
    committee: Committee | Sequence[Any] | None = None,
) -> Counterfactuals:
    """Make counterfactuals smaller without making a valid one invalid.

    "minimal": chunks of the edit are undone, wide ones first and those that matter least first, as
    long as the model stays with the target; then single values until no single one can be undone
    (the edit is 1-minimal); then the amplitude of what remains is reduced.

    "believable": whole stretches (runs of time steps, connected patches, features) are dropped,
    those that matter least first; in series the ends of the others move inward, and what is kept
    is joined to the instance without a jump; then the amplitude is reduced. No stretch is left
    shorter than three steps, and no jump or kink appears that real series do not show, unless it
    was there before.

    Either result lies right at the decision boundary; ask for `confidence` to stay away from it.

    Parameters
    ----------
    result : Counterfactuals
        Results of any method; of another library by `Counterfactuals.from_arrays`.
    model : object
        The model that was explained.
    how : {"minimal", "believable"}, default="minimal"
        What to keep besides validity.
    reference : array of shape (m, *shape), optional
        Real series, for "believable": what jumps and kinks they show is the limit; default: the
        instances of the result.
    constraints : Constraints, optional
        Limits to keep.
    confidence : float, optional
        Least P(target) to keep.
    budget : Budget, optional
        Limits on the cost; None: 2,000 model rows for each counterfactual.
    committee : Committee or list of models, optional
        Models that have to agree, too; a counterfactual on which they do not is left as it is.

    Returns
    -------
    Counterfactuals
        The same rows; valid ones are at most as large as before.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> import contrafact as cf
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=500).fit(X, y)
    >>> result = cf.NearestUnlike().fit(model, X, y).explain(X[:5], target=1)
    >>> smaller = cf.refine(result, model)
    >>> bool(smaller.valid.all()), bool(smaller.changed.sum() < result.changed.sum())
    (True, True)
    """
    check_parameters("refine", RULES, locals())
    request = Request(
        constraints=constraints,
        confidence=confidence,
        budget=budget,
        committee=as_committee(committee),
        refine=how,
    )
    if how == "minimal" and reference is not None:
        raise ValueError("reference applies to how='believable', got how='minimal'.")
    if not isinstance(model, Classifier):
        # A module or function has no class names of its own; those of the result are meant.
        model = as_classifier(model, classes=result.classes)
    rows = (result.status == "valid").nonzero()[0]
    valid = result[rows]
    is_table = valid.table is not None
    refined = from_arrays(
        model,
        valid.frame if is_table else valid.X,
        valid.frame_cf if is_table else valid.X_cf,
        valid.target,
        modality=result.modality,
        schema=None if valid.table is None else valid.table.schema,
        request=request,
        improve=refiner(how, _real_differences(result, reference, how)),
        source=valid.source,
    )
    return result.updated(rows, refined)


def refiner(how: Refinement, limits: RealDifferences | None) -> Improve:
    """Return the function that refines one edit per task.

    Parameters
    ----------
    how : {"minimal", "believable"}
        The form of refinement.
    limits : RealDifferences or None
        What real series show, for the believable form; None for images and rows.

    Returns
    -------
    function of tasks and edits
        Returns the smaller edits.
    """
    if how == "minimal":
        return undo_edits
    return partial(shrink_stretches, limits=limits)


def _real_differences(
    result: Counterfactuals,
    reference: Any,
    how: Refinement,
) -> RealDifferences | None:
    """Return what the reference, or else the instances of the result, show.

    None where the form of refinement or the kind of data has no use for it.
    """
    if how == "minimal" or result.modality != "series":
        return None
    own = read_instances(as_numpy(result.X), "X", "series").values
    real = own
    if reference is not None:
        real = read_instances(reference, "reference", "series").values
        if real.shape[1:] != own.shape[1:]:
            raise ValueError(
                f"reference holds series of shape {tuple(real.shape[1:])}; "
                f"accepted: {tuple(own.shape[1:])}, that of the result."
            )
    if len(real) == 0:
        return None
    return RealDifferences.of(torch.as_tensor(real))


def undo_edits(tasks: Tasks, x_cf: Tensor) -> Tensor:
    """Undo what is not needed of one edit per task (delta debugging).

    Parameters
    ----------
    tasks : Tasks
        What the edits are for.
    x_cf : Tensor of shape (n, *shape)
        The edits.

    Returns
    -------
    Tensor of shape (n, *shape)
        Smaller edits; those that the model does not accept are only projected.
    """
    x_cf = tasks.project(x_cf).clone()
    accepted = tasks.accepted(x_cf)
    if not bool(accepted.any()):
        return x_cf
    edits = Edits(tasks.take(accepted), x_cf[accepted])
    everything = torch.arange(len(edits.tasks), device=x_cf.device)
    for width in CHUNK_WIDTHS:
        edits.undo_chunks(everything, width)
    edits.undo_values()
    edits.reduce_amplitude()
    edits.undo_values()
    x_cf[accepted] = edits.x_cf
    return x_cf


@dataclass(frozen=True)
class _Expendable:
    """The chunks of some edits that can be undone alone, in the order of what they matter.

    Parameters
    ----------
    place : Tensor of int, shape (n, chunks)
        Place of each chunk in that order; the number of chunks where it cannot be undone.
    count : Tensor of int, shape (n,)
        How many can be undone alone.
    """

    place: Tensor
    count: Tensor


class Edits:
    """Edits that the model accepts, and ways to make them smaller.

    Parameters
    ----------
    tasks : Tasks
        What the edits are for.
    x_cf : Tensor of shape (n, *shape)
        The edits as they are now.
    """

    def __init__(self, tasks: Tasks, x_cf: Tensor) -> None:
        self.tasks = tasks
        self.x_cf = x_cf

    def undo_values(self) -> None:
        """Undo single values until no single one can be undone: each edit is then 1-minimal."""
        which = torch.arange(len(self.tasks), device=self.x_cf.device)
        while len(which):
            which = self.undo_chunks(which, 1)

    def undo_chunks(self, which: Tensor, width: int) -> Tensor:
        """Try every chunk alone, then undo together as many as the model allows.

        Parameters
        ----------
        which : Tensor of int
            Positions of the edits to work on.
        width : int
            Width of the chunks.

        Returns
        -------
        Tensor of int
            Positions of the edits that became smaller.
        """
        chunk_of = task_segments(self.tasks, width)
        if count_segments(chunk_of) < 2:
            return which[:0]
        tasks = self.tasks.take(which).attach(x_cf=self.x_cf[which])
        expendable = _find_expendable(tasks, chunk_of)
        some = expendable.count > 0
        which = which[some]
        tasks = tasks.take(some).attach(
            place=expendable.place[some],
            count=expendable.count[some],
        )

        def undo_most(tasks: Tasks, level: Tensor) -> Tensor:
            """Level 1 undoes all expendable chunks, level `count` only the first."""
            undone = tasks["place"] <= (tasks["count"] - level)[:, None]
            return tasks.project(torch.where(undone[:, chunk_of], tasks.x, tasks["x_cf"]))

        _, smaller = smallest_level(
            tasks,
            undo_most,
            tasks["count"],
            top_accepted=True,
        )
        self.x_cf[which] = smaller
        # Limiting the slope can change other values anew: only fewer changes count, so that this
        # comes to an end.
        before = _count_changes(tasks, tasks["x_cf"])
        after = _count_changes(tasks, smaller)
        return which[after < before]

    def reduce_amplitude(self) -> None:
        """Scale each edit down by bisection; in rows of tables, each number."""
        if self.tasks.space is not None:
            self.x_cf = reduce_numbers(self.tasks, self.x_cf)
            return

        def scaled(tasks: Tasks, level: Tensor) -> Tensor:
            share = broadcast_rows(level.to(tasks.x) / AMPLITUDE_LEVELS, tasks.x)
            return tasks.project(torch.lerp(tasks.x, tasks["x_cf"], share))

        tasks = self.tasks.attach(x_cf=self.x_cf)
        _, self.x_cf = smallest_level(
            tasks,
            scaled,
            AMPLITUDE_LEVELS,
            top_accepted=True,
        )


def _count_changes(tasks: Tasks, x_cf: Tensor) -> Tensor:
    return (x_cf != tasks.x).flatten(1).sum(1)


def _find_expendable(tasks: Tasks, chunk_of: Tensor) -> _Expendable:
    """Undo every changed chunk alone; first comes the one that costs the target least."""
    changed = (tasks["x_cf"] != tasks.x).float()
    holds_changes = sum_by_segment(changed, chunk_of) > 0
    task, chunk = holds_changes.nonzero(as_tuple=True)
    lead = holds_changes.new_full(
        holds_changes.shape,
        -torch.inf,
        dtype=torch.float64,
    )
    lead[task, chunk] = _lead_without(tasks, task, chunk, chunk_of)
    can_go = lead > -torch.inf
    order = lead.argsort(dim=1, descending=True, stable=True)
    place = torch.where(can_go, order.argsort(dim=1), lead.shape[1])
    return _Expendable(place, can_go.sum(1))


def _lead_without(
    tasks: Tasks,
    task: Tensor,
    chunk: Tensor,
    chunk_of: Tensor,
) -> Tensor:
    """Return the target's lead without a chunk, for each pair of task and chunk.

    -inf where the edit is not accepted without it, or cannot be tried.
    """
    lead = torch.full(
        (len(task),),
        -torch.inf,
        dtype=torch.float64,
        device=task.device,
    )
    able = tasks.take(task).affords().nonzero().flatten()
    for part in able.split(max(1, MAX_ELEMENTS // chunk_of.numel())):
        trying = tasks.take(task[part])
        undone = chunk_of == broadcast_rows(chunk[part], trying.x)
        trial = as_rows(trying, torch.where(undone, trying.x, trying["x_cf"]))
        # A linked column follows the others again: it cannot be undone alone.
        undoes = (trial != trying["x_cf"]).flatten(1).any(1)
        part, trial, trying = part[undoes], trial[undoes], trying.take(undoes)
        if trying.feasible_set is not None:
            allowed = trying.feasible_set.allows(trial, trying.x)
            part = part[allowed]
            trial = trial[allowed]
            trying = trying.take(allowed)
        verdict = trying.ask(trial)
        accepted = trying.accepts(trial, verdict)
        lead[part] = torch.where(accepted, trying.lead(verdict), -torch.inf)
    return lead
