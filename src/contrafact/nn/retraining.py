"""Committees made from a model and its data: retrained models, or surrogates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import clone
from torch import Tensor

from ..data.cleaning import Array
from ..data.dataset import as_labels
from ..models.adapters import EstimatorClassifier, TorchClassifier, as_classifier
from ..models.classifier import Classifier
from ..models.committee import Committee
from ..models.reshaped import Reshaped
from ..models.tabular import Tabular
from ..process_state import keeping_random_numbers, keeping_threads
from ..tables import Table, TableSpace, is_frame
from ..validation import Integer, check_parameters
from .option_rules import SEED
from .reading import read_instances
from .surrogates import InCoordinates, fit_other_kind, fit_surrogate
from .training import fit_classifier

RETRAINED = "refitted on bootstraps"
MIXED = "trained on bootstraps, every third of another kind"
SURROGATES = "surrogates fitted to the model's answers"

RULES = {"n": Integer(at_least=1, at_most=1000), "random_state": SEED}

_MODALITIES = {2: "row", 3: "series", 4: "image"}


@dataclass(frozen=True)
class Bootstrap:
    """Hold rows drawn with replacement, as many of every class as there were.

    Parameters
    ----------
    X : array of shape (n, ...)
        All instances.
    labels : array of shape (n,)
        Their labels.
    drawn : array of int, shape (n,)
        The rows drawn; some repeat.
    seed : int
        Seed of the model that is trained on them.
    """

    X: Array
    labels: Array
    drawn: Array
    seed: int

    @classmethod
    def draw(cls, X: Array, labels: Array, random_state: int, number: int) -> Bootstrap:
        """Draw rows of every class; each class keeps at least one."""
        rng = np.random.default_rng([random_state, number])
        drawn = []
        for label in np.unique(labels):
            members = np.flatnonzero(labels == label)
            drawn.append(rng.choice(members, len(members)))
        return cls(X, labels, np.sort(np.concatenate(drawn)), int(rng.integers(2**31)))

    @property
    def rows(self) -> tuple[Array, Array]:
        """The instances drawn and their labels."""
        return self.X[self.drawn], self.labels[self.drawn]

    @property
    def left_out(self) -> tuple[Array, Array]:
        """The instances that were not drawn and their labels."""
        rest = np.setdiff1d(np.arange(len(self.X)), self.drawn)
        return self.X[rest], self.labels[rest]


#: converts rows to what a model is trained on
Convert: TypeAlias = Callable[[Array], Any]
#: trains a model anew on some rows
Refit: TypeAlias = Callable[[Bootstrap], Classifier]


@keeping_threads()
@keeping_random_numbers()
def committee(
    model: Any,
    X: ArrayLike | Tensor | Any,
    y: ArrayLike | Tensor | None = None,
    n: int = 3,
    *,
    random_state: int = 0,
) -> Committee:
    """Make the models that an answer has to convince besides the one that is explained.

    What can be trained again is trained with other seeds, each time on a bootstrap of the data
    (rows drawn with replacement, as many of every class as there are): scikit-learn and aeon
    estimators, pipelines included, and networks trained by `fit_classifier`. Every third member is
    of another kind (a forest, or MiniRocket beside a forest), so that an answer does not hang on
    how one kind of model sees the data. For other models (a foreign module, a function, a model
    from a file) surrogates of other kinds are fitted to bootstraps of X with the model's own
    answers as labels.

    Parameters
    ----------
    model : object
        The model that is explained; anything `as_classifier` takes.
    X : array of shape (n_instances, ...), or data frame
        Data to train on, in the shape the model takes.
    y : array of shape (n_instances,), optional
        Their labels; default, and always for surrogates: the model's own answers.
    n : int, default=3
        Number of members.
    random_state : int, default=0
        Seed of bootstraps and training.

    Returns
    -------
    Committee
        For `explain(..., committee=...)`; its repr says what it is made of, and how.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> import contrafact as cf
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(random_state=0).fit(X, y)
    >>> members = cf.committee(model, X, y)
    >>> members
    Committee(2 x DecisionTreeClassifier, 1 x Pipeline, trained on bootstraps, every third ...)
    >>> result = cf.explain(model, X[:2], 1, reference=(X, y), committee=members)
    >>> result.info["committee_votes"].tolist()
    [3, 3]
    """
    check_parameters("committee", RULES, {"n": n, "random_state": random_state})
    classifier = as_classifier(model)
    if is_frame(X):
        table = Table.read(X)
        space = TableSpace(table)
        classifier = Tabular(classifier, space)
        values = space.embed(torch.from_numpy(table.codes)).numpy()
    else:
        values = read_instances(X, "X")
    labels = None if y is None else as_labels(y, "y", len(values))
    classifier.infer_classes(values, labels)
    return make_committee(
        classifier,
        classifier.as_input(values),
        labels,
        _MODALITIES[values.ndim],
        n,
        random_state,
    )


@keeping_threads()
@keeping_random_numbers()
def make_committee(
    classifier: Classifier,
    x: Tensor,
    labels: Array | None,
    modality: str,
    n: int = 3,
    random_state: int = 0,
) -> Committee:
    """Make a committee from checked data.

    Parameters
    ----------
    classifier : Classifier
        The model that is explained.
    x : Tensor of shape (n_instances, ...)
        Instances as it takes them.
    labels : array of shape (n_instances,) or None
        Their labels; None: the model's own answers.
    modality : {"series", "image", "row"}
        Kind of data.
    n : int, default=3
        Number of members.
    random_state : int, default=0
        Seed.

    Returns
    -------
    Committee
        The members.
    """
    if isinstance(classifier, Reshaped):
        x = x.reshape(len(x), *classifier.shape)
        classifier = classifier.inner
    convert: Convert = _as_they_are
    if isinstance(classifier, EstimatorClassifier):
        convert = partial(_as_model_input, classifier)
    asked = classifier
    if isinstance(classifier, Tabular):
        convert = partial(_as_model_input, classifier)
        classifier.evaluate(x[:1])  # which finds out whether it takes frames
        classifier = classifier.inner
    refit = _find_refit(classifier, convert)
    if refit is None or labels is None:
        labels = asked.predict(x)
    _check_labels(labels, classifier.classes)
    X = x.cpu().numpy()
    draws = [Bootstrap.draw(X, labels, random_state, number) for number in range(n)]
    if refit is not None:
        n_others = n // 3
        others = [
            fit_other_kind(getattr(classifier, "model", None), *draw.rows, modality, draw.seed)
            for draw in draws[:n_others]
        ]
        members = [refit(draw) for draw in draws[n_others:]] + _asked_like(asked, others)
        return Committee(members, made=MIXED if n_others else RETRAINED)
    surrogates = [
        fit_surrogate(number, *draw.rows, modality, draw.seed) for number, draw in enumerate(draws)
    ]
    return Committee(_asked_like(asked, surrogates), made=SURROGATES)


def _asked_like(classifier: Classifier, members: list[Classifier]) -> list[Classifier]:
    """Let models that were fitted to coordinates of a table take its frames, as the others do."""
    if not isinstance(classifier, Tabular):
        return members
    return [InCoordinates(member, classifier.space) for member in members]


def _as_they_are(rows: Array) -> Array:
    """Return rows for a model that takes them as they are."""
    return rows


def _as_model_input(classifier: EstimatorClassifier | Tabular, rows: Array) -> Any:
    """Convert rows to what a model was trained on."""
    return classifier.as_model_input(classifier.as_input(rows))


def _find_refit(classifier: Classifier, convert: Convert) -> Refit | None:
    """Return how to train a model of the same kind; None where nothing is known of it."""
    if isinstance(classifier, EstimatorClassifier):
        trainable = hasattr(classifier.model, "fit") and hasattr(classifier.model, "get_params")
        return _estimator_refit(classifier, convert) if trainable else None
    if isinstance(classifier, TorchClassifier) and classifier.recipe is not None:
        return _network_refit(classifier, convert)
    return None


def _estimator_refit(classifier: EstimatorClassifier, convert: Convert) -> Refit:
    """Clone the estimator with new seeds; of a search, the estimator it found."""
    model = getattr(classifier.model, "best_estimator_", classifier.model)

    def refit(draw: Bootstrap) -> Classifier:
        fresh = clone(model)
        names = [name for name in fresh.get_params() if name.split("__")[-1] == "random_state"]
        fresh.set_params(**dict.fromkeys(names, draw.seed))
        rows, labels = draw.rows
        fresh.fit(convert(rows), labels)
        return as_classifier(fresh, batch_size=classifier.batch_size)

    return refit


def _network_refit(classifier: TorchClassifier, convert: Convert) -> Refit | None:
    """Train the network again by its recipe; rows that were not drawn say when to stop."""
    recipe = classifier.recipe
    if recipe.untrained(classifier.module, 0) is None:
        return None

    def refit(draw: Bootstrap) -> Classifier:
        rows, labels = draw.rows
        rest, rest_labels = draw.left_out
        holds_out = recipe.holds_out and len(rest)
        validation = (convert(rest), rest_labels) if holds_out else 0.0
        return fit_classifier(
            recipe.untrained(classifier.module, draw.seed),
            convert(rows),
            labels,
            validation=validation,
            random_state=draw.seed,
            **recipe.options,
        )

    return refit


def _check_labels(labels: Array, classes: Array) -> None:
    """Refuse labels that the model does not know, and labels of one class only."""
    found = np.unique(labels).tolist()
    unknown = set(found) - set(classes.tolist())
    if unknown:
        raise ValueError(
            f"y holds labels {sorted(unknown)} that the model does not know. "
            f"Classes: {classes.tolist()}."
        )
    if len(found) < 2:
        raise ValueError(
            f"A committee needs data of two classes or more; all of X is labeled {found[0]!r}."
        )
