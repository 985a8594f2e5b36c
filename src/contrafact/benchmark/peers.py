"""Adapters: methods of other libraries as explainers, so that they run under the same protocol.

Only their arrays are used, not what they claim about them: the engine asks the model again. What
raises, is missing, not finite or of another shape ends as a row with the status `error`.
"""

from __future__ import annotations

import copy
import inspect
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from ..engine import Candidates, Tags, Tasks
from ..engine.isolation import describe_exception, isolate
from ..explainers.support.explainer import Explainer
from ..models.classifier import Array, Classifier
from ..models.reshaped import Reshaped
from ..validation import Nothing, OneOf, Rule, Satisfies, brief
from .counted_model import CountedModel, OutOfBudget
from .grid_checks import IMPORT_PATH
from .parts import imported

HandOver = Literal["counted", "own"]


def _may_be_peer(value: Any) -> bool:
    """Return whether a value names, makes or is an explainer of another library."""
    if isinstance(value, str):
        return IMPORT_PATH.fullmatch(value) is not None
    return callable(value) or hasattr(value, "explain")


def _are_arguments(value: Any) -> bool:
    """Return whether a value maps the names of arguments to values."""
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


class Peer(Explainer):
    """Base of the adapters: one instance at a time is handed to a method of another library.

    Attributes
    ----------
    peer_ : object
        The other library's object, after `fit`.
    model_ : CountedModel, estimator or None
        What it asks, after `fit`; None where it was made with a model of its own.
    """

    tags = Tags(constraints=frozenset())
    rules: ClassVar[Mapping[str, Rule]] = {
        "peer": Satisfies(_may_be_peer, "a class, a function, 'package.module:Class' or an object"),
        "parameters": Satisfies(_are_arguments, "a mapping of names to values") | Nothing(),
        "hand_over": OneOf("counted", "own"),
    }
    info_keys: ClassVar[Mapping[str, str]] = {
        "counted": "whether the model rows that the peer asked for are in `calls`",
    }

    peer: Any
    parameters: Mapping[str, Any] | None
    hand_over: HandOver

    @abstractmethod
    def _make_peer(self, source: Any, X: Array, y: Array) -> Any:
        """Return the peer, ready to explain."""

    @abstractmethod
    def _call_peer(self, x: Array, label: Any, target: Any, k: int) -> list[Any]:
        """Return up to k counterfactuals of one instance, as the peer gives them."""

    @override
    def _fit(self, X: Tensor, y: Array | None) -> None:
        labels = self.classifier_.predict(X) if y is None else y
        counted = CountedModel(self.classifier_, self.shape_)
        self.model_: Any = counted
        if self.hand_over == "own":
            self.model_ = _own_model(self.classifier_, counted)
        source = imported(self.peer) if isinstance(self.peer, str) else self.peer
        try:
            self.peer_ = self._make_peer(source, self._plain_arrays(X), labels)
        except TypeError as error:
            raise TypeError(
                f"peer {_name(self.peer)} cannot be made with parameters "
                f"{brief(self.parameters)}: {error}."
            ) from error
        if not hasattr(self.peer_, "explain"):
            raise TypeError(f"peer must make an object with explain, got {brief(self.peer_)}.")

    def _plain_arrays(self, x: Tensor) -> Array:
        """Copy instances as other libraries hold them: series of one channel without that axis."""
        values = x.detach().cpu().numpy().copy()
        is_univariate = self.modality_ == "series" and self.shape_[0] == 1
        return values[:, 0] if is_univariate else values

    @override
    def _explain(self, tasks: Tasks) -> Candidates:
        instances = tasks.per_instance()
        answers = [self._explain_one(task) for task in instances.split(1)]
        return Candidates.concat(answers)

    def _explain_one(self, task: Tasks) -> Candidates:
        """Ask the peer about one instance.

        Each is isolated by itself: isolating many at once would ask a peer again about instances
        that worked.
        """
        done = isolate(
            lambda _: self._counterfactuals(task),
            len(task),
            task.oracle.request.on_error,
        )
        for error in done.exceptions.values():
            reason = describe_exception(error)
            task.fail(torch.tensor([0]), reason, error)
        parts = [x_cf for _, x_cf in done.results]
        found = torch.cat([task.x[:0], *parts])
        task.finished(len(task))
        is_counted = isinstance(self.model_, CountedModel)
        same_task = torch.zeros(len(found), dtype=torch.long)
        counted = torch.full_like(same_task, is_counted, dtype=torch.bool)
        return task.take(same_task).candidates(found, counted=counted)

    def _counterfactuals(self, task: Tasks) -> Tensor:
        """Return the peer's counterfactuals, (found, *shape); none where the budget runs out."""
        nothing = task.x[:0]
        in_time = task.affords(0)
        if not bool(in_time.all()):
            return nothing
        classes = self.classifier_.classes
        column = int(task.label)
        target_column = int(task.target)
        instance = self._plain_arrays(task.x)[0]
        try:
            with self._metered(task):
                answers = self._call_peer(
                    instance,
                    classes[column],
                    classes[target_column],
                    task.k,
                )
        except OutOfBudget:
            return nothing
        if not answers:
            return nothing
        arrays = [self._read(answer) for answer in answers]
        return self.classifier_.as_input(np.stack(arrays))

    def _metered(self, task: Tasks) -> AbstractContextManager[None]:
        """Charge the task for what the peer asks, where that is counted."""
        if isinstance(self.model_, CountedModel):
            return self.model_.paid_by(task)
        return nullcontext()

    def _read(self, answer: Any) -> Array:
        """Return an answer in the shape of the instances; leading axes of length 1 may differ."""
        if answer is None:
            raise TypeError(f"{_name(self.peer)} returned None instead of a counterfactual.")
        values = np.asarray(answer, dtype=np.float64)
        if _without_leading_ones(values.shape) != _without_leading_ones(self.shape_):
            raise ValueError(
                f"{_name(self.peer)} returned an array of shape {values.shape}; the instance has "
                f"shape {self.shape_}."
            )
        return values.reshape(self.shape_)


class TscfEvalPeer(Peer):
    """Run an explainer with tscf-eval's interface: explain(x, y_pred) → (x', label, details).

    Where its `explain` has a parameter `class_of_interest`, that is set to the target; otherwise
    the peer chooses the class, and a change to a third class is not valid. With k > 1 its
    `explain_k` is used, if it has one.

    Parameters
    ----------
    peer : class, function, str or object
        A class or function, called with `model=`, `data=(X, y)` and the parameters; its name as
        "package.module:Class"; or a ready object, which asks the model it was made with.
    parameters : mapping, optional
        Arguments for the class or function, seeds among them.
    hand_over : {"counted", "own"}, default="counted"
        What the peer gets as `model`: "counted", a stand-in with `predict`, `predict_proba` and
        `classes_` that counts every row asked for and enforces the budget; or "own", the estimator
        itself, for peers that look inside it. Then its rows are not in `calls`.

    Examples
    --------
    >>> class Nearest:
    ...     def __init__(self, model, data):
    ...         self.X, self.label = data[0], model.predict(data[0])
    ...     def explain(self, x, y_pred):
    ...         others = self.X[self.label != y_pred]
    ...         return others[((others - x) ** 2).sum(1).argmin()], None, {}
    >>> TscfEvalPeer(Nearest).fit(model, X_train, y_train).explain(X_test[:8]).valid.mean()
    1.0
    """

    def __init__(
        self,
        peer: Any,
        parameters: Mapping[str, Any] | None = None,
        hand_over: HandOver = "counted",
    ) -> None:
        self.peer = peer
        self.parameters = parameters
        self.hand_over = hand_over

    @override
    def _make_peer(self, source: Any, X: Array, y: Array) -> Any:
        if _is_ready(source):
            self.model_ = None  # it has its own
            return copy.deepcopy(source)
        parameters = self.parameters or {}
        return source(
            model=self.model_,
            data=(X, y),
            **parameters,
        )

    @override
    def _call_peer(self, x: Array, label: Any, target: Any, k: int) -> list[Any]:
        if k > 1 and hasattr(self.peer_, "explain_k"):
            options = _target_option(self.peer_.explain_k, target)
            arrays, *_ = self.peer_.explain_k(x, k=k, y_pred=label, **options)
            return list(arrays)
        options = _target_option(self.peer_.explain, target)
        answer = self.peer_.explain(x, label, **options)
        if answer is None:
            return [None]
        return [answer[0]]


class WildboarPeer(Peer):
    """Run an explainer with wildboar's interface: fit(estimator, X, y).explain(X, target) → X'.

    Parameters
    ----------
    peer : object, class or str
        An unfitted object (copied), a class, or its name as "package.module:Class".
    parameters : mapping, optional
        Arguments for the class.
    hand_over : {"own", "counted"}, default="own"
        As for `TscfEvalPeer`; "own" by default, since these look inside the estimator.

    Examples
    --------
    >>> class Mean:
    ...     def fit(self, estimator, X, y):
    ...         self.mean = {label: X[y == label].mean(0) for label in estimator.classes_}
    ...         return self
    ...     def explain(self, X, y):
    ...         return [self.mean[label] for label in y]
    >>> WildboarPeer(Mean).fit(model, X_train, y_train).explain(X_test[:8]).valid.mean()
    1.0
    """

    def __init__(
        self,
        peer: Any,
        parameters: Mapping[str, Any] | None = None,
        hand_over: HandOver = "own",
    ) -> None:
        self.peer = peer
        self.parameters = parameters
        self.hand_over = hand_over

    @override
    def _make_peer(self, source: Any, X: Array, y: Array) -> Any:
        if _is_ready(source):
            peer = copy.deepcopy(source)
        else:
            parameters = self.parameters or {}
            peer = source(**parameters)
        if not hasattr(peer, "fit"):
            raise TypeError(f"an object with fit is needed, got {brief(peer)}")
        peer.fit(self.model_, X, y)
        return peer

    @override
    def _call_peer(self, x: Array, label: Any, target: Any, k: int) -> list[Any]:
        targets = np.array([target])
        answer = self.peer_.explain(x[None], targets)
        if answer is None:
            return [None]
        return [np.asarray(answer, dtype=np.float64)]


def _is_ready(peer: Any) -> bool:
    return hasattr(peer, "explain") and not inspect.isclass(peer)


def _target_option(explain: Any, target: Any) -> dict[str, Any]:
    """Return the argument that sets the target, where a function takes one."""
    signature = inspect.signature(explain)
    if "class_of_interest" in signature.parameters:
        return {"class_of_interest": target}
    return {}


def _own_model(classifier: Classifier, otherwise: CountedModel) -> Any:
    """Return the estimator behind a classifier; the stand-in where there is none to look into."""
    inner = classifier.inner if isinstance(classifier, Reshaped) else classifier
    return getattr(inner, "model", otherwise)


def _name(peer: Any) -> str:
    if isinstance(peer, str):
        return peer.rpartition(":")[2]
    return str(getattr(peer, "__name__", type(peer).__name__))


def _without_leading_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape without leading axes of length 1; one axis is always left."""
    if len(shape) > 1 and shape[0] == 1:
        return _without_leading_ones(shape[1:])
    return tuple(shape)
