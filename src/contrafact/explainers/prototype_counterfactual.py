"""PrototypeCounterfactual: the smallest counterfactual of a prototype model, with a proof."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from ..engine import Candidates, Tags, Tasks
from ..engine.constraints import TABLE_KINDS
from ..geometry.dual_problem import Norm
from ..guides import NearestUnlikeNeighbor
from ..models.classifier import Array
from ..prototypes.robustness import decision_radius
from ..search import smallest_level
from ..validation import OneOf
from .support.displacements import (
    choose_shortest,
    displace,
    kth_of_group,
    least_of_group,
    length,
)
from .support.explainer import Explainer
from .support.feasible_guides import feasible_guides
from .support.grid_displacements import displace_onto_grid, is_in_class
from .support.leads import Leads
from .support.prototype_branching import close_gaps
from .support.prototype_confidence import Confidence, solve_confident
from .support.prototype_linearization import solve_linearized
from .support.prototype_model import unwrap_prototype_model
from .support.prototype_problem import (
    MARGINS,
    Problems,
    Prototypes,
    Solutions,
    solve_exactly,
)

#: steps from what a confidence needs to what is enough for it
STEPS = 64
#: numbers in the constraints of the instances that are worked on at once
MAX_NUMBERS = 2**21
#: largest gap of a certified counterfactual, as a share of the distance where that is above 1
CERTIFIED_GAP = 1e-6


class PrototypeCounterfactual(Explainer):
    """Find the smallest counterfactual of a prototype model, and prove that it is.

        minimize ‖x' − x‖   over w_j of the target class
                            and x' with d(x', w_j) ≤ d(x', w_k) for all w_k of other classes

    With one metric d(x, w) = (x − w)ᵀ Λ (x − w) for all prototypes, these x' form a polyhedron,

        2 (w_k − w_j)ᵀ Λ x'  ≤  w_kᵀ Λ w_k − w_jᵀ Λ w_j,

    and each problem is solved exactly, bounds and frozen values included; a dual solution proves
    it. Where every prototype has its own metric, the set is curved: it is linearized again and
    again, until no small change improves the point. In l2, branch and bound then shortens it and
    raises a lower bound until the two meet: by pairs of prototypes, then by the dual of all
    conditions together, then by cutting what is left into boxes. Where its limits end it before,
    and in l1, where the bound is that of pairs in l2, the gap says how much shorter the change
    could be.

    Takes the models of `contrafact.prototypes` that have a metric, alone or in a pipeline behind
    scalers. A `confidence` asks for d(x', w_k) − d(x', w_j) large enough, also for instances that
    are in the target class already. That is exact: with two classes in one step, with more by cuts
    of a convex set; with local metrics and more than two classes the result lies between the
    solutions for what is needed and for what is enough. Where the confidence cannot be
    reached, the smallest change for the decision alone is returned. A model whose probabilities are
    not a softmax of squared distances, such as `MedianLVQ`, gets that in any case.

    Tables of numbers are measured in the units of their schema. Where values are rounded (whole
    numbers, decimals) the result is the rounded solution, or lies a little further on; it is
    certified only if it is as near as the solution before rounding. One-hot groups and booleans
    stay as they are, and nothing is certified where they could have changed. Where no numbers
    change the class, the result is the nearest row of the reference data.

    Parameters
    ----------
    norm : {"l2", "l1"}, default="l2"
        Norm of the change; "l1" changes few values.

    Attributes
    ----------
    prototypes_ : Prototypes
        Prototypes, their classes and metric in the units of the instances, after `fit`.
    temperature_ : float or None
        T of P(c | x) ∝ exp(−d_c(x) / T), after `fit`; None where probabilities are computed
        otherwise.

    References
    ----------
    Artelt, Hammer: Efficient computation of counterfactual explanations of LVQ models. ESANN 2020.
    https://arxiv.org/abs/1908.00735

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from contrafact.prototypes import GLVQ
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GLVQ(n_prototypes=2, random_state=0).fit(X, y)
    >>> result = PrototypeCounterfactual(norm="l1").fit(model, X, y).explain(X[:8], target=1)
    >>> bool(result.valid.all()), bool(result.info["certified"].all())
    (True, True)
    """

    tags = Tags(
        reference=False,
        constraints=frozenset({"bounds", "frozen"}) | TABLE_KINDS,
        prototype_model=True,
    )
    rules = {"norm": OneOf("l1", "l2")}
    info_keys = {
        "prototype": "number j of the prototype that is nearest; -1: a row of the reference data",
        "distance": "‖x' − x‖",
        "lower_bound": "no counterfactual is nearer; for the second and later of k, none that is "
        "nearest to the same prototype",
        "gap": "distance − lower_bound",
        "robustness_radius": "no change of x that is shorter, in l2 and in any direction, changes "
        "the decision of the model",
        "certified": "whether the gap is at most 1e-6 (of the distance, where that is above 1)",
    }

    def __init__(self, norm: Norm = "l2") -> None:
        self.norm = norm

    @override
    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [{}, {"norm": "l1"}]

    @override
    def _fit(self, X: Tensor, y: Array | None) -> None:
        unwrapped = unwrap_prototype_model(self.classifier_, X.flatten(1))
        model = unwrapped.model
        classes = self.classifier_.classes.tolist()
        owner = [classes.index(label) for label in model.prototype_labels_.tolist()]
        self.prototypes_ = Prototypes(
            w=unwrapped.prototypes(),
            owner=torch.tensor(owner),
            omega=unwrapped.metric(),
        )
        # A lead in squared distances gives the probability where that is a softmax of these.
        self.temperature_: float | None = None
        if getattr(model, "squared", True):
            self.temperature_ = getattr(model, "temperature_", None)
        if self.space_ is not None:
            self.guide_ = NearestUnlikeNeighbor().fit(self.classifier_, X, y)

    @override
    def _explain(self, tasks: Tasks) -> Candidates:
        instances = tasks.per_instance()
        size = max(1, MAX_NUMBERS // self.prototypes_.w.numel())
        found = []
        for part in instances.split(size):
            in_time = part.affords(0)
            part = part.take(in_time)
            nearest = self._nearest(part, part.confidence)
            found.append(nearest)
            if part.confidence is not None:
                found.append(self._decision_alone(part, nearest))
            part.finished(len(part))
        candidates = Candidates.concat(found)
        if tasks.space is not None:
            candidates = self._fall_back(instances, candidates)
        return self._with_radius(candidates)

    def _with_radius(self, found: Candidates) -> Candidates:
        """Report how far each instance is from any other decision."""
        radius = decision_radius(
            found.tasks.x.double().flatten(1),
            self.prototypes_.w,
            self.prototypes_.owner,
            self.prototypes_.omega,
        )
        return replace(found, info={**found.info, "robustness_radius": radius})

    def _fall_back(self, tasks: Tasks, found: Candidates) -> Candidates:
        """Take the nearest row of the reference data for rows of a table that have no answer."""
        good = is_in_class(found.tasks, found.x)
        left = tasks.take(~torch.isin(tasks.row, found.tasks.row[good]))
        guides = feasible_guides(left, self.guide_, 1)
        has_guide = guides.found[:, 0]
        left = left.take(has_guide)
        x_cf = guides.x[has_guide, 0]
        distance = length((x_cf - left.x).flatten(1), self.norm)
        unproved = left.candidates(
            x_cf,
            prototype=torch.full_like(left.row, -1),
            distance=distance,
            lower_bound=torch.zeros_like(distance),
            gap=distance.clone(),
            certified=torch.zeros_like(left.row, dtype=torch.bool),
        )
        kept = ~torch.isin(found.tasks.row, left.row)
        info = {name: values[kept] for name, values in found.info.items()}
        return Candidates.concat(
            [Candidates(found.tasks.take(kept), found.x[kept], info), unproved]
        )

    def _decision_alone(self, tasks: Tasks, found: Candidates) -> Candidates:
        """Find counterfactuals without the confidence asked for, where none with it were found.

        An instance that is in the target class already is its own.
        """
        has_none = ~torch.isin(tasks.row, found.tasks.row)
        nearest = self._nearest(tasks.take(has_none), None)
        # They are the smallest of what was not asked for.
        certified = nearest.info["certified"]
        nearest.info["certified"] = torch.zeros_like(certified)
        return nearest

    def _nearest(self, tasks: Tasks, confidence: float | None) -> Candidates:
        """Find up to k counterfactuals per task, nearest first, each with its own prototype."""
        n_classes = len(self.classifier_.classes)
        leads = Leads.of(confidence, self.temperature_, n_classes)
        found = self._shortest_displacements(tasks, leads, confidence)
        if leads.differ and self.prototypes_.is_local:
            _, x_cf = smallest_level(found, _between, STEPS)
        else:
            x_cf = displace(found, found["delta"])
        x_cf = self._widen_margins(found, x_cf, leads.enough)
        proves = torch.ones_like(found.row, dtype=torch.bool)
        if found.space is not None:
            x_cf, proves = displace_onto_grid(found, x_cf)

        change = (x_cf - found.x).double().flatten(1)
        distance = length(change, self.norm)
        gap = distance - found["lower_bound"]
        is_smallest = gap <= CERTIFIED_GAP * distance.clamp_min(1)
        is_what_was_asked = confidence is None or self.temperature_ is not None
        return found.candidates(
            x_cf,
            prototype=found["prototype"],
            distance=distance,
            lower_bound=found["lower_bound"],
            gap=gap,
            certified=is_smallest & is_what_was_asked & proves,
        )

    def _shortest_displacements(
        self,
        tasks: Tasks,
        leads: Leads,
        confidence: float | None,
    ) -> Tasks:
        """Solve the problem of every prototype of the target class and choose the k shortest δ.

        Returns one task per δ, with `prototype`, `start` and `delta` (δ for what the confidence
        needs, and for what is enough) and `lower_bound` attached.
        """
        is_of_target = self.prototypes_.owner == tasks.target[:, None]
        position, prototype = is_of_target.nonzero(as_tuple=True)
        pairs = tasks.take(position)
        pairs = pairs.attach(prototype=prototype)
        problems = Problems.of(pairs)
        needed = self._solve(problems, leads.needed)
        if self.prototypes_.is_local and self.norm == "l2":
            farthest = kth_of_group(length(needed.delta, self.norm), position, tasks.k)
            needed = close_gaps(self.prototypes_, problems, needed, farthest, leads.needed)
        enough = self._solve(problems, leads.enough) if leads.differ else needed
        if leads.differ and not self.prototypes_.is_local:
            assert confidence is not None and self.temperature_ is not None
            wanted = Confidence(confidence, self.temperature_)
            enough = solve_confident(self.prototypes_, problems, self.norm, wanted, needed, enough)
            needed = enough

        chosen, rank = choose_shortest(
            enough.delta,
            self.norm,
            group=position,
            k=tasks.k,
        )
        self._tell_shortage(
            tasks,
            found=position[chosen],
            undecided=position[~enough.infeasible],
            confidence=confidence,
        )
        # The nearest must hold against all prototypes of its class, the others for their own.
        bound = needed.lower_bound
        least = least_of_group(bound, position)
        delta = enough.delta[chosen]
        start = needed.delta[chosen]
        return pairs.take(chosen).attach(
            delta=delta,
            start=torch.where(start.isfinite(), start, delta),
            lower_bound=torch.where(rank == 0, least[chosen], bound[chosen]),
        )

    def _solve(self, problems: Problems, lead: float, margin: float = MARGINS[0]) -> Solutions:
        solve = solve_linearized if self.prototypes_.is_local else solve_exactly
        return solve(
            self.prototypes_,
            problems,
            self.norm,
            lead,
            margin,
        )

    def _widen_margins(self, found: Tasks, x_cf: Tensor, lead: float) -> Tensor:
        """Solve again with wider margins where the model, as it rounds, does not agree."""
        x_cf = x_cf.clone()
        position = torch.arange(len(found))
        for margin in MARGINS[1:]:
            able = found.take(position).affords()
            position = position[able]
            if len(position) == 0:
                break
            asked = found.take(position)
            verdict = asked.ask(x_cf[position])
            rejected = verdict.label != asked.target
            position = position[rejected]
            if len(position) == 0:
                break
            doubtful = asked.take(rejected)
            problems = Problems.of(doubtful)
            delta = self._solve(problems, lead, margin).delta
            delta = torch.where(delta.isfinite(), delta, doubtful["delta"])
            x_cf[position] = displace(doubtful, delta)
        return x_cf

    def _tell_shortage(
        self,
        tasks: Tasks,
        found: Tensor,
        undecided: Tensor,
        confidence: float | None,
    ) -> None:
        """Say so where fewer than k prototypes can be nearest.

        `found` and `undecided` are positions of tasks, one per solution and one per problem that is
        not proved to have none. Tasks without a solution but with such a problem stay open.
        """
        reached = torch.bincount(found, minlength=len(tasks))
        is_open = torch.zeros(len(tasks), dtype=torch.bool)
        is_open[undecided] = True
        is_open &= reached == 0
        is_short = (reached < tasks.k) & ~is_open
        conditions = _describe_conditions(tasks, confidence)
        classes = self.classifier_.classes.tolist()
        for position in is_short.nonzero().flatten():
            target = int(tasks.target[position])
            count = int(reached[position])
            is_of_target = self.prototypes_.owner == target
            tasks.refuse(
                position[None],
                f"{count} of {int(is_of_target.sum())} prototypes of class {classes[target]!r} "
                f"can be nearest{conditions}",
            )


def _describe_conditions(tasks: Tasks, confidence: float | None) -> str:
    """Say under which conditions a prototype is to be nearest."""
    conditions = ""
    if tasks.feasible_set is not None:
        conditions += f" with {tasks.feasible_set.describe()}"
    if confidence is not None:
        conditions += f" at P ≥ {confidence:g}"
    return conditions


def _between(tasks: Tasks, level: Tensor) -> Tensor:
    """Make candidates between what the confidence needs (level 0) and what is enough (STEPS)."""
    share = level[:, None].double() / STEPS
    delta = torch.lerp(tasks["start"], tasks["delta"], share)
    return displace(tasks, delta)
