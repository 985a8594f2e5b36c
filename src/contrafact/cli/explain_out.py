"""Carry out `contrafact explain --out`: large data, read and written in chunks."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..models.labels import find_class
from ..models.remarks import ModelWarning
from ..nn import load_model
from ..scale import CounterfactualsDataset, explain_dataset
from ..scale.folders import MANIFEST
from .array_inputs import is_array_file
from .console import Notes, print_text
from .explain_inputs import ExplainInputs, read_inputs
from .explain_request import (
    ExplainRequest,
    choose_methods,
    make_committee,
    read_constraints,
    read_methods,
)
from .output_files import check_output


@dataclass(frozen=True)
class OutOutcome:
    """Hold what `run_out` wrote.

    Attributes
    ----------
    dataset : CounterfactualsDataset
        The folder.
    interrupted : bool
        Whether the user stopped the run.
    """

    dataset: CounterfactualsDataset
    interrupted: bool = False

    @cached_property
    def totals(self) -> dict[str, Any]:
        """Counts and costs of all rows."""
        return self.dataset.summary()

    @property
    def any_valid(self) -> bool:
        """Whether any counterfactual is valid."""
        statuses = self.totals["statuses"]
        return bool(statuses.get("valid") or statuses.get("already_target"))

    def summary(self, request: ExplainRequest, notes: Sequence[str]) -> dict[str, Any]:
        """Return counts and costs, for `print_json`."""
        return {
            "command": request.command,
            "notes": notes,
            "method": self.dataset.provenance["method"],
            **self.totals,
            "files": {"out": request.out, "report": request.report},
        }

    def print(self, request: ExplainRequest) -> None:
        """Print counts, the files written and the command that goes on or repeats the request."""
        totals = self.totals
        listed = ", ".join(f"{count:,} {status}" for status, count in totals["statuses"].items())
        done = totals["rows"] - totals["missing"]
        text = f"{done:,} of {totals['rows']:,} rows are explained: {listed or 'nothing yet'}."
        if totals["changed_fraction"] is not None:
            text += f" On average {totals['changed_fraction']:.0%} of a valid one is changed."
        print_text(text)
        print_text(f"Folder: {request.out}")
        if request.report is not None and not self.interrupted:
            print_text(f"Report: {request.report}")
        print_text(f"{'Go on' if self.interrupted else 'Again'}: {request.command}")


def run_out(request: ExplainRequest, notes: Notes) -> OutOutcome:
    """Explain all of the data into a folder.

    Parameters
    ----------
    request : ExplainRequest
        What was typed; `out` is the folder.
    notes : Notes
        Receives what the user should know.

    Returns
    -------
    OutOutcome
        The folder, finished or stopped by Ctrl-C.

    Raises
    ------
    ValueError, TypeError, OSError, ImportError
        If something given cannot be used; the message says what and what is accepted.
    """
    assert request.out is not None
    names = read_methods(request)
    for option, given in {"--rows": request.rows, "--save": request.save}.items():
        if given is not None:
            raise ValueError(f"{option} and --out exclude each other: --out takes all of DATA.")
    if len(names) > 1:
        raise ValueError(f"--out takes one method, got {', '.join(names)}.")
    check_output("--report", request.report, (".html", ".htm"), request.inputs)
    model = load_model(request.model, trust=request.trust, network=request.network)
    source, inputs = _read(request, model, notes)
    target = None
    if request.target is not None:
        target = find_class(request.target, inputs.classifier.classes, "--target")
    constraints = read_constraints(request, inputs)
    (method,) = choose_methods(request, names, [None], inputs, constraints, notes)
    members = make_committee(request, inputs, [method], notes)
    interrupted = False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)  # each is a note
            explain_dataset(
                inputs.classifier,
                source,
                request.out,
                target,
                reference=(inputs.X_reference, inputs.y_reference),
                method=method.explainer,
                modality=inputs.layout.modality,
                schema=inputs.schema,
                label=request.label if isinstance(source, Path) else None,
                chunk=request.chunk,
                workers=request.workers,
                scheduler=request.scheduler,
                constraints=constraints,
                k=request.k,
                budget=request.budget,
                confidence=request.confidence,
                committee=members,
                random_state=request.seed,
                progress=True,
                **method.options,
            )
    except KeyboardInterrupt:
        if not (request.out / MANIFEST).exists():
            raise  # nothing was begun that could be gone on with
        interrupted = True
    for remark in inputs.classifier.remarks.texts:
        notes.add(remark)
    dataset = CounterfactualsDataset(request.out)
    if interrupted:
        notes.add("Stopped: chunks that were finished are kept.")
    elif request.report is not None:
        dataset.report(
            request.report,
            reference=inputs.reference,
            constraints=constraints,
            command=request.command,
        )
    return OutOutcome(dataset, interrupted)


def _read(request: ExplainRequest, model: Any, notes: Notes) -> tuple[Any, ExplainInputs]:
    """Return the source, a path where it can be read in chunks, and the reference."""
    if not _is_chunked(request):
        inputs = read_inputs(replace(request, rows="0:"), model, notes)
        return inputs.X, inputs
    for option, given in {"--fill": request.fill, "--pad": request.pad}.items():
        if given:
            raise ValueError(f"{option} is for data that are read whole; {request.data} is not.")
    if request.reference is None:
        raise ValueError(
            f"--reference is needed: {request.data} is read in chunks, and methods learn from "
            "other data."
        )
    alone = replace(request, data=request.reference, rows="0")
    return Path(request.data), read_inputs(alone, model, notes)


def _is_chunked(request: ExplainRequest) -> bool:
    """Return whether the data can be read in chunks."""
    path = Path(request.data)
    if is_array_file(request.data):
        return True
    if path.is_dir():
        return any(path.rglob("*.parquet"))
    is_large_kind = path.suffix.lower() in (".parquet", ".npz")
    return is_large_kind and path.is_file() and request.reference is not None
