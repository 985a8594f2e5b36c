"""Benchmark: a grid of data sets × classifiers × explainers × seeds, and the cells it is made of."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from .parts import Selection, describe, digest, read_dataset

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Cell:
    """One square of the grid: `key` is made of everything that its result depends on."""

    dataset: str
    classifier: str
    explainer: str
    seed: int
    key: str
    model_key: str


@dataclass(frozen=True)
class Benchmark:
    """A grid of data sets × classifiers × explainers × seeds.

    Parameters
    ----------
    datasets : names or paths that `load_dataset` takes, or Dataset objects; a list, or a table {name: one}.
    classifiers : {name: what}: a reference network's name, "module:Class" of an estimator, a table {"model":
        one of these, and parameters}, an estimator, or a function (dataset, seed) → model.
    explainers : {name: what}: a method's name, "module:Class", a table {"method": one of these, and
        parameters}, or an object with `fit` and `explain`. `options` for its `explain` (k, refine, …) go into
        a table of that name.
    seeds : of training, choice of instances and search.
    instances, selection : how many test rows, and which: "stratified" by the model's margin, "random", "all".
    metrics : names; default: all that can be computed.
    time_limit : seconds for one cell, which is then ended and recorded as failed; None: no limit.

    Examples
    --------
    >>> grid = Benchmark(["ItalyPowerDemand"], {"LR": "sklearn.linear_model:LogisticRegression"},
    ...                  {"line": "LineSearch", "nearest": "NearestUnlike"}, seeds=[0, 1])
    >>> len(grid.cells())
    4
    """

    datasets: Sequence[Any] | Mapping[str, Any]
    classifiers: Mapping[str, Any]
    explainers: Mapping[str, Any]
    seeds: Sequence[int] = (0,)
    instances: int | None = 12
    selection: Selection = "stratified"
    metrics: Sequence[str] | None = None
    time_limit: float | None = None
    _read: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("datasets", "classifiers", "explainers", "seeds"):
            if not getattr(self, name):
                raise ValueError(f"{name} is empty: a grid needs at least one.")
        for name in ("classifiers", "explainers"):
            if not isinstance(getattr(self, name), Mapping):
                raise TypeError(
                    f"{name} must be a table {{name: what}}, got {getattr(self, name)!r}."
                )

    @classmethod
    def from_toml(cls, path: str | Path) -> Benchmark:
        """Read a grid from a TOML file whose keys are the parameters above."""
        try:
            import tomllib
        except ModuleNotFoundError:  # Python 3.10
            import tomli as tomllib  # type: ignore[import-not-found, no-redef]

        told = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        known = {f.name for f in fields(cls)} - {"_read"}
        unknown = set(told) - known
        if unknown:
            raise ValueError(
                f"{path}: unknown keys {sorted(unknown)}. Known: {', '.join(sorted(known))}."
            )
        return cls(**told)

    def named_datasets(self) -> dict[str, Any]:
        """Data sets by name, loaded once."""
        if not self._read:
            parts = (
                self.datasets
                if isinstance(self.datasets, Mapping)
                else dict.fromkeys(self.datasets)
            )
            for name, part in parts.items():
                data = read_dataset(name if part is None else part)
                self._read[data.name if part is None else name] = data
        return self._read

    def cells(self) -> list[Cell]:
        """All squares of the grid, in order."""
        found = []
        data = {name: describe(part) for name, part in self.named_datasets().items()}
        for d, c, seed in itertools.product(data, self.classifiers, self.seeds):
            model = [__version__, data[d], describe(self.classifiers[c]), seed]
            for e in self.explainers:
                asked = [
                    describe(self.explainers[e]),
                    self.instances,
                    self.selection,
                    describe(self.metrics),
                    self.time_limit,
                ]
                found.append(Cell(d, c, e, seed, digest([*model, *asked]), digest(model)))
        return found

    def run(
        self,
        folder: str | Path,
        *,
        n_jobs: int = 1,
        scheduler: str | None = None,
        retry_failed: bool = False,
        progress: bool = True,
    ) -> pd.DataFrame:
        """Run what is not in `folder` yet, and give the whole table; see `contrafact.benchmark.run`."""
        from .runner import run

        run(
            self,
            folder,
            n_jobs=n_jobs,
            scheduler=scheduler,
            retry_failed=retry_failed,
            progress=progress,
        )
        return self.results(folder)

    def results(self, folder: str | Path) -> pd.DataFrame:
        """What is in the folder: one row per counterfactual asked for, with all metrics."""
        from .store import Store

        return Store(folder).frame(self.cells())
