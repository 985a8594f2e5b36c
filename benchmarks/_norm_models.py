"""Models of robust_norms.py and visual_cifar.py: given, fine-tuned for one norm and for several."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import contrafact as cf
from _common import Array
from _visual_models import (
    Images,
    SmallResNet,
    load_images,
    load_robust,
    make_convex_cnn,
    make_lenet,
)
from contrafact.models import Classifier
from contrafact.nn import RobustTrainer
from contrafact.nn.networks import seeded

NORMS = (1, 2, math.inf)
#: radii of training and of robust accuracy; l∞ as the given weights were trained
EPS = {
    "mnist": (10.0, 1.5, 0.1),
    "fashion_mnist": (10.0, 1.5, 0.1),
    "cifar10": (6.0, 0.5, 2 / 255),
}
#: images that judges are trained on; the other training images are for the models that are judged
N_ORACLE = 4000
#: options of fine-tuning; chosen on Fashion-MNIST, seed 0, with images of the judge
TUNING: dict[str, Any] = {
    "attack": "fast",
    "max_epochs": 10,
    "batch_size": 64,
    "learning_rate": 2e-3,
    "validation": 0.0,
}
#: CIFAR-10, not chosen: set once
TUNING_CIFAR = {**TUNING, "attack": "pgd", "steps": 4, "max_epochs": 3, "learning_rate": 1e-3}


class Zoo:
    """The models of one data set, trained once and kept as weights in a folder.

    Parameters
    ----------
    data : str
        Name of the data set.
    folder : Path
        Folder with images/ and weights/.
    cache : Path
        Where weights of models trained here are kept.
    """

    def __init__(self, data: str, folder: Path, cache: Path) -> None:
        self.data = data
        self.folder = folder
        self.cache = cache
        self.images: Images = load_images(data, folder)

    def rows(self, seed: int) -> tuple[Array, Array]:
        """Return the training images of the judge and those of the models.

        CIFAR-10 has one judge for all seeds, as it takes longest to train.
        """
        seed = 0 if self.data == "cifar10" else seed
        order = np.random.default_rng(seed).permutation(len(self.images.X))
        return order[:N_ORACLE], order[N_ORACLE:]

    def given(self) -> Classifier:
        """Return the given model, trained against l∞ attacks."""
        return load_robust(self.data, self.folder)

    def plain(self, seed: int) -> Classifier:
        """Return a model of the same architecture, trained without attacks."""
        return self._kept("plain", seed, lambda: self._network(seed), self._train_plainly)

    def tuned(self, seed: int, norms: tuple[float, ...]) -> Classifier:
        """Return the given model, trained for a few more epochs against some of NORMS."""

        def train(module: nn.Module, X: Array, y: Array, seed: int) -> None:
            eps = [EPS[self.data][NORMS.index(norm)] for norm in norms]
            options = TUNING_CIFAR if self.data == "cifar10" else TUNING
            RobustTrainer(norms=norms, eps=eps, random_state=seed, **options).fit(module, X, y)

        def start() -> nn.Module:
            return self.given().module  # type: ignore[attr-defined,no-any-return]

        name = "tuned_" + "_".join(f"{norm:g}" for norm in norms)
        return self._kept(name, seed, start, train)

    def l2_trained(self, seed: int) -> Classifier:
        """Return a model trained from scratch against l2 attacks."""

        def train(module: nn.Module, X: Array, y: Array, seed: int) -> None:
            options = {**TUNING, "max_epochs": 6}
            eps = EPS[self.data][NORMS.index(2)]
            RobustTrainer(eps=eps, random_state=seed, **options).fit(module, X, y)

        return self._kept("l2", seed, lambda: self._network(seed), train)

    def oracle(self, seed: int) -> Classifier:
        """Return an independent network of another architecture, trained on other images."""
        seed = 0 if self.data == "cifar10" else seed
        return self._kept(
            "oracle",
            100 + seed,
            lambda: make_judge(seed) if self.data == "cifar10" else make_lenet(100 + seed),
            self._train_oracle,
            self.rows(seed)[0],
        )

    def _network(self, seed: int) -> nn.Module:
        if self.data != "cifar10":
            return make_convex_cnn(seed)
        with seeded(seed):
            return SmallResNet()

    def _train_plainly(self, module: nn.Module, X: Array, y: Array, seed: int) -> None:
        cf.fit_classifier(
            module, X, y, validation=0.0, max_epochs=4, batch_size=64, random_state=seed
        )

    def _train_oracle(self, module: nn.Module, X: Array, y: Array, seed: int) -> None:
        epochs = 5
        if self.data == "cifar10":
            epochs = 12
            X = np.concatenate([X, X[..., ::-1]])
            y = np.concatenate([y, y])
        cf.fit_classifier(
            module, X, y, validation=0.0, max_epochs=epochs, batch_size=64, random_state=seed
        )

    def _kept(
        self,
        name: str,
        seed: int,
        start: Callable[[], nn.Module],
        train: Callable[[nn.Module, Array, Array, int], None],
        rows: Array | None = None,
    ) -> Classifier:
        """Read weights from the cache, or train the module and keep them."""
        path = self.cache / f"{self.data}_{name}_{seed}.pt"
        module = start()
        if path.exists():
            module.load_state_dict(torch.load(path, weights_only=True))
        else:
            rows = self.rows(seed)[1] if rows is None else rows
            train(module, self.images.X[rows], self.images.y[rows], seed)
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.save(module.state_dict(), path)
            print(f"trained {path.name}", flush=True)
        return cf.as_classifier(module.eval(), classes=range(10))


def make_judge(seed: int) -> nn.Module:
    """Return a network of another architecture for CIFAR-10, with pooling and batch norms."""

    def convolution(channels: int, width: int) -> list[nn.Module]:
        return [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]

    with seeded(100 + seed):
        return nn.Sequential(
            nn.AvgPool2d(2),
            *convolution(3, 24),
            *convolution(24, 32),
            nn.MaxPool2d(2),
            *convolution(32, 64),
            nn.MaxPool2d(2),
            nn.Dropout(0.3),
            nn.Flatten(),
            nn.Linear(64 * 16, 64),
            nn.ReLU(),
            nn.Linear(64, 10),
        )
