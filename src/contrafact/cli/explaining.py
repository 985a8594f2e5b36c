"""The command `contrafact explain`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import typer

from . import parameters
from .console import ARGUMENTS_KEY, INTERRUPTED, Notes, output_to_stderr, print_json

NOTHING_REACHED = 1


def explain(
    ctx: typer.Context,
    model: parameters.Model,
    data: parameters.Data,
    method: parameters.Methods = None,
    level: parameters.GraftLevel = None,
    target: parameters.Target = None,
    rows: parameters.Rows = None,
    reference: parameters.ReferenceFile = None,
    label: parameters.Label = None,
    modality: parameters.ModalityName = None,
    pad: parameters.Pad = False,
    fill: parameters.Fill = False,
    network: parameters.NetworkName = None,
    classes: parameters.Classes = None,
    schema: parameters.SchemaFile = None,
    trust: parameters.Trust = False,
    freeze: parameters.Freeze = None,
    bounds: parameters.Bounds = None,
    max_step: parameters.MaxStep = None,
    increasing: parameters.Increasing = None,
    decreasing: parameters.Decreasing = None,
    max_changed: parameters.MaxChanged = None,
    relation: parameters.Relations = None,
    forbidden: parameters.Forbidden = None,
    cost: parameters.Costs = None,
    k: parameters.K = 1,
    confidence: parameters.Confidence = None,
    committee: parameters.CommitteeSize = 0,
    refine: parameters.Refine = None,
    no_refine: parameters.NoRefine = False,
    calls: parameters.Calls = None,
    seconds: parameters.Seconds = None,
    seed: parameters.Seed = 0,
    report: parameters.ReportFile = None,
    save: parameters.SaveFile = None,
    out: parameters.OutFolder = None,
    chunk: parameters.Chunk = None,
    workers: parameters.WorkerCount = None,
    scheduler: parameters.Scheduler = None,
    as_json: parameters.AsJson = False,
) -> None:
    """Find the smallest believable change of every instance that makes the model decide otherwise.

    Exit code 0: done. 1: the target was reached for no instance. 2: an argument cannot be used.
    130: interrupted by Ctrl-C; rows that were finished are kept, and the others say so, or are
    explained when the same command with --out is given again.
    """
    notes = Notes()
    with output_to_stderr():
        from .explain_out import OutOutcome, run_out
        from .explain_request import ExplainOutcome, ExplainRequest, run_request

        request = ExplainRequest(
            model=model,
            data=data,
            methods=method or (),
            level=level,
            target=target,
            rows=rows,
            reference=reference,
            label=label,
            modality=modality,
            pad=pad,
            fill=fill,
            network=network,
            classes=classes,
            schema=schema,
            trust=trust,
            freeze=freeze or (),
            bounds=bounds or (),
            max_step=max_step,
            increasing=increasing or (),
            decreasing=decreasing or (),
            max_changed=max_changed,
            relations=relation or (),
            forbidden=forbidden or (),
            costs=cost or (),
            k=k,
            confidence=confidence,
            committee=committee,
            refine=refine,
            no_refine=no_refine,
            calls=calls,
            seconds=seconds,
            seed=seed,
            report=report,
            save=save,
            out=out,
            chunk=chunk,
            workers=workers,
            scheduler=scheduler,
            command=_repeating_command(ctx.meta[ARGUMENTS_KEY], seed),
        )
        outcome: ExplainOutcome | OutOutcome
        outcome = run_request(request, notes) if out is None else run_out(request, notes)
    if as_json:
        print_json(outcome.summary(request, notes.texts))
    else:
        outcome.print(request)
    if outcome.interrupted:
        raise typer.Exit(INTERRUPTED)
    if not outcome.any_valid:
        raise typer.Exit(NOTHING_REACHED)


def _repeating_command(arguments: Sequence[str], seed: int) -> str:
    """Return the command line that repeats a request, with its seed."""
    words = ["contrafact", "explain", *arguments]
    seed_given = any(word == "--seed" or word.startswith("--seed=") for word in arguments)
    if not seed_given:
        words += ["--seed", str(seed)]
    return shlex.join(words)
