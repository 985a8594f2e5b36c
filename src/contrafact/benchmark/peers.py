"""Adapters: methods of other libraries as explainers, so that they run beside ours under one protocol.

Only their arrays are taken. Their claims count for nothing: the engine asks the model again, and what raises,
is missing, not finite or of another shape ends as a row with the status `error`.
"""

from __future__ import annotations

import copy
import inspect
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ..engine import Batch, Candidates, Tags
from ..engine.isolation import isolate
from ..explainers.support.explainer import Explainer
from ..models.classifier import Array, Classifier, Reshaped
from .parts import imported

HandOver = Literal["counted", "own"]


class OutOfBudget(Exception):
    """Ends a search of another library that asks for more than the request allows."""


class Counted:
    """The model as another library meets it: scikit-learn's face, any shape, every row on the meter."""

    def __init__(self, classifier: Classifier, shape: tuple[int, ...]) -> None:
        self.classifier, self.shape, self.classes_ = classifier, shape, classifier.classes
        self.batch: Batch | None = None

    def _rows(self, X: Any) -> Array:
        rows = np.asarray(X, dtype=np.float64).reshape(-1, *self.shape)
        if self.batch is not None:  # one row at a time is explained: all are its
            asked = torch.zeros(len(rows), dtype=torch.long)
            if not bool(self.batch.affords(asked).all()):
                raise OutOfBudget
            self.batch.meter.charge(asked, self.classifier.rows_per_evaluation)
        return rows

    def predict_proba(self, X: Any) -> Array:
        return self.classifier.predict_proba(self._rows(X))

    def predict(self, X: Any) -> Array:
        label = self.classifier.evaluate(self._rows(X)).label.cpu().numpy()
        return np.asarray(self.classes_[label])


class Peer(Explainer):
    """A method of another library, asked row by row. Fitted attributes: `peer_`, `model_`.

    In `info`: `counted`, whether the model rows it asked for are in `calls`.
    """

    tags = Tags(constraints=frozenset())

    peer: Any
    parameters: Mapping[str, Any] | None
    hand_over: HandOver

    @abstractmethod
    def _meet(self, made: Any, X: Array, y: Array) -> Any:
        """The peer, ready to explain."""

    @abstractmethod
    def _ask(self, x: Array, label: Any, target: Any, k: int) -> list[Any]:
        """Up to k counterfactuals of one instance, as the peer gives them."""

    def _fit(self, X: Tensor, y: Array | None) -> None:
        if self.hand_over not in ("counted", "own"):
            raise ValueError(f"hand_over must be 'counted' or 'own', got {self.hand_over!r}.")
        labels = self.classifier_.predict(X) if y is None else y
        counted = Counted(self.classifier_, self.shape_)
        self.model_: Any = (
            counted if self.hand_over == "counted" else _own(self.classifier_, counted)
        )
        peer = imported(self.peer) if isinstance(self.peer, str) else self.peer
        self.peer_ = self._meet(peer, self._shown(X), labels)

    def _shown(self, x: Tensor) -> Array:
        """Instances as other libraries have them, a copy: series of one channel without it."""
        values = x.detach().cpu().numpy().copy()
        alone = self.modality_ == "series" and self.shape_[0] == 1
        return values[:, 0] if alone else values

    def _explain(self, batch: Batch) -> Candidates:
        found: list[Tensor] = []
        rows: list[int] = []
        for row in range(len(batch)):
            # Each row by itself, for a peer that raises on one would be asked again about all the others.
            done, failures = isolate(partial(self._one, batch, row), 1)
            for reason in failures.values():
                batch.fail(batch.rows[row : row + 1], reason)
            for _, arrays in done:
                found += arrays
                rows += [row] * len(arrays)
            batch.progress(row + 1)
        x = torch.stack(found) if found else batch.x[:0]
        counted = torch.full((len(rows),), isinstance(self.model_, Counted))
        owner = torch.tensor(rows, dtype=torch.long, device=batch.x.device)
        return Candidates(x, owner, {"counted": counted})

    def _one(self, batch: Batch, row: int, at: Tensor) -> list[Tensor]:
        rows = batch.rows[row + at]
        part = batch.take(rows)
        classes = self.classifier_.classes
        label, target = (classes[int(index[0])] for index in (part.label, part.target))
        answers: list[Any] = []
        try:
            if bool(part.affords(part.rows, 0).all()):  # the deadline has not passed
                with _metered(self.model_, part):
                    answers = self._ask(self._shown(part.x)[0], label, target, batch.k)
        except OutOfBudget:
            answers = []
        finally:
            batch.absorb(part, rows)
        return [self.classifier_.as_input(self._read(answer)) for answer in answers]

    def _read(self, answer: Any) -> Array:
        """An array as the engine holds it; axes of length 1 in front make no difference."""
        if answer is None:
            raise TypeError(f"{_called(self.peer)} returned None instead of a counterfactual.")
        values = np.asarray(answer, dtype=np.float64)
        if _plain(values.shape) != _plain(self.shape_):
            raise ValueError(
                f"{_called(self.peer)} returned an array of shape {values.shape}; the instance has shape "
                f"{self.shape_}."
            )
        return values.reshape(self.shape_)


class TscfEvalPeer(Peer):
    """An explainer with tscf-eval's interface:  explain(x, y_pred) → (x', label, details).

    Where its `explain` has a parameter `class_of_interest`, it is told the target; otherwise it goes where it
    likes, and a change to a third class is not valid. With k > 1 its `explain_k` is used, if it has one.

    Parameters
    ----------
    peer : a class or function, called with `model=`, `data=(X, y)` and the parameters; its name as
        "package.module:Class"; or a ready object, which asks the model it was made with.
    parameters : for the class or function. Seeds are among these.
    hand_over : what the peer gets as `model`: "counted", a stand-in with `predict`, `predict_proba` and
        `classes_` that puts every row asked for on the meter and keeps to the budget; or "own", the estimator
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
        self.peer, self.parameters, self.hand_over = peer, parameters, hand_over

    def _meet(self, made: Any, X: Array, y: Array) -> Any:
        if _is_ready(made):
            self.model_ = None  # it has its own
            return copy.deepcopy(made)
        return made(model=self.model_, data=(X, y), **(self.parameters or {}))

    def _ask(self, x: Array, label: Any, target: Any, k: int) -> list[Any]:
        if k > 1 and hasattr(self.peer_, "explain_k"):
            told = _told(self.peer_.explain_k, target)
            return list(self.peer_.explain_k(x, k=k, y_pred=label, **told)[0])
        answer = self.peer_.explain(x, label, **_told(self.peer_.explain, target))
        return [None if answer is None else answer[0]]


class WildboarPeer(Peer):
    """An explainer with wildboar's interface:  fit(estimator, X, y).explain(X, target) → X'.

    Parameters
    ----------
    peer : an unfitted object (copied), a class, or its name as "package.module:Class".
    parameters : for the class.
    hand_over : as for `TscfEvalPeer`; "own" by default, for these look inside the estimator.

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
        self.peer, self.parameters, self.hand_over = peer, parameters, hand_over

    def _meet(self, made: Any, X: Array, y: Array) -> Any:
        peer = copy.deepcopy(made) if _is_ready(made) else made(**(self.parameters or {}))
        peer.fit(self.model_, X, y)
        return peer

    def _ask(self, x: Array, label: Any, target: Any, k: int) -> list[Any]:
        answer = self.peer_.explain(x[None], np.array([target]))
        return [None if answer is None else np.asarray(answer, dtype=np.float64)]


@contextmanager
def _metered(model: Any, batch: Batch) -> Iterator[None]:
    """What the stand-in is asked inside goes on the batch's meter."""
    if isinstance(model, Counted):
        model.batch = batch
    try:
        yield
    finally:
        if isinstance(model, Counted):
            model.batch = None


def _is_ready(peer: Any) -> bool:
    return hasattr(peer, "explain") and not inspect.isclass(peer)


def _told(explain: Any, target: Any) -> dict[str, Any]:
    takes = inspect.signature(explain).parameters
    return {"class_of_interest": target} if "class_of_interest" in takes else {}


def _own(classifier: Classifier, otherwise: Counted) -> Any:
    """The estimator behind the classifier; where there is none to look into, the stand-in."""
    inner = classifier.inner if isinstance(classifier, Reshaped) else classifier
    return getattr(inner, "model", otherwise)


def _called(peer: Any) -> str:
    if isinstance(peer, str):
        return peer.rpartition(":")[2]
    return str(getattr(peer, "__name__", type(peer).__name__))


def _plain(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Without the axes of length 1 in front."""
    return _plain(shape[1:]) if len(shape) > 1 and shape[0] == 1 else tuple(shape)
