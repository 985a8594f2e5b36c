"""Measure how many counterfactuals of images are still valid after saving them as 8-bit pictures.

    make bench-levels DATA=folder     MNIST and CIFAR-10: images/*.npz, weights/*.pt in the folder

Every image is explained twice, with levels=None and with levels=256, saved as uint8, read again and
classified. Writes benchmarks/results/visual_levels.md, line by line; lines that are there are kept,
so that a killed run goes on where it was. Delete the page to measure anew.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import contrafact as cf
from _common import RESULTS, Array, SectionedPage, make_parser, random_rows
from _visual_models import Images, load_images, load_robust, train_robust_lenet
from contrafact.models import Classifier

N_IMAGES = 32
N_REFERENCE = 1000
TITLE = "SVCE: valid after saving as 8-bit pictures"
SETTINGS: dict[str, dict[str, Any]] = {
    "smallest, p = 1.5": {"norm": 1.5},
    "smallest, p = 2": {"norm": 2},
    "smallest, p = 1": {"norm": 1},
    "P ≥ 0.9, p = 1.5": {"norm": 1.5, "confidence": 0.9},
    "radius 3, p = 1.5": {"norm": 1.5, "radius": 3.0},
}
MODELS: dict[str, tuple[str, Callable[[Images, Path], Classifier]]] = {
    "CIFAR-10, residual": ("cifar10", lambda images, folder: load_robust("cifar10", folder)),
    "MNIST, convolutions": ("mnist", lambda images, folder: load_robust("mnist", folder)),
    "MNIST, LeNet": ("mnist", lambda images, folder: train_robust_lenet(images)),
}


def saved(X: Array) -> Array:
    """Return images as they are read again from pictures of 8 bits."""
    pixels = np.round(X * 255).clip(0, 255).astype(np.uint8)
    return pixels.astype(np.float32) / 255


def still_valid(model: Classifier, result: cf.Counterfactuals) -> Array:
    """Return which counterfactuals the model puts in their class after saving."""
    return np.asarray(model.predict(saved(result.X_cf)) == result.target)


def measure(page: SectionedPage, name: str, folder: Path, known: list[str]) -> None:
    """Add a line for each setting."""
    data, make = MODELS[name]
    old = {setting: _known_line(known, name, setting) for setting in SETTINGS}
    if not all(old.values()):
        images = load_images(data, folder)
        model = make(images, folder)
        X = random_rows(images.X_test, N_IMAGES)
    for setting, options in SETTINGS.items():
        if old[setting]:
            page.add(old[setting])
            continue
        results = [
            cf.SVCE(**options, bounds=(0, 1), levels=levels)
            .fit(model, images.X[:N_REFERENCE], images.y[:N_REFERENCE])
            .explain(X)
            for levels in (None, "auto")
        ]
        plain, rounded = results
        valid = plain.valid
        before = plain.info["norm_used"][valid]
        after = rounded.info["norm_used"][valid]
        growth = after / before
        beyond = after.max() / options["radius"] if "radius" in options else None
        page.row(
            name,
            setting,
            f"{valid.mean():.2f}",
            f"{still_valid(model, plain)[valid].mean():.2f}",
            f"{still_valid(model, rounded)[valid].mean():.2f}",
            np.array_equal(saved(rounded.X_cf), rounded.X_cf),
            f"{np.median(before):.3f}",
            f"{np.median(growth):.3f}",
            f"{growth.max():.3f} (of {before[growth.argmax()]:.3f})",
            "" if beyond is None else f"{beyond:.4f}",
            f"{(rounded.calls - plain.calls).mean():.1f} of {plain.calls.mean():.0f}",
        )


def _known_line(lines: list[str], name: str, setting: str) -> str:
    """Return the line of a model and a setting; empty where it has not been measured."""
    start = f"| {name} | {setting} | "
    return next((line for line in lines if line.startswith(start)), "")


def main() -> None:
    """Measure all models and settings."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with images and weights")
    folder = parser.parse_args().data
    torch.set_num_threads(1)
    page = SectionedPage(RESULTS / "visual_levels.md", [TITLE])
    known = page.sections.get(TITLE, [])
    page.begin(
        TITLE,
        "python benchmarks/visual_levels.py --data folder",
        ("contrafact", "torch"),
        "1 thread",
    )
    page.add(
        f"{N_IMAGES} random test images for each line, runner-up class, `bounds=(0, 1)`, all other "
        f"options at their defaults, {N_REFERENCE} reference images; robust models. Saved: each "
        'value as uint8, read again by dividing by 255. "valid" is of all images, all other '
        "columns of those that are valid with `levels=None`. Growth: norm with 256 levels over "
        "norm without. Norm / radius: the largest, with 256 levels.",
        "",
    )
    page.table(
        "model",
        "answer",
        "valid",
        "saved: `levels=None`",
        "saved: 256 levels",
        "all values on the grid",
        "median norm",
        "growth: median",
        "largest",
        "norm / radius",
        "more model rows",
    )
    for name in MODELS:
        measure(page, name, folder, known)


if __name__ == "__main__":
    main()
