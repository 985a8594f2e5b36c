"""Train classifiers that withstand small worst-case changes, for visual counterfactuals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

import torch
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, kl_div
from typing_extensions import Self

from ..deprecation import renamed_parameters
from ..models.adapters import TorchClassifier
from ..models.eval_mode import evaluating
from ..validation import Integer, Nothing, OneOf, Real, Rule, check_parameters
from .attacks import (
    ATTACK_RULES,
    NORMS,
    RADII,
    Ball,
    Bounds,
    RowLoss,
    check_attack,
    log_odds,
    radii_of,
    strongest_attack,
)
from .diagnostics import last_linear, scatter_spectrum
from .feature_noise import BeforeHead
from .loop import History
from .networks import seeded
from .option_rules import TRAINING_RULES
from .training import MODULE, TrainingTask, Validation, measure, prepare


class RobustTrainer(BaseEstimator):  # type: ignore[misc]
    """Train a classifier on attacked batches (adversarial training).

        at        min  CE(f(x'), y)                         x' increases CE(f(x'), y)
        trades    min  CE(f(x), y) + β KL(f(x) || f(x'))    x' increases KL(f(x) || f(x'))
        fsr       add  b w(τ) Σ_{i <= k} λ_i((F' - mean)ᵀ(F' - mean)),    w(τ) = min(τ / T0, 1)

    with x' within eps of x, F' the features of the m attacked rows (inputs of the last linear layer
    that runs), λ_1 >= λ_2 >= ... eigenvalues and τ the epoch, from 1. With several norms, x' is in
    the ball of one of them. A module that is already trained is trained on from its weights: a few
    epochs at a small learning rate make a model that is robust for one norm robust for several.

    Parameters
    ----------
    attack : {"fast", "pgd"}, default="pgd"
        One step of 1.25 eps from a random start, or `steps` of 2.5 eps / steps.
    norm : float, default=2
        Norm of the ball around each row, from 1 to inf.
    eps : float or sequence of float, default=0.5
        Radius of the ball, in the units of X; with `norms` one for each of them, or one number, the
        l2 radius: a linear model with random weights loses as much in the other balls.
    steps : int, default=7
        Steps of "pgd", and of the attack on the validation rows, so that a model that only
        withstands the fast attack is not kept.
    objective : {"at", "trades"}, default="at"
        Adversarial training, or TRADES.
    beta : float, default=5.0
        β of "trades": weight of robustness against accuracy.
    regularizer : {None, "fsr"}, default=None
        "fsr", feature spectral regularization, flattens the spectrum of the features.
    fsr_weight : float, default=0.01
        b for m = 128; it is scaled by 128 / m, as λ grows with m.
    fsr_top : int, default=8
        k, the number of eigenvalues that are penalized.
    fsr_warmup : int, default=10
        T0, the epoch from which the penalty counts fully.
    activation_noise : float, default=0.0
        α of the noise α N(0, I), added to F in the first epoch of training; 0 for none. After an
        epoch, α grows by 1e-4 if the accuracy on attacked training rows was above `noise_accuracy`,
        and is halved if it was below 0.8 `noise_accuracy`.
    noise_accuracy : float, default=0.5
        Accuracy that controls the noise.
    bounds : (float, float) or None, default=(0.0, 1.0)
        Smallest and largest value of an input; None: no limit.
    max_epochs : int, default=100
        Largest number of epochs.
    batch_size : int, default=64
        Largest number of instances in a batch.
    learning_rate : float, default=5e-3
        Learning rate of the first epoch.
    patience : int, default=30
        Epochs without a lower validation loss, the cross-entropy of attacked rows, before stopping.
    validation : float, (X_val, y_val) or None, default=None
        As in `fit_classifier`.
    random_state : int, default=0
        Seed; the global random state is neither read nor changed.
    progress : bool, default=False
        Show the epoch and the curves.
    device : str or torch.device, optional
        Where the module is trained, and stays; default: where it is.
    norms : sequence of float, optional
        Several norms to train against, e.g. (1, 2, inf), in place of `norm`.
    norm_choice : {"random", "worst"}, default="random"
        Which of `norms` a batch is attacked in: one drawn at random, at the cost of a single norm,
        or all, and every row keeps the attack of the highest loss.

    Attributes
    ----------
    classifier_ : TorchClassifier
        The classifier around the module, which is trained in place.
    history_ : dict of str to list of float
        One value per epoch: train_loss; with a validation set val_loss, val_accuracy and
        val_robust_accuracy, under the worst attack of all norms; with activation noise noise, its
        α.

    References
    ----------
    Madry, Makelov, Schmidt, Tsipras, Vladu: Towards deep learning models resistant to adversarial
    attacks. ICLR 2018. https://doi.org/10.48550/arXiv.1706.06083

    Zhang, Yu, Jiao, Xing, El Ghaoui, Jordan: Theoretically principled trade-off between robustness
    and accuracy. ICML 2019. https://doi.org/10.48550/arXiv.1901.08573

    Tramèr, Boneh: Adversarial training and robustness for multiple perturbations. NeurIPS 2019.
    https://doi.org/10.48550/arXiv.1904.13000

    Croce, Hein: Adversarial robustness against multiple and single l_p-threat models via quick
    fine-tuning of robust classifiers. ICML 2022. https://doi.org/10.48550/arXiv.2105.12508

    Wong, Rice, Kolter: Fast is better than free: revisiting adversarial training. ICLR 2020.
    https://doi.org/10.48550/arXiv.2001.03994

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> trainer = RobustTrainer(
    ...     attack="fast", eps=0.3, bounds=None, max_epochs=30, batch_size=16, learning_rate=0.01
    ... )
    >>> bool((trainer.fit("mlp", X, y).classifier_.predict(X) == y).mean() > 0.9)
    True
    """

    rules: ClassVar[dict[str, Rule]] = {
        "attack": OneOf("fast", "pgd"),
        **ATTACK_RULES,
        "eps": ATTACK_RULES["eps"] | RADII,
        "norms": NORMS | Nothing(),
        "norm_choice": OneOf("random", "worst"),
        "objective": OneOf("at", "trades"),
        "beta": Real(at_least=0),
        "regularizer": OneOf(None, "fsr"),
        "fsr_weight": Real(at_least=0),
        "fsr_top": Integer(at_least=1),
        "fsr_warmup": Integer(at_least=1),
        "activation_noise": Real(at_least=0, at_most=10**6),
        "noise_accuracy": Real(at_least=0, at_most=1),
        **{name: rule for name, rule in TRAINING_RULES.items() if name != "weight_decay"},
    }
    classifier_: TorchClassifier
    history_: History

    @renamed_parameters(lr="learning_rate")
    def __init__(
        self,
        attack: Literal["fast", "pgd"] = "pgd",
        norm: float = 2,
        eps: float | Sequence[float] = 0.5,
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
        learning_rate: float = 5e-3,
        patience: int = 30,
        validation: Validation = None,
        random_state: int = 0,
        progress: bool = False,
        device: Any = None,
        norms: Sequence[float] | None = None,
        norm_choice: Literal["random", "worst"] = "random",
    ) -> None:
        self.attack = attack
        self.norm = norm
        self.eps = eps
        self.steps = steps
        self.objective = objective
        self.beta = beta
        self.regularizer = regularizer
        self.fsr_weight = fsr_weight
        self.fsr_top = fsr_top
        self.fsr_warmup = fsr_warmup
        self.activation_noise = activation_noise
        self.noise_accuracy = noise_accuracy
        self.bounds = bounds
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.patience = patience
        self.validation = validation
        self.random_state = random_state
        self.progress = progress
        self.device = device
        self.norms = norms
        self.norm_choice = norm_choice

    def fit(
        self,
        module: nn.Module | str | None,
        X: ArrayLike | Tensor,
        y: ArrayLike | Tensor,
    ) -> Self:
        """Train a module, or a network by its name.

        Parameters
        ----------
        module : torch.nn.Module, str or None
            As in `fit_classifier`; with a regularizer or noise it must contain a linear layer.
        X : array-like of shape (n, ...)
            Instances within the bounds.
        y : array-like of shape (n,)
            Labels of any type.

        Returns
        -------
        RobustTrainer
            The trainer itself.

        Raises
        ------
        ValueError
            If data, labels or a parameter cannot be used, or the training diverges.
        """
        check_parameters(type(self).__name__, self.rules, self.get_params(deep=False))
        check_parameters(f"{type(self).__name__}.fit", {"module": MODULE}, {"module": module})
        task = prepare(module, X, y, self.validation, self.random_state, self.device)
        balls = self._balls(task.x)
        for x in (task.x, task.x_val):
            for norm, eps in balls:
                check_attack(x, norm, eps, self.steps, self.bounds)
        before_head = BeforeHead(self.activation_noise, self.noise_accuracy)
        with self._hooked(task, before_head):
            self.classifier_ = task.fit(
                lambda rows, epoch: self._loss(task, rows, epoch, before_head),
                lambda: self._measure(task),
                after_epoch=before_head.adapt,
                max_epochs=self.max_epochs,
                batch_size=self.batch_size,
                learning_rate=self.learning_rate,
                patience=self.patience,
                random_state=self.random_state,
                progress=self.progress,
            )
        self.history_ = self.classifier_.history
        if self.activation_noise:
            self.history_["noise"] = before_head.alphas[:-1]  # the last one was never used
        return self

    def _balls(self, x: Tensor) -> list[Ball]:
        """Return norm and radius of every ball that rows are attacked in."""
        if self.norms is None:
            if isinstance(self.eps, Sequence):
                raise ValueError(f"eps must be one number where norms is None, got {self.eps}.")
            return [(self.norm, self.eps)]
        return list(zip(self.norms, radii_of(self.norms, self.eps, x), strict=True))

    @contextmanager
    def _hooked(self, task: TrainingTask, before_head: BeforeHead) -> Iterator[None]:
        """Let `before_head` see the features during training, where something needs them."""
        if not (self.regularizer or self.activation_noise):
            yield
            return
        head = last_linear(task.module, task.x[:2])
        hook = head.register_forward_pre_hook(before_head)
        try:
            yield
        finally:
            hook.remove()

    def _loss(
        self,
        task: TrainingTask,
        rows: Tensor,
        epoch: int,
        before_head: BeforeHead,
    ) -> Tensor:
        """Attack some rows, and compute the loss of the objective and the regularizer."""
        x = task.x[rows]
        t = task.t[rows]
        if self.objective == "trades":
            loss, f_adv = self._trades(task.module, x, t)
        else:
            loss, f_adv = self._adversarial(task.module, x, t)
        before_head.right.append(f_adv.argmax(1) == t)
        # Features that are not finite have no spectrum; the loop reports that training diverged.
        if self.regularizer == "fsr" and loss.isfinite():
            b = self.fsr_weight * 128 / len(x)
            w = min((epoch + 1) / self.fsr_warmup, 1)
            spectrum = scatter_spectrum(before_head.features)
            loss = loss + b * w * spectrum[: self.fsr_top].sum()
        return loss

    def _adversarial(
        self,
        module: nn.Module,
        x: Tensor,
        t: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Return CE(f(x'), y) and f(x')."""
        x_adv = self._attacked(module, x, log_odds(module, t), self._drawn(x), self.attack)
        f_adv = module(x_adv)
        return cross_entropy(f_adv, t), f_adv

    def _trades(
        self,
        module: nn.Module,
        x: Tensor,
        t: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Return CE(f(x), y) + β KL(f(x) || f(x')) and f(x')."""
        with evaluating(module), torch.no_grad():
            log_p = module(x).log_softmax(1)

        def away(x_adv: Tensor) -> Tensor:
            return divergence(log_p, module(x_adv))

        x_adv = self._attacked(module, x, away, self._drawn(x), self.attack)
        f = module(x)
        f_adv = module(x_adv)
        apart = divergence(f.log_softmax(1), f_adv).mean()
        loss = cross_entropy(f, t) + self.beta * apart
        return loss, f_adv

    def _drawn(self, x: Tensor) -> list[Ball]:
        """Return the balls in which one batch is attacked."""
        balls = self._balls(x)
        if self.norm_choice == "worst" or len(balls) == 1:
            return balls
        return [balls[int(torch.randint(len(balls), ()))]]

    def _attacked(
        self,
        module: nn.Module,
        x: Tensor,
        loss: RowLoss,
        balls: list[Ball],
        attack: str,
    ) -> Tensor:
        """Attack rows, without dropout and without moving the statistics of batch norms."""
        with evaluating(module):
            return strongest_attack(loss, x, balls, attack == "fast", self.steps, self.bounds)

    def _measure(self, task: TrainingTask) -> dict[str, float]:
        """Measure loss under attack, and accuracy with and without it, on the validation set."""
        module = task.module
        x_batches = task.x_val.split(256)
        t_batches = task.t_val.split(256)
        x_adv = []
        # The same random starts in every epoch, so that only the model makes a difference.
        with seeded(self.random_state):
            for x, t in zip(x_batches, t_batches, strict=True):
                loss = log_odds(module, t)
                x_adv.append(self._attacked(module, x, loss, self._balls(x), "pgd"))
        attacked = measure(module, torch.cat(x_adv), task.t_val)
        clean = measure(module, task.x_val, task.t_val)
        return {
            "val_loss": attacked["val_loss"],
            "val_accuracy": clean["val_accuracy"],
            "val_robust_accuracy": attacked["val_accuracy"],
        }


def divergence(log_p: Tensor, f: Tensor) -> Tensor:
    """Compute KL(p || softmax(f)) of every row.

    Parameters
    ----------
    log_p : Tensor of shape (n, classes)
        Log-probabilities.
    f : Tensor of shape (n, classes)
        Logits.

    Returns
    -------
    Tensor of shape (n,)
        One divergence per row.
    """
    log_q = f.log_softmax(1)
    return kl_div(log_q, log_p, reduction="none", log_target=True).sum(1)
