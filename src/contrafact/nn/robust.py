"""Train classifiers that small worst-case changes do not fool: visual counterfactuals need them."""

from __future__ import annotations

from typing import Any, Literal

import torch
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, kl_div
from typing_extensions import Self

from ..models.adapters import TorchClassifier, evaluating
from .attacks import Bounds, RowLoss, check_attack, log_odds, pgd
from .diagnostics import last_linear, scatter_spectrum
from .loop import History
from .networks import seeded
from .training import Task, measure, prepare

_CHOICES = {"attack": ("fast", "pgd"), "objective": ("at", "trades"), "regularizer": (None, "fsr")}


class RobustTrainer(BaseEstimator):  # type: ignore[misc]
    """Adversarial training: every batch is attacked before the model learns from it.

        at        min  CE(f(x'), y)                         x' raises CE(f(x'), y)         (Madry et al. 2018)
        trades    min  CE(f(x), y) + β KL(f(x) || f(x'))    x' raises KL(f(x) || f(x'))    (Zhang et al. 2019)
        fsr       add  b w(τ) Σ_{i <= k} λ_i((F' - mean)ᵀ(F' - mean)),    w(τ) = min(τ / T0, 1)

    with x' within eps of x, F' the m attacked rows' features (inputs of the last linear layer that runs),
    λ_1 >= λ_2 >= … eigenvalues and τ the epoch, from 1.

    Parameters
    ----------
    attack : "fast" or "pgd"
        One step of 1.25 eps from a random start (Wong, Rice, Kolter 2020), or `steps` of 2.5 eps / steps.
    norm, eps : 2 or inf, and the radius of the ball around each row.
    steps : of "pgd", and of the attack on the validation rows, so that a model that only withstands the fast
        attack does not pass.
    objective : "at" or "trades".
    beta : β of "trades": how much robustness counts against accuracy.
    regularizer : None or "fsr", which flattens the spectrum of the features.
    fsr_weight, fsr_top, fsr_warmup : b for m = 128 (it is scaled by 128 / m, as λ grows with m), k and T0.
    activation_noise : float
        α of α N(0, I), added to F in training; 0 for none. This is the first epoch's: after an epoch, α grows
        by 1e-4 if the accuracy on attacked training rows was above a, and is halved if it was below 0.8 a.
    noise_accuracy : a.
    bounds : smallest and largest value of an input; None: no limit.
    max_epochs, batch_size, lr, patience, validation, random_state, progress, device : as in `fit_classifier`;
        the validation loss is the cross-entropy of attacked rows.

    Attributes
    ----------
    classifier_ : Classifier, around the module, which is trained in place.
    history_ : one number per epoch of train_loss; with a validation set of val_loss, val_accuracy and
        val_robust_accuracy; with activation noise of noise, its α.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> trainer = RobustTrainer(attack="fast", eps=0.3, bounds=None, max_epochs=30, batch_size=16, lr=0.01)
    >>> bool((trainer.fit("mlp", X, y).classifier_.predict(X) == y).mean() > 0.9)
    True
    """

    classifier_: TorchClassifier
    history_: History

    def __init__(
        self,
        attack: Literal["fast", "pgd"] = "pgd",
        norm: float = 2,
        eps: float = 0.5,
        steps: int = 7,
        objective: Literal["at", "trades"] = "at",
        beta: float = 5.0,
        regularizer: Literal["fsr"] | None = None,
        fsr_weight: float = 0.01,
        fsr_top: int = 8,
        fsr_warmup: int = 10,
        activation_noise: float = 0.0,
        noise_accuracy: float = 0.5,
        bounds: Bounds = (0.0, 1.0),
        max_epochs: int = 100,
        batch_size: int = 64,
        lr: float = 5e-3,
        patience: int = 30,
        validation: float | tuple[Any, Any] | None = None,
        random_state: int = 0,
        progress: bool = False,
        device: Any = None,
    ) -> None:
        self.attack, self.norm, self.eps, self.steps = attack, norm, eps, steps
        self.objective, self.beta = objective, beta
        self.regularizer, self.fsr_weight = regularizer, fsr_weight
        self.fsr_top, self.fsr_warmup = fsr_top, fsr_warmup
        self.activation_noise, self.noise_accuracy = activation_noise, noise_accuracy
        self.bounds = bounds
        self.max_epochs, self.batch_size, self.lr, self.patience = (
            max_epochs,
            batch_size,
            lr,
            patience,
        )
        self.validation, self.random_state = validation, random_state
        self.progress, self.device = progress, device

    def fit(
        self, module: nn.Module | str | None, X: ArrayLike | Tensor, y: ArrayLike | Tensor
    ) -> Self:
        """Train a module, or a network by its name; None: by the dimensions of X."""
        self._check_options()
        task = prepare(module, X, y, self.validation, self.random_state, self.device)
        for x in (task.x, task.x_val):
            check_attack(x, self.norm, self.eps, self.steps, self.bounds)
        before_head = BeforeHead(self.activation_noise, self.noise_accuracy)
        hook = None
        if self.regularizer or self.activation_noise:
            hook = last_linear(task.module, task.x[:2]).register_forward_pre_hook(before_head)
        try:
            self.classifier_ = task.fit(
                lambda rows, epoch: self._loss(task, rows, epoch, before_head),
                lambda: self._measure(task),
                after_epoch=before_head.adapt,
                max_epochs=self.max_epochs,
                batch_size=self.batch_size,
                lr=self.lr,
                patience=self.patience,
                random_state=self.random_state,
                progress=self.progress,
            )
        finally:
            if hook is not None:
                hook.remove()
        self.history_ = self.classifier_.history
        if self.activation_noise:
            self.history_["noise"] = before_head.alphas[:-1]  # the last one was never used
        return self

    def _check_options(self) -> None:
        for name, accepted in _CHOICES.items():
            if getattr(self, name) not in accepted:
                raise ValueError(
                    f"{name} must be {' or '.join(map(repr, accepted))}, got {getattr(self, name)!r}."
                )
        for name in ("beta", "fsr_weight", "activation_noise", "noise_accuracy"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}.")
        for name in ("fsr_top", "fsr_warmup"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}.")

    def _loss(self, task: Task, rows: Tensor, epoch: int, before_head: BeforeHead) -> Tensor:
        module, x, t, fast = task.module, task.x[rows], task.t[rows], self.attack == "fast"
        if self.objective == "trades":
            with evaluating(module), torch.no_grad():
                log_p = module(x).log_softmax(1)
            x_adv = self._attacked(module, x, lambda x_adv: divergence(log_p, module(x_adv)), fast)
            f = module(x)
            f_adv = module(x_adv)
            loss = cross_entropy(f, t) + self.beta * divergence(f.log_softmax(1), f_adv).mean()
        else:
            x_adv = self._attacked(module, x, log_odds(module, t), fast)
            f_adv = module(x_adv)
            loss = cross_entropy(f_adv, t)
        before_head.right.append(f_adv.argmax(1) == t)
        # Features that are not finite have no spectrum; the loop says that training diverged.
        if self.regularizer == "fsr" and loss.isfinite():
            b, w = self.fsr_weight * 128 / len(x), min((epoch + 1) / self.fsr_warmup, 1)
            loss = loss + b * w * scatter_spectrum(before_head.features)[: self.fsr_top].sum()
        return loss

    def _attacked(self, module: nn.Module, x: Tensor, loss: RowLoss, fast: bool) -> Tensor:
        with evaluating(module):  # neither dropout nor the running means of batch norms take part
            return pgd(
                loss,
                x,
                norm=self.norm,
                eps=self.eps,
                steps=1 if fast else self.steps,
                step_size=1.25 * self.eps if fast else None,
                bounds=self.bounds,
            )

    def _measure(self, task: Task) -> dict[str, float]:
        """Loss under attack, and accuracy with and without it, on the validation set."""
        module, rows = task.module, zip(task.x_val.split(256), task.t_val.split(256), strict=True)
        with seeded(
            self.random_state
        ):  # the same starts in every epoch: only the model makes a difference
            x_adv = [self._attacked(module, x, log_odds(module, t), fast=False) for x, t in rows]
        attacked = measure(module, torch.cat(x_adv), task.t_val)
        return {
            "val_loss": attacked["val_loss"],
            "val_accuracy": measure(module, task.x_val, task.t_val)["val_accuracy"],
            "val_robust_accuracy": attacked["val_accuracy"],
        }


def divergence(log_p: Tensor, f: Tensor) -> Tensor:
    """KL(p || softmax(f)) of every row."""
    return kl_div(f.log_softmax(1), log_p, reduction="none", log_target=True).sum(1)


class BeforeHead:
    """Stands before the last linear layer: keeps its inputs F and, in training, adds noise to them."""

    features: Tensor

    def __init__(self, alpha: float, accuracy: float) -> None:
        self.alphas, self.accuracy = [alpha], accuracy
        self.right: list[Tensor] = []  # of every attacked batch of this epoch

    def __call__(self, layer: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
        (self.features,) = inputs
        alpha = self.alphas[-1]
        if not (layer.training and alpha):
            return inputs
        return (self.features + alpha * torch.randn_like(self.features),)

    def adapt(self) -> None:
        """Additive increase, multiplicative decrease of α."""
        alpha, accuracy = self.alphas[-1], torch.cat(self.right).double().mean().item()
        if accuracy > self.accuracy:
            alpha += 1e-4
        elif accuracy < 0.8 * self.accuracy:
            alpha *= 0.5
        self.alphas.append(alpha)
        self.right = []
