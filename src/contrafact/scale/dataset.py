"""CounterfactualsDataset: the results of `explain_dataset`, read when they are needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine.instances import PLURALS
from ..engine.joining import join_results
from ..engine.positions import chosen_positions
from ..engine.result import Counterfactuals
from ..extras import require_extra
from ..models.classifier import Array
from ..validation import FilePath, Integer, check_parameters
from .chunk_files import LABELS, list_column, read_about, read_chunk, read_columns
from .folders import Manifest, ResultFolder

if TYPE_CHECKING:
    import pandas as pd

    from ..engine import Constraints
    from ..metrics import Scores

#: counterfactuals that a page shows, so that it opens quickly
SHOWN = 200
#: what `to_frame` takes from the files besides ids and labels
FRAME_COLUMNS = ("row", "id", "y", *LABELS, "valid", "status", "proba", "cf_proba")
SUMMARY_COLUMNS = ("status", "changed_fraction", "calls", "seconds")
FRAME_COLUMNS += ("changed_fraction", "seconds", "calls", "message")


class CounterfactualsDataset:
    """Read the results of `explain_dataset` from their folder, as far as they are needed.

    Made by `explain_dataset`, or by `Counterfactuals.open` of a folder, also while it is being
    written: what is finished can be read.

    Parameters
    ----------
    folder : str or Path
        The folder that `explain_dataset` wrote to.

    Attributes
    ----------
    folder : Path
        The folder.
    rows : int
        Instances of the source.
    provenance : dict
        Method, parameters, version, seed and options of the run.

    Raises
    ------
    FileNotFoundError
        If the folder holds no such results.
    ValueError
        If they are damaged.

    Examples
    --------
    >>> import contrafact as cf
    >>> found = cf.explain_dataset(
    ...     model, X_test, "found", reference=(X_train, y_train), method="LineSearch", chunk=50
    ... )
    >>> again = cf.Counterfactuals.open("found")
    >>> len(again) == len(X_test), again.complete
    (True, True)
    >>> sum(part.valid.sum() for part in again) == again.to_frame()["valid"].sum()
    np.True_
    """

    def __init__(self, folder: str | Path) -> None:
        check_parameters("Counterfactuals.open", {"folder": FilePath()}, {"folder": folder})
        require_extra("parquet", "Counterfactuals.open")
        self.folder = Path(folder)
        self._files = ResultFolder(self.folder, Manifest.read(self.folder))
        self._numbers = self._files.present()
        self.rows = self._files.manifest.rows
        self.provenance = self._files.manifest.provenance

    @cached_property
    def _ends(self) -> list[int]:
        """Counterfactuals up to the end of each file."""
        manifest = self._files.manifest
        if manifest.k == 1:
            sizes = [stop - start for start, stop in map(manifest.bounds, self._numbers)]
        else:
            sizes = [read_about(self._path(number))["size"] for number in self._numbers]
        return list(accumulate(sizes))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[Counterfactuals]:
        """Yield the counterfactuals file by file."""
        for number in self._numbers:
            yield self._read(number)

    def __getitem__(self, rows: Any) -> Counterfactuals:
        """Return the chosen counterfactuals: an index, a slice, a mask or a list of positions."""
        positions = chosen_positions(rows, len(self))
        if not self._numbers:
            raise IndexError(f"{self.folder} holds no finished rows yet.")
        place = np.searchsorted(self._ends, positions, side="right")
        files = np.unique(place).tolist() or [0]
        starts = [0, *self._ends]
        parts = [self._read(self._numbers[i])[positions[place == i] - starts[i]] for i in files]
        joined = join_results(parts)
        # Parts hold their rows in the order of the files; put them where they were asked for.
        order = np.argsort(np.argsort(place, kind="stable"), kind="stable")
        return joined if len(parts) == 1 else joined[order]

    def __repr__(self) -> str:
        state = "complete" if self.complete else f"{self.missing:,} rows missing"
        noun = "rows"
        shape = ""
        if self._numbers:
            about = read_about(self._path(self._numbers[0]))
            sizes = " × ".join(str(size) for size in about["shape"])
            noun = PLURALS[about["modality"]]
            shape = f" of {sizes}" if about["table"] is None else f" of {sizes} columns"
        method = self.provenance["method"]
        files = f"{len(self._numbers)} file{'s' * (len(self._numbers) != 1)}"
        return (
            f"<CounterfactualsDataset: {len(self)} {noun}{shape} by {method} in {files}, {state}>"
        )

    @property
    def complete(self) -> bool:
        """Whether every row of the source is explained."""
        return len(self._numbers) == self._files.manifest.chunks

    @property
    def missing(self) -> int:
        """How many rows of the source are not explained yet."""
        bounds = map(self._files.manifest.bounds, self._numbers)
        return self.rows - sum(stop - start for start, stop in bounds)

    def summary(self) -> dict[str, Any]:
        """Count statuses and add up costs, without reading the arrays.

        Returns
        -------
        dict
            `rows` of the source, `missing` ones, `statuses` (counterfactuals by status, the most
            frequent first), `changed_fraction` (the mean of valid ones; None where there are
            none), `calls` and `seconds`.
        """
        statuses: Counter[str] = Counter()
        changed, calls, seconds = 0.0, 0, 0.0
        for number in self._numbers:
            table = read_columns(self._path(number), SUMMARY_COLUMNS)
            status, fraction = table.column("status").to_numpy(), table.column("changed_fraction")
            statuses.update(status.tolist())
            changed += float(fraction.to_numpy()[status == "valid"].sum())
            calls += int(table.column("calls").to_numpy().sum())
            seconds += float(table.column("seconds").to_numpy().sum())
        valid = statuses["valid"]
        return {
            "rows": self.rows,
            "missing": self.missing,
            "statuses": dict(statuses.most_common()),
            "changed_fraction": changed / valid if valid else None,
            "calls": calls,
            "seconds": seconds,
        }

    def to_frame(self) -> pd.DataFrame:
        """Return one line per counterfactual, without the arrays.

        Returns
        -------
        pandas.DataFrame
            The columns of `Counterfactuals.to_frame`, but of a table without `row` and
            `changed_columns`; after `source` the columns `id` and `y` where the source has
            identifiers and labels.
        """
        import pandas as pd

        parts = [self._frame(number) for number in self._numbers]
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    def evaluate(
        self,
        metrics: Sequence[Any] | None = None,
        reference: Any = None,
        *,
        model: Any = None,
        explainer: Any = None,
        other_model: Any = None,
        other_models: Sequence[Any] = (),
        autoencoder: Any = None,
    ) -> Scores:
        """Score every row, file by file; the numbers are those of a result in one piece.

        Parameters
        ----------
        metrics, reference, model, explainer, other_model, other_models : object, optional
            As in `Counterfactuals.evaluate`.
        autoencoder : Autoencoder or str, optional
            A fitted one, or the name of one to fit to the reference, which is done for each file.

        Returns
        -------
        Scores
            A data frame with one row per counterfactual and one column per metric.
        """
        import pandas as pd

        from ..metrics import Reference, Scores

        tables = []
        for part in self:
            # Detectors are fitted to the reference once.
            reference = None if reference is None else Reference.read(reference, part)
            scores = part.evaluate(
                metrics,
                reference,
                model=model,
                explainer=explainer,
                other_model=other_model,
                other_models=other_models,
                autoencoder=autoencoder,
            )
            tables.append(scores)
        if not tables:
            raise ValueError(f"{self.folder} holds no finished rows yet.")
        joined = pd.concat(tables, ignore_index=True)
        assert isinstance(joined, Scores)
        return joined

    def report(
        self,
        path: str | Path,
        *,
        most: int = SHOWN,
        title: str | None = None,
        reference: Any = None,
        constraints: Constraints | None = None,
        command: str | None = None,
    ) -> Path:
        """Write a self-contained HTML page on a sample, which the page calls one.

        Parameters
        ----------
        path : str or Path
            The file to write.
        most : int, default=200
            How many counterfactuals it shows: where there are more, evenly spaced ones.
        title, reference, constraints, command : object, optional
            As in `Counterfactuals.report`.

        Returns
        -------
        Path
            The file; see `contrafact.report.write_report`.
        """
        return self.sample(most).report(
            path,
            title=title,
            reference=reference,
            constraints=constraints,
            command=command,
        )

    def sample(self, most: int = SHOWN) -> Counterfactuals:
        """Return evenly spaced counterfactuals, with a remark that says so.

        Parameters
        ----------
        most : int, default=200
            How many; all where there are no more.

        Returns
        -------
        Counterfactuals
            The sample; `provenance["remarks"]` says how many there are in all.
        """
        check_parameters("sample", {"most": Integer(at_least=1)}, {"most": most})
        positions = np.linspace(0, len(self) - 1, min(most, len(self))).astype(int)
        chosen = self[positions]
        if len(chosen) == len(self):
            return chosen
        remark = (
            f"A sample: {len(chosen)} of {len(self):,} counterfactuals, evenly spaced. Counts and "
            "means are those of the sample."
        )
        remarks = [*chosen.provenance.get("remarks", []), remark]
        return replace(chosen, provenance={**chosen.provenance, "remarks": remarks})

    def _path(self, number: int) -> Path:
        """Return the file of a chunk."""
        return self._files.chunk_path(number)

    def _read(self, number: int) -> Counterfactuals:
        """Read the file of a chunk."""
        return read_chunk(self._path(number), self.provenance)

    def _frame(self, number: int) -> pd.DataFrame:
        """Read the lines of one file."""
        table = read_columns(self._path(number), FRAME_COLUMNS)
        about = read_about(self._path(number))
        frame: pd.DataFrame = table.drop_columns(["proba", "cf_proba"]).to_pandas()
        column = _columns_of(frame["target"].to_numpy(), about["classes"])
        lines = np.arange(len(frame))
        place = list(frame.columns).index("changed_fraction")
        for name, proba in (("p_after", "cf_proba"), ("p_before", "proba")):
            frame.insert(place, name, list_column(table, proba)[lines, column])
        return frame.rename(columns={"row": "source"})


def _columns_of(labels: Array, classes: list[Any]) -> Array:
    """Return the place of every label among the classes."""
    values, inverse = np.unique(labels.astype(str), return_inverse=True)
    position = {str(label): i for i, label in enumerate(classes)}
    return np.array([position[value] for value in values.tolist()], dtype=int)[inverse]
