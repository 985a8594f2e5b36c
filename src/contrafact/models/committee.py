"""Committee: models that an answer has to convince besides the one that is explained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from ..validation import Instance, Satisfies, brief, check_parameters
from .adapters import as_classifier
from .class_labels import label_index
from .classifier import Array, Classifier, Rows
from .reshaped import Reshaped
from .tabular import Tabular
from .verdict import Verdict, lead

RULES = {
    "members": Satisfies(lambda given: isinstance(given, list | tuple), "a list of models"),
    "made": Instance(str, "a text"),
}
#: how a committee came about that was not made by `contrafact.committee`
GIVEN = "given"
#: score of a class that a member does not know
LEAST_SCORE = -1e6


class Committee:
    """Hold the models that an answer has to convince besides the one that is explained.

    Parameters
    ----------
    members : sequence of models
        At least one; each anything that `as_classifier` takes.
    made : str, default="given"
        How the members came about, for the repr and the provenance of results.

    Attributes
    ----------
    members : tuple of Classifier
        The models.
    made : str
        How they came about.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> weak = LogisticRegression(C=0.1, max_iter=500).fit(X, y)
    >>> strong = LogisticRegression(C=10, max_iter=500).fit(X, y)
    >>> committee = Committee([weak, strong])
    >>> committee
    Committee(2 x LogisticRegression, given)
    >>> committee.votes(X[:3], torch.tensor([0, 0, 1])).tolist()
    [[True, True, False], [True, True, False]]
    """

    def __init__(self, members: Sequence[Any], *, made: str = GIVEN) -> None:
        check_parameters("Committee", RULES, {"members": members, "made": made})
        if not members:
            raise ValueError("committee holds no model; give at least one, or None for none.")
        self.members = tuple(_as_member(number, model) for number, model in enumerate(members))
        self.made = made

    def __len__(self) -> int:
        return len(self.members)

    def __repr__(self) -> str:
        counts = Counter(_kind(member) for member in self.members)
        kinds = ", ".join(f"{count} x {kind}" for kind, count in counts.items())
        return f"Committee({kinds}, {self.made})"

    def vote(
        self,
        member: int,
        x: Rows,
        target: Tensor,
        margin: float = -torch.inf,
    ) -> Tensor:
        """Ask one member which rows it puts in their target class.

        Parameters
        ----------
        member : int
            Number of the member.
        x : array or Tensor of shape (n, ...)
            The rows.
        target : Tensor of shape (n,)
            Column of the class wanted for each.
        margin : float
            Least lead of P(target) over the other classes; default: the decision alone counts.

        Returns
        -------
        Tensor of bool, shape (n,)
            True where the member decides for the target; False also where its answer is no number.
        """
        verdict = self.members[member].evaluate(x)
        target = target.to(verdict.label.device)
        decided = (verdict.label == target) & verdict.is_finite()
        clear = lead(verdict.proba, target) >= margin
        return decided & clear

    def votes(self, x: Rows, target: Tensor) -> Tensor:
        """Ask every member which rows it puts in their target class.

        Parameters
        ----------
        x : array or Tensor of shape (n, ...)
            The rows.
        target : Tensor of shape (n,)
            Column of the class wanted for each.

        Returns
        -------
        Tensor of bool, shape (members, n)
            True where a member decides for the target.
        """
        rows = [self.vote(member, x, target).cpu() for member in range(len(self))]
        return torch.stack(rows)

    def matched_to(self, classifier: Classifier, x: Rows) -> Committee:
        """Return the committee with the classes and the shape of instances of a model.

        Parameters
        ----------
        classifier : Classifier
            The model that is explained.
        x : array or Tensor of shape (n, ...)
            Instances as this model takes them; every member is asked about the first.

        Returns
        -------
        Committee
            Its columns are those of `classifier`, and it takes the same arrays.

        Raises
        ------
        ValueError
            If a member has other classes.
        """
        matched = [
            self._match_member(number, member, classifier)
            for number, member in enumerate(self.members)
        ]
        for member in matched:
            member.evaluate(x[:1])
        return Committee(matched, made=self.made)

    def _match_member(self, number: int, member: Classifier, classifier: Classifier) -> Classifier:
        classes = classifier.classes
        if member._classes is None:
            member._classes = classes  # a module or function without names of its own
        if isinstance(classifier, Reshaped) and not isinstance(member, Reshaped):
            member = Reshaped(member, classifier.shape)
        if isinstance(classifier, Tabular) and not isinstance(member, Tabular):
            member = Tabular(member, classifier.space)
        if np.array_equal(member.classes, classes):
            return member
        own = set(member.classes.tolist())
        # A model that was made from the reference data knows the classes that occur there.
        is_same = own == set(classes.tolist())
        is_part = self.made != GIVEN and own < set(classes.tolist())
        if not (is_same or is_part):
            raise ValueError(
                f"committee[{number}] has the classes {member.classes.tolist()}; "
                f"those of the model that is explained are {classes.tolist()}."
            )
        return Reordered(member, classes)


def _as_member(number: int, model: Any) -> Classifier:
    """Wrap a model of a committee; an error says which it is."""
    try:
        return as_classifier(model)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"committee[{number}]: {error}") from error


def as_committee(given: Any) -> Committee | None:
    """Read the argument `committee`.

    Parameters
    ----------
    given : Committee, sequence of models, or None
        What the user gave.

    Returns
    -------
    Committee or None
        None stays None.

    Raises
    ------
    TypeError
        If it is of none of these kinds.
    """
    if given is None or isinstance(given, Committee):
        return given
    if isinstance(given, list | tuple):
        return Committee(given)
    raise TypeError(
        f"committee must be a list of models or a Committee, got {brief(given)}. "
        "Make one by contrafact.committee(model, X, y); one model: [model]."
    )


class Reordered(Classifier):
    """Give a classifier the columns of another one.

    Parameters
    ----------
    inner : Classifier
        The classifier to ask.
    classes : array of shape (classes,)
        Labels in the order wanted. Classes that the inner one does not know get probability 0.
    """

    def __init__(self, inner: Classifier, classes: Array) -> None:
        super().__init__(classes, inner.batch_size)
        self.inner = inner
        self.dtype = inner.dtype
        self.device = inner.device
        self.rows_per_evaluation = inner.rows_per_evaluation
        self.rows_per_verdict = inner.rows_per_verdict
        self._column = label_index(inner.classes, classes).to(self.device)

    @override
    def _evaluate(self, x: Tensor) -> Verdict:
        return self._reorder(self.inner.evaluate(x))

    @override
    def _decide(self, x: Tensor) -> Verdict:
        return self._reorder(self.inner.verdict(x))

    def _reorder(self, verdict: Verdict) -> Verdict:
        column = self._column.to(verdict.label.device)
        shape = (len(verdict.label), len(self.classes))
        proba = verdict.proba.new_zeros(shape)
        proba[:, column] = verdict.proba
        score = verdict.score.new_full(shape, LEAST_SCORE)
        score[:, column] = verdict.score
        return Verdict(proba, column[verdict.label], score)


def _kind(member: Classifier) -> str:
    """Name the kind of a model, without the classifiers it is wrapped in."""
    while hasattr(member, "inner"):
        member = member.inner
    for name in ("model", "module", "function"):
        model = getattr(member, name, None)
        if model is not None:
            return getattr(model, "__name__", type(model).__name__)
    return type(member).__name__
