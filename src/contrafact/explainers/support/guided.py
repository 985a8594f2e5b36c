"""Base classes of methods that move toward points of the target class, or fall back to them."""

from __future__ import annotations

from copy import copy
from typing import Literal

import torch
from torch import Tensor
from typing_extensions import override

from ...engine import Tasks
from ...engine.deadline import evaluate_in_time
from ...guides import Guide, NearestUnlikeCluster, NearestUnlikeNeighbor, NearestUnlikePrototype
from ...models.classifier import Array
from ...models.verdict import Verdict
from ...search import first_on_line
from ...validation import Instance, OneOf
from .explainer import Explainer
from .feasible_guides import FoundGuides, feasible_guides

Metric = Literal["euclidean", "dtw"]
GuideKind = Literal["neighbor", "cluster", "prototype", "median"]

METRIC_RULE = OneOf("euclidean", "dtw")
GUIDE_RULE = OneOf("neighbor", "cluster", "prototype", "median") | Instance(Guide, "a guide")
#: spellings of the first version
OLD_GUIDE_NAMES = {"neighbour": "neighbor"}


def make_guide(kind: GuideKind | Guide, metric: Metric) -> Guide:
    """Make a guide by its name, or from one that is given.

    Parameters
    ----------
    kind : {"neighbor", "cluster", "prototype", "median"} or Guide
        A reference row, the mean of the class, a prototype of a GLVQ, or a row chosen by
        Median LVQ; a guide of your own is copied.
    metric : {"euclidean", "dtw"}
        Distance of the neighbor and of the median.

    Returns
    -------
    Guide
        A guide to fit; one made by name gives, with k > 1, points that differ from each other.

    Raises
    ------
    ValueError
        If the metric does not apply to the guide.
    """
    if isinstance(kind, Guide):
        if metric != "euclidean":
            raise ValueError(
                f"metric={metric!r} applies to guides by name; a guide that is given has its own."
            )
        # `fit` only assigns, so that fitting the copy leaves the given guide as it is.
        return copy(kind)
    if OLD_GUIDE_NAMES.get(kind, kind) == "neighbor":
        return NearestUnlikeNeighbor(metric, diverse=True)
    if kind == "median":
        return NearestUnlikePrototype("median", metric=metric, diverse=True)
    if metric != "euclidean":
        raise ValueError(
            f"metric={metric!r} needs guide='neighbor' or 'median', got guide={kind!r}."
        )
    if kind == "cluster":
        return NearestUnlikeCluster()
    return NearestUnlikePrototype(diverse=True)


class FallbackExplainer(Explainer):
    """Base of methods that fall back to the line to the nearest unlike neighbor.

    The guide also chooses the target where none is given: the runner-up among the classes that have
    reference rows.

    Attributes
    ----------
    guide_ : Guide
        The fitted guide.
    """

    def _make_guide(self) -> Guide:
        """Return the unfitted guide of this method."""
        return NearestUnlikeNeighbor()

    @override
    def _fit(self, X: Tensor, y: Array | None) -> None:
        self.guide_ = self._make_guide().fit(self.classifier_, X, y)

    @override
    def _default_target(self, x: Tensor, verdict: Verdict) -> Tensor:
        """Choose the runner-up among the classes that have a guide.

        Of tied classes the one whose guide is nearest is chosen. Where no other class has a guide,
        the plain runner-up.
        """
        n_classes = verdict.score.shape[1]
        columns = torch.arange(n_classes, device=x.device)
        has_guide = torch.isin(columns, self.guide_.candidate_class_)
        score = verdict.score.scatter(1, verdict.label[:, None], -torch.inf)
        reachable = score.masked_fill(~has_guide, -torch.inf)
        has_choice = reachable.isfinite().any(1)
        score = torch.where(has_choice[:, None], reachable, score)
        runner_up = score.argmax(1)
        tied = score == score.amax(1, keepdim=True)
        unclear = has_choice & (tied.sum(1) > 1)
        if bool(unclear.any()):
            distance = self._distance_to_guides(
                x[unclear],
                columns[has_guide],
                n_classes,
            )
            distance = distance.masked_fill(~tied[unclear], torch.inf)
            runner_up[unclear] = distance.argmin(1)
        return runner_up

    def _distance_to_guides(
        self,
        x: Tensor,
        columns: Tensor,
        n_classes: int,
    ) -> Tensor:
        """Return the distance to the guide of each class, (n, classes)."""
        distance = x.new_full((len(x), n_classes), torch.inf)
        for column in columns.tolist():
            nearest, _ = self.guide_.guide(x, self.classifier_.classes[column])
            distance[:, column] = (nearest[:, 0] - x).flatten(1).norm(dim=1)
        return distance

    def _find_guides(self, tasks: Tasks, k: int = 1) -> FoundGuides:
        """Find k guides for each task, as firm and as convincing as asked where there are such.

        Guides of rows of tables keep the constraints, see `feasible_guides`.
        """
        preferred = self._convincing_guides(tasks)
        if tasks.space is not None:
            return feasible_guides(tasks, self.guide_, k, preferred=preferred)
        target = self.classifier_.classes[tasks.target.cpu().numpy()]
        arrays, index = self.guide_.guide(
            tasks.x,
            target,
            k,
            confidence=tasks.confidence,
            preferred=preferred,
        )
        return FoundGuides(arrays, index)

    def _with_nearest_guide(self, tasks: Tasks) -> Tasks:
        """Attach `guide` and `guide_index` to every task; those without a guide are refused."""
        guides = self._find_guides(tasks)
        has_guide = guides.found[:, 0]
        tasks.refuse(
            ~has_guide,
            "the reference data hold no row that the model puts in the target class",
        )
        guided = tasks.attach(guide=guides.x[:, 0], guide_index=guides.index[:, 0])
        return guided.take(has_guide)

    def _convincing_guides(self, tasks: Tasks) -> Tensor | None:
        """Return the mask of the candidates that the committee puts in their class.

        A candidate on which the committee does not agree makes a poor guide: nothing on the way to
        it may convince the committee. None where there is no committee; without time to ask, none
        is convincing.
        """
        committee = tasks.oracle.committee
        if committee is None:
            return None
        guide = self.guide_
        convincing = torch.isin(guide.candidate_class_, tasks.target.unique())
        for member in committee.members:
            which = convincing.nonzero().flatten()
            verdict = evaluate_in_time(
                member,
                guide.candidates_[which],
                tasks.oracle.meter.deadline,
                lambda batch: None,
            )
            asked = which[: len(verdict.label)]
            agrees = verdict.label.to(asked.device) == guide.candidate_class_[asked]
            convincing = torch.zeros_like(convincing)
            convincing[asked[agrees & verdict.is_finite().to(asked.device)]] = True
        return convincing

    def _fall_back(self, tasks: Tasks, x_cf: Tensor) -> tuple[Tensor, Tensor]:
        """Replace candidates the model does not accept by the first point on the line to a guide.

        Parameters
        ----------
        tasks : Tasks
            What the candidates are for.
        x_cf : Tensor of shape (n, *shape)
            One candidate each.

        Returns
        -------
        x_cf : Tensor of shape (n, *shape)
            The candidates with replacements.
        fallback : Tensor of bool, shape (n,)
            Which were replaced; methods report it in `info`.
        """
        able = tasks.affords()
        asking = tasks.take(able)
        rejected = torch.zeros_like(able)
        trial = x_cf[able]
        rejected[able] = ~asking.accepts(trial, asking.ask(trial))
        if not bool(rejected.any()):
            return x_cf, rejected
        failed = tasks.take(rejected)
        guides = self._find_guides(failed)
        has_guide = guides.found[:, 0]
        failed.refuse(
            ~has_guide,
            "the reference data hold no guide that the model puts in the class"
            + within_limits(failed),
        )
        fallback = torch.zeros_like(rejected)
        fallback[rejected] = has_guide
        x_cf = x_cf.clone()
        guide = guides.x[has_guide, 0]
        x_cf[fallback] = first_on_line(failed.take(has_guide), guide)[1]
        return x_cf, fallback

    def _tell_shortage(self, tasks: Tasks, count: Tensor) -> None:
        """Say so where an instance has fewer guides than counterfactuals are wanted.

        Parameters
        ----------
        tasks : Tasks
            One task per instance.
        count : Tensor of int, shape (n,)
            Guides found.
        """
        classes = self.classifier_.classes.tolist()
        for position in (count < tasks.k).nonzero().flatten():
            name = classes[int(tasks.target[position])]
            tasks.refuse(
                position[None],
                f"the reference data hold {int(count[position])} guides that the model puts in "
                f"class {name!r}{within_limits(tasks)}",
            )


def within_limits(tasks: Tasks) -> str:
    """Return under which limits guides of tables were looked for, for messages; "" for arrays."""
    limits = tasks.feasible_set
    if tasks.space is None or limits is None or not limits.describe():
        return ""
    return f" with {limits.describe()}"


class GuidedExplainer(FallbackExplainer):
    """Base of methods that move toward guides: every task comes with `guide` and `guide_index`."""

    @override
    def _prepare(self, tasks: Tasks) -> Tasks:
        """Attach a guide to every task; tasks for which there is none are dropped."""
        instances = tasks.per_instance()
        guides = self._find_guides(instances, tasks.k)
        self._tell_shortage(instances, guides.found.sum(1))
        tasks = tasks.attach(
            guide=guides.x.flatten(0, 1),  # (n, k, ...) -> (n * k, ...)
            guide_index=guides.index.flatten(),
        )
        return tasks.take(tasks.guide_index >= 0)
