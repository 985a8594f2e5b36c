"""Benchmark: a grid of data sets × classifiers × explainers × seeds, and its cells."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..data.fingerprints import describe, digest
from ..validation import Instance, Integer, Nothing, OneOf, Real, Rule, Satisfies, check_parameters
from .parts import Selection, read_dataset

if TYPE_CHECKING:
    import pandas as pd

#: classifiers are trained again with this added to their seed, and the numbers that follow
RETRAINED_SEEDS = 1000


def _is_list(value: Any) -> bool:
    """Return whether a value is a list or the like, and no text."""
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


_TABLE = Instance(Mapping, "a table {name: what}")
RULES: dict[str, Rule] = {
    "datasets": Satisfies(
        lambda value: _is_list(value) or isinstance(value, Mapping),
        "a list of data sets or a table {name: data set}",
    ),
    "classifiers": _TABLE,
    "explainers": _TABLE,
    "seeds": Satisfies(_is_list, "a list of whole numbers"),
    "instances": Integer(at_least=1) | Nothing(),
    "selection": OneOf("stratified", "random", "all"),
    "metrics": Satisfies(_is_list, "a list of metrics") | Nothing(),
    "time_limit": Real(above=0) | Nothing(),
    "retrainings": Integer(at_least=0),
}


@dataclass(frozen=True)
class Cell:
    """Name one cell of the grid.

    Parameters
    ----------
    dataset, classifier, explainer : str
        Names of its parts.
    seed : int
        Its seed.
    key : str
        Digest of everything that the result depends on.
    model_key : str
        Digest of everything that the trained classifier depends on.
    retrained : tuple of (int, str), default=()
        Seed and digest of each time that the classifier is trained again.
    """

    dataset: str
    classifier: str
    explainer: str
    seed: int
    key: str
    model_key: str
    retrained: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Benchmark:
    """Describe a grid of data sets × classifiers × explainers × seeds.

    Parameters
    ----------
    datasets : sequence, or mapping of str to object
        Names or paths that `load_dataset` takes, or Dataset objects.
    classifiers : mapping of str to object
        By name: a reference network's name, "module:Class" of an estimator, a table {"model": one
        of these, and parameters}, an estimator, or a function (dataset, seed) → model.
    explainers : mapping of str to object
        By name: a method's name, "module:Class", a table {"method": one of these, and parameters},
        or an object with `fit` and `explain`. Options for its `explain` (k, refine, …) go into an
        entry `options` of the table.
    seeds : sequence of int, default=(0,)
        Of training, choice of instances and search.
    instances : int or None, default=12
        How many test rows; None for all.
    selection : {"stratified", "random", "all"}, default="stratified"
        Which test rows; "stratified" by the model's margin.
    metrics : sequence of str, optional
        Names; default: all that can be computed.
    time_limit : float, optional
        Seconds for one cell, which is then ended and recorded as failed; default: no limit.
    retrainings : int, default=0
        How often each classifier is trained again, with seeds of its own; the metric `survival` is
        the share of these that agree with a counterfactual. Meant for classifiers that depend on
        their seed.

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
    retrainings: int = 0
    # Data sets that were loaded. Stores of version 0.1.0 hold pickled grids with this field.
    _read: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_parameters("Benchmark", RULES, vars(self))
        for name in ("datasets", "classifiers", "explainers", "seeds"):
            if not getattr(self, name):
                raise ValueError(f"{name} is empty: a grid needs at least one.")
        for seed in self.seeds:
            check_parameters("Benchmark", {"seeds": Integer(at_least=0)}, {"seeds": seed})
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"Benchmark: seeds must differ, got {list(self.seeds)}.")

    @classmethod
    def from_toml(cls, path: str | Path, *, trust: bool = False) -> Benchmark:
        """Read a grid from a TOML file.

        Parameters
        ----------
        path : str or Path
            A file whose keys are the parameters of this class.
        trust : bool, default=False
            Import whatever the file names as "module:Class". Otherwise methods are those of this
            package, and classifiers its networks and the classifiers of scikit-learn, aeon and
            `contrafact.prototypes`.

        Returns
        -------
        Benchmark
            The grid.

        Raises
        ------
        ValueError, TypeError
            Where a key, metric, method, classifier or parameter is unknown, or something would be
            imported that needs trust.
        """
        from .grid_files import benchmark_of

        try:
            import tomllib
        except ModuleNotFoundError:  # Python 3.10
            import tomli as tomllib  # type: ignore[import-not-found, no-redef]

        try:
            settings = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:  # also of bytes that are no text
            raise ValueError(f"{path} is no TOML file: {error}.") from error
        return benchmark_of(settings, Path(path), trust=trust)

    def named_datasets(self) -> dict[str, Any]:
        """Return the data sets by name, loaded once."""
        if self._read:
            return self._read
        if isinstance(self.datasets, Mapping):
            for name, part in self.datasets.items():
                self._read[name] = read_dataset(part)
        else:
            for part in self.datasets:
                data = read_dataset(part)
                if data.name in self._read:
                    raise ValueError(
                        f"datasets: two are called {data.name!r}. Give them as a table "
                        "{name: data set}."
                    )
                self._read[data.name] = data
        return self._read

    def cells(self) -> list[Cell]:
        """Return all cells of the grid, in order."""
        found = []
        data = {name: describe(part) for name, part in self.named_datasets().items()}
        combinations = itertools.product(data, self.classifiers, self.seeds)
        for dataset, classifier, seed in combinations:
            trained = [__version__, data[dataset], describe(self.classifiers[classifier])]
            model = [*trained, seed]
            model_key = digest(model)
            again = [seed + RETRAINED_SEEDS + i for i in range(self.retrainings)]
            retrained = tuple((other, digest([*trained, other])) for other in again)
            for explainer, part in self.explainers.items():
                request = [
                    describe(part),
                    self.instances,
                    self.selection,
                    describe(self.metrics),
                    self.time_limit,
                    *again,  # none by default, so that keys of older stores stay
                ]
                key = digest([*model, *request])
                found.append(Cell(dataset, classifier, explainer, seed, key, model_key, retrained))
        return found

    def run(
        self,
        folder: str | Path,
        *,
        n_jobs: int = 1,
        scheduler: str | None = None,
        retry_failed: bool = False,
        progress: bool = True,
        trust: bool = False,
    ) -> pd.DataFrame:
        """Run what is not in a folder yet, and return the whole table.

        A warning says how many cells failed; their rows have the reason in `message`.

        Parameters
        ----------
        folder : str or Path
            Where finished cells are kept.
        n_jobs : int, default=1
            Cells at a time on this machine; −1 for as many as cores.
        scheduler : str, optional
            Address of a dask.distributed scheduler to run on instead.
        retry_failed : bool, default=False
            Run failed cells again.
        progress : bool, default=True
            Show a progress bar.
        trust : bool, default=False
            Use trained classifiers in the folder that you did not train. Reading them can run code;
            otherwise they are trained again.

        Returns
        -------
        DataFrame
            One row per counterfactual asked for, as `results` returns it.

        See Also
        --------
        contrafact.benchmark.run : The same without the table.
        """
        from .runner import run

        run(
            self,
            folder,
            n_jobs=n_jobs,
            scheduler=scheduler,
            retry_failed=retry_failed,
            progress=progress,
            trust=trust,
        )
        frame = self.results(folder)
        is_failed = frame["cell_status"] != "done"
        if is_failed.any():
            cells = frame.loc[is_failed, ["dataset", "classifier", "explainer", "seed"]]
            reason = str(frame.loc[is_failed, "message"].iloc[0]).strip().splitlines()[-1]
            warnings.warn(
                f"{len(cells.drop_duplicates())} of {len(self.cells())} cells failed, the first "
                f"with {reason!r}; see the column message.",
                stacklevel=2,
            )
        return frame

    def results(self, folder: str | Path) -> pd.DataFrame:
        """Return what is in the folder.

        Parameters
        ----------
        folder : str or Path
            Where finished cells are kept.

        Returns
        -------
        DataFrame
            One row per counterfactual asked for, with all metrics; empty where no cell is finished.
        """
        from .store import Store

        return Store(folder).frame(self.cells())
