"""What a result can be turned into: tables, scores, plots, pages, files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..data.archives import MAX_BYTES

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from .constraints import Constraints
    from .result import Counterfactuals


class ResultExports:
    """Methods of `Counterfactuals` that export it; they import what they need when called."""

    def to_frame(self) -> pd.DataFrame:
        """Return one line per counterfactual: the question, the outcome and the cost.

        Returns
        -------
        pandas.DataFrame
            Columns source, label, target, cf_label, valid, status, p_before, p_after,
            changed_fraction, seconds, calls and message.
        """
        import pandas as pd

        result = cast("Counterfactuals", self)
        target_proba = result.target_proba
        return pd.DataFrame(
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
