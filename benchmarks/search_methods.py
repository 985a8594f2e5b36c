"""NativeGuide, CoMTE, SETS, TSEvo and the floors: beside tscf-eval, a grid, query accounting. One command:

    make bench-search

The peer lives in a virtual environment of its own (benchmarks/.venv) and is never a dependency; both sides
run in one process, on one thread, on the same model and rows, in turns. Times are told as ratios within this
run. Every line is written to benchmarks/results/search_methods.md as soon as it is known; `--part` renews one
section of that page and leaves the others.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = os.environ["NUMBA_NUM_THREADS"] = "1"  # read by imports

import argparse
import importlib.metadata
import platform
import random
import re
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from aeon.classification.convolution_based import RocketClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.engine import Batch
from contrafact.models.classifier import Array

RESULT = Path(__file__).parent / "results" / "search_methods.md"
DATASETS = ("GunPoint", "ArrowHead", "BasicMotions", "ItalyPowerDemand")
#: instances also given to contrafact one by one
SINGLE = 5
#: a value counts as changed when it moved by more than this
TOLERANCE = 1e-8


def flat(X: Array) -> Array:
    return X.reshape(len(X), -1)


MODELS: dict[str, Callable[[cf.Dataset], Any]] = {
    "logistic regression": lambda d: LogisticRegression(max_iter=1000).fit(
        flat(d.X_train), d.y_train
    ),
    "random forest": lambda d: RandomForestClassifier(100, random_state=0).fit(
        flat(d.X_train), d.y_train
    ),
    "ROCKET(500)": lambda d: RocketClassifier(n_kernels=500, random_state=0).fit(
        d.X_train, d.y_train
    ),
    "FCN": lambda d: cf.fit_classifier("fcn", d.X_train, d.y_train, max_epochs=100, random_state=0),
}
METHODS: dict[str, Callable[[], cf.Explainer]] = {
    "NativeGuide window": cf.NativeGuide,
    "NativeGuide blend": partial(cf.NativeGuide, mode="blend"),
    "NativeGuide cam": partial(cf.NativeGuide, mode="cam"),
    "CoMTE greedy": cf.CoMTE,
    "CoMTE hill climbing": partial(cf.CoMTE, method="hill_climbing"),
    "SETS": cf.SETS,
    "TSEvo": cf.TSEvo,
    "NearestUnlike": cf.NearestUnlike,
    "LineSearch": cf.LineSearch,
    "RandomMask": cf.RandomMask,
    "RandomTarget": cf.RandomTarget,
}
#: these have a valid answer in hand as soon as there is a guide
GUIDED = tuple(name for name in METHODS if name not in ("SETS", "TSEvo"))


class Page:
    """The results: sections that are replaced one by one, and written line by line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        blocks = [block.partition("\n") for block in re.split(r"(?m)^# ", text)[1:]]
        self.sections = {title: body.strip().splitlines() for title, _, body in blocks}

    def begin(self, part: str) -> None:
        self.title = PARTS[part][0]
        packages = (
            "contrafact",
            "tscf-eval",
            "deap",
            "tslearn",
            "aeon",
            "torch",
            "scikit-learn",
            "numpy",
        )
        versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in packages)
        self.sections[self.title] = []
        self.add(
            f"`python benchmarks/search_methods.py --part {part}`, {date.today()}, {versions}, Python "
            f"{platform.python_version()}; one thread, load average {os.getloadavg()[0]:.1f} on "
            f"{os.cpu_count()} cores at the start.",
            "",
        )

    def add(self, *lines: str) -> None:
        print("\n".join(lines), flush=True)
        self.sections[self.title] += lines
        known = [title for title, _ in PARTS.values() if title in self.sections]
        text = "\n\n".join("\n".join([f"# {title}", "", *self.sections[title]]) for title in known)
        self.path.write_text(text + "\n", encoding="utf-8")

    def table(self, *columns: str) -> None:
        self.add(f"| {' | '.join(columns)} |", "|---" * len(columns) + "|")

    def row(self, *cells: Any) -> None:
        self.add(f"| {' | '.join(str(cell) for cell in cells)} |")


def sample(data: cf.Dataset, n: int) -> Array:
    """Random test rows: archive files are often sorted by class."""
    return data.X_test[np.random.default_rng(0).permutation(len(data.X_test))[:n]]


def moved(X: Array, X_cf: Array) -> Array:
    return np.abs(X_cf - X) > TOLERANCE


def segments(changed: Array) -> Array:
    """Unbroken stretches of changed values per row, summed over the channels."""
    before = np.pad(changed, ((0, 0), (0, 0), (1, 0)))[:, :, :-1]
    return (changed & ~before).sum((1, 2))


# --- beside the peer ----------------------------------------------------------------------------------------


class Flat:
    """A model of flat rows for series of several channels, with the attributes tscf-eval asks for."""

    def __init__(self, model: Any) -> None:
        self.model, self.classes_ = model, model.classes_
        self.decision_function = lambda X: model.decision_function(flat(X))
        self.predict_proba = lambda X: model.predict_proba(flat(X))


def both_clocks() -> Array:
    return np.array([time.process_time(), time.perf_counter()])


def timed(run: Callable[[], Any]) -> tuple[Any, Array]:
    """The outcome, with processor and wall seconds."""
    start = both_clocks()
    outcome = run()
    return outcome, both_clocks() - start


def peer_answers(make: Callable[[], Any], X: Array) -> tuple[Array, Array, float]:
    """Counterfactuals of tscf-eval row by row, seconds per row, model rows per row."""
    random.seed(0)  # its selection draws from the global generator
    explainer = make()
    ask, rows = explainer.predict_proba, []
    explainer.predict_proba = lambda Z: (rows.append(len(Z)), ask(Z))[1]
    answers, seconds = timed(lambda: [explainer.explain(x)[0] for x in X])
    return np.array(answers).reshape(X.shape), seconds / len(X), sum(rows) / len(X)


def race(
    page: Page,
    name: str,
    method: cf.Explainer,
    make_peer: Callable[[], Any],
    model: Any,
    data: cf.Dataset,
    size: tuple[int, int, int],
    bar: float | None = None,
) -> str:
    """Both sides in turns, the least of `repeats`. Returns the comparison on the rows the peer solved."""
    n, n_peer, repeats = size
    X = sample(data, n)
    as_peer = (
        X[:n_peer, 0] if X.shape[1] == 1 and not isinstance(model, RocketClassifier) else X[:n_peer]
    )
    method.fit(model, data.X_train, data.y_train, modality="series")
    method.explain(X[:2])  # what is compiled on first use is compiled now
    peer_answers(make_peer, as_peer[:1])
    times: dict[str, list[Array]] = {"batch": [], "one by one": [], "peer": []}
    for _ in range(repeats):
        result, seconds = timed(lambda: method.explain(X))
        times["batch"].append(seconds / n)
        answers, seconds, peer_rows = peer_answers(make_peer, as_peer)
        times["peer"].append(seconds)
        _, seconds = timed(lambda: [method.explain(x[None]) for x in X[:SINGLE]])
        times["one by one"].append(seconds / SINGLE)
    batch, single, peer = (np.min(times[side], axis=0) for side in ("batch", "one by one", "peer"))

    read = cf.as_classifier(model).predict
    answers = answers.reshape(X[:n_peer].shape)
    solved = read(answers) != read(X[:n_peer])
    theirs, ours = (moved(X[:n_peer], Z).mean((1, 2)) for Z in (answers, result.X_cf[:n_peer]))
    ratio = peer / batch
    verdict = "" if bar is None else f"≥ {bar:g}: {'met' if ratio.min() >= bar else 'NOT met'}"
    changed = moved(X, result.X_cf).mean((1, 2))[result.valid].mean()
    page.row(
        name, f"contrafact, {n} in one batch", *told(batch), f"{result.valid.mean():.2f}", f"{changed:.3f}",
        f"{result.calls.mean():.0f}", f"**{ratio[0]:.1f}** / {ratio[1]:.1f}", verdict,
    )  # fmt: skip
    page.row(
        "", f"contrafact, {SINGLE} one by one", *told(single), "", "", "",
        f"{peer[0] / single[0]:.1f} / {peer[1] / single[1]:.1f}", "",
    )  # fmt: skip
    page.row(
        "", f"tscf-eval, {n_peer} one by one", *told(peer), f"{solved.mean():.2f}",
        f"{theirs[solved].mean():.3f}", f"{peer_rows:.0f}", "", "",
    )  # fmt: skip
    good = result.valid[:n_peer]
    fewer, more = (ours < theirs)[solved & good].sum(), (ours > theirs)[solved & good].sum()
    return (
        f"- {name}: the peer solved {solved.sum()} of {n_peer} rows, contrafact {good.sum()}; of the peer's "
        f"{solved.sum()} it solved {(solved & good).sum()}. There the changed fraction is "
        f"{ours[solved & good].mean():.3f} against {theirs[solved & good].mean():.3f}: smaller in {fewer} "
        f"rows, larger in {more}."
    )


def told(seconds: Array) -> tuple[str, str]:
    return f"{1000 * seconds[0]:.2f}", f"{1000 * seconds[1]:.2f}"


RACE = (
    "method", "side", "CPU ms per row", "wall ms per row", "valid", "changed", "model rows per row",
    "CPU / wall ratio", "bar",
)  # fmt: skip


def speed(page: Page, args: argparse.Namespace, study: str) -> None:
    """`study`: logistic, rocket or channels."""
    from tscf_eval.counterfactuals import COMTE, TSEvo, native_guide

    data = cf.load_dataset("BasicMotions" if study == "channels" else "GunPoint")
    model_name = "ROCKET(500)" if study == "rocket" else "logistic regression"
    model = MODELS[model_name](data)
    n = min(args.rows or (50 if study == "rocket" else 100), len(data.X_test))
    n_peer = min(args.peer_rows or (10 if study == "rocket" else 12), n)
    few, many = (n, n_peer, args.repeats), (n, min(20, n), max(5, args.repeats))
    accuracy = np.mean(cf.as_classifier(model).predict(data.X_test) == data.y_test)
    page.add(
        f"{data.name}, {model_name} (test accuracy {accuracy:.2f}). Both sides in turns, the least of "
        f"{args.repeats} repeats{'' if study == 'rocket' else f' ({many[2]} for windows and CoMTE)'}; ratio: "
        "tscf-eval's time over ours. Changed: share of values that moved by more than "
        f"{TOLERANCE:g}, over the valid rows. Model rows of contrafact include the instance and the answer.",
        "",
    )
    peer_model = Flat(model) if study == "channels" else model
    reference = (flat(data.X_train) if study == "logistic" else data.X_train), data.y_train

    def guided(tslearn: bool = True, **options: Any) -> Any:
        native_guide.TSLEARN_AVAILABLE = tslearn
        return native_guide.NativeGuide(model, reference, **options)

    runs: list[tuple[str, cf.Explainer, Callable[[], Any], tuple[int, int, int], float | None]] = []
    for metric in ("euclidean", "dtw"):
        if study == "logistic":
            for mode, method, size, bar in (
                ("window", "ng", many, 3.0),
                ("blend", "blend", few, None),
            ):
                theirs = partial(guided, method=method, distance=metric)
                ours = cf.NativeGuide(mode, metric=metric)
                runs.append((f"NativeGuide {mode}, {metric}", ours, theirs, size, bar))
        if study != "rocket":
            theirs = partial(COMTE, peer_model, reference, distance=metric)
            runs.append(
                (f"CoMTE, {metric}", cf.CoMTE(n_distractors=10, metric=metric), theirs, many, None)
            )
    if study == "logistic":
        theirs = partial(guided, method="ng", distance="euclidean", tslearn=False)
        runs.append(
            ("NativeGuide window, peer without tslearn", cf.NativeGuide(), theirs, many, 3.0)
        )
    if study != "channels":
        theirs = partial(TSEvo, model, reference)
        runs.append(("TSEvo", cf.TSEvo(population=52, generations=100), theirs, few, 20.0))
    if study == "logistic":
        ours = cf.TSEvo(population=52, generations=100, thrifty=False)
        runs.append(("TSEvo, thrifty=False", ours, theirs, (n, min(n_peer, 3), 1), None))
    page.table(*RACE)
    notes = [
        race(page, name, ours, theirs, model, data, size, bar)
        for name, ours, theirs, size, bar in runs
    ]
    page.add("", "On the same rows:", "", *notes, "", REMARKS[study])


EVOLUTION = (
    "TSEvo: the peer's defaults, population 50, which it rounds up to 52, and 100 generations; ours the "
    "same. Ours asks the model only about offspring whose answer can matter."
)
REMARKS = {
    "logistic": "The peer's NativeGuide window is its method `ng`. Its default neighbor is by dtw, ours by "
    "Euclidean distance; both are shown, the same on both sides. Its blend raises the weight by 0.01 until "
    "the class flips. Without tslearn, an option of its installation, it finds neighbors by code of its "
    "own, in less time. Its CoMTE aims at a target probability of 0.95, ours at the decision; on one "
    "channel both can only return another series. " + EVOLUTION,
    "rocket": EVOLUTION,
    "channels": "Ten distractors on both sides. The peer aims at a target probability of 0.95, ours at the "
    "decision.",
}


def sets_beside(page: Page, args: argparse.Namespace) -> None:
    from tscf_eval.counterfactuals import SETS

    data = cf.load_dataset("GunPoint")
    model, X = MODELS["logistic regression"](data), sample(data, args.rows or 100)
    try:
        peer = SETS(model, (flat(data.X_train), data.y_train), n_shapelet_samples=200)
        heard = f"ran: {[peer.explain(x[0])[1] for x in X[:3]]}"
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        heard = f"stops with `{type(error).__name__}: {error}`"
    aeon = importlib.metadata.version("aeon")
    page.add(f"tscf-eval's SETS on GunPoint, logistic regression, aeon {aeon}: {heard}.", "")
    method = cf.SETS()
    _, fitting = timed(lambda: method.fit(model, data.X_train, data.y_train))
    method.explain(X[:2])
    result, seconds = timed(lambda: method.explain(X))
    seconds /= len(X)
    page.add(
        f"contrafact's SETS there, {len(X)} rows in one batch: fit {fitting[0]:.1f} s CPU (mining), then "
        f"{1000 * seconds[0]:.1f} ms CPU per row ({1000 * seconds[1]:.1f} ms wall), validity "
        f"{result.valid.mean():.2f}, changed {moved(X, result.X_cf).mean():.3f}, {result.calls.mean():.0f} "
        f"model rows per row, by fallback {result.info['fallback'].mean():.2f}."
    )


# --- the grid -----------------------------------------------------------------------------------------------


def grid(page: Page, args: argparse.Namespace, name: str) -> None:
    data = cf.load_dataset(name)
    X = sample(data, args.rows or 40)
    page.add(
        f"{len(X)} test rows, {X.shape[1]} channel(s) of {X.shape[2]} values, classes "
        f"{', '.join(map(repr, np.unique(data.y_train).tolist()))}. Valid: share of all rows; with a guide: "
        f"of the rows for whose target the model has a reference row. Changed (by more than {TOLERANCE:g}) "
        "and segments: over the valid rows.",
        "",
    )
    page.table(
        "model",
        "method",
        "valid",
        "with a guide",
        "changed",
        "segments",
        "model rows per row",
        "fallback",
    )
    short = []
    for model_name, train in MODELS.items():
        model = train(data)
        read = cf.as_classifier(model)
        accuracy, known = (
            np.mean(read.predict(data.X_test) == data.y_test),
            set(read.predict(data.X_train)),
        )
        for method_name, make in METHODS.items():
            if method_name == "NativeGuide cam" and model_name != "FCN":
                continue
            result = make().fit(model, data.X_train, data.y_train, modality="series").explain(X)
            guide = np.array([target in known for target in result.target.tolist()])
            changed = moved(result.X, result.X_cf)[result.valid]
            fallback = f"{result.info['fallback'].mean():.2f}" if "fallback" in result.info else ""
            share = result.valid[guide].mean() if guide.any() else np.nan
            page.row(
                f"{model_name} ({accuracy:.2f})", method_name, f"{result.valid.mean():.3g}", f"{share:.3g}",
                f"{changed.mean():.3f}", f"{segments(changed).mean():.1f}", f"{result.calls.mean():.0f}",
                fallback,
            )  # fmt: skip
            if share < 1:
                asked = "" if method_name in GUIDED else " (not asked for)"
                reasons = "; ".join(sorted(set(result.message[guide & ~result.valid])))
                short.append(f"- {model_name}, {method_name}: {share:.3g}{asked}. {reasons}")
    page.add("", "Short of 1 where a guide exists:" if short else "No cell is short of 1.", *short)


# --- query accounting ---------------------------------------------------------------------------------------


class Counter:
    """Rows that really reach a model, counted at its own entrances."""

    def __init__(self, model: Any) -> None:
        self.rows, self._inside = 0, False
        if isinstance(model, cf.models.Classifier):  # a torch module
            model.module.register_forward_pre_hook(lambda _, inputs: self._add(len(inputs[0])))
        else:
            entrances = [(model, "predict_proba"), (model, "predict")]
            if isinstance(model, RocketClassifier):
                entrances.append((model.pipeline_, "decision_function"))
            for owner, name in entrances:
                setattr(owner, name, self._counted(getattr(owner, name)))

    def _add(self, n: int) -> None:
        self.rows += n

    def _counted(self, ask: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def counted(X: Any) -> Any:
            if self._inside:  # one entrance may lead through another
                return ask(X)
            self._inside = True
            try:
                return ask(X)
            finally:
                self._inside = False
                self._add(len(X))

        return counted


@contextmanager
def watched(counter: Counter) -> Iterator[dict[str, int]]:
    """Rows that searches ask about within the block, and those of them that reach the model."""
    tally, ask = {"asked": 0, "reached": 0}, Batch.ask

    def noted(self: Batch, x_cf: torch.Tensor, rows: torch.Tensor, **options: Any) -> Any:
        before = counter.rows
        verdict = ask(self, x_cf, rows, **options)
        tally["asked"] += len(x_cf)
        tally["reached"] += counter.rows - before
        return verdict

    Batch.ask = noted  # type: ignore[method-assign]
    try:
        yield tally
    finally:
        Batch.ask = ask  # type: ignore[method-assign]


def accounting(page: Page, args: argparse.Namespace) -> None:
    n = args.rows or 40
    page.add(
        f"{n} test rows. Search: rows the search asked about, those of them that reached the model, and what "
        "the cache saved. Other: the instances and the answers (two rows each where labels and probabilities "
        "are asked apart). Counted: at the entrances of the model itself; equal: to the "
        "sum of `calls`.",
        "",
    )
    page.table(
        "data, model", "method", "search", "reached", "saved", "other", "counted", "calls", "equal"
    )
    wrong = 0
    for name, model_name in zip(
        ("GunPoint", "ArrowHead", "GunPoint", "BasicMotions"), MODELS, strict=True
    ):
        data = cf.load_dataset(name)
        X, model = sample(data, n), MODELS[model_name](data)
        counter = Counter(model)
        for method_name, make in METHODS.items():
            method = make().fit(model, data.X_train, data.y_train, modality="series")
            counter.rows = 0
            with watched(counter) as tally:
                result = method.explain(X)
            counted, calls = counter.rows, int(result.calls.sum())
            wrong += counted != calls
            asked, reached = tally["asked"], tally["reached"]
            saved = f"{1 - reached / asked:.1%}" if asked else ""
            page.row(
                f"{name}, {model_name}", method_name, asked, reached, saved, counted - reached, counted,
                calls, "yes" if counted == calls else "NO",
            )  # fmt: skip
    page.add("", f"`calls` differs from what the model saw in {wrong} cells.")


PARTS: dict[str, tuple[str, Callable[[Page, argparse.Namespace], None]]] = {
    "speed": ("Beside tscf-eval: logistic regression", partial(speed, study="logistic")),
    "rocket": ("Beside tscf-eval: ROCKET", partial(speed, study="rocket")),
    "channels": ("Beside tscf-eval: several channels", partial(speed, study="channels")),
    "sets": ("SETS", sets_beside),
    **{f"grid-{name}": (f"Validity: {name}", partial(grid, name=name)) for name in DATASETS},
    "calls": ("Query accounting", accounting),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=PARTS, nargs="+", default=list(PARTS))
    parser.add_argument("--rows", type=int, help="instances; each part has its own default")
    parser.add_argument(
        "--peer-rows", type=int, help="of them, given to the slow methods of the peer"
    )
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULT)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    page = Page(args.out)
    for part in args.part:
        page.begin(part)
        PARTS[part][1](page, args)


if __name__ == "__main__":
    main()
