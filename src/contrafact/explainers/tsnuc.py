"""TS-NUC: a small network per instance learns to move its code to the nearest unlike cluster."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from ..deprecation import renamed_parameters
from ..engine import Candidates, Tags, Tasks
from ..models.classifier import Array
from ..models.verdict import Verdict
from ..nn.autoencoders import Autoencoder
from ..search import Adam, Optimum, Point, Stop, minimize
from ..search.gradients import Decode, GradientKind
from ..validation import Boolean, Instance, Integer, Nothing, OneOf, Real
from .support.centroids import Centroids
from .support.code_network import CodeNetwork, MovingCodes
from .support.guided import FallbackExplainer
from .support.latent_space import LatentSpace, Trace, bring_nearer, shorten
from .support.option_rules import COUNT, RATE, STEPS, WEIGHT
from .support.tsnuc_presets import PRESETS

#: numbers of network weights searched at once; more tasks take turns, which changes no result
MAX_WEIGHTS = 2**25


class TSNUC(FallbackExplainer):
    """Move an instance's code toward the nearest unlike cluster with a network of its own.

        z = E(x),   ẑ = F(z) + noise,   x' = D(ẑ)
        minimize over the weights of F   λ₁ · (−log P(c | x')) + λ₂ · mean|x − x'| + λ₃ · ‖ẑ − μ_c‖

    E and D are an autoencoder, F a network of three layers that first learns to reproduce codes,
    μ_c the mean code of class c. Every instance has its own copy of F and stops when the model
    says c. With several centroids the pull is the soft minimum −β⁻¹ log Σ exp(−β/2 ‖ẑ − μ‖²) over
    those of the class.

    The search may end short of c, since a decoded centroid need not be in its class (`fit` warns
    then). Such instances take the line to their nearest unlike neighbor, reported in
    `info["fallback"]`, unless `fallback` is False.

    Parameters
    ----------
    mode : {"auto", "gradient", "predict_only", "zeroth_order"}, default="auto"
        "gradient": exact gradients through the model. "zeroth_order": finite differences in the
        code. "predict_only": λ₁ = 0, the model is only asked whether to stop. "auto": "gradient"
        where the model has gradients, else "predict_only".
    preset : {"library", "paper"}, default="library"
        Values of all parameters left at None: ours, or all of the paper's choices, whose 10,000
        steps need a budget of as many calls.
    autoencoder : Autoencoder, {"cnn", "lstm"} or None
        A trained one, or the kind to train at fit.
    max_epochs : int, default=500
        Largest number of epochs of that training.
    centroids : {"predictions", "labels", "prototypes"}, optional
        Means over the classes the model sees, over those of `y`, or prototypes that a GLVQ learns
        in the code to tell apart the classes the model sees.
    n_centroids : int, optional
        Clusters per class, at most.
    beta : float, default=1
        Sharpness of the soft minimum, per mean squared distance of a code to its centroid.
    lambda_model, lambda_distance, lambda_centroid : float, default=0.05, 0.01, 1
        λ₁, λ₂ (with x in scaled units) and λ₃.
    learning_rate : float, default=1e-3
        Adam's step on the weights of F.
    max_iter : int, optional
        Largest number of steps.
    noise_mean, noise_std : float, optional
        Of the noise added to ẑ.
    feedback : bool, optional
        Whether F is fed its own last ẑ instead of z.
    residual : bool, optional
        x' = x + D(ẑ) − D(F(z)), so that a code that has not moved is no change.
    nearer : int, optional
        Steps of a second search, from there on within c, for models with gradients and the first
        counterfactual of an instance: minimize rms(x' − x) − 0.1 log P(c | x') over ẑ; kept where
        it ends nearer. 0: none.
    shorten : bool, optional
        Go back along the line from F(z) to ẑ to the first point the model accepts.
    doubling : int, optional
        λ₁ doubles every so many steps, so that no instance rests at a centroid that the model does
        not accept; 0: never.
    denoise : bool, optional
        Whether an instance that changes class with noise is tried without.
    fallback : bool, optional
        Whether instances that do not reach c take the line to their nearest unlike neighbor.
    skip : bool, default=False
        F(z) = z + network(z), which begins as the identity and needs no training.

    References
    ----------
    Ghosh, Jain, Parida, Das: Nearest unlike cluster counterfactuals for time series. ICPR 2024.

    Examples
    --------
    >>> result = TSNUC(max_epochs=50).fit(model, X_train, y_train).explain(X_test[:8])
    >>> result.valid.mean()
    1.0
    """

    tags = Tags(modalities=("series", "image"))
    rules = {
        "mode": OneOf("auto", "gradient", "predict_only", "zeroth_order"),
        "preset": OneOf(*PRESETS),
        "autoencoder": Nothing() | OneOf("cnn", "lstm") | Instance(Autoencoder),
        "max_epochs": STEPS,
        "centroids": OneOf("predictions", "labels", "prototypes") | Nothing(),
        "n_centroids": Nothing() | COUNT,
        "beta": Real(at_least=1e-6, at_most=1e6),
        "lambda_model": WEIGHT,
        "lambda_distance": WEIGHT,
        "lambda_centroid": WEIGHT,
        "learning_rate": RATE,
        "max_iter": Nothing() | STEPS,
        "noise_mean": Nothing() | Real(at_least=-1e9, at_most=1e9),
        "noise_std": Nothing() | WEIGHT,
        "feedback": Nothing() | Boolean(),
        "residual": Nothing() | Boolean(),
        "nearer": Nothing() | Integer(at_least=0, at_most=1_000_000),
        "shorten": Nothing() | Boolean(),
        "doubling": Nothing() | Integer(at_least=0, at_most=1_000_000),
        "denoise": Nothing() | Boolean(),
        "fallback": Nothing() | Boolean(),
        "skip": Boolean(),
    }
    info_keys = {
        "iterations": "steps taken",
        "converged": "whether the model said c before the last step",
        "flipped_at_start": "whether reconstruction alone changed the class",
        "centroid": "number of the nearest centroid of c",
        "fallback": "whether the line to the nearest unlike neighbor was taken",
        "loss_curve": "loss at steps picked evenly from first to last",
        "path": "the code at these steps, on the plane `latent_.plane`",
    }

    @renamed_parameters(lr="learning_rate")
    def __init__(
        self,
        mode: Literal["auto", "gradient", "predict_only", "zeroth_order"] = "auto",
        preset: Literal["library", "paper"] = "library",
        autoencoder: Autoencoder | Literal["cnn", "lstm"] | None = None,
        max_epochs: int = 500,
        centroids: Literal["predictions", "labels", "prototypes"] | None = None,
        n_centroids: int | None = None,
        beta: float = 1.0,
        lambda_model: float = 0.05,
        lambda_distance: float = 0.01,
        lambda_centroid: float = 1.0,
        learning_rate: float = 1e-3,
        max_iter: int | None = None,
        noise_mean: float | None = None,
        noise_std: float | None = None,
        feedback: bool | None = None,
        residual: bool | None = None,
        nearer: int | None = None,
        shorten: bool | None = None,
        doubling: int | None = None,
        denoise: bool | None = None,
        fallback: bool | None = None,
        skip: bool = False,
    ) -> None:
        self.mode = mode
        self.preset = preset
        self.autoencoder = autoencoder
        self.max_epochs = max_epochs
        self.centroids = centroids
        self.n_centroids = n_centroids
        self.beta = beta
        self.lambda_model = lambda_model
        self.lambda_distance = lambda_distance
        self.lambda_centroid = lambda_centroid
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.noise_mean = noise_mean
        self.noise_std = noise_std
        self.feedback = feedback
        self.residual = residual
        self.nearer = nearer
        self.shorten = shorten
        self.doubling = doubling
        self.denoise = denoise
        self.fallback = fallback
        self.skip = skip

    @override
    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        quick = {"max_epochs": 2, "max_iter": 8, "learning_rate": 0.02, "nearer": 4}
        noisy = {"n_centroids": 2, "residual": False, "noise_std": 0.1}
        return [{**quick, "skip": True}, {**quick, "mode": "predict_only", **noisy}]

    def _setting(self, name: str) -> Any:
        """Return a parameter's own value, or the preset's where it is None."""
        value = getattr(self, name)
        return PRESETS[self.preset][name] if value is None else value

    # --- fitting

    @override
    def _fit(self, X: Tensor, y: Array | None) -> None:
        if self.mode == "gradient" and not self.classifier_.differentiable:
            raise ValueError(
                "mode='gradient' needs a model with gradients; this one has none. Use "
                "'predict_only' or 'zeroth_order'."
            )
        kind = self._setting("centroids")
        if kind == "labels" and y is None:
            raise ValueError("centroids='labels', also that of preset='paper', needs y.")
        super()._fit(X, y)
        column = self.guide_.candidate_class_
        if kind == "labels":
            classes = self.classifier_.classes.tolist()
            own = [classes.index(label) for label in np.asarray(y).tolist()]
            column = torch.tensor(own, device=X.device)
        self.latent_ = LatentSpace.fit(self._setting("autoencoder"), X, self.max_epochs)
        self.centroids_ = Centroids.fit(
            self.latent_.codes,
            column,
            self._setting("n_centroids"),
            self.beta,
            learned=kind == "prototypes",
        )
        self.network_ = CodeNetwork.fit(
            self.latent_.codes,
            self.max_epochs,
            self.skip,
        )
        self._check_centroids()

    def _check_centroids(self) -> None:
        """Warn where the decoded centroid of a class is not in the class."""
        decoded = self.latent_.decode(self.centroids_.place).to(self.guide_.reference_.dtype)
        label = self.classifier_.verdict(decoded).label
        owner = self.centroids_.owner
        columns = torch.unique(owner[label != owner]).tolist()
        if columns:
            classes = self.classifier_.classes.tolist()
            names = ", ".join(repr(classes[column]) for column in columns)
            warnings.warn(
                f"The model puts decoded centroids of {names} into other classes: the autoencoder "
                "or the mean does not keep what the model looks at. More centroids may help.",
                stacklevel=5,
            )

    @override
    def _default_target(self, x: Tensor, verdict: Verdict) -> Tensor:
        """Choose the class of the nearest unlike cluster."""
        distance = self.centroids_.distance(self.latent_.encode(x), verdict.score.shape[1])
        distance.scatter_(1, verdict.label[:, None], torch.inf)
        elsewhere = super()._default_target(x, verdict)
        return torch.where(
            distance.isfinite().any(1),
            distance.argmin(1),
            elsewhere,
        )

    # --- searching

    @override
    def _explain(self, tasks: Tasks) -> Candidates:
        instances_at_once = max(1, MAX_WEIGHTS // (tasks.k * self.network_.size))
        parts = tasks.split(tasks.k * instances_at_once)
        found = Candidates.concat([self._move_codes(part) for part in parts])
        x_cf = found.x
        fallback = torch.zeros_like(tasks.row, dtype=torch.bool)
        if self._setting("fallback"):
            x_cf, fallback = self._fall_back(tasks, x_cf)
        return tasks.candidates(x_cf, fallback=fallback, **found.info)

    def _move_codes(self, tasks: Tasks) -> Candidates:
        """Train one network per task."""
        z = self.latent_.encode(tasks.x)
        start = self.network_.start(len(tasks))
        base = self.network_(start, z)
        residual = self._setting("residual")
        tasks = self.latent_.attach_base(tasks, base, residual)
        fed = self.latent_.starts(tasks, z)
        moving = MovingCodes(
            self.network_,
            fed,
            self._setting("noise_mean"),
            self._setting("noise_std"),
            self._setting("feedback"),
        )
        trace = Trace(self.latent_.plane)

        def decode(tasks: Tasks, code: Tensor) -> Tensor:
            return self.latent_.candidates(tasks, code, residual)

        def loss(point: Point) -> Tensor:
            value = self._loss(point)
            trace.note(point, value)
            return value

        found = minimize(
            tasks,
            start,
            decode,
            loss,
            Adam(self.learning_rate),
            Stop(tasks.confidence or 0.0, 1, 0.0, self._setting("max_iter")),
            encode=moving.encode,
            start_code=base,
            gradients=self._gradients(),
            difference=0.3 * float(self.latent_.spread.mean()),
        )
        at_start = found.converged & (found.iterations == 1)
        untouched = (fed == z).all(1) & (not moving.has_noise)
        centroid = self.centroids_.nearest(found.code, tasks.target)
        end = self._without_noise(tasks, decode, found, moving)
        x_cf = self._place(tasks, decode, end)
        steps = self._setting("nearer")
        if steps and self._gradients() == "auto" and self.classifier_.differentiable:
            # All alternatives of an instance would end at the same place.
            first = found.reached & (tasks.rank == 0)
            trying = tasks.take(first)
            code = bring_nearer(trying, decode, end[first], self.latent_, steps)
            near = self._place(trying, decode, code)
            x_cf[first] = self.latent_.nearer(trying, near, x_cf[first])
        return tasks.candidates(
            x_cf,
            iterations=found.iterations,
            converged=found.converged,
            flipped_at_start=at_start & untouched,
            centroid=centroid,
            **trace.curves(len(tasks)),
        )

    def _place(self, tasks: Tasks, decode: Decode, code: Tensor) -> Tensor:
        """Return the candidates of codes, or the first ones accepted on the way to them."""
        return shorten(tasks, decode, code) if self._setting("shorten") else decode(tasks, code)

    def _loss(self, point: Point) -> Tensor:
        """λ₁ · (−log P(c | x')) + λ₂ · mean|x − x'| + λ₃ · ‖ẑ − μ_c‖."""
        unit = self.latent_.unit.to(point.x_cf.dtype)
        distance = ((point.x_cf - point.tasks.x) / unit).abs().flatten(1).mean(1)
        pull = self.centroids_.pull(point.code, point.tasks.target)
        loss = self.lambda_distance * distance + self.lambda_centroid * pull
        if self._gradients() == "none":
            return loss
        doubling = self._setting("doubling")
        growth = 2 ** (point.t / doubling) if doubling else 1
        return loss - self.lambda_model * growth * point.log_p_target

    def _without_noise(
        self,
        tasks: Tasks,
        decode: Decode,
        found: Optimum,
        moving: MovingCodes,
    ) -> Tensor:
        """Return the codes found, without their noise where the model accepts that too."""
        end = found.code
        if not (moving.has_noise and self._setting("denoise")):
            return end
        tried = found.converged & tasks.affords()
        trying = tasks.take(tried)
        noise_free = moving.noise_free[tried]
        trial = decode(trying, noise_free)
        accepted = trying.accepts(trial, trying.ask(trial))
        good = tried.clone()
        good[tried] = accepted
        end[good] = noise_free[accepted]
        return end

    def _gradients(self) -> GradientKind:
        """Return how the loss looks at the model."""
        if self.mode == "zeroth_order":
            return "finite_difference"
        without = self.mode == "auto" and not self.classifier_.differentiable
        return "none" if without or self.mode == "predict_only" else "auto"
