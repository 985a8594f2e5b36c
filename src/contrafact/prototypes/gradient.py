"""Prototype models that learn by gradient descent: the options they share, and their one `fit`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np
import torch
from sklearn.model_selection import train_test_split
from sklearn.utils.class_weight import compute_sample_weight
from torch import Tensor
from typing_extensions import Self

from ..nn.loop import History, train
from ..nn.networks import seeded
from ..numerics.randomness import row_seeds
from .descent import Lookahead, Scheduler, make_optimizer, make_schedule, running_average
from .estimator import Array, Counts, LayeredClassifier, generator, likely_temperature
from .initial import Init, initial_prototypes
from .layers import Euclidean, make_layer
from .regularizers import Regularizer

DTYPES = {"float32": torch.float32, "float64": torch.float64}


@dataclass(eq=False, repr=False)
class GradientLVQ(LayeredClassifier):
    """Options that every prototype model learned by gradient descent has.

    While learning, data are centered and brought to unit spread by one factor, so that `lr` means the same
    whatever the units; that leaves the metric as it is. Features of different kinds want a StandardScaler.

    Parameters
    ----------
    n_prototypes : per class, or a dictionary {label: number}.
    init : "kmeans" (centers of every class), "kmeans++", "random" (rows of the class) or "means"; `fit` takes
        given ones.
    optimizer : "adam", "adamw", "nadam", "rmsprop", "sgd", a torch optimizer class, or an instance (its kind
        and settings are used; `lr` must then be None).
    lr : step; None: 0.05.
    scheduler : "cosine" (to zero), "plateau", a function of the optimizer that gives a torch scheduler, None.
    max_iter, batch_size : passes over the data, and rows per step (None: all).
    class_weight : "balanced" or {label: weight}.
    validation_fraction : share of every class held out to stop early; or give `validation_data` to `fit`.
    patience, restore_best : epochs without a better validation loss before stopping (None: never), and
        whether the best weights are kept; both with something held out.
    ema : decay of a running average of the weights, which is then what is kept.
    accumulate : batches whose gradients make one step.
    lookahead : every so many steps, go back half of the way they went.
    frozen : groups that are not trained: "prototypes", "metric", "backbone".
    mixed_precision : products in bfloat16, for dtype="float32" on a device that has it.
    callbacks : functions of the curves so far, called after each epoch; a true answer ends the training.
    regularizers : terms from `contrafact.prototypes`, e.g. (Diversity(0.01),).
    temperature : of `predict_proba`; None: the one that makes the training labels most probable.
    dtype, device : of the training.
    random_state : seed; None draws one.
    verbose : show the epoch and the losses.

    Fitted attributes: those of every prototype model, `loss_`, `loss_history_`, `n_iter_` (epochs), and
    `validation_history_` where something is held out.
    """

    n_prototypes: Counts = 1
    _: KW_ONLY
    init: Init = "kmeans"
    optimizer: Any = "adam"
    lr: float | None = None
    scheduler: Literal["cosine", "plateau"] | Scheduler | None = "cosine"
    max_iter: int = 100
    batch_size: int | None = None
    class_weight: Literal["balanced"] | Mapping[Any, float] | None = None
    validation_fraction: float = 0.0
    patience: int | None = None
    restore_best: bool = True
    ema: float | None = None
    accumulate: int = 1
    lookahead: int | None = None
    frozen: tuple[str, ...] = ()
    mixed_precision: bool = False
    callbacks: tuple[Callable[[History], bool | None], ...] = ()
    regularizers: tuple[Regularizer, ...] = ()
    temperature: float | None = None
    dtype: Literal["float32", "float64"] = "float64"
    device: str = "cpu"
    random_state: Any = None
    verbose: bool = False

    @abstractmethod
    def _loss(self, d: Tensor, labels: Tensor, t: Tensor) -> Tensor:
        """The loss of rows of classes t, from their distances d (n, K) to prototypes of classes `labels`."""

    def _metric(self) -> tuple[str, int | None]:
        """Kind and rank of the metric."""
        return "euclidean", None

    def _make_layer(self, prototypes: Tensor) -> Euclidean:
        """The layer to train, at its start."""
        return make_layer(*self._metric(), prototypes)

    def _space(self, x: Tensor) -> Tensor:
        """Where the prototypes live: the data's own space."""
        return x

    def _unit(self, spread: float) -> float:
        """What a distance of 1 in training is in the user's units."""
        return spread**2

    def _look_back(self, X: Array) -> None:
        """Meet the training rows again, when all is learned."""

    def _start_temperature(
        self, d: Tensor, labels: Tensor, t: Tensor, weight: Array | None
    ) -> float:
        """T of a loss that has one, in squared training units; 0 where `predict_proba` alone has it."""
        return 0.0

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
        X, y : instances and labels of any type.
        initial_prototypes : (prototypes, their labels); default: as `init` says.
        sample_weight : one per row.
        validation_data : (X, y) watched for early stopping.
        """
        for earlier in ("omega_", "relevances_", "validation_history_", "_network"):
            self.__dict__.pop(earlier, None)
        X, t, weight = merged(*self._read_training(X, y, sample_weight))
        self._check_options(validation_data is not None)
        rng = generator(self.random_state)
        if self.class_weight is not None:
            balance = self._balance(t, weight)
            weight = balance if weight is None else weight * balance
        held = None
        if validation_data is not None:
            held = self._pair(*validation_data, "validation_data")
        elif self.validation_fraction:
            rows, out = train_test_split(
                np.arange(len(X)), test_size=self.validation_fraction, stratify=t, random_state=rng
            )
            held = X[out], t[out]
            X, t, weight = X[rows], t[rows], None if weight is None else weight[rows]

        center = np.average(X, axis=0, weights=weight)
        spread = float(np.sqrt(np.average((X - center) ** 2, axis=0, weights=weight).mean())) or 1.0
        seed = int(rng.randint(2**31))

        def scaled(rows: Array) -> Tensor:
            return torch.as_tensor(
                (rows - center) / spread, dtype=DTYPES[self.dtype], device=self.device
            )

        with seeded(seed):
            x, columns = scaled(X), torch.from_numpy(t).to(self.device)
            places = self._space(x)
            if initial_prototypes is None:
                found, owner = self._initial(places, t, weight, rng)
            else:
                rows, owner = self._pair(*initial_prototypes, "initial_prototypes")
                if len(np.unique(owner)) < len(self.classes_):
                    raise ValueError(
                        f"initial_prototypes must hold one of every class {self.classes_.tolist()}, got "
                        f"{np.unique(self.classes_[owner]).tolist()}."
                    )
                found = self._space(scaled(rows))
            layer, labels = self._make_layer(found).eval(), torch.from_numpy(owner).to(self.device)
            with torch.no_grad():
                start = layer(x)
            unit = self._unit(spread)
            T = None if self.temperature is None else self.temperature / unit
            self._training_temperature = T or self._start_temperature(
                start, labels, columns, weight
            )
            watched = (
                None
                if held is None
                else (scaled(held[0]), torch.from_numpy(held[1]).to(self.device))
            )
            self._descend(layer, labels, x, columns, weight, watched)
            with torch.no_grad():
                d = layer(x)
            if not bool(d.isfinite().all()):
                raise ValueError("training diverged in its last step; try a smaller lr.")
        T = self._training_temperature or likely_temperature(d, columns, labels, weight)
        self.temperature_ = T * unit
        self._settle(layer.placed(torch.from_numpy(center), spread), self.classes_[owner])
        self._look_back(X)
        return self

    def _descend(
        self,
        layer: Euclidean,
        labels: Tensor,
        x: Tensor,
        t: Tensor,
        weight: Array | None,
        held: tuple[Tensor, Tensor] | None,
    ) -> None:
        """Train the layer in place, and note the curves."""
        w = None if weight is None else torch.as_tensor(weight / weight.mean()).to(x)
        groups = self._trained(layer)
        optimizer = make_optimizer(self.optimizer, self.lr, groups, self._shares())
        lookahead = None if self.lookahead is None else Lookahead(groups.values(), self.lookahead)
        average = None if self.ema is None else running_average(layer, self.ema)

        def objective(rows: Tensor, epoch: int = 0) -> Tensor:
            with torch.autocast(x.device.type, torch.bfloat16, enabled=self.mixed_precision):
                loss = self._loss(layer(x[rows]), labels, t[rows])
            mean = (loss if w is None else loss * w[rows]).mean()
            return mean + sum(term.penalty(layer, labels) for term in self.regularizers)

        def after_step(*_: Any) -> None:
            if lookahead is not None:
                lookahead()
            if "metric" not in self.frozen:
                lr = optimizer.param_groups[-1]["lr"] / self._shares().get("metric", 1.0)
                for term in self.regularizers:
                    term.after_step(layer, lr)
                layer.normalize()
            if average is not None:
                average.update_parameters(layer)
                average.module.normalize()  # type: ignore[operator]

        def watch() -> dict[str, float]:
            assert held is not None
            d = (layer if average is None else average.module)(held[0])
            right = labels[d.argmin(1)] == held[1]
            return {
                "val_loss": float(self._loss(d, labels, held[1]).mean()),
                "val_accuracy": float(right.double().mean()),
            }

        optimizer.register_step_post_hook(after_step)
        history = train(
            layer,
            len(x),
            objective,
            optimizer,
            make_schedule(self.scheduler, optimizer, self.max_iter),
            watch=None if held is None else watch,
            max_epochs=self.max_iter,
            batch_size=self.batch_size or len(x),
            patience=self.patience or self.max_iter,
            accumulate=self.accumulate,
            average=average,
            restore_best=self.restore_best,
            listener=lambda curves: sum(bool(callback(curves)) for callback in self.callbacks) > 0,
            progress=self.verbose,
        )
        self.loss_history_ = np.array(history["train_loss"])
        self.n_iter_ = len(self.loss_history_)
        with torch.no_grad():
            self.loss_ = float(objective(torch.arange(len(x))))
        if held is not None:
            self.validation_history_ = {
                name: np.array(history[name]) for name in ("val_loss", "val_accuracy")
            }

    # --- pieces ---------------------------------------------------------------------------------------------

    def _balance(self, t: Array, weight: Array | None) -> Array:
        """What `class_weight` makes of each row."""
        if self.class_weight == "balanced":
            total = np.bincount(t, weight)
            return np.asarray(total.sum() / (len(total) * total)[t])
        balance = np.asarray(compute_sample_weight(self.class_weight, self.classes_[t]))
        if balance.min() <= 0:
            raise ValueError(f"class_weight must be above 0, got {self.class_weight!r}.")
        return balance

    def _initial(
        self, places: Tensor, t: Array, weight: Array | None, rng: Any
    ) -> tuple[Tensor, Array]:
        counts = self._counts(self.n_prototypes, t)
        values = places.detach().cpu().double().numpy()
        found, owner = initial_prototypes(values, t, counts, self.init, weight, rng)
        return torch.from_numpy(found).to(places), owner

    def _pair(self, X: Any, y: Any, name: str) -> tuple[Array, Array]:
        """Instances and their classes as columns, checked."""
        rows, columns = self._read(X), self._columns(y, name)
        if len(rows) != len(columns):
            raise ValueError(f"{name} holds {len(rows)} instances, but {len(columns)} labels.")
        return rows, columns

    def _columns(self, labels: Any, name: str) -> Array:
        """Labels as columns of `classes_`."""
        labels = np.asarray(labels)
        unknown = set(labels.tolist()) - set(self.classes_.tolist())
        if unknown:
            raise ValueError(
                f"{name} holds labels {sorted(unknown)} that y does not; classes: {self.classes_.tolist()}."
            )
        return np.asarray(np.searchsorted(self.classes_, labels))

    def _groups(self, layer: Euclidean) -> dict[str, list[Tensor]]:
        """Parameters by the name under which they may be frozen."""
        groups: dict[str, list[Tensor]] = {"prototypes": [layer.prototypes]}
        if layer.metric_parameters:
            groups["metric"] = [getattr(layer, name) for name in layer.metric_parameters]
        return groups

    def _shares(self) -> dict[str, float]:
        """The step of parameter groups, as a share of lr; 1 where it is not told."""
        return {}

    def _trained(self, layer: Euclidean) -> dict[str, list[Tensor]]:
        groups = self._groups(layer)
        unknown = set(self.frozen) - set(groups)
        if unknown or len(set(self.frozen)) == len(groups):
            raise ValueError(
                f"frozen must name some, not all, of the groups {sorted(groups)}, got {self.frozen!r}."
            )
        return {name: group for name, group in groups.items() if name not in self.frozen}

    def _check_options(self, watched: bool) -> None:
        """Options that could not be honored are refused."""
        for name in ("max_iter", "batch_size", "patience", "accumulate"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}.")
        if watched and self.validation_fraction:
            raise ValueError("validation_fraction must be 0 where validation_data are given.")
        if self.dtype not in DTYPES:
            raise ValueError(f"dtype must be 'float32' or 'float64', got {self.dtype!r}.")
        if self.accumulate > 1 and self.batch_size is None:
            raise ValueError(f"accumulate={self.accumulate} needs a batch_size.")
        if not (watched or self.validation_fraction) and (
            self.patience is not None or not self.restore_best
        ):
            raise ValueError(
                "patience and restore_best need something held out: give validation_fraction, or "
                "validation_data to fit."
            )
        if self.mixed_precision and self.dtype != "float32":
            raise ValueError("mixed_precision=True needs dtype='float32'.")
        if self.temperature is not None and self.temperature <= 0:
            raise ValueError(f"temperature must be above 0, got {self.temperature}.")
        shaping = [t for t in self.regularizers if type(t).after_step is not Regularizer.after_step]
        if shaping and ("metric" in self.frozen or self.ema is not None):
            raise ValueError(
                f"{type(shaping[0]).__name__} shapes the metric step by step: not with a frozen metric, nor "
                "with ema, whose average would undo it."
            )


def merged(X: Array, t: Array, weight: Array | None) -> tuple[Array, Array, Array | None]:
    """Equal rows of a class become one, their weights added, in an order that is the rows' own.

    So a weight of 2 is exactly the same as a row given twice, and the order of the rows does not matter.
    """
    key = row_seeds(X, 0, t)
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    if weight is None and len(first) == len(X):
        return X[first], t[first], None
    return X[first], t[first], np.bincount(group, weight)
