"""Explainer, the base of every method: `fit` and `explain` are final, a method writes `_fit`, `_explain`."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, final

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from torch import Tensor
from typing_extensions import Self

from ...data.dataset import as_labels
from ...engine.assembly import Outcome, assemble
from ...engine.batch import Batch, Candidates
from ...engine.budget import Budget
from ...engine.constraints import Constraints
from ...engine.instances import Modality, read_instances, read_targets
from ...engine.isolation import isolate
from ...engine.options import Options
from ...engine.progress import row_progress
from ...engine.request import open_batch, wrap_model
from ...engine.result import Counterfactuals
from ...engine.tags import Tags
from ...models.classifier import Array, Classifier, Verdict
from ...search.refinement import give_back

#: numbers a method works on at once; larger requests are split by rows, which changes no result
MAX_ELEMENTS = 2**23


class Explainer(BaseEstimator, ABC):  # type: ignore[misc]
    """A way to move an instance into another class.

    Fitted attributes: `classifier_`, `shape_` (of one instance), `modality_`.
    """

    tags: ClassVar[Tags] = Tags()

    @abstractmethod
    def _explain(self, batch: Batch) -> Candidates:
        """Counterfactuals for all rows of the batch, up to `batch.k` each."""

    def _fit(self, X: Tensor, y: Array | None) -> None:
        """Prepare guides and statistics from the reference rows."""

    def _default_target(self, x: Tensor, verdict: Verdict) -> Tensor:
        """The class to reach when none is given: the runner-up."""
        return verdict.score.scatter(1, verdict.label[:, None], -torch.inf).argmax(1)

    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        """Parameter settings the contract suite tries, cheap enough for many small requests."""
        return [{}]

    @final
    def fit(self, model: Any, X: Any, y: Any = None, *, modality: Modality | None = None) -> Self:
        """Meet the model and the reference data.

        Parameters
        ----------
        model : anything `as_classifier` takes, or a Classifier.
        X : reference instances; rows (n, features), series (n, length) or (n, channels, length), images
            (n, channels, height, width).
        y : their labels, optional: they name the outputs of a model that has no class names of its own.
        modality : "series", "image" or "row"; default: by the dimensions of X (a 2-D array holds rows where
            the method takes rows, else univariate series).
        """
        instances = read_instances(X, "X", modality, self.tags.modalities)
        if len(instances.values) == 0:
            raise ValueError("X is empty; fit needs reference instances.")
        if not self.tags.multivariate and instances.modality != "row" and instances.shape[0] > 1:
            raise ValueError(
                f"{type(self).__name__} takes one channel only, X has {instances.shape[0]}."
            )
        labels = None if y is None else as_labels(y, "y", len(instances.values))
        classifier = wrap_model(model, instances)
        x = classifier.as_input(instances.values)
        classifier.infer_classes(x, labels)
        if self.tags.reference:
            self._check_classes(classifier, labels)
        before = dict(self.__dict__)
        self.classifier_, self.shape_, self.modality_ = (
            classifier,
            instances.shape,
            instances.modality,
        )
        try:
            self._fit(x, labels)
        except BaseException:
            self.__dict__ = before  # an explainer that was fitted before stays usable
            raise
        return self

    def _check_classes(self, classifier: Classifier, labels: Array | None) -> None:
        if len(classifier.classes) < 2:
            raise ValueError(
                f"The model knows one class only ({classifier.classes.tolist()}): nothing is unlike it."
            )
        if labels is None:
            return
        found = np.unique(labels)
        if len(found) < 2:
            raise ValueError(
                f"y holds one class only ({found.tolist()}); reference data of two or more are needed."
            )
        unknown = set(found.tolist()) - set(classifier.classes.tolist())
        if unknown:
            raise ValueError(
                f"y holds labels {sorted(unknown)} that the model does not know. "
                f"Classes: {classifier.classes.tolist()}."
            )

    @final
    def explain(
        self,
        X: Any,
        target: Any = None,
        *,
        constraints: Constraints | None = None,
        k: int = 1,
        budget: Budget | None = None,
        refine: bool = False,
        confidence: float | None = None,
        random_state: int | None = None,
        progress: bool = False,
    ) -> Counterfactuals:
        """Counterfactuals for every instance of X.

        Parameters
        ----------
        X : instances, shaped as at fit; NumPy or torch, and the same comes back.
        target : None (the method's choice: usually the runner-up class), one label, or one label each.
        constraints, budget : limits on the result and on the cost.
        k : how many different counterfactuals per instance.
        refine : give back edits that are not needed.
        confidence : least P(target) to aim for; None asks for the decision alone.
        random_state : seed; None is the same as 0, so that the same question gets the same answer.
        progress : show a progress bar.
        """
        if not hasattr(self, "classifier_"):
            raise NotFittedError(
                f"{type(self).__name__} is not fitted; call fit(model, X, y) first."
            )
        options = Options.checked(
            constraints, k, budget, refine, confidence, random_state, self.tags.constraints
        )
        instances = read_instances(X, "X", self.modality_, self.tags.modalities)
        if instances.shape != self.shape_:
            raise ValueError(
                f"X holds instances of shape {instances.shape}; fit saw {self.shape_}."
            )
        classifier = self.classifier_
        n = len(instances.values)
        targets = read_targets(target, classifier.classes, n)
        feasible = options.feasible(self.shape_, classifier)
        start = time.perf_counter()
        meter = options.meter(n, classifier.rows_per_verdict, start)
        size = max(1, MAX_ELEMENTS // int(np.prod(self.shape_)))
        parts = []
        with row_progress(progress, n, type(self).__name__) as advance:
            for rows in np.split(
                np.arange(n), range(size, n, size)
            ):  # an empty request is one empty part
                part = replace(instances, values=instances.values[rows])
                wanted = self._default_target if targets is None else targets[rows]
                batch, already, reasons = open_batch(
                    classifier,
                    part,
                    wanted,
                    feasible,
                    options,
                    meter.take(torch.from_numpy(rows)),
                    advance,
                )
                found = self._run(batch, already, reasons, options.refine)
                parts.append(Outcome(batch, part, found, already, reasons))
        provenance = self._provenance(options)
        return assemble(
            parts, instances, classifier, provenance, seconds=time.perf_counter() - start
        )

    def _run(self, whole: Batch, already: Tensor, reasons: list[str], refine: bool) -> Candidates:
        """The method on all rows at once; if it breaks down, on ever smaller parts, so that one bad row never
        loses the others."""
        stuck = torch.tensor(
            [bool(a or b) for a, b in zip(reasons, whole.failures, strict=True)], dtype=torch.bool
        )
        todo = (~already & ~stuck.to(already.device)).nonzero().flatten()

        def work(rows: Tensor) -> Candidates:
            part = whole.take(todo[rows])
            try:
                candidates = self._explain(part)
                if refine:
                    candidates = replace(
                        candidates, x=give_back(part, candidates.x, candidates.rows)
                    )
            finally:
                whole.absorb(part, todo[rows])
            return candidates

        pieces, broken = isolate(work, len(todo))
        for row, reason in broken.items():
            whole.fail(todo[row : row + 1], reason)
        if not pieces:
            return Candidates(whole.x[:0], whole.rows[:0])
        return Candidates.concat([piece for _, piece in pieces], [todo[rows] for rows, _ in pieces])

    def _provenance(self, options: Options) -> dict[str, Any]:
        from ... import __version__

        parameters = {
            name: value if isinstance(value, (int, float, str, bool, type(None))) else repr(value)
            for name, value in self.get_params(deep=False).items()
        }
        return {
            "method": type(self).__name__,
            "parameters": parameters,
            "version": __version__,
            "seed": options.seed,
            "options": options.describe(),
        }
