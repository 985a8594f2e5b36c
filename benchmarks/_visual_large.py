"""Time and memory of SVCE on images of 224 x 224 x 3, as multiples of bare model passes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

import contrafact as cf
from _common import Array, table_head, table_row, timed
from _prototypes_common import peak_memory
from _visual_models import SmallResNet
from contrafact.nn.networks import seeded

N_IMAGES = 16
SIDE = 224
N_ITER = 10
ROUNDS = 2
MOST_MEMORY = 1.5


class Setting(NamedTuple):
    """An optimizer, a norm, a radius that the search fills, and the bar for its time."""

    optimizer: str
    norm: float
    radius: float
    bar: float


SETTINGS = [
    Setting("afw", 1.5, 50.0, 1.4),
    Setting("afw", 2.0, 15.0, 1.4),
    Setting("apgd", 2.0, 15.0, 1.4),
    Setting("afw", 1.0, 300.0, 1.8),
    Setting("apgd", 1.0, 300.0, 1.8),
]


def make_network() -> nn.Module:
    """Return a small residual network for images of any size, without training."""
    with seeded(0):
        network = SmallResNet()
    network.layer2.append(nn.AdaptiveAvgPool2d(4))
    return network.eval()


def make_images() -> Array:
    """Return random images."""
    return np.random.default_rng(0).random((N_IMAGES, 3, SIDE, SIDE)).astype(np.float32)


def bare_passes(network: nn.Module, images: Array, count: int) -> None:
    """Compute the gradient of log P of a class as often as asked."""
    rows = torch.as_tensor(images)
    for _ in range(count):
        at = rows.clone().requires_grad_()
        torch.autograd.grad(network(at).log_softmax(1)[:, 0].sum(), at)


def make_explainer(setting: Setting, network: nn.Module, images: Array, restarts: int = 1) -> Any:
    """Return SVCE, fitted."""
    explainer = cf.SVCE(
        norm=setting.norm,
        radius=setting.radius,
        optimizer=setting.optimizer,  # type: ignore[arg-type]
        restarts=restarts,
        n_iter=N_ITER,
        bounds=(0, 1),
        levels=None,
    )
    return explainer.fit(cf.as_classifier(network, classes=range(10)), images)


def time_ratio(setting: Setting) -> float:
    """Return processor time of SVCE / that of as many bare passes, best of some rounds each."""
    network = make_network()
    images = make_images()
    explainer = make_explainer(setting, network, images)
    passes = int(explainer.explain(images).calls.max())
    times = np.array(
        [
            [
                timed(lambda: explainer.explain(images))[1][0],
                timed(lambda: bare_passes(network, images, passes))[1][0],
            ]
            for _ in range(ROUNDS)
        ]
    )
    ours, bare = times.min(0)
    return float(ours / bare)


def measure_memory(which: str, restarts: str) -> None:
    """Print the peak of memory in MB above what the process had before, for this process."""
    torch.set_num_threads(1)
    network = make_network()
    images = make_images()
    if which == "bare":
        before = peak_memory()
        bare_passes(network, images, 3)
    else:
        explainer = make_explainer(SETTINGS[int(which)], network, images, int(restarts))
        before = peak_memory()
        explainer.explain(images)
    print(peak_memory() - before)


def memory(which: str, restarts: str = "1") -> float:
    """Measure in a process of its own."""
    command = [sys.executable, __file__, which, restarts]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def large() -> list[str]:
    """Compare time and memory with bare passes."""
    lines = [
        "# SVCE on large images: time and memory beside bare passes",
        "",
        f"{N_IMAGES} random images of {SIDE} x {SIDE} x 3, a residual network of 9 layers "
        "(0.14 GMAC per image, a thirteenth of ResNet-18; not trained). *time*: processor time of "
        "`explain` / that of as many bare forward and backward passes on the same batch as SVCE "
        f"asked for, {N_ITER} steps a run, the best of {ROUNDS} each, in turns. *memory*: peak "
        "above what the process had before / that of bare passes, each in a process of its own. "
        "Other networks were not measured.",
        "",
        *table_head("optimizer", "p", "time", "bar", "", "memory", "with 5 runs", "bar", ""),
    ]
    bare = memory("bare")
    for i, setting in enumerate(SETTINGS):
        ratio = time_ratio(setting)
        share = memory(str(i)) / bare
        lines.append(
            table_row(
                setting.optimizer,
                f"{setting.norm:g}",
                f"**{ratio:.2f}**",
                setting.bar,
                "kept" if ratio <= setting.bar else "missed",
                f"**{share:.2f}**",
                f"{memory(str(i), '5') / bare:.2f}",
                MOST_MEMORY,
                "kept" if share <= MOST_MEMORY else "missed",
            )
        )
        print(lines[-1], flush=True)
    return [*lines, "", f"Bare passes: {bare:.0f} MB above the process before.", ""]


if __name__ == "__main__":
    measure_memory(*sys.argv[1:])
