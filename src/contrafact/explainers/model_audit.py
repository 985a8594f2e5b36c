"""Audit of a model: its classes, the most suspicious first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..data.arrays import read_array
from ..models.classifier import Array
from ..numerics import occurrence
from ..validation import Integer, check_parameters
from .class_audit import RULES as CLASS_RULES
from .class_audit import ClassAudit, fit_for_audit, summarize_changes
from .support.explainer import Explainer

RULES = {
    "n_starts": Integer(at_least=1),
    "window": CLASS_RULES["window"],
    "n_regions": CLASS_RULES["n_regions"],
    "explainer": CLASS_RULES["explainer"],
    "random_state": CLASS_RULES["random_state"],
}
#: A class stands out whose suspicion is at least so many times the median of the other classes':
#: in clean models of MNIST, Fashion-MNIST and CIFAR-10 it was 8.1 times the median at most.
ALARM_RATIO = 9.0
#: and that is at least so large, since multiples of nearly nothing say nothing
LEAST_ALARM = 0.02


@dataclass(frozen=True)
class ModelAudit:
    """Hold the audits of a model's classes.

    Parameters
    ----------
    audits : list of ClassAudit
        The most suspicious class first.
    unreached : list of label
        Classes that no instance could be turned into.
    """

    audits: list[ClassAudit]
    unreached: list[Any]

    @property
    def alarms(self) -> list[ClassAudit]:
        """The classes that stand out: 0.02 and nine times the median of the other classes."""
        suspicion = np.array([audit.suspicion for audit in self.audits])
        found = []
        for rank, audit in enumerate(self.audits):
            others = np.delete(suspicion, rank)
            usual = float(np.median(others)) if len(others) else 0.0
            if audit.suspicion >= max(LEAST_ALARM, ALARM_RATIO * usual):
                found.append(audit)
        return found

    def describe(self, audit: ClassAudit) -> str:
        """Say in one line how suspicious a class is, and where.

        Parameters
        ----------
        audit : ClassAudit
            One of `audits`.

        Returns
        -------
        str
            As in "3: suspicion 0.41 (look at it) at rows 0…4, columns 20…24, mean change +0.3".
        """
        advice = " (look at it)" if any(audit is alarm for alarm in self.alarms) else ""
        return (
            f"{_plain(audit.target)!r}: suspicion {audit.suspicion:.2f}{advice} at {audit.place}, "
            f"mean change {audit.suspect.mean_change:+.2g}"
        )

    def __iter__(self) -> Iterator[ClassAudit]:
        return iter(self.audits)

    def __len__(self) -> int:
        return len(self.audits)

    def __getitem__(self, rank: int) -> ClassAudit:
        return self.audits[rank]

    def __repr__(self) -> str:
        lines = [f"<ModelAudit of {len(self.audits)} classes, the most suspicious first"]
        lines += [f"  {self.describe(audit)}" for audit in self.audits]
        if self.unreached:
            lines.append(f"  not reached: {', '.join(repr(_plain(c)) for c in self.unreached)}")
        return "\n".join(lines) + ">"


def _plain(label: Any) -> Any:
    """Return a NumPy scalar as the plain value it is."""
    return np.asarray(label).item()


def audit_classes(
    model: Any,
    X: Any,
    *,
    n_starts: int = 30,
    window: int | None = None,
    n_regions: int = 5,
    explainer: Explainer | None = None,
    random_state: int = 0,
) -> ModelAudit:
    """Rank the classes of a model by how far each is recognized by a mark, not by its features.

    Every class is audited by `class_audit`, from the same number of instances of each other class,
    as far as there are so many, and compared with all of X. Its docstring defines `suspicion`.

    Parameters
    ----------
    model : object
        Anything `as_classifier` takes.
    X : array or tensor
        Images or series that the model was trained on: what marks them has to be in them.
    n_starts : int, default=30
        Instances to turn into each class.
    window : int, optional
        Side of a region; default: a sixth of the larger side, at least 2.
    n_regions : int, default=5
        Regions to report at most.
    explainer : Explainer, optional
        How to find the counterfactuals, as in `class_audit`.
    random_state : int, default=0
        Seed of the choice of instances and of the explainer.

    Returns
    -------
    ModelAudit
        One audit for each class, the most suspicious first.

    Raises
    ------
    ValueError
        If X holds rows.

    Examples
    --------
    >>> ranking = audit_classes(model, X_train, n_starts=5)
    >>> ranking[0].suspicion >= ranking[1].suspicion
    True
    """
    check_parameters("audit_classes", RULES, locals())
    explainer = fit_for_audit(explainer, model, X)
    X = X if isinstance(X, Tensor) else read_array(X, "X")
    labels = explainer.classifier_.predict(X)
    images = np.asarray(X.cpu() if isinstance(X, Tensor) else X)
    audits = []
    unreached = []
    for target in explainer.classifier_.classes:
        starts = _choose_starts(labels, target, n_starts, random_state)
        result = explainer.explain(X[starts], target, random_state=random_state)
        audit = summarize_changes(
            result, target, explainer.shape_, images, labels, window, n_regions
        )
        if audit is None:
            unreached.append(target)
        else:
            audits.append(audit)
    audits.sort(key=lambda audit: -audit.suspicion)
    return ModelAudit(audits, unreached)


def _choose_starts(labels: Array, target: Any, n: int, seed: int) -> Array:
    """Choose n instances of other classes, in turn from each class."""
    others = np.flatnonzero(labels != target)
    order = np.random.default_rng(seed).permutation(others)
    _, classes = np.unique(labels[order], return_inverse=True)
    turn = occurrence(torch.from_numpy(classes)).numpy()
    chosen: Array = order[np.argsort(turn, kind="stable")[:n]]
    return chosen
