"""Carry out `contrafact explain`: from what was typed to results, saved files and a report."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..engine import Budget, Counterfactuals
from ..engine.interruption import interruptible
from ..explainers import Graft, recommend
from ..explainers.registry import check_support, default_refinement, find_explainer
from ..models.labels import find_class
from ..models.remarks import ModelWarning
from ..nn import committee
from .console import Notes, print_message
from .explain_inputs import ExplainInputs, load_inputs
from .output_files import check_output, paths_by_method
from .specs import make_constraints
from .table_specs import make_table_constraints

if TYPE_CHECKING:
    from ..engine import Constraints
    from ..engine.request import Refinement
    from ..explainers.graft import Level
    from ..explainers.support.explainer import Explainer
    from ..models import Committee


STOPPING = "Stopping: what was found so far is kept. Ctrl-C again ends at once."


@dataclass(frozen=True)
class ExplainRequest:
    """Hold the arguments of `contrafact explain` as typed.

    The fields are those of the command, described in `contrafact.cli.parameters`; `command` is the
    command line that repeats the request.
    """

    model: str
    data: str
    methods: Sequence[str] = ()
    level: Level | None = None
    target: str | None = None
    rows: str | None = None
    reference: str | None = None
    label: str | None = None
    modality: str | None = None
    pad: bool = False
    fill: bool = False
    network: str | None = None
    classes: str | None = None
    schema: Path | None = None
    trust: bool = False
    freeze: Sequence[str] = ()
    bounds: Sequence[str] = ()
    max_step: float | None = None
    increasing: Sequence[str] = ()
    decreasing: Sequence[str] = ()
    max_changed: int | None = None
    relations: Sequence[str] = ()
    forbidden: Sequence[str] = ()
    costs: Sequence[str] = ()
    k: int = 1
    confidence: float | None = None
    committee: int = 0
    refine: Refinement | None = None
    no_refine: bool = False
    calls: int | None = None
    seconds: float | None = None
    seed: int = 0
    report: Path | None = None
    save: Path | None = None
    out: Path | None = None
    chunk: int | None = None
    workers: int | None = None
    scheduler: str | None = None
    command: str = ""

    @property
    def inputs(self) -> list[str]:
        """The files that are read."""
        paths = [self.model, self.data]
        if self.reference is not None:
            paths.append(self.reference)
        return paths

    @property
    def budget(self) -> Budget | None:
        """The budget asked for; None where there is none."""
        if self.calls is None and self.seconds is None:
            return None
        return Budget(self.calls, self.seconds)


@dataclass(frozen=True)
class ExplainOutcome:
    """Hold what `run_request` found.

    Attributes
    ----------
    results : dict of str to Counterfactuals
        The result of each method, with row numbers and names of the data file.
    inputs : ExplainInputs
        The data and the model.
    saved : list of Path
        Files with arrays that were written.
    interrupted : bool
        Whether the user interrupted the search; rows that were not reached say so.
    """

    results: dict[str, Counterfactuals]
    inputs: ExplainInputs
    saved: list[Path] = field(default_factory=list)
    interrupted: bool = False

    @property
    def any_valid(self) -> bool:
        """Whether any counterfactual is valid."""
        return any(bool(result.valid.any()) for result in self.results.values())

    def summary(self, request: ExplainRequest, notes: Sequence[str]) -> dict[str, Any]:
        """Return everything about the outcome, for `print_json`."""
        from .summary import summarize

        return summarize(request, self, notes)

    def print(self, request: ExplainRequest) -> None:
        """Print the results, the files written and the command that repeats the request."""
        from .summary import print_outcome

        print_outcome(request, self)


@dataclass(frozen=True)
class ChosenMethod:
    """Hold a method, its options for `explain`, and the file for its arrays."""

    explainer: Explainer
    options: dict[str, Any]
    save: Path | None


def run_request(request: ExplainRequest, notes: Notes) -> ExplainOutcome:
    """Explain what was asked for, save the arrays and write the report.

    Parameters
    ----------
    request : ExplainRequest
        What was typed.
    notes : Notes
        Receives what the user should know, such as the method chosen.

    Returns
    -------
    ExplainOutcome
        The results by method.

    Raises
    ------
    ValueError, TypeError, OSError, ImportError
        If something given cannot be used; the message says what and what is accepted.
    """
    for option, given in {"--chunk": request.chunk, "--workers": request.workers}.items():
        if given is not None:
            raise ValueError(f"{option} is for large data: it needs --out DIR.")
    if request.scheduler is not None:
        raise ValueError("--scheduler is for large data: it needs --out DIR.")
    names = read_methods(request)
    paths = paths_by_method(request.save, names)
    check_output("--report", request.report, (".html", ".htm"), request.inputs)
    for path in paths:
        check_output("--save", path, (".npz",), request.inputs)

    inputs = load_inputs(request, notes)
    target = None
    if request.target is not None:
        target = find_class(request.target, inputs.classifier.classes, "--target")
    constraints = read_constraints(request, inputs)
    methods = choose_methods(request, names, paths, inputs, constraints, notes)
    # All are fitted before any explains: a method that refuses the model does so at once.
    _fit(methods, inputs, notes)
    members = make_committee(request, inputs, methods, notes)
    results = {}
    saved = []
    with interruptible(lambda: print_message(STOPPING)) as interruption:
        for method in methods:
            if interruption.requested:
                break
            result = _explain(method, request, inputs, target, constraints, members)
            if method.save is not None:
                result.save(method.save)  # at once, so that a later failure cannot lose it
                saved.append(method.save)
            results[type(method.explainer).__name__] = result
    if interruption.requested:
        notes.add(_what_was_finished(results, methods))
    if request.report is not None:
        from ..report import write_report

        write_report(
            results,
            request.report,
            reference=inputs.reference,
            model=inputs.classifier,
            constraints=constraints,
            command=request.command,
        )
    return ExplainOutcome(results, inputs, saved, interruption.requested)


def read_methods(request: ExplainRequest) -> list[str]:
    """Return the names of the methods asked for, each once, and refuse options that contradict."""
    if request.no_refine and request.refine is not None:
        raise ValueError(f"--no-refine and --refine {request.refine} exclude each other.")
    names = [find_explainer(name).__name__ for name in request.methods]
    return list(dict.fromkeys(names))


def choose_methods(
    request: ExplainRequest,
    names: Sequence[str],
    paths: Sequence[Path | None],
    inputs: ExplainInputs,
    constraints: Constraints | None,
    notes: Notes,
) -> list[ChosenMethod]:
    """Make the methods that were named, or the one that is recommended, with their options."""
    if names:
        methods = _named_methods(names, paths, inputs, constraints)
    else:
        methods = [_recommended_method(paths[0], inputs, constraints, notes)]
    if request.level is not None:
        _set_level(request.level, methods)
    if request.refine is not None or request.no_refine:
        for method in methods:
            method.options["refine"] = request.refine or False
    return methods


def read_constraints(request: ExplainRequest, inputs: ExplainInputs) -> Constraints | None:
    """Read the limits; those that speak of columns need a table."""
    if inputs.schema is not None:
        return make_table_constraints(request, inputs.layout, inputs.schema)
    for option, given in {
        "--increasing": request.increasing,
        "--decreasing": request.decreasing,
        "--max-changed": request.max_changed,
        "--relation": request.relations,
        "--forbidden": request.forbidden,
        "--cost": request.costs,
        "--schema": request.schema,
    }.items():
        if given:
            raise ValueError(
                f"{option} applies to tables (.csv, .parquet); {request.data} is none."
            )
    return make_constraints(inputs.layout, request.freeze, request.bounds, request.max_step)


def _what_was_finished(
    results: dict[str, Counterfactuals],
    methods: Sequence[ChosenMethod],
) -> str:
    """Say how many rows were finished before an interruption."""
    last = [*results.values()][-1]
    unfinished = last.source[last.status == "budget"]
    asked = len(np.unique(last.source))
    finished = asked - len(np.unique(unfinished))
    text = f"Stopped: {finished} of {asked} rows were finished and are kept."
    left_out = [type(method.explainer).__name__ for method in methods[len(results) :]]
    if left_out:
        text += f" Not begun: {', '.join(left_out)}."
    return text


def _fit(methods: Sequence[ChosenMethod], inputs: ExplainInputs, notes: Notes) -> None:
    """Fit the methods, and note what was found out about the model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # each is a note
        for method in methods:
            method.explainer.fit(
                inputs.classifier,
                inputs.X_reference,
                inputs.y_reference,
                modality=inputs.layout.modality,
                schema=inputs.schema,
            )
    for remark in inputs.classifier.remarks.texts:
        notes.add(remark)


def make_committee(
    request: ExplainRequest,
    inputs: ExplainInputs,
    methods: Sequence[ChosenMethod],
    notes: Notes,
) -> Committee | None:
    """Make the committee that --committee asks for; note what it, or a method's own, is made of."""
    if request.committee == 0:
        own = [getattr(method.explainer, "committee_", None) for method in methods]
        for members in filter(None, own):
            notes.add(f"{members} has to agree.")
        return None
    members = committee(
        inputs.classifier,
        inputs.X_reference,
        inputs.y_reference,
        request.committee,
        random_state=request.seed,
    )
    notes.add(f"{members} has to agree.")
    return members


def _named_methods(
    names: Sequence[str],
    paths: Sequence[Path | None],
    inputs: ExplainInputs,
    constraints: Constraints | None,
) -> list[ChosenMethod]:
    """Make the methods that --method names, and check that they take the data and limits."""
    modality = inputs.layout.modality
    methods = []
    for name, path in zip(names, paths, strict=True):
        explainer = find_explainer(name)()
        check_support(explainer, modality, constraints)
        options = {"refine": default_refinement(explainer, modality)}
        methods.append(ChosenMethod(explainer, options, path))
    return methods


def _set_level(level: Level, methods: Sequence[ChosenMethod]) -> None:
    """Set what grafts have to withstand, as --level asks."""
    grafts = [method.explainer for method in methods if isinstance(method.explainer, Graft)]
    if not grafts:
        names = ", ".join(type(method.explainer).__name__ for method in methods)
        raise ValueError(
            f"--level {level} is for Graft; here the method is {names}. Add --method Graft."
        )
    for graft in grafts:
        graft.level = level


def _recommended_method(
    path: Path | None, inputs: ExplainInputs, constraints: Constraints | None, notes: Notes
) -> ChosenMethod:
    """Take the method that is recommended for the model and the data, and note why."""
    recommendation = recommend(inputs.classifier, inputs.layout.modality, constraints)
    name = type(recommendation.method).__name__
    notes.add(f"Method: {name}. {recommendation.reason} --method chooses others.")
    return ChosenMethod(recommendation.method, recommendation.options, path)


def _explain(
    method: ChosenMethod,
    request: ExplainRequest,
    inputs: ExplainInputs,
    target: Any,
    constraints: Constraints | None,
    members: Committee | None,
) -> Counterfactuals:
    """Explain with one method; the result has the row numbers and names of the data file."""
    result = method.explainer.explain(
        inputs.X,
        target,
        constraints=constraints,
        k=request.k,
        budget=request.budget,
        confidence=request.confidence,
        committee=members,
        random_state=request.seed,
        progress=True,
        **method.options,
    )
    names = inputs.layout.names
    return replace(
        result,
        source=inputs.rows[result.source],
        names=None if names is None else np.array(names),
    )
