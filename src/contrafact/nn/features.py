"""Features of images, series and rows, learned by a small network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn
from typing_extensions import Self

from ..models.adapters import TorchClassifier, as_classifier
from ..models.classifier import Array, Classifier
from ..validation import Rule, check_parameters
from .diagnostics import penultimate
from .option_rules import TRAINING_RULES
from .reading import read_instances
from .training import MODULE, fit_classifier


class FeatureExtractor(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learn features by training a classifier, and compute them: what its last layer sees.

    Distances of such features stand for what matters to tell the classes apart, where distances of
    pixels do not. Train it on real data that no compared model has seen, and keep it fixed: figures
    of `contrafact.metrics.frechet_distance` from different extractors cannot be compared.

    Parameters
    ----------
    module : torch.nn.Module, str or None, default=None
        As in `fit_classifier`. A module must end with a linear layer, whose inputs are the
        features. A copy of it is not made: it is trained in place.
    max_epochs : int, default=20
        Largest number of epochs.
    batch_size : int, default=64
        Largest number of instances in a batch.
    learning_rate : float, default=2e-3
        Learning rate of the first epoch.
    random_state : int, default=0
        Seed of weights and batches.
    progress : bool, default=False
        Show the epoch and the losses.

    Attributes
    ----------
    classifier_ : TorchClassifier
        The trained network; its accuracy on held-out data says what the features know.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from contrafact.metrics import frechet_distance
    >>> X, y = load_digits(return_X_y=True)
    >>> images = X.reshape(-1, 1, 8, 8) / 16
    >>> extractor = FeatureExtractor(max_epochs=3).fit(images[:800], y[:800])
    >>> real = extractor.transform(images[800:1200])
    >>> others = extractor.transform(images[1200:1600])
    >>> upside_down = extractor.transform(images[1200:1600, :, ::-1])
    >>> frechet_distance(upside_down, real) > 2 * frechet_distance(others, real)
    True
    """

    rules: ClassVar[Mapping[str, Rule]] = {
        "module": MODULE,
        **{
            name: TRAINING_RULES[name]
            for name in ("max_epochs", "batch_size", "learning_rate", "random_state", "progress")
        },
    }

    def __init__(
        self,
        module: nn.Module | str | None = None,
        *,
        max_epochs: int = 20,
        batch_size: int = 64,
        learning_rate: float = 2e-3,
        random_state: int = 0,
        progress: bool = False,
    ) -> None:
        self.module = module
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.progress = progress

    @classmethod
    def of(cls, model: nn.Module | Classifier) -> FeatureExtractor:
        """Make an extractor of a network that was trained elsewhere; it is used as it is.

        Parameters
        ----------
        model : torch.nn.Module or Classifier
            A module that runs a linear layer last, or a classifier made of one.

        Returns
        -------
        FeatureExtractor
            Ready to `transform`.

        Examples
        --------
        >>> FeatureExtractor.of(nn.Linear(4, 2)).transform([[0.0, 1.0, 2.0, 3.0]])
        array([[0., 1., 2., 3.]], dtype=float32)
        """
        classifier = as_classifier(model)
        if not isinstance(classifier, TorchClassifier):
            raise TypeError(
                f"model must be a torch module or a classifier made of one, got {model!r}."
            )
        extractor = cls(classifier.module)
        extractor.classifier_ = classifier
        return extractor

    def fit(self, X: ArrayLike | Tensor, y: ArrayLike | Tensor) -> Self:
        """Train the network to tell the classes apart.

        Parameters
        ----------
        X : array-like of shape (n, ...)
            Real instances.
        y : array-like of shape (n,)
            Their labels.

        Returns
        -------
        FeatureExtractor
            The extractor itself.

        Raises
        ------
        ValueError
            If data, labels or a parameter cannot be used, or the training diverges.
        """
        given: dict[str, Any] = self.get_params(deep=False)
        check_parameters(type(self).__name__, self.rules, given)
        self.classifier_ = fit_classifier(given.pop("module"), X, y, **given)
        return self

    def transform(self, X: ArrayLike | Tensor) -> Array:
        """Compute the features of instances.

        Parameters
        ----------
        X : array-like of shape (n, ...)
            Instances of the shape of those it was fitted to.

        Returns
        -------
        array of shape (n, features)
            The inputs of the network's last linear layer.
        """
        check_is_fitted(self, "classifier_")
        x = self.classifier_.as_input(read_instances(X, "X"))
        features = penultimate(self.classifier_, x).flatten(1)
        return features.numpy(force=True)
