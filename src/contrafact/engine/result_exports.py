"""What a result can be turned into: tables, scores, plots, pages, files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..data.archives import MAX_BYTES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from ..scale import CounterfactualsDataset
    from .constraints import Constraints
    from .result import Counterfactuals


class ResultExports:
    """Methods of `Counterfactuals` that export it; they import what they need when called."""

    def _repr_html_(self) -> str:
        from ..report.notebook import fragment

        return fragment(cast("Counterfactuals", self))

    def to_frame(self) -> pd.DataFrame:
        """Return one line per counterfactual: the question, the outcome and the cost.

        Returns
        -------
        pandas.DataFrame
            Columns source, label, target, cf_label, valid, status, p_before, p_after,
            changed_fraction, seconds, calls and message. Of a table also row, the label of the
            frame's row, and changed_columns, how many changed; a one-hot group counts as one.
        """
        import pandas as pd

        result = cast("Counterfactuals", self)
        target_proba = result.target_proba
        frame = pd.DataFrame(
            {
                "source": result.source,
                "label": result.labels,
                "target": result.target,
                "cf_label": result.cf_labels,
                "valid": result.valid,
                "status": result.status,
                "p_before": target_proba[:, 0],
                "p_after": target_proba[:, 1],
                "changed_fraction": result.changed_fraction,
                "seconds": result.seconds,
                "calls": result.calls,
                "message": result.message,
            }
        )
        if result.table is not None:
            frame.insert(1, "row", pd.Series(result.row_labels))
            place = list(frame.columns).index("changed_fraction") + 1
            frame.insert(place, "changed_columns", result.changed_parts.sum(1))
        return frame

    def changes(self, *, only_valid: bool = True) -> Any:
        """List the changes of a table, one line per changed value.

        Parameters
        ----------
        only_valid : bool, default=True
            Whether counterfactuals that did not reach their class are left out.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame
            Of the library that was given, with the columns row (the label of the frame's row, or
            its number), option (which counterfactual of the row, from 0), column, before and after.
            A one-hot group is one line, with the names of its levels. In polars, whose columns have
            one type each, values of different types are texts.

        Raises
        ------
        ValueError
            If X was an array.
        """
        from .table_exports import list_changes

        return list_changes(cast("Counterfactuals", self), only_valid=only_valid)

    def to_csv(self, path: str | Path) -> Path:
        """Write a table before and after to a CSV file, one line per counterfactual.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        Path
            The file: row, option, status, classes and probabilities, then every column before and
            after, side by side.

        Raises
        ------
        ValueError
            If X was an array.
        """
        from .table_exports import write_csv

        return write_csv(cast("Counterfactuals", self), path)

    def to_parquet(self, path: str | Path) -> Path:
        """Write a table before and after to a Parquet file, one line per counterfactual.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        Path
            The file, with the columns that `to_csv` writes, in their own types.

        Raises
        ------
        ImportError
            If pyarrow is missing, which pandas needs; the message says how to install it.
        """
        from .table_exports import write_parquet

        return write_parquet(cast("Counterfactuals", self), path)

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
    ) -> Any:
        """Score every row, failures included.

        Parameters
        ----------
        metrics : sequence of str or Metric, optional
            Which metrics; default: all that can be computed from what is given.
        reference : array, (X, y) or Dataset, optional
            Rows that counterfactuals are compared with.
        model, explainer, other_model, autoencoder : object, optional
            What some metrics need; see `contrafact.metrics.evaluate`.
        other_models : sequence of object, default=()
            Models for the same classes, for instance the same one trained again.

        Returns
        -------
        Scores
            A data frame with one row per counterfactual and one column per metric.
        """
        from .. import metrics as metrics_package

        return metrics_package.evaluate(
            cast("Counterfactuals", self),
            metrics,
            reference,
            model=model,
            explainer=explainer,
            other_model=other_model,
            other_models=other_models,
            autoencoder=autoencoder,
        )

    def plot(
        self,
        i: int = 0,
        path: str | Path | None = None,
        *,
        width: float = 10.0,
    ) -> Figure:
        """Draw counterfactual i.

        Parameters
        ----------
        i : int, default=0
            Row of the result.
        path : str or Path, optional
            Where to save the picture.
        width : float, default=10
            Width in inches.

        Returns
        -------
        matplotlib.figure.Figure
            See `contrafact.report.plot`.
        """
        from .. import report as report_package

        return report_package.plot(cast("Counterfactuals", self), i, path, width=width)

    def report(
        self,
        path: str | Path,
        *,
        title: str | None = None,
        reference: Any = None,
        model: Any = None,
        constraints: Constraints | None = None,
        command: str | None = None,
    ) -> Path:
        """Write a self-contained HTML page.

        Parameters
        ----------
        path : str or Path
            The file to write.
        title : str, optional
            Title of the page.
        reference : array, (X, y) or Dataset, optional
            Reference data, for metrics that need them.
        model : model, optional
            The model that was explained; a prototype model proves how firm its decisions are.
        constraints : Constraints, optional
            Limits to check the arrays against.
        command : str, optional
            The command that makes the same page again.

        Returns
        -------
        Path
            The file; see `contrafact.report.write_report`.
        """
        from .. import report as report_package

        return report_package.write_report(
            cast("Counterfactuals", self),
            path,
            title=title,
            reference=reference,
            model=model,
            constraints=constraints,
            command=command,
        )

    def save(self, path: str | Path) -> Path:
        """Write an .npz file without pickled objects.

        Parameters
        ----------
        path : str or Path
            The file; ".npz" is added where it is missing.

        Returns
        -------
        Path
            The file written; read it back with `Counterfactuals.load`.
        """
        from .result_files import save

        return save(cast("Counterfactuals", self), path)

    @classmethod
    def load(cls, path: str | Path, *, max_bytes: int = MAX_BYTES) -> Counterfactuals:
        """Read what `save` wrote, and check it whole; no code from the file is run.

        Parameters
        ----------
        path : str or Path
            The file, with or without ".npz".
        max_bytes : int, default=4 GiB
            How many bytes its arrays may take; more is refused before it is unpacked.

        Returns
        -------
        Counterfactuals
            The result; `exceptions` are not stored.

        Raises
        ------
        ValueError
            If the file is damaged, too large, or contradicts itself; the message names it.
        """
        from .result_files import load

        return load(path, max_bytes)

    @classmethod
    def open(cls, folder: str | Path) -> CounterfactualsDataset:
        """Open the results of `explain_dataset`; rows are read when they are needed.

        Parameters
        ----------
        folder : str or Path
            The folder that `explain_dataset` wrote to, finished or not.

        Returns
        -------
        CounterfactualsDataset
            With `len`, `[rows]`, `to_frame`, `evaluate` and `report`.

        Raises
        ------
        FileNotFoundError
            If the folder holds no such results.
        ValueError
            If they are damaged.
        """
        from .. import scale

        return scale.CounterfactualsDataset(folder)
