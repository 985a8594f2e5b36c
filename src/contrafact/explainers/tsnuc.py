"""TS-NUC: a small network learns, per instance, to carry its code to the nearest unlike cluster."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ..engine import Batch, Candidates, Tags
from ..engine.batch import target_value
from ..guides import Guide, NearestUnlikeNeighbor
from ..models.classifier import Array, Verdict
from ..nn.autoencoders import Autoencoder
from ..numerics.randomness import fold_in, row_normal
from ..search import Adam, Point, Stop, minimize
from ..search.gradient_loop import Slopes
from .support.code_network import Carrier
from .support.guided import GuidedExplainer
from .support.latent_space import Centroids, LatentSpace, Trace, shorten

PRESETS: dict[str, dict[str, Any]] = {
    "library": {
        "autoencoder": "cnn",
        "n_centroids": 3,
        "max_iter": 500,
        "noise_mean": 0.0,
        "noise_std": 0.0,
        "feedback": False,
        "residual": True,
        "shorten": True,
        "doubling": 50,
    },
    "paper": {
        "autoencoder": "lstm",
        "n_centroids": 1,
        "max_iter": 10_000,
        "noise_mean": -1.0,
        "noise_std": 1.0,
        "feedback": True,
        "residual": False,
        "shorten": False,
        "doubling": 0,
    },
}
MODES = ("auto", "gradient", "predict_only", "zeroth_order")
#: numbers of network weights searched at once; more entries are worked in turns, which changes no result
MAX_WEIGHTS = 2**25


class TSNUC(GuidedExplainer):
    """Nearest-unlike-cluster counterfactuals (Ghosh, Jain, Parida, Das 2024).

        z = E(x),   ẑ = F(z) + noise,   x' = D(ẑ)
        minimize over the weights of F   λ₁·(−log P(c | x'))  +  λ₂·mean|x − x'|  +  λ₃·‖ẑ − μ_c‖

    E and D are an autoencoder, F a network of three layers that first learns to reproduce codes, μ_c the mean
    code of class c. Every instance gets its own copy of F and stops as soon as the model says c. With several
    centroids the pull is the soft minimum −β⁻¹ log Σ exp(−β/2‖ẑ − μ‖²) over those of the class.

    Parameters
    ----------
    mode : "gradient" (through the model, exact); "zeroth_order" (its slopes felt out in the code);
        "predict_only" (λ₁ = 0, the model is only asked whether to stop); "auto": "gradient" where the model
        has gradients, else "predict_only".
    preset : "library" or "paper": the settings of all parameters left at None.
    autoencoder : a trained one, or "cnn" / "lstm" to be trained at fit, for at most `max_epochs`.
    centroids : means over the classes the model sees ("predictions") or those of `y` ("labels"); or
        "prototypes", which a GLVQ learns in the code to tell the classes the model sees apart.
    n_centroids : clusters per class, at most.
    beta : sharpness of the soft minimum, per mean squared distance of a code to its centroid.
    lambda_model, lambda_distance, lambda_centroid : λ₁, λ₂ (x in scaled units), λ₃.
    lr, max_iter : of Adam on the weights of F.
    noise_mean, noise_std : of the noise added to ẑ; a row that turns with noise is tried without.
    feedback : F is fed its own last ẑ instead of z.
    residual : x' = x + D(ẑ) − D(F(z)): no movement is no change.
    doubling : λ₁ doubles every so many steps, so that no row rests at a centroid the model does not accept;
        0: never.
    shorten : last, go back along the line from F(z) to ẑ to the first point the model accepts.
    skip : F(z) = z + network(z), which begins as the identity and needs no training.

    None of these may reach c (the decoded centroid need not be in its class: `fit` warns). Such rows take the
    line to their nearest unlike neighbor, and say so in `info["fallback"]`.

    `info`: iterations, converged, fallback, flipped_at_start (by plain reconstruction, without noise),
    centroid (the nearest of its class), loss_curve, path (steps on `latent_.plane`).

    Examples
    --------
    >>> result = TSNUC(max_epochs=50).fit(model, X_train, y_train).explain(X_test[:8])
    >>> result.valid.mean()
    1.0
    """

    tags = Tags(modalities=("series", "image"))

    def __init__(
        self,
        mode: Literal["auto", "gradient", "predict_only", "zeroth_order"] = "auto",
        preset: Literal["library", "paper"] = "library",
        autoencoder: Autoencoder | Literal["cnn", "lstm"] | None = None,
        max_epochs: int = 500,
        centroids: Literal["predictions", "labels", "prototypes"] = "predictions",
        n_centroids: int | None = None,
        beta: float = 1.0,
        lambda_model: float = 0.05,
        lambda_distance: float = 0.01,
        lambda_centroid: float = 1.0,
        lr: float = 1e-3,
        max_iter: int | None = None,
        noise_mean: float | None = None,
        noise_std: float | None = None,
        feedback: bool | None = None,
        residual: bool | None = None,
        shorten: bool | None = None,
        doubling: int | None = None,
        skip: bool = False,
    ) -> None:
        self.mode, self.preset, self.autoencoder, self.max_epochs = (
            mode,
            preset,
            autoencoder,
            max_epochs,
        )
        self.centroids, self.n_centroids, self.beta = centroids, n_centroids, beta
        self.lambda_model, self.lambda_distance, self.lambda_centroid = (
            lambda_model,
            lambda_distance,
            lambda_centroid,
        )
        self.lr, self.max_iter, self.noise_mean, self.noise_std = (
            lr,
            max_iter,
            noise_mean,
            noise_std,
        )
        self.feedback, self.residual, self.shorten, self.skip = feedback, residual, shorten, skip
        self.doubling = doubling

    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        quick = {"max_epochs": 2, "max_iter": 8, "lr": 0.02}
        return [
            {**quick, "skip": True},
            {
                **quick,
                "mode": "predict_only",
                "n_centroids": 2,
                "residual": False,
                "noise_std": 0.1,
            },
        ]

    def _make_guide(self) -> Guide:
        return NearestUnlikeNeighbor()

    def _setting(self, name: str) -> Any:
        """A parameter's own value, or the preset's."""
        value = getattr(self, name)
        return PRESETS[self.preset][name] if value is None else value

    # --- fitting --------------------------------------------------------------------------------------------

    def _fit(self, X: Tensor, y: Array | None) -> None:
        for name, known in (
            ("mode", MODES),
            ("preset", tuple(PRESETS)),
            ("centroids", ("predictions", "labels", "prototypes")),
        ):
            if getattr(self, name) not in known:
                raise ValueError(
                    f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}."
                )
        if self.mode == "gradient" and not self.classifier_.differentiable:
            raise ValueError(
                "mode='gradient' needs a model with gradients; this one has none. Use 'predict_only' or "
                "'zeroth_order'."
            )
        if self._setting("n_centroids") < 1:
            raise ValueError(f"n_centroids must be at least 1, got {self.n_centroids}.")
        if self.centroids == "labels" and y is None:
            raise ValueError("centroids='labels' needs y.")
        super()._fit(X, y)
        columns = {label: c for c, label in enumerate(self.classifier_.classes.tolist())}
        column = self.guide_.candidate_class_
        if self.centroids == "labels":
            column = torch.tensor(
                [columns[label] for label in np.asarray(y).tolist()], device=X.device
            )
        self.latent_ = LatentSpace.fit(self._setting("autoencoder"), X, self.max_epochs)
        learned = self.centroids == "prototypes"
        self.centroids_ = Centroids.fit(
            self.latent_.codes, column, self._setting("n_centroids"), self.beta, learned
        )
        self.carrier_ = Carrier.fit(self.latent_.codes, self.max_epochs, self.skip)
        self._check_centroids()

    def _check_centroids(self) -> None:
        """A word where the decoded centroid of a class is not in the class."""
        decoded = self.latent_.decode(self.centroids_.place).to(self.guide_.reference_.dtype)
        said = self.classifier_.verdict(decoded).label
        owner = self.centroids_.owner
        names = self.classifier_.classes.tolist()
        astray = [repr(names[c]) for c in torch.unique(owner[said != owner]).tolist()]
        if astray:
            warnings.warn(
                f"The model puts decoded centroids of {', '.join(astray)} into other classes: the "
                "autoencoder or the mean does not keep what the model looks at. More centroids may help.",
                stacklevel=4,
            )

    def _default_target(self, x: Tensor, verdict: Verdict) -> Tensor:
        """The class of the nearest unlike cluster."""
        distance = self.centroids_.distance(self.latent_.encode(x), verdict.score.shape[1])
        distance.scatter_(1, verdict.label[:, None], torch.inf)
        elsewhere = super()._default_target(x, verdict)
        return torch.where(distance.isfinite().any(1), distance.argmin(1), elsewhere)

    # --- searching ------------------------------------------------------------------------------------------

    def _explain(self, batch: Batch) -> Candidates:
        rows = batch.rows.repeat_interleave(batch.k)
        # The copies of a row stay together: what tells them apart is their place among each other.
        size = batch.k * max(1, MAX_WEIGHTS // (batch.k * self.carrier_.size))
        found = [self._search(batch, part) for part in rows.split(size)]
        x_cf = torch.cat([x for x, _ in found])
        info = {name: torch.cat([more[name] for _, more in found]) for name in found[0][1]}
        x_cf, info["fallback"] = self._rescue(batch, rows, x_cf)
        return Candidates(x_cf, rows, info)

    def _search(self, batch: Batch, rows: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """One network for each entry; entry j works for row `rows[j]`."""
        z = self.latent_.encode(batch.x[rows])
        base = self.carrier_(self.carrier_.start(len(rows)), z)
        still, fed = base.clone(), self.latent_.starts(batch, rows, z)
        decode = self.latent_.decoder(batch, rows, base, self._setting("residual"))
        unit = self.latent_.unit.to(batch.x.dtype)
        mean, std, feedback = (
            self._setting(name) for name in ("noise_mean", "noise_std", "feedback")
        )
        slopes, doubling = self._slopes(), self._setting("doubling")
        trace = Trace(self.latent_.plane)
        plain = (fed == z).all(1) & (not (mean or std))

        def code(theta: Tensor, entries: Tensor, t: int) -> Tensor:
            z_hat = self.carrier_(theta, fed[entries])
            still[entries] = z_hat.detach()
            if mean or std:
                seeds = fold_in(batch.seeds[rows[entries].cpu().numpy()], t)
                z_hat = (
                    z_hat + mean + std * torch.from_numpy(row_normal(seeds, z.shape[1])).to(z_hat)
                )
            if feedback:
                fed[entries] = z_hat.detach()
            return z_hat

        def objective(point: Point) -> Tensor:
            distance = ((point.x_cf - batch.x[rows[point.entries]]) / unit).abs().flatten(1).mean(1)
            pull = self.centroids_.pull(point.code, point.target)
            loss = self.lambda_distance * distance + self.lambda_centroid * pull
            if slopes != "none":
                weight = self.lambda_model * (2 ** (point.t / doubling) if doubling else 1)
                loss = loss - weight * target_value(point.score.log_softmax(1), point.target)
            trace.note(point, loss)
            return loss

        optimum = minimize(
            batch,
            rows,
            self.carrier_.start(len(rows)),
            decode,
            objective,
            Adam(self.lr),
            Stop(batch.confidence or 0.0, 1, 0.0, self._setting("max_iter")),
            code=code,
            start=base,
            slopes=slopes,
            difference=0.3 * float(self.latent_.spread.mean()),
        )
        end = optimum.code
        if mean or std:
            tried = (optimum.converged & batch.affords(rows)).nonzero().flatten()
            quiet = batch.ask(decode(still[tried], tried), rows[tried])
            good = tried[batch.accepts(quiet, rows[tried])]
            end[good] = still[good]
        if self._setting("shorten"):
            x_cf = shorten(batch, rows, decode, base, end)
        else:
            x_cf = decode(end, torch.arange(len(rows), device=rows.device))
        info = {
            "iterations": optimum.iterations,
            "converged": optimum.converged,
            "flipped_at_start": optimum.converged & (optimum.iterations == 1) & plain,
            "centroid": self.centroids_.nearest(optimum.code, batch.target[rows]),
            **trace.curves(len(rows)),
        }
        return x_cf, info

    def _slopes(self) -> Slopes:
        """How the objective looks at the model."""
        if self.mode == "predict_only" or (
            self.mode == "auto" and not self.classifier_.differentiable
        ):
            return "none"
        return "felt" if self.mode == "zeroth_order" else "best"
