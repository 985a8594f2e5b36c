"""GradientLVQ: options and `fit` of the prototype models that learn by gradient descent."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor
from typing_extensions import Self

from ..deprecation import renamed_parameters
from ..nn.loop import History
from ..nn.networks import seeded
from ..validation import Rule
from .estimator import Array, Counts, generator
from .gradient_rules import GRADIENT_RULES, OLD_NAMES, accept_old_names, check_combinations
from .initial import Init, MakePrototypes, initial_prototypes
from .layer_training import LayerTraining
from .layered import LayeredClassifier
from .layers import DistanceFunction, Euclidean, make_layer
from .regularizers import Regularizer
from .schedules import Scheduler
from .soft_dtw import SoftDTW
from .temperature import likely_temperature
from .training_rows import DTYPES, Examples, Scaling, TrainingRows
from .warped_layers import distance_layer


@accept_old_names
@dataclass(eq=False, repr=False)
class GradientLVQ(LayeredClassifier):
    """Options that every prototype model learned by gradient descent has.

    While learning, data are centered and brought to unit spread by one factor for all features,
    so that `learning_rate` means the same whatever the units; that leaves the metric as it is.
    Features of different kinds should be standardized first (StandardScaler).

    Parameters
    ----------
    n_prototypes : int or dict from label to int, default=1
        Prototypes per class.
    init : str or function, default="kmeans"
        Where they start. In every class "kmeans": centers of k-means; "kmeans++": rows far from
        each other; "random": random rows, with "noise" added to them; "means": around the mean;
        "class_mean" and "class_conditional_mean": at the mean, one or several. Anywhere, in units
        of the training: "normal", "uniform", "zeros", "ones", "fill". A function of (X, y,
        prototypes per label, RandomState) returns prototypes and their labels. `fit` also takes
        given ones.
    init_options : dict, optional
        `noise_std` of "noise" (0.1), `mean` and `std` of "normal" (0, 1), `low` and `high` of
        "uniform" (-1, 1), `value` of "fill" (0).
    optimizer : str, torch optimizer class or torch optimizer, default="adam"
        "adam", "adamw", "nadam", "rmsprop", "sgd", a class, or an instance: its kind and settings
        are used, and `learning_rate` must be None.
    learning_rate : float, optional
        Length of a step, in training units; default: 0.05.
    scheduler : str, function or None, default="cosine"
        How steps change from epoch to epoch: "cosine", "linear" or "polynomial" to zero,
        "exponential", "piecewise" at milestones, "restarts" of the cosine, "plateau" by half where
        the loss stops falling; "warmup_constant", "warmup_cosine" and "warmup_exponential" rise
        first. Or as the torch scheduler that a function of the optimizer returns, or not at all.
    scheduler_options : dict, optional
        Arguments of a scheduler by name, those of torch: `T_max`, `eta_min`, `total_iters`,
        `end_factor`, `power`, `gamma`, `milestones`, `T_0`, `T_mult`, `factor`, `patience`; and
        `warmup` (epochs, a tenth) and `start_factor` (0.1). Default: what suits `max_iter`.
    max_iter : int, default=100
        Passes over the data.
    batch_size : int, optional
        Rows per step; default: all.
    class_weight : "balanced" or dict from label to float, optional
        Weight of the rows of a class; default: all equal.
    validation_fraction : float, default=0.0
        Share of every class that is held out to stop early; `fit` also takes `validation_data`.
    patience : int, optional
        Epochs without a better validation loss before stopping; default: never stop early.
    restore_best : bool, default=True
        Keep the weights of the best validation loss instead of the last ones.
    ema : float, optional
        Decay of a running average of the weights, which is then what is kept; between 0 and 1.
    accumulate : int, default=1
        Batches whose gradients make one step.
    lookahead : int or dict, optional
        Steps after which the weights go back half of the way they went, or
        {"sync_period": steps, "slow_step_size": share of the way that is kept}; default: never.
    frozen : tuple of str, default=()
        Groups of parameters that are not trained: "prototypes", "metric", "backbone".
    mixed_precision : bool, "bfloat16" or "float16", default=False
        Compute products in bfloat16 (True is the same) or float16, the latter with gradients scaled
        up on the way; for dtype="float32" on a device that has it.
    callbacks : tuple of functions, default=()
        Called with the curves so far after each epoch; a true answer ends the training.
    regularizers : tuple of Regularizer, default=()
        Terms from `contrafact.prototypes`, e.g. (Diversity(0.01),).
    distance_fn : function of two Tensors or SoftDTW, optional
        From rows (n, features) and prototypes (K, features), in your units, to what takes the
        place of the squared distances (n, K), at least 0 and differentiable; for models without a
        learned metric. DeepLVQ calls it in the space of its network. `SoftDTW` is for series.
    tol : float, optional
        Stop when the mean loss of an epoch differs from the last by less; default: never.
    temperature : float, optional
        Of `predict_proba`, in units of the distances; default: the one that makes the training
        labels most probable.
    dtype : {"float32", "float64"}, default="float64"
        Precision of the training.
    device : str, default="cpu"
        Device of the training.
    random_state : int or RandomState, optional
        Seed; default: draw one.
    verbose : bool, default=False
        Show the epoch and the losses.

    Attributes
    ----------
    loss_ : float
        The objective on the training rows at the end.
    loss_history_ : array of shape (n_iter_,)
        The mean objective of every epoch.
    n_iter_ : int
        Epochs.
    validation_history_ : dict from str to array of shape (n_iter_,)
        "val_loss" and "val_accuracy" of every epoch, where something is held out.
    """

    n_prototypes: Counts = 1
    _: KW_ONLY
    init: Init | MakePrototypes = "kmeans"
    init_options: Mapping[str, float] | None = None
    optimizer: Any = "adam"
    learning_rate: float | None = None
    scheduler: str | Scheduler | None = "cosine"
    scheduler_options: Mapping[str, Any] | None = None
    max_iter: int = 100
    batch_size: int | None = None
    class_weight: Literal["balanced"] | Mapping[Any, float] | None = None
    validation_fraction: float = 0.0
    patience: int | None = None
    restore_best: bool = True
    ema: float | None = None
    accumulate: int = 1
    lookahead: int | Mapping[str, Any] | None = None
    frozen: tuple[str, ...] = ()
    mixed_precision: bool | Literal["bfloat16", "float16"] = False
    callbacks: tuple[Callable[[History], bool | None], ...] = ()
    regularizers: tuple[Regularizer, ...] = ()
    distance_fn: DistanceFunction | SoftDTW | None = None
    tol: float | None = None
    temperature: float | None = None
    dtype: Literal["float32", "float64"] = "float64"
    device: str = "cpu"
    random_state: Any = None
    verbose: bool = False

    rules: ClassVar[Mapping[str, Rule]] = GRADIENT_RULES

    @renamed_parameters(**OLD_NAMES)
    def set_params(self, **params: Any) -> Self:
        """Set options by name.

        Parameters
        ----------
        **params : object
            The options, as in the constructor.

        Returns
        -------
        self
        """
        super().set_params(**params)
        return self

    @abstractmethod
    def _loss(
        self,
        d: Tensor,
        labels: Tensor,
        t: Tensor,
    ) -> Tensor:
        """Compute the loss (n,) of rows of classes t from their distances d (n, K)."""

    def _metric(self) -> tuple[str, int | None]:
        """Return the kind and the rank of the metric."""
        return "euclidean", None

    def _make_layer(self, prototypes: Tensor, scaling: Scaling) -> Euclidean:
        """Build the layer to train, at its start."""
        kind, rank = self._metric()
        if self.distance_fn is not None:
            origin = torch.from_numpy(scaling.center).to(prototypes)
            shape = self.shape_
            return distance_layer(self.distance_fn, prototypes, origin, scaling.spread, shape, kind)
        return make_layer(kind, rank, prototypes)

    def _embed(self, x: Tensor) -> Tensor:
        """Map data to the space of the prototypes; here it is the data's own."""
        return x

    def _unit(self, spread: float) -> float:
        """Return what a distance of 1 in training is in the user's units."""
        return 1.0 if self.distance_fn is not None else spread**2

    def _start_temperature(
        self,
        d: Tensor,
        labels: Tensor,
        t: Tensor,
        weight: Array | None,
    ) -> float:
        """Return T of a loss that has one, in squared training units; 0 where none has."""
        return 0.0

    def _measure_start(self, d: Tensor, labels: Tensor, t: Tensor, weight: Array | None) -> None:
        """Set what else a loss takes from the distances d (n, K) of the rows at the start."""

    def _learning_rate_shares(self) -> dict[str, float]:
        """Return the steps of parameter groups as shares of the learning rate; default: 1."""
        return {}

    def _groups(self, layer: Euclidean) -> dict[str, list[Tensor]]:
        """Return the parameters by the name under which they may be frozen."""
        groups: dict[str, list[Tensor]] = {"prototypes": [layer.prototypes]}
        if layer.metric_parameters:
            groups["metric"] = [getattr(layer, name) for name in layer.metric_parameters]
        return groups

    def _finish(self, X: Array) -> None:
        """Derive further attributes from the training rows, after everything is learned."""

    def fit(
        self,
        X: Any,
        y: Any,
        initial_prototypes: tuple[Any, Any] | None = None,
        sample_weight: Any = None,
        validation_data: tuple[Any, Any] | None = None,
    ) -> Self:
        """Learn the prototypes.

        Parameters
        ----------
        X : array of shape (n, *shape)
            Rows, series or images.
        y : array of shape (n,)
            Labels of any type.
        initial_prototypes : tuple of two arrays, optional
            Prototypes (K, *shape) to start from and their labels (K,), at least one of every
            class, in place of `n_prototypes` and `init`; default: as these say.
        sample_weight : array of shape (n,), optional
            Weight of each row, at least 0; default: all equal.
        validation_data : tuple of two arrays, optional
            X and y of rows to watch for early stopping.

        Returns
        -------
        self
        """
        self._check_parameters()
        self._forget()
        rows = TrainingRows(*self._check_training_data(X, y, sample_weight)).merged()
        self._check_combinations(validated=validation_data is not None)
        rng = generator(self.random_state)
        if self.class_weight is not None:
            rows = rows.balanced(self.class_weight, self.classes_)
        rows, held = self._hold_out(rows, validation_data, rng)
        scaling = Scaling.of(rows, DTYPES[self.dtype], self.device)
        seed = int(rng.randint(2**31))
        with seeded(seed):
            training = scaling.examples(rows)
            watched = None if held is None else scaling.examples(held)
            places = self._embed(training.x)
            if initial_prototypes is None:
                prototypes, owner = self._initial(places, rows, rng, scaling)
            else:
                prototypes, owner = self._given(initial_prototypes, scaling)
            layer = self._make_layer(prototypes, scaling).eval()
            labels = torch.from_numpy(owner).to(self.device)
            unit = self._unit(scaling.spread)
            self._set_training_temperature(layer, labels, training, rows.weight, unit)
            self._descend(layer, labels, training, watched)
            distances = self._final_distances(layer, training.x)
        temperature = self._training_temperature
        if not temperature:
            temperature = likely_temperature(distances, training.t, labels, rows.weight)
        self.temperature_ = temperature * unit
        center = torch.from_numpy(scaling.center)
        placed = layer.placed(center, scaling.spread)
        self._store_layer(placed, self.classes_[owner])
        self._finish(rows.X)
        return self

    def _forget(self) -> None:
        """Remove attributes of an earlier fit that this one may not set."""
        for name in ("beta_", "omega_", "relevances_", "validation_history_", "_network"):
            self.__dict__.pop(name, None)

    def _hold_out(
        self,
        rows: TrainingRows,
        validation_data: tuple[Any, Any] | None,
        rng: np.random.RandomState,
    ) -> tuple[TrainingRows, TrainingRows | None]:
        """Return the rows to train on, and those to validate on, if any."""
        if validation_data is not None:
            X, t = self._check_pair(validation_data, "validation_data")
            return rows, TrainingRows(X, t)
        if not self.validation_fraction:
            return rows, None
        return rows.split(self.validation_fraction, rng)

    def _initial(
        self,
        places: Tensor,
        rows: TrainingRows,
        rng: np.random.RandomState,
        scaling: Scaling,
    ) -> tuple[Tensor, Array]:
        """Choose the first prototypes (K, D) and their classes (K,) as `init` says."""
        counts = self._counts(self.n_prototypes, rows.t)
        if not isinstance(self.init, str):
            X = rows.X.reshape(-1, *self.shape_)
            wanted = dict(zip(self.classes_.tolist(), counts.tolist(), strict=True))
            made = self.init(X, self.classes_[rows.t], wanted, rng)
            return self._given(made, scaling, "what init returns")
        values = places.detach().cpu().double().numpy()
        found, owner = initial_prototypes(
            values,
            rows.t,
            counts,
            self.init,
            rows.weight,
            rng,
            self.init_options,
        )
        return torch.from_numpy(found).to(places), owner

    def _given(
        self,
        prototypes: tuple[Any, Any],
        scaling: Scaling,
        name: str = "initial_prototypes",
    ) -> tuple[Tensor, Array]:
        """Check prototypes to start from; returns them (K, D) and their classes (K,)."""
        X, owner = self._check_pair(prototypes, name)
        present = np.unique(owner)
        if len(present) < len(self.classes_):
            raise ValueError(
                f"{name} must hold one of every class "
                f"{self.classes_.tolist()}, got {self.classes_[present].tolist()}."
            )
        return self._embed(scaling.tensor(X)), owner

    def _set_training_temperature(
        self,
        layer: Euclidean,
        labels: Tensor,
        training: Examples,
        weight: Array | None,
        unit: float,
    ) -> None:
        """Set T of the loss in training units; 0 where only `predict_proba` has one."""
        d = self._without_gradients(layer, training.x)
        self._measure_start(d, labels, training.t, weight)
        if self.temperature is not None:
            self._training_temperature = self.temperature / unit
            return
        self._training_temperature = self._start_temperature(d, labels, training.t, weight)

    def _descend(
        self,
        layer: Euclidean,
        labels: Tensor,
        training: Examples,
        held: Examples | None,
    ) -> None:
        """Train the layer in place, and keep the curves."""
        descent = LayerTraining(self, layer, labels, training, held)
        history = descent.run()
        self.loss_history_ = np.array(history["train_loss"])
        self.n_iter_ = len(self.loss_history_)
        self.loss_ = descent.total_loss()
        if held is not None:
            self.validation_history_ = {
                "val_loss": np.array(history["val_loss"]),
                "val_accuracy": np.array(history["val_accuracy"]),
            }

    def _final_distances(self, layer: Euclidean, x: Tensor) -> Tensor:
        """Compute the distances (n, K) of the training rows to what was learned."""
        d = self._without_gradients(layer, x)
        if not bool(d.isfinite().all()):
            raise ValueError("training diverged in its last step; try a smaller learning_rate.")
        return d

    def _check_combinations(self, validated: bool) -> None:
        """Refuse options that cannot be used together; `validated`: validation data are given."""
        check_combinations(self, validated)
