"""Files that the page offers: the report, the arrays, the picture."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path
from typing import Any

from ..engine import Counterfactuals
from ..report import write_report
from .jobs import Job
from .workspace import Workspace

# matplotlib does not promise to work in several threads at once.
_DRAWING = threading.Lock()


def report_file(workspace: Workspace, job: Job, result: Counterfactuals, command: str) -> bytes:
    """Return the report about a job as an HTML page."""
    reference: Any = workspace.X_reference
    if workspace.y_reference is not None:
        reference = (workspace.X_reference, workspace.y_reference)
    with tempfile.TemporaryDirectory() as folder:
        path = write_report(
            result,
            Path(folder) / "report.html",
            reference=reference,
            constraints=job.question.constraints,
            command=command or None,
        )
        return path.read_bytes()


def arrays_file(result: Counterfactuals) -> bytes:
    """Return the arrays of a result as `Counterfactuals.load` reads them."""
    with tempfile.TemporaryDirectory() as folder:
        return result.save(Path(folder) / "arrays.npz").read_bytes()


def picture_file(result: Counterfactuals, alternative: int) -> bytes:
    """Return the picture of one alternative, PNG."""
    with tempfile.TemporaryDirectory() as folder, _DRAWING:
        path = Path(folder) / "picture.png"
        result.plot(alternative, path)
        return path.read_bytes()
