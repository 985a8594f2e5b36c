"""Ensemble: several classifiers as one, by the mean of their probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from ..validation import Satisfies, check_parameters
from .adapters import as_classifier
from .class_labels import label_index
from .classifier import Array, Classifier, Rows
from .verdict import Verdict

RULES = {
    "members": Satisfies(
        lambda given: isinstance(given, list | tuple) and len(given) > 0,
        "a list of models, at least one",
    )
}


class Ensemble(Classifier):
    """Ask several classifiers and decide by the mean of their probabilities.

        P(c | x) = 1/M Σ_m P_m(c | x)

    An ensemble is a model: it can be explained, and chooses targets as any model does. Columns are
    matched by label. One row of it is one row of every member, so that `calls` of a result and a
    budget count the rows of all members. It takes arrays; models of data frames with categories can
    be combined by scikit-learn's VotingClassifier(voting="soft").

    Parameters
    ----------
    members : sequence of models
        At least one; each anything that `as_classifier` takes, of one kind or of several. Those
        without class names have their columns in the order of `classes`.

    Attributes
    ----------
    members : tuple of Classifier
        The models.
    classes : array of shape (classes,)
        Those of the first member that has names for them.
    differentiable : bool
        Whether all members are.
    dtype, device : torch.dtype, torch.device
        The least precise dtype of all members, so that all see the same numbers; the device of the
        first.

    Raises
    ------
    ValueError
        If the classes of members differ.

    See Also
    --------
    Committee : Models that have to agree with the one that is explained, each for itself.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_iris(return_X_y=True)
    >>> ensemble = Ensemble([LogisticRegression(max_iter=500).fit(X, y), GaussianNB().fit(X, y)])
    >>> ensemble.predict_proba(X[70:71]).round(2)
    array([[0. , 0.3, 0.7]])
    """

    checks_probabilities = False  # the members check theirs

    def __init__(self, members: Sequence[Any]) -> None:
        check_parameters("Ensemble", RULES, {"members": members})
        self.members = tuple(_as_member(number, model) for number, model in enumerate(members))
        named = [member._classes for member in self.members if member._classes is not None]
        super().__init__(named[0] if named else None)
        self._columns = [self._match(number) for number in range(len(self.members))]
        self.device = self.members[0].device
        self._update()

    def _match(self, number: int) -> Tensor | None:
        """Return the column of a member for each class; None where it has no names."""
        classes = self.members[number]._classes
        if classes is None:
            return None
        if set(classes.tolist()) != set(self.classes.tolist()):
            raise ValueError(
                f"members[{number}] has the classes {classes.tolist()}; those of the ensemble are "
                f"{self.classes.tolist()}. Accepted: the same classes, in any order."
            )
        return label_index(self.classes, classes)

    def _update(self) -> None:
        """Take over what members find out about themselves when they are asked."""
        self.differentiable = all(member.differentiable for member in self.members)
        self.dtype = min(
            (member.dtype for member in self.members),
            key=lambda dtype: torch.finfo(dtype).bits,
        )
        self.rows_per_evaluation = sum(member.rows_per_evaluation for member in self.members)
        self.rows_per_verdict = self.rows_per_evaluation
        self.rows_per_gradient = sum(member.rows_per_gradient for member in self.members)

    @override
    def _evaluate(self, x: Tensor) -> Verdict:
        if not isinstance(x, Tensor):
            raise TypeError(
                "X is a data frame with categories, and an Ensemble takes arrays. Combine the "
                "models by scikit-learn's VotingClassifier(voting='soft')."
            )
        proba = [
            self._in_order(number, member.evaluate(x).proba)
            for number, member in enumerate(self.members)
        ]
        return Verdict.of_proba(torch.stack(proba).mean(0))

    @override
    def logits(self, x: Tensor) -> Tensor:
        if not self.differentiable:
            return super().logits(x)
        self.rows_evaluated += self.rows_per_gradient * len(x)
        log_proba = [
            self._in_order(number, self._member_logits(member, x).log_softmax(1))
            for number, member in enumerate(self.members)
        ]
        return torch.stack(log_proba).logsumexp(0) - math.log(len(self.members))

    @staticmethod
    def _member_logits(member: Classifier, x: Tensor) -> Tensor:
        """Compute the logits of a member, in double precision."""
        return member.logits(x.to(member.device, member.dtype)).double()

    def _in_order(self, number: int, values: Tensor) -> Tensor:
        """Bring the columns of a member into the order of the classes, on the device of `x`."""
        values = values.to(self.device)
        columns = self._columns[number]
        if columns is not None:
            return values[:, columns.to(self.device)]
        if self._classes is not None and values.shape[1] != len(self._classes):
            raise ValueError(
                f"members[{number}] gives {values.shape[1]} outputs per row; the classes of the "
                f"ensemble are {self._classes.tolist()}."
            )
        return values

    @override
    def probe(self, x: Rows) -> None:
        if self._probed:
            return
        before = sum(member.rows_evaluated for member in self.members)
        for member in self.members:
            member.probe(x)
            new = [text for text in member.remarks.texts if text not in self.remarks.texts]
            self.remarks.texts += new  # the member warned of it
        self.rows_evaluated += sum(member.rows_evaluated for member in self.members) - before
        self._update()
        self._probed = True

    @override
    def infer_classes(self, x: Rows, y: Array | None) -> None:
        if self._classes is None:
            super().infer_classes(x, y)
            self.rows_evaluated += self.rows_per_evaluation - 1  # one row of every member

    def __repr__(self) -> str:
        kinds = ", ".join(type(member).__name__ for member in self.members)
        return f"Ensemble({kinds})"


def _as_member(number: int, model: Any) -> Classifier:
    """Wrap a model of an ensemble; an error says which it is."""
    try:
        return as_classifier(model)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"members[{number}]: {error}") from error
