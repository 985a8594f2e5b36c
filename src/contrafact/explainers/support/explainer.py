"""Explainer, the base of every method: `fit` and `explain` are final, methods write `_explain`."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, final

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from torch import Tensor
from typing_extensions import Self

from ...data.archives import MAX_BYTES
from ...data.dataset import as_labels
from ...deprecation import renamed_value
from ...engine import Budget, Candidates, Constraints, Counterfactuals, Request, Tags, Tasks
from ...engine.assembly import assemble
from ...engine.instances import Modality, wrap_model
from ...engine.progress import row_progress
from ...engine.provenance import provenance_of
from ...engine.request import RULES as REQUEST_RULES
from ...engine.request import OnError, Refinement
from ...models.class_labels import read_targets
from ...models.classifier import Array
from ...models.committee import Committee, as_committee
from ...models.labels import class_order_checked
from ...models.verdict import Verdict
from ...nn.retraining import make_committee
from ...numerics.differences import RealDifferences
from ...process_state import keeping_random_numbers
from ...tables import Schema
from ...validation import Rule, check_parameters
from .explainer_files import load_explainer, save_explainer
from .explainer_inputs import read_like_reference, read_reference
from .part_search import Asked, explain_part
from .reference_classes import check_classes

#: numbers a method works on at once; larger requests are split, which changes no result
MAX_ELEMENTS = 2**23


class Explainer(BaseEstimator, ABC):  # type: ignore[misc]
    """Base class of all methods.

    `fit` and `explain` are final. A method stores its parameters in `__init__`, prepares in `_fit`
    what it needs from the reference data, and writes `_explain`. Everything else (targets,
    constraints, budgets, batches, failures, refinement, the final evaluation) is done here.

    Attributes
    ----------
    tags : Tags
        What the method can do.
    rules : dict of str to Rule
        The accepted values of its parameters, checked before any work.
    info_keys : dict of str to str
        What the method reports in `Counterfactuals.info`, and what each entry means.
    classifier_ : Classifier
        The model, after `fit`.
    shape_ : tuple of int
        Shape of one instance, after `fit`.
    modality_ : str
        Kind of data, after `fit`.
    space_ : TableSpace or None
        Coordinates in which the rows of a data frame are searched, after `fit`.
    committee_ : Committee
        The committee made by the first `explain(committee="auto")`.

    Examples
    --------
    >>> class Negate(Explainer):
    ...     def _explain(self, tasks):
    ...         return tasks.candidates(tasks.project(-tasks.x))
    >>> len(Negate().fit(model, X_train, y_train).explain(X_test[:8]))
    8
    """

    tags: ClassVar[Tags] = Tags()
    rules: ClassVar[Mapping[str, Rule]] = {}
    info_keys: ClassVar[Mapping[str, str]] = {}
    #: by parameter, spellings of earlier versions and what they are called now
    old_values: ClassVar[Mapping[str, Mapping[str, str]]] = {}

    @abstractmethod
    def _explain(self, tasks: Tasks) -> Candidates:
        """Find a counterfactual for every task."""

    def _fit(self, X: Tensor, y: Array | None) -> None:
        """Prepare guides and statistics from the reference rows."""

    def _check_parameters(self) -> None:
        """Check what rules for single parameters cannot express."""

    def _prepare(self, tasks: Tasks) -> Tasks:
        """Attach to the tasks what `_explain` expects of them."""
        return tasks

    def _default_target(self, x: Tensor, verdict: Verdict) -> Tensor:
        """Choose the class to reach when none is given: the runner-up."""
        return verdict.score.scatter(1, verdict.label[:, None], -torch.inf).argmax(1)

    def _default_committee(self) -> Literal["auto"] | None:
        """Return the committee of a request that names none."""
        return None

    def _default_confidence(self) -> float | None:
        """Return the least P(target) of a request that names none."""
        return None

    def _default_seed(self) -> int:
        """Return the seed of a request that names none."""
        return 0

    def _option_search(self) -> Literal["one by one", "together", "own"]:
        """Return how k > 1 counterfactuals of rows of tables are found.

        By k searches or one for all, both completed by `search_options`; or by the method alone.
        """
        return "one by one"

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Return the names of the parameters; scikit-learn would look them up in every call."""
        names: list[str] = super()._get_param_names()
        return names

    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        """Return parameter settings for the contract suite, cheap enough for many requests."""
        return [{}]

    # Some models draw random numbers when they predict, skorch's for instance.
    @final
    @keeping_random_numbers()
    def fit(
        self,
        model: Any,
        X: Any,
        y: Any = None,
        *,
        modality: Modality | None = None,
        schema: Schema | None = None,
    ) -> Self:
        """Fit the explainer to a trained model and reference data.

        Parameters
        ----------
        model : object
            Anything `as_classifier` takes, or a Classifier.
        X : array, tensor or data frame
            Reference instances: rows (n, features), series (n, length) or (n, channels, length),
            images (n, channels, height, width).
        y : array of shape (n,), optional
            Their labels. They name the outputs of a model that has no class names of its own.
        modality : {"series", "image", "row"}, optional
            Kind of data; default: by the dimensions of X (a 2-D array holds rows where the method
            takes rows, else univariate series).
        schema : Schema, optional
            What the columns of a data frame of rows hold; default: `Schema.infer(X)`.

        Returns
        -------
        self
            The fitted explainer.
        """
        before = dict(self.__dict__)
        try:
            self._open(model, X, y, modality, schema)
            x, labels = self._reference
            with class_order_checked(self.classifier_, x, labels):
                self._fit(x, labels)
        except BaseException:
            self.__dict__ = before  # an explainer that was fitted before stays usable
            raise
        return self

    def _open(
        self,
        model: Any,
        X: Any,
        y: Any,
        modality: Modality | None,
        schema: Schema | None,
    ) -> None:
        """Read the reference data, and see that the model answers for it."""
        self._check_all_parameters()
        instances = read_reference(self, X, modality, schema)
        labels = None if y is None else as_labels(y, "y", len(instances))
        classifier = wrap_model(model, instances)
        instances.check_names(classifier.feature_names, "the model")
        classifier.probe(instances.values)
        doubt = instances.doubt_layout()
        if doubt is not None:
            classifier.remarks.add(doubt)
        x = classifier.as_input(instances.values)
        classifier.infer_classes(x, labels)
        if self.tags.reference:
            check_classes(classifier, labels)
        self.classifier_ = classifier
        self.shape_ = instances.shape
        self.modality_ = instances.modality
        self.space_ = instances.space
        self._names = None if instances.names is None else instances.names.tolist()
        self._channel_added = instances.channel_added
        self._reference = (x, labels)
        self._differences: RealDifferences | None = None
        self.__dict__.pop("committee_", None)

    def save(self, path: str | Path) -> Path:
        """Write the fitted explainer to an .npz file, so that `load` spares another `fit`.

        It holds the parameters, the reference data and what was fitted, without pickled objects
        and without the model. A committee is left out and made again when it is needed.

        Parameters
        ----------
        path : str or Path
            The file; ".npz" is added where it is missing.

        Returns
        -------
        Path
            The file written.

        Raises
        ------
        NotFittedError
            If the explainer is not fitted.
        TypeError
            If a parameter is an object that cannot be stored.
        """
        self._check_is_fitted()
        return save_explainer(self, path)

    @staticmethod
    def load(path: str | Path, model: Any, *, max_bytes: int = MAX_BYTES) -> Explainer:
        """Read a fitted explainer from a file; no code of the file runs.

        Parameters
        ----------
        path : str or Path
            A file that `save` wrote with the same version of contrafact.
        model : object
            The model that it was fitted to; anything `as_classifier` takes.
        max_bytes : int, default=4 GiB
            How many bytes the arrays of the file may take.

        Returns
        -------
        Explainer
            Of the class that was saved, ready to explain.

        Raises
        ------
        ValueError
            If the file is damaged or of another version, or the model has other classes.

        Examples
        --------
        >>> import contrafact as cf
        >>> path = cf.LineSearch().fit(model, X_train, y_train).save("explainer.npz")
        >>> len(Explainer.load(path, model).explain(X_test[:3]))
        3
        """
        return load_explainer(path, model, max_bytes)

    @final
    @keeping_random_numbers()
    def explain(
        self,
        X: Any,
        target: Any = None,
        *,
        constraints: Constraints | None = None,
        k: int = 1,
        budget: Budget | None = None,
        refine: bool | Refinement = False,
        confidence: float | None = None,
        committee: Committee | Sequence[Any] | Literal["auto"] | None = None,
        on_error: OnError = "row",
        random_state: int | None = None,
        progress: bool = False,
    ) -> Counterfactuals:
        """Find counterfactuals for every instance of X.

        Parameters
        ----------
        X : array, tensor or data frame
            Instances, shaped as at fit; NumPy or torch, and the same kind is returned.
        target : label, or one label per instance, optional
            Class to reach; None: the method's choice, usually the runner-up class.
        constraints : Constraints, optional
            Limits on the counterfactuals.
        k : int, default=1
            How many different counterfactuals per instance.
        budget : Budget, optional
            Limits on the cost; None: 2,000 model rows for each counterfactual.
        refine : bool, "minimal" or "believable", default=False
            Make the edits smaller: "minimal", or True, undoes all that is not needed, value by
            value; "believable" gives back whole stretches, their ends and amplitude, without new
            jumps and kinks. See `refine`.
        confidence : float, optional
            Least P(target) to aim for, also of instances that are in the class already; None is
            the method's own where it has one, else the decision alone counts.
        committee : Committee, list of models or "auto", optional
            Models that have to put a counterfactual in the target class, too. "auto": three, made
            by `contrafact.committee` from the reference data and kept as `committee_`.
        on_error : {"row", "raise"}, default="row"
            What an exception of the model or the method does: "row" gives the rows concerned the
            status "error", keeps the exception in `result.exceptions` and logs its traceback;
            "raise" lets it pass.
        random_state : int, optional
            Seed; None is the method's own `random_state` where it has one, else 0, so that the
            same question gets the same answer.
        progress : bool, default=False
            Show a progress bar.

        Returns
        -------
        Counterfactuals
            One row per counterfactual; `valid` is what the model says of it.
        """
        self._check_is_fitted()
        self._check_all_parameters()
        check_parameters("explain", REQUEST_RULES, {"progress": progress})
        request = Request(
            constraints=constraints,
            k=k,
            budget=budget,
            refine=refine,
            confidence=self._default_confidence() if confidence is None else confidence,
            on_error=on_error,
            seed=self._default_seed() if random_state is None else random_state,
        )
        request.check_supported(self.tags.constraints)
        limits = request.feasible_set(self.shape_, self.classifier_)
        instances = read_like_reference(self, X)
        if limits is not None:
            limits.check_size(len(instances))
        targets = read_targets(target, self.classifier_.classes, len(instances))
        # Last, since a committee may have to be trained.
        request = replace(request, committee=self._find_committee(committee))
        start = time.perf_counter()
        n = len(instances)
        meter = request.meter(n, self.classifier_.rows_per_verdict, start)
        size = max(1, MAX_ELEMENTS // int(np.prod(self.shape_)))
        with row_progress(n, type(self).__name__, show=progress) as advance:
            asked = Asked(request, instances, targets, limits, meter, advance)
            parts = [
                explain_part(self, asked.take(rows))
                # No rows are one empty part.
                for rows in np.split(np.arange(n), range(size, n, size))
            ]
        return assemble(
            parts,
            instances,
            self.classifier_,
            provenance_of(self, self.classifier_, request),
            seconds=time.perf_counter() - start,
        )

    def _real_differences(self, request: Request) -> RealDifferences | None:
        """Return what the reference series show, where a refinement needs it; computed once."""
        if request.refinement != "believable" or self.modality_ != "series":
            return None
        if self._differences is None:
            self._differences = RealDifferences.of(self._reference[0])
        return self._differences

    def _find_committee(self, given: Any) -> Committee | None:
        """Read the argument `committee`; "auto" makes one at the first request that asks for it."""
        given = self._default_committee() if given is None else given
        if not isinstance(given, str) or given != "auto":
            return as_committee(given)
        if not hasattr(self, "committee_"):
            x, labels = self._reference
            self.committee_ = make_committee(self.classifier_, x, labels, self.modality_)
        return self.committee_

    def _check_is_fitted(self) -> None:
        if not hasattr(self, "classifier_"):
            name = type(self).__name__
            raise NotFittedError(f"{name} is not fitted; call fit(model, X, y) first.")

    def _check_all_parameters(self) -> None:
        values = self.get_params(deep=False)
        for name, spellings in self.old_values.items():
            if isinstance(values[name], str) and values[name] in spellings:
                values[name] = renamed_value(name, values[name], spellings)
        check_parameters(type(self).__name__, self.rules, values)
        self._check_parameters()
