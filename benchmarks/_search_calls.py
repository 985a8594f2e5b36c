"""The part of search_methods.py that checks `calls` against the rows a model really gets."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from aeon.classification.convolution_based import RocketClassifier

import contrafact as cf
from _common import SectionedPage, random_rows
from _search_common import METHODS, MODELS
from contrafact.engine import Oracle

DATASETS = ("GunPoint", "ArrowHead", "GunPoint", "BasicMotions")


class RowCounter:
    """Count the rows that reach a model, at its own methods."""

    def __init__(self, model: Any) -> None:
        self.rows = 0
        self._inside = False
        if isinstance(model, cf.Classifier):  # a torch module
            model.module.register_forward_pre_hook(lambda _, inputs: self._add(len(inputs[0])))
            return
        entrances = [(model, "predict_proba"), (model, "predict")]
        if isinstance(model, RocketClassifier):
            entrances.append((model.pipeline_, "decision_function"))
        for owner, name in entrances:
            setattr(owner, name, self._counted(getattr(owner, name)))

    def _add(self, n: int) -> None:
        self.rows += n

    def _counted(self, ask: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Wrap a method of the model; one that calls another is counted once."""

        def counted(X: Any) -> Any:
            if self._inside:
                return ask(X)
            self._inside = True
            try:
                return ask(X)
            finally:
                self._inside = False
                self._add(len(X))

        return counted


@contextmanager
def watched(counter: RowCounter) -> Iterator[dict[str, int]]:
    """Count the rows that searches ask about within the block, and those that reach the model."""
    tally = {"asked": 0, "reached": 0}
    ask = Oracle.ask

    def noted(self: Oracle, x_cf: torch.Tensor, row: torch.Tensor, **options: Any) -> Any:
        before = counter.rows
        verdict = ask(self, x_cf, row, **options)
        tally["asked"] += len(x_cf)
        tally["reached"] += counter.rows - before
        return verdict

    Oracle.ask = noted  # type: ignore[method-assign]
    try:
        yield tally
    finally:
        Oracle.ask = ask  # type: ignore[method-assign]


def measure_calls(page: SectionedPage, args: argparse.Namespace) -> None:
    """Compare `calls` with the rows counted at the model, for every method and model."""
    n = args.rows or 40
    page.add(
        f"{n} test rows. Search: rows the search asked about, those of them that reached the "
        "model, and what the cache saved. Other: the instances and the answers (two rows each "
        "where labels and probabilities are asked separately). Counted: at the methods of the "
        "model itself; equal: to the sum of `calls`.",
        "",
    )
    page.table(
        "data, model", "method", "search", "reached", "saved", "other", "counted", "calls", "equal"
    )
    wrong = 0
    for name, model_name in zip(DATASETS, MODELS, strict=True):
        data = cf.load_dataset(name)
        X = random_rows(data.X_test, n)
        model = MODELS[model_name](data)
        counter = RowCounter(model)
        for method_name, make in METHODS.items():
            method = make().fit(model, data.X_train, data.y_train, modality="series")
            counter.rows = 0
            with watched(counter) as tally:
                result = method.explain(X)
            counted = counter.rows
            calls = int(result.calls.sum())
            wrong += counted != calls
            asked = tally["asked"]
            reached = tally["reached"]
            page.row(
                f"{name}, {model_name}",
                method_name,
                asked,
                reached,
                f"{1 - reached / asked:.1%}" if asked else "",
                counted - reached,
                counted,
                calls,
                "yes" if counted == calls else "NO",
            )
    page.add("", f"`calls` differs from what the model saw in {wrong} cells.")
