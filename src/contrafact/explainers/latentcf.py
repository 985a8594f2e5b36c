"""LatentCF++: gradient steps on an instance's code until the model says otherwise."""

from __future__ import annotations

from typing import Any, Literal

from torch import Tensor

from ..engine import Batch, Candidates, Tags
from ..models.classifier import Array
from ..nn.autoencoders import Autoencoder
from ..search import Adam, Point, Stop, minimize
from .support.latent_space import LatentSpace, Trace, shorten
from .support.weighted import WeightedExplainer


class LatentCF(WeightedExplainer):
    """Latent-space counterfactuals (Wang, Samsten, Mochaourab, Papapetrou 2021).

        minimize over z   (τ − P(c | x'))₊²  +  λ_t·mean w|x' − x|/s,      x' = D(z)

    from z = E(x), by Adam, until P ≥ τ. λ_t falls from `proximity` to 0 over the steps: at a fixed weight
    rows come to rest where both terms balance, short of τ. Models without gradients are felt out by finite
    differences in the code. Rows that do not turn take the straight line to their nearest unlike neighbor,
    and say so in `info["fallback"]`.

    Parameters
    ----------
    autoencoder : a trained one, or "cnn" / "lstm" to be trained at fit, for at most `max_epochs`.
    weights : w: "uniform", "local" (segments that matter for this instance's class are costly to change),
        "global" (those that matter for its class in the reference data).
    strength, n_segments : w = 1 + strength · importance of each of so many segments.
    proximity : λ at the start.
    tau : the target probability to reach.
    lr : step of Adam, in spreads of the code.
    max_iter : limit of steps; a fifth of them where steps are felt out.
    residual : x' = x + D(z) − D(E(x)): no movement is no change.

    `info`: weights (per point), iterations, converged, fallback, loss_curve, path (on `latent_.plane`).

    Examples
    --------
    >>> result = LatentCF(max_epochs=50).fit(model, X_train, y_train).explain(X_test[:8])
    >>> result.valid.mean()
    1.0
    """

    tags = Tags(modalities=("series", "image"), gradient=True)

    def __init__(
        self,
        autoencoder: Autoencoder | Literal["cnn", "lstm"] = "cnn",
        max_epochs: int = 500,
        weights: Literal["uniform", "local", "global"] = "local",
        strength: float = 10.0,
        n_segments: int = 16,
        proximity: float = 0.15,
        tau: float = 0.5,
        lr: float = 0.05,
        max_iter: int = 300,
        residual: bool = True,
    ) -> None:
        self.autoencoder, self.max_epochs, self.residual = autoencoder, max_epochs, residual
        self.weights, self.strength, self.n_segments = weights, strength, n_segments
        self.proximity, self.tau, self.lr, self.max_iter = proximity, tau, lr, max_iter

    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        quick = {"max_epochs": 2, "max_iter": 10, "lr": 0.3}
        return [{**quick, "weights": "uniform"}, {**quick, "residual": False}]

    def _fit(self, X: Tensor, y: Array | None) -> None:
        super()._fit(X, y)
        self.latent_ = LatentSpace.fit(self.autoencoder, X, self.max_epochs)

    def _explain(self, batch: Batch) -> Candidates:
        tau = batch.confidence = max(self.tau, batch.confidence or 0.0)
        rows = batch.rows.repeat_interleave(batch.k)
        w = self._costs(batch)[rows]
        z, spread = self.latent_.encode(batch.x[rows]), self.latent_.spread
        decode = self.latent_.decoder(batch, rows, z, self.residual)
        max_iter = self.max_iter if batch.classifier.differentiable else -(-self.max_iter // 5)
        trace = Trace(self.latent_.plane)

        def code(theta: Tensor, entries: Tensor, t: int) -> Tensor:
            return z[entries] + spread * theta

        def objective(point: Point) -> Tensor:
            short = (tau - point.p_target).clamp_min(0)
            delta = (point.x_cf - batch.x[rows[point.entries]]).abs() / self.scale_
            distance = (w[point.entries] * delta).flatten(1).mean(1) / w[point.entries].flatten(
                1
            ).mean(1)
            loss = short.square() + self.proximity * (1 - point.t / max_iter) * distance
            trace.note(point, loss)
            return loss

        optimum = minimize(
            batch,
            rows,
            (self.latent_.starts(batch, rows, z) - z) / spread,
            decode,
            objective,
            Adam(self.lr),
            Stop(tau, 1, 0.0, max_iter),
            code=code,
            start=z,
            difference=0.3 * float(spread.mean()),
        )
        x_cf, fallback = self._rescue(batch, rows, shorten(batch, rows, decode, z, optimum.code))
        info = {
            "weights": w,
            "iterations": optimum.iterations,
            "converged": optimum.converged,
            "fallback": fallback,
            **trace.curves(len(rows)),
        }
        return Candidates(x_cf, rows, info)
