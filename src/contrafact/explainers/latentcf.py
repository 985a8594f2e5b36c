"""LatentCF++: gradient steps on an autoencoder's code until the model changes its decision."""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor
from typing_extensions import override

from ..deprecation import renamed_parameters
from ..engine import Candidates, Tags, Tasks
from ..models.classifier import Array
from ..nn.autoencoders import Autoencoder
from ..numerics import ceil_div
from ..search import Adam, Point, Stop, minimize
from ..validation import Boolean, Instance, OneOf
from .support.latent_space import LatentSpace, Trace, shorten
from .support.option_rules import COUNT, PROBABILITY, RATE, STEPS, WEIGHT
from .support.weighted import WeightedExplainer

#: a step by finite differences costs dozens of model rows: so many times fewer are taken
FEWER_STEPS = 5


class LatentCF(WeightedExplainer):
    """Move an instance's code until the model decides for the target.

        minimize over z   (τ − P(c | x'))₊² + λ_t · mean w |x' − x| / s,      x' = D(z)

    from z = E(x), by Adam, until P ≥ τ. λ_t falls from `proximity` to 0 over the steps: at a fixed
    weight instances come to rest where both terms balance, short of τ. In models without gradients
    finite differences in the code are used. Instances for which the search fails take the straight
    line to their nearest unlike neighbor, reported in `info["fallback"]`.

    Parameters
    ----------
    autoencoder : Autoencoder or {"cnn", "lstm"}, default="cnn"
        A trained one, or the kind to train at fit.
    max_epochs : int, default=500
        Largest number of epochs of that training.
    weights : {"uniform", "local", "global"}, default="local"
        w: 1; costly where segments matter for this instance's class; or costly where they matter
        for its class in the reference data.
    strength : float, default=10
        w = 1 + strength · importance.
    n_segments : int, default=16
        Segments whose importance is measured.
    proximity : float, default=0.15
        λ at the start.
    tau : float, default=0.5
        The target probability to reach.
    learning_rate : float, default=0.05
        Adam's step, in units of the spread of the code.
    max_iter : int, default=300
        Largest number of steps; a fifth of them with finite differences.
    residual : bool, default=True
        x' = x + D(z) − D(E(x)), so that a code that has not moved is no change.

    References
    ----------
    Wang, Samsten, Mochaourab, Papapetrou: Learning time series counterfactuals via latent space
    representations. Discovery Science 2021. https://doi.org/10.1007/978-3-030-88942-5_29

    Examples
    --------
    >>> result = LatentCF(max_epochs=50).fit(model, X_train, y_train).explain(X_test[:8])
    >>> result.valid.mean()
    1.0
    """

    tags = Tags(modalities=("series", "image"), gradient=True)
    rules = {
        "autoencoder": OneOf("cnn", "lstm") | Instance(Autoencoder),
        "max_epochs": STEPS,
        "weights": OneOf("uniform", "local", "global"),
        "strength": WEIGHT,
        "n_segments": COUNT,
        "proximity": WEIGHT,
        "tau": PROBABILITY,
        "learning_rate": RATE,
        "max_iter": STEPS,
        "residual": Boolean(),
    }
    info_keys = {
        "weights": "w, the cost of changing each point",
        "iterations": "steps taken",
        "converged": "whether the search stopped before the last step",
        "fallback": "whether the line to the nearest unlike neighbor was taken",
        "loss_curve": "loss at steps picked evenly from first to last",
        "path": "the code at these steps, on the plane `latent_.plane`",
    }

    @renamed_parameters(lr="learning_rate")
    def __init__(
        self,
        autoencoder: Autoencoder | Literal["cnn", "lstm"] = "cnn",
        max_epochs: int = 500,
        weights: Literal["uniform", "local", "global"] = "local",
        strength: float = 10.0,
        n_segments: int = 16,
        proximity: float = 0.15,
        tau: float = 0.5,
        learning_rate: float = 0.05,
        max_iter: int = 300,
        residual: bool = True,
    ) -> None:
        self.autoencoder = autoencoder
        self.max_epochs = max_epochs
        self.weights = weights
        self.strength = strength
        self.n_segments = n_segments
        self.proximity = proximity
        self.tau = tau
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.residual = residual

    @override
    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        quick = {"max_epochs": 2, "max_iter": 10, "learning_rate": 0.3}
        return [{**quick, "weights": "uniform"}, {**quick, "residual": False}]

    @override
    def _default_confidence(self) -> float:
        return self.tau

    @override
    def _fit(self, X: Tensor, y: Array | None) -> None:
        super()._fit(X, y)
        self.latent_ = LatentSpace.fit(self.autoencoder, X, self.max_epochs)

    @override
    def _explain(self, tasks: Tasks) -> Candidates:
        tasks = tasks.with_goal(self.tau)
        z = self.latent_.encode(tasks.x)
        spread = self.latent_.spread
        tasks = self.latent_.attach_base(
            tasks.attach(w=self._costs(tasks)),
            z,
            self.residual,
        )
        max_iter = self.max_iter
        if not tasks.oracle.classifier.differentiable:
            max_iter = ceil_div(self.max_iter, FEWER_STEPS)
        trace = Trace(self.latent_.plane)

        def encode(tasks: Tasks, theta: Tensor, t: int) -> Tensor:
            return tasks["base"] + spread * theta

        def decode(tasks: Tasks, z: Tensor) -> Tensor:
            return self.latent_.candidates(tasks, z, self.residual)

        def loss(point: Point) -> Tensor:
            short = (point.goal - point.p_target).clamp_min(0)
            w = point.tasks["w"]
            delta = (point.x_cf - point.tasks.x).abs() / self.scale_
            distance = (w * delta).flatten(1).mean(1) / w.flatten(1).mean(1)
            proximity = self.proximity * (1 - point.t / max_iter)
            value = short.square() + proximity * distance
            trace.note(point, value)
            return value

        found = minimize(
            tasks,
            (self.latent_.starts(tasks, z) - z) / spread,
            decode,
            loss,
            Adam(self.learning_rate),
            Stop(tasks.confidence or self.tau, patience=1, tolerance=0.0, max_iter=max_iter),
            encode=encode,
            start_code=z,
            difference=0.3 * float(spread.mean()),
        )
        x_cf = shorten(tasks, decode, found.code)
        x_cf, fallback = self._fall_back(tasks, x_cf)
        return tasks.candidates(
            x_cf,
            weights=tasks["w"],
            iterations=found.iterations,
            converged=found.converged,
            fallback=fallback,
            **trace.curves(len(tasks)),
        )
