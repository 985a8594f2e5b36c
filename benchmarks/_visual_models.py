"""Images and models of visual.py: a standard and a robust network, and an independent judge."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

import contrafact as cf
from _common import Array, accuracy
from contrafact.models import Classifier
from contrafact.nn import RobustTrainer
from contrafact.nn.networks import seeded

N_DIGITS_TEST = 400
N_TRAIN = 4000
N_ORACLE = 5000
WEIGHTS = {
    "mnist": "mnist_convex_linf0.1.pt",
    "fashion_mnist": "fashion_convex_linf0.1.pt",
    "cifar10": "cifar_resnet4b_adv.pt",
}


class Images(NamedTuple):
    """Training and test images, (n, 1, height, width) in [0, 1], and their labels."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array


@dataclass
class Models:
    """The two models that are compared, the oracle that judges them, and their images."""

    standard: Classifier
    robust: Classifier
    oracle: Classifier
    images: Images

    @property
    def compared(self) -> dict[str, Classifier]:
        """The models that are explained, by name."""
        return {"standard": self.standard, "robust": self.robust}

    def accuracies(self) -> dict[str, float]:
        """Return the test accuracy of all three."""
        models = {**self.compared, "oracle": self.oracle}
        _, _, X_test, y_test = self.images
        return {name: accuracy(model, X_test, y_test) for name, model in models.items()}


# --- images --------------------------------------------------------------------------------------


def load_images(name: str, folder: Path) -> Images:
    """Read images/`name`.npz."""
    with np.load(folder / "images" / f"{name}.npz") as file:
        return Images(
            file["X_train"].astype(np.float32) / 255,
            file["y_train"].astype(int),
            file["X_test"].astype(np.float32) / 255,
            file["y_test"].astype(int),
        )


def split_digits(seed: int) -> Images:
    """Return scikit-learn's digits with test images drawn by the seed."""
    digits = load_digits()
    X = (digits.images[:, None] / 16).astype(np.float32)
    y = digits.target
    rows = np.random.default_rng(seed).permutation(len(X))
    test = rows[:N_DIGITS_TEST]
    train = rows[N_DIGITS_TEST:]
    return Images(X[train], y[train], X[test], y[test])


# --- networks ------------------------------------------------------------------------------------


def make_convex_cnn(seed: int = 0) -> nn.Sequential:
    """Return a network of the architecture of the robust weights."""
    with seeded(seed):
        return nn.Sequential(
            nn.Conv2d(1, 16, 4, 2, 1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 4, 2, 1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(1568, 100),
            nn.ReLU(),
            nn.Linear(100, 10),
        )


def make_lenet(seed: int) -> nn.Sequential:
    """Return a network of another architecture, for the oracle."""
    with seeded(seed):
        return nn.Sequential(
            nn.Conv2d(1, 8, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 24, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(24 * 49, 64),
            nn.ReLU(),
            nn.Linear(64, 10),
        )


class Block(nn.Module):
    """A residual block of two convolutions without normalization."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1)
        self.shortcut = nn.Sequential()
        if stride != 1 or channels != width:
            self.shortcut.append(nn.Conv2d(channels, width, 1, stride))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute the features."""
        inner = self.conv2(torch.relu(self.conv1(x)))
        return torch.relu(inner + self.shortcut(x))


class SmallResNet(nn.Module):
    """The network of the robust weights of CIFAR-10; normalizes its input itself."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 2, 1)
        self.layer1 = nn.Sequential(Block(16, 32, 2), Block(32, 32, 1))
        self.layer2 = nn.Sequential(Block(32, 32, 2), Block(32, 32, 1))
        self.linear1 = nn.Linear(512, 100)
        self.linear2 = nn.Linear(100, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute the scores."""
        mean = x.new_tensor([0.4914, 0.4822, 0.4465])[:, None, None]
        deviation = x.new_tensor([0.2471, 0.2435, 0.2616])[:, None, None]
        x = torch.relu(self.conv1((x - mean) / deviation))
        x = self.layer2(self.layer1(x)).flatten(1)
        scores: torch.Tensor = self.linear2(torch.relu(self.linear1(x)))
        return scores


def load_robust(name: str, folder: Path) -> Classifier:
    """Read the robust weights from weights/."""
    module = SmallResNet() if name == "cifar10" else make_convex_cnn()
    module.load_state_dict(torch.load(folder / "weights" / WEIGHTS[name], weights_only=True))
    return cf.as_classifier(module, classes=range(10))


# --- training ------------------------------------------------------------------------------------


def train_robust_digits(images: Images, seed: int) -> Classifier:
    """Train a robust network on digits."""
    trainer = RobustTrainer(attack="fast", eps=0.5, max_epochs=40, random_state=seed)
    return trainer.fit("smallcnn", images.X, images.y).classifier_


def train_robust_lenet(images: Images) -> Classifier:
    """Train a LeNet on a part of MNIST against l∞ attacks of 0.2."""
    rows = np.random.default_rng(0).permutation(len(images.X))[:N_TRAIN]
    trainer = RobustTrainer(
        attack="pgd",
        norm=np.inf,
        eps=0.2,
        steps=4,
        max_epochs=10,
        learning_rate=2e-3,
        validation=0.0,
        batch_size=64,
    )
    return trainer.fit(make_lenet(0), images.X[rows], images.y[rows]).classifier_


def make_models(name: str, seed: int, folder: Path | None) -> Models:
    """Train or load the models of a data set; digits need no folder."""
    if name == "digits":
        return train_digits_models(seed)
    assert folder is not None
    return train_mnist_models(name, seed, folder)


def train_digits_models(seed: int) -> Models:
    """Train all three models on digits."""
    images = split_digits(seed)
    X, y, _, _ = images
    same: dict[str, Any] = {"batch_size": 64, "learning_rate": 5e-3}
    standard = cf.fit_classifier("smallcnn", X, y, max_epochs=40, random_state=seed, **same)
    oracle = cf.fit_classifier("resnet8", X, y, max_epochs=12, random_state=100 + seed, **same)
    return Models(standard, train_robust_digits(images, seed), oracle, images)


def train_mnist_models(name: str, seed: int, folder: Path) -> Models:
    """Train the standard model and the oracle; load or train the robust model.

    A name such as "fashion_mnist, l2-trained" asks for a robust model trained here.
    """
    data, _, own_training = name.partition(", ")
    X, y, X_test, y_test = load_images(data, folder)
    rows = np.random.default_rng(seed).permutation(len(X))
    own = rows[:N_TRAIN]
    other = rows[N_TRAIN : N_TRAIN + N_ORACLE]
    same: dict[str, Any] = {"validation": 0.0, "batch_size": 64, "random_state": seed}
    standard = cf.fit_classifier(make_convex_cnn(seed), X[own], y[own], max_epochs=6, **same)
    oracle = cf.fit_classifier(make_lenet(100 + seed), X[other], y[other], max_epochs=5, **same)
    robust: Classifier
    if own_training:
        trainer = RobustTrainer(attack="fast", eps=1.5, max_epochs=12, learning_rate=2e-3, **same)
        robust = trainer.fit(make_convex_cnn(seed), X[own], y[own]).classifier_
    else:
        robust = load_robust(data, folder)
    return Models(standard, robust, oracle, Images(X[own], y[own], X_test, y_test))
