"""Training of one layer: its objective, what follows every step, and validation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..nn.loop import History, train
from .descent import Lookahead, make_optimizer, running_average
from .layers import Euclidean
from .schedules import make_schedule
from .training_rows import Examples

if TYPE_CHECKING:
    from .gradient import GradientLVQ


#: by how much gradients are scaled up at first on their way through products in float16, whose
#: smallest number is 6e-8: those of a mean over many rows are smaller
HALF_SCALE = 1024.0


class ScaledGradient(torch.autograd.Function):
    """Pass a value on, and its gradient back times a number."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, scale: float) -> Tensor:  # noqa: D102
        ctx.scale = scale
        return value.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:  # noqa: D102
        return gradients[0] * ctx.scale, None


class LayerTraining:
    """Train a layer in place, as the options of a model say.

    Parameters
    ----------
    model : GradientLVQ
        The model: its options and its loss.
    layer : Euclidean
        The layer to train.
    labels : int Tensor of shape (K,)
        Class of each prototype, as a column.
    training : Examples
        What to train on.
    held : Examples or None
        What to validate on.
    """

    def __init__(
        self,
        model: GradientLVQ,
        layer: Euclidean,
        labels: Tensor,
        training: Examples,
        held: Examples | None,
    ) -> None:
        self.model = model
        self.layer = layer
        self.labels = labels
        self.training = training
        self.held = held
        groups = trained_groups(model, layer)
        shares = model._learning_rate_shares()
        self.metric_share = shares.get("metric", 1.0)
        self.optimizer = make_optimizer(model.optimizer, model.learning_rate, groups, shares)
        self.lookahead = Lookahead.of(groups.values(), model.lookahead)
        self.gradient_scale = HALF_SCALE if model.mixed_precision == "float16" else 1.0
        self._scale_of_pass = self.gradient_scale
        self.average = None
        if model.ema is not None:
            self.average = running_average(layer, model.ema)

    def run(self) -> History:
        """Train the layer; returns the curves."""
        model = self.model
        n_rows = len(self.training.x)
        self.optimizer.register_step_post_hook(self._after_step)
        if model.mixed_precision == "float16":
            for group in self.optimizer.param_groups:
                for parameter in group["params"]:
                    parameter.register_hook(self._unscale)
        return train(
            self.layer,
            n_rows,
            self.objective,
            self.optimizer,
            self._schedule(),
            watch=None if self.held is None else self._validate,
            max_epochs=model.max_iter,
            batch_size=model.batch_size or n_rows,
            patience=model.patience or model.max_iter,
            accumulate=model.accumulate,
            average=self.average,
            restore_best=model.restore_best,
            listener=self._notify_callbacks,
            progress=model.verbose,
        )

    def _schedule(self) -> Callable[[float], None]:
        model = self.model
        return make_schedule(
            model.scheduler,
            self.optimizer,
            model.max_iter,
            model.scheduler_options,
        )

    def _unscale(self, gradient: Tensor) -> Tensor:
        """Take the scale off a gradient; one that overflowed is left out, and the scale halved."""
        if not bool(gradient.isfinite().all()):
            self.gradient_scale = max(1.0, self._scale_of_pass / 2)
            return torch.zeros_like(gradient)
        return gradient / self._scale_of_pass

    def total_loss(self) -> float:
        """Compute the objective on all training rows."""
        every_row = torch.arange(len(self.training.x))
        with torch.no_grad():
            parts = every_row.split(self.model.rows_at_once)
            return sum(float(self.objective(part)) * len(part) for part in parts) / len(every_row)

    def objective(self, rows: Tensor, epoch: int = 0) -> Tensor:
        """Compute the mean loss of some training rows, plus the penalties of the regularizers.

        Parameters
        ----------
        rows : int Tensor of shape (batch,)
            Positions of the rows.
        epoch : int, default=0
            Not used; the training loop passes it.

        Returns
        -------
        Tensor of shape ()
            The objective.
        """
        model = self.model
        x = self.training.x
        with torch.autocast(
            x.device.type,
            torch.float16 if model.mixed_precision == "float16" else torch.bfloat16,
            enabled=bool(model.mixed_precision),
        ):
            distances = self.layer(x[rows])
            loss = model._loss(distances, self.labels, self.training.t[rows])
        if self.training.weight is not None:
            loss = loss * self.training.weight[rows]
        penalties = sum(term.penalty(self.layer, self.labels) for term in model.regularizers)
        objective: Tensor = loss.mean() + penalties
        if torch.is_grad_enabled() and not objective.requires_grad:
            raise ValueError(
                "distance_fn and transfer must be functions that torch can differentiate: the loss "
                "has no gradient."
            )
        self._scale_of_pass = self.gradient_scale
        if self.gradient_scale != 1:
            objective = ScaledGradient.apply(objective, self.gradient_scale)  # type: ignore[no-untyped-call]
        return objective

    def _after_step(self, *_: Any) -> None:
        """Apply what follows a step: lookahead, changes of the metric, the running average."""
        if self.lookahead is not None:
            self.lookahead()
        if "metric" not in self.model.frozen:
            learning_rate = self.optimizer.param_groups[-1]["lr"] / self.metric_share
            for term in self.model.regularizers:
                term.after_step(self.layer, learning_rate)
            self.layer.normalize()
        if self.average is not None:
            self.average.update_parameters(self.layer)
            self.average.module.normalize()  # type: ignore[operator]

    def _validate(self) -> dict[str, float]:
        """Measure the layer that will be kept on the rows held out."""
        assert self.held is not None
        layer = self.layer if self.average is None else self.average.module
        distances = self.model._without_gradients(layer, self.held.x)
        loss = self.model._loss(distances, self.labels, self.held.t)
        nearest = distances.argmin(1)
        right = self.labels[nearest] == self.held.t
        return {
            "val_loss": float(loss.mean()),
            "val_accuracy": float(right.double().mean()),
        }

    def _notify_callbacks(self, history: History) -> bool:
        """Call every callback with the curves; returns whether one, or `tol`, ends the training."""
        answers = [bool(callback(history)) for callback in self.model.callbacks]
        return any(answers) or self._rests(history["train_loss"])

    def _rests(self, losses: list[float]) -> bool:
        """Return whether the mean loss has changed by less than `tol`."""
        if self.model.tol is None or len(losses) < 2:
            return False
        return abs(losses[-1] - losses[-2]) < self.model.tol


def trained_groups(model: GradientLVQ, layer: Euclidean) -> dict[str, list[Tensor]]:
    """Return the groups of parameters that are not frozen, by name.

    Parameters
    ----------
    model : GradientLVQ
        The model, whose option `frozen` names the others.
    layer : Euclidean
        The layer to train.

    Returns
    -------
    dict of str to list of Tensor
        The groups.
    """
    groups = model._groups(layer)
    frozen = set(model.frozen)
    if frozen - set(groups) or len(frozen) == len(groups):
        raise ValueError(
            f"frozen must name some, not all, of the groups {sorted(groups)}, got {model.frozen!r}."
        )
    return {name: group for name, group in groups.items() if name not in frozen}
