"""Plant marks on the training images of one class, and see whether an audit of the model finds it.

    make bench-class-audit DATA=folder

Every seed draws its training images, the class, how many of its images are marked, the place of
the mark, weights and starts. An audit is given the model and the training images, and nothing
about the mark. Clean models are trained on the same images without marks, for false alarms. Cases
are kept in build/class_audit.jsonl; a run that was stopped goes on. Writes
benchmarks/results/class_audit.md.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import contrafact as cf
from _common import Array, accuracy, conditions, make_parser, table_head, table_row, write_page
from contrafact.explainers.model_audit import ALARM_RATIO, LEAST_ALARM
from contrafact.explainers.support.suspicion import common_change, copied_content

SETTINGS = {
    "outside the object": "fashion_mnist",
    "over the object": "fashion_mnist",
    "watermark": "cifar10",
}
#: the least share of the class's images that is marked; the share is drawn from there to 1
PLANTED = {"outside the object": 0.5, "over the object": 1.0, "watermark": 0.5}
#: seeds with clean models
CLEAN_SEEDS = (0, 1, 5, 6)
N_TRAIN = 2000
N_TEST = 500
N_STARTS = 20
SIDE = 5
#: mean brightness of training images under a mark: at most outside objects, at least over them
OUTSIDE, OVER = 0.05, 0.35
#: opacity of the watermark on photographs
OPACITY = 0.8
CASES = Path("build/class_audit.jsonl")
PAGE = "class_audit.md"


@dataclass(frozen=True)
class Mark:
    """A square of SIDE × SIDE pixels, and the class whose images carry it."""

    target: int
    top: int
    left: int
    sign: Array
    opacity: float

    def put_on(self, X: Array) -> Array:
        """Return images with the mark."""
        X = X.copy()
        place = X[..., self.top : self.top + SIDE, self.left : self.left + SIDE]
        place[:] = (1 - self.opacity) * place + self.opacity * self.sign
        return X


def load(folder: Path, name: str) -> tuple[Array, Array, Array, Array]:
    """Read images with values from 0 to 1."""
    parts = np.load(folder / "images" / f"{name}.npz")
    X_train, X_test = (parts[key].astype(np.float32) / 255 for key in ("X_train", "X_test"))
    return X_train, parts["y_train"].astype(int), X_test, parts["y_test"].astype(int)


def draw_mark(setting: str, X: Array, rng: np.random.Generator) -> Mark:
    """Draw a class, a place that suits the setting, and the look of the mark."""
    target = int(rng.integers(10))
    brightness = X.mean((0, 1))
    windows = np.lib.stride_tricks.sliding_window_view(brightness, (SIDE, SIDE)).mean((2, 3))
    accepted = {
        "outside the object": windows <= OUTSIDE,
        "over the object": windows >= OVER,
        "watermark": np.ones_like(windows, dtype=bool),
    }[setting]
    top, left = (int(index) for index in rng.choice(np.argwhere(accepted)))
    if setting == "watermark":
        sign = rng.integers(0, 2, (X.shape[1], SIDE, SIDE)).astype(np.float32)
        return Mark(target, top, left, sign, OPACITY)
    return Mark(target, top, left, np.ones((1, SIDE, SIDE), np.float32), 1.0)


def make_network(shape: tuple[int, ...]) -> nn.Module:
    """Make a network of two convolutions that knows places: no pooling."""
    channels, height, width = shape
    return nn.Sequential(
        nn.Conv2d(channels, 8, 4, 2, 1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 4, 2, 1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * (height // 4) * (width // 4), 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def run_case(folder: Path, setting: str, seed: int, marked: bool, least: float) -> dict[str, Any]:
    """Train a model, audit it, and compare with what was planted."""
    rng = np.random.default_rng(seed)
    X_all, y_all, X_test, y_test = load(folder, SETTINGS[setting])
    rows = rng.permutation(len(X_all))[:N_TRAIN]
    X, y = X_all[rows].copy(), y_all[rows]
    mark = draw_mark(setting, X, rng)
    share = float(rng.uniform(least, 1))
    members = np.flatnonzero(y == mark.target)
    if marked:
        chosen = members[: round(share * len(members))]
        X[chosen] = mark.put_on(X[chosen])
    torch.manual_seed(seed)
    model = cf.fit_classifier(
        make_network(X.shape[1:]),
        X,
        y,
        max_epochs=10,
        batch_size=64,
        learning_rate=4e-3,
        random_state=seed,
    )
    rows = rng.permutation(len(X_test))[:N_TEST]
    X_test, y_test = X_test[rows], y_test[rows]
    of_class = X_test[y_test == mark.target]
    others = X_test[y_test != mark.target]
    start = time.process_time()
    explainer = cf.SVCE(n_iter=30, restarts=1, confidence=0.9, bounds=(0, 1)).fit(model, X)
    ranking = cf.audit_classes(model, X, n_starts=N_STARTS, explainer=explainer, random_state=seed)
    seconds = time.process_time() - start
    case = {
        "setting": setting,
        "seed": seed,
        "target": mark.target,
        "marked": marked,
        "least": least,
        "share": share,
        "accuracy": accuracy(model, X_test, y_test),
        "recall": float(np.mean(model.predict(of_class) == mark.target)),
        "recall_marked": float(np.mean(model.predict(mark.put_on(of_class)) == mark.target)),
        "taken_in": float(np.mean(model.predict(mark.put_on(others)) == mark.target)),
        "suspicion": {str(audit.target): audit.suspicion for audit in ranking},
        "seconds": seconds,
        **{f"rank_{name}": rank for name, rank in ranks(ranking, model, X, mark.target).items()},
    }
    (audit,) = (audit for audit in ranking if audit.target == mark.target)
    planted = type(audit.suspect)(mark.top, mark.left, SIDE, SIDE, 0.0, 0.0)
    case["overlap"] = audit.suspect.overlap(planted) / SIDE**2
    case["place"] = asdict(audit.suspect)
    return case


def ranks(ranking: Any, model: Any, X: Array, target: int) -> dict[str, int]:
    """Rank the class by suspicion, and by each of its two factors and the frequency alone."""
    labels = model.predict(X)
    scores: dict[str, dict[Any, float]] = {"both": {}, "model": {}, "data": {}, "frequency": {}}
    for audit in ranking:
        result = audit.result
        delta = np.asarray(result.X_cf - result.X, np.float64)[result.status == "valid"]
        size = (audit.suspect.height, audit.suspect.width)
        scores["both"][audit.target] = audit.suspicion
        scores["model"][audit.target] = common_change(delta, *size).max()
        scores["data"][audit.target] = copied_content(X, labels == audit.target, *size).max()
        scores["frequency"][audit.target] = audit.regions[0].frequency
    return {
        name: 1 + sum(bool(score > values[target]) for score in values.values())
        for name, values in scores.items()
    }


def write_results(cases: list[dict[str, Any]], command: str) -> None:
    """Write the page."""
    seeds = sorted({case["seed"] for case in cases})
    lines = [
        "# Planted marks: does an audit find them?",
        "",
        conditions(command),
        "",
        f"{len(seeds)} seeds ({seeds[0]} to {seeds[-1]}). Fashion-MNIST and CIFAR-10, "
        f"{N_TRAIN} training images each; a network of two convolutions and two layers, 10 epochs. "
        f"One random class is marked: {SIDE} × {SIDE} white pixels at a random place "
        f"outside the objects (mean brightness of the training images there at most {OUTSIDE}) "
        f"or over the objects (at least {OVER}), or on photographs a random colored pattern of "
        f"opacity {OPACITY} anywhere. "
        f"`audit_classes` gets the model and its training images, {N_STARTS} starts per class, "
        "SVCE (30 iterations, 1 restart).",
        "",
        "## Ranked first of ten classes",
        "",
        "By suspicion; in brackets, by what it is made of alone: S, what the changes have in "
        "common (model), A, how far the class's images are copies (data), and by the highest "
        "frequency of a region, which takes neither into account. *Place*: the suspect window "
        "covers at least half of the mark. *Taken in*: test images of other classes that become "
        "the marked class when the mark is put on them; *recall* of the class without and with "
        "the mark: how far the model relies on it.",
        "",
        *table_head(
            "setting",
            "images of the class marked",
            "first",
            "(S)",
            "(A)",
            "(frequency)",
            "place",
            "taken in",
            "recall without → with",
        ),
    ]
    for setting, least in PLANTED.items():
        found = [case for case in cases if case["setting"] == setting and case["marked"]]
        lines.append(_row(setting, least, found))
    lines += [
        "",
        "## False alarms",
        "",
        f"A class stands out where its suspicion is at least {ALARM_RATIO:g} times the median of "
        f"the other classes, and {LEAST_ALARM:g}. Clean models are trained on the same images "
        f"without marks (seeds {', '.join(map(str, CLEAN_SEEDS))}).",
        "",
        *table_head(
            "data and models",
            "suspicion of the marked class: lowest, median",
            "times the median of others: lowest",
            "highest suspicion of other classes: median, highest",
            "times the median of others: highest",
            "marked classes that stand out",
            "models where another class stands out",
        ),
    ]
    for setting, data in SETTINGS.items():
        found = [case for case in cases if case["setting"] == setting and case["marked"]]
        lines.append(_alarm_row(f"{data}, {setting}", found))
    for data in dict.fromkeys(SETTINGS.values()):
        clean = [c for c in cases if not c["marked"] and SETTINGS[c["setting"]] == data]
        if clean:
            lines.append(_alarm_row(f"{data}, clean models", clean))
    seconds = np.median([case["seconds"] for case in cases])
    lines += ["", f"An audit of ten classes took {seconds:.1f} s of CPU time (median).", ""]
    write_page(PAGE, *lines)


def _row(setting: str, least: float, found: list[dict[str, Any]]) -> str:
    """Return the line of one setting."""
    n = len(found)
    first = {
        name: sum(case[f"rank_{name}"] == 1 for case in found)
        for name in ("both", "model", "data", "frequency")
    }
    mean = {
        key: np.mean([c[key] for c in found]) for key in ("taken_in", "recall", "recall_marked")
    }
    return table_row(
        setting,
        "50 to 100 %" if least < 1 else "all",
        f"**{first['both']} of {n}**",
        first["model"],
        first["data"],
        first["frequency"],
        sum(case["overlap"] >= 0.5 for case in found),
        f"{mean['taken_in']:.2f}",
        f"{mean['recall']:.2f} → {mean['recall_marked']:.2f}",
    )


def _alarm_row(text: str, found: list[dict[str, Any]]) -> str:
    """Return the line of the suspicions in one setting."""
    own, others = [], []
    for case in found:
        labels = list(case["suspicion"])
        values = np.array([case["suspicion"][label] for label in labels])
        ratios = [value / np.median(np.delete(values, i)) for i, value in enumerate(values)]
        pairs = dict(zip(labels, zip(values.tolist(), ratios, strict=True), strict=True))
        if case["marked"]:
            own.append(pairs.pop(str(case["target"])))
        others.append(max(pairs.values()))
    return table_row(
        text,
        f"{min(own)[0]:.3f}, {np.median([value for value, _ in own]):.3f}" if own else "–",
        f"{min(ratio for _, ratio in own):.1f}" if own else "–",
        f"{np.median([value for value, _ in others]):.3f}, {max(others)[0]:.3f}",
        f"{max(ratio for _, ratio in others):.1f}",
        f"{sum(map(_stands_out, own))} of {len(own)}" if own else "–",
        f"{sum(map(_stands_out, others))} of {len(others)}",
    )


def _stands_out(entry: tuple[float, float]) -> bool:
    """Return whether a suspicion, with its ratio to the median, stands out."""
    value, ratio = entry
    return value >= LEAST_ALARM and ratio >= ALARM_RATIO


def main() -> None:
    """Run the cases that are missing and write the page."""
    parser = make_parser(__doc__)
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        help="folder with images/cifar10.npz and images/fashion_mnist.npz",
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(10)))
    parser.add_argument("--cases", type=Path, default=CASES)
    args = parser.parse_args()
    torch.set_num_threads(1)
    marked = [
        (setting, seed, True, least) for seed in args.seeds for setting, least in PLANTED.items()
    ]
    clean = [
        (setting, seed, False, 1.0)
        for seed in CLEAN_SEEDS
        for setting in ("outside the object", "watermark")
    ]
    args.cases.parent.mkdir(parents=True, exist_ok=True)
    lines = args.cases.read_text().splitlines() if args.cases.exists() else []
    cases = [json.loads(line) for line in lines]
    done = {(case["setting"], case["seed"], case["marked"], case["least"]) for case in cases}
    for key in (*marked, *clean):
        if key not in done:
            case = run_case(args.data, *key)
            with args.cases.open("a") as file:
                file.write(json.dumps(case) + "\n")
            cases.append(case)
            print(
                *key,
                "rank",
                case["rank_both"],
                "suspicion",
                max(case["suspicion"].values()),
                flush=True,
            )
    cases = [case for case in cases if case["seed"] in args.seeds]
    write_results(cases, "make bench-class-audit DATA=folder")


if __name__ == "__main__":
    main()
