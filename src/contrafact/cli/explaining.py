"""contrafact explain."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from . import parameters
from .console import bars_aside, print_json, say

if TYPE_CHECKING:
    from ..engine import Counterfactuals
    from ..explainers.support.explainer import Explainer
    from .explain_request import Question


class Remembering(TyperCommand):
    """Keeps what was typed, so that a result can say how to get it again."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta["contrafact.args"] = list(args)
        return super().parse_args(ctx, args)


def explain(
    ctx: typer.Context,
    model: parameters.Model,
    data: parameters.Data,
    method: parameters.Methods = None,
    target: parameters.Target = None,
    rows: parameters.Rows = None,
    reference: parameters.ReferenceFile = None,
    label: parameters.Label = None,
    modality: parameters.ModalityName = None,
    pad: parameters.Pad = False,
    fill: parameters.Fill = False,
    network: parameters.NetworkName = None,
    trust: parameters.Trust = False,
    freeze: parameters.Freeze = None,
    bounds: parameters.Bounds = None,
    max_step: parameters.MaxStep = None,
    k: parameters.K = 1,
    confidence: parameters.Confidence = None,
    refine: parameters.Refine = None,
    calls: parameters.Calls = None,
    seconds: parameters.Seconds = None,
    seed: parameters.Seed = 0,
    report: parameters.ReportFile = None,
    save: parameters.SaveFile = None,
    as_json: parameters.AsJson = False,
) -> None:
    """What would make the model decide otherwise? The smallest believable change of every instance.

    Exit code 0: done, 1: the target was reached for no instance, 2: something given cannot be used.
    """
    with bars_aside():
        from ..engine import Budget
        from ..nn import load_model
        from .explain_request import (
            check_output,
            choose_methods,
            find_target,
            method_names,
            read_question,
        )
        from .specs import make_constraints
        from .summary import describe, explained, tell

        notes: list[str] = []

        def note(text: str) -> None:
            notes.append(text)
            say(text, aside=True)

        names = method_names(method or [])
        files = [_save_path(save, name, several=len(names) > 1) for name in names or [""]]
        inputs = [model, data, *([] if reference is None else [reference])]
        check_output("--report", report, (".html", ".htm"), inputs)
        for path in files:
            check_output("--save", path, (".npz",), inputs)

        loaded = load_model(model, trust=trust, network=network)
        question = read_question(loaded, data, reference, rows, label, modality, pad, fill, note)
        wanted = find_target(target, question.classifier.classes)
        constraints = make_constraints(question.layout, freeze or [], bounds or [], max_step)
        explainers = choose_methods(names, question, constraints, note)
        X, y = question.reference
        for explainer in explainers.values():
            explainer.fit(question.classifier, X, y, modality=question.layout.modality)
        results: dict[str, Counterfactuals] = {}
        for (name, explainer), path in zip(explainers.items(), files, strict=True):
            results[name] = explained(
                explainer,
                question,
                wanted,
                constraints=constraints,
                k=k,
                budget=None if calls is None and seconds is None else Budget(calls, seconds),
                refine=_refines(explainer, question) if refine is None else refine,
                confidence=confidence,
                random_state=seed,
            )
            if path is not None:
                results[name].save(path)  # now, so that what comes after cannot lose it
        command = _command(ctx.meta["contrafact.args"], seed)
        if report is not None:
            from ..report import write_report

            known = X if y is None else (X, y)
            write_report(results, report, reference=known, constraints=constraints, command=command)

    saved = [path for path in files if path is not None]
    if as_json:
        print_json(
            {
                "command": command,
                "modality": question.layout.modality,
                "classes": question.classifier.classes,
                "notes": notes,
                "methods": [
                    {"method": name, **describe(result)} for name, result in results.items()
                ],
                "files": {"report": report, "save": saved},
            }
        )
    else:
        tell(results)
        if report is not None:
            say(f"Report: {report}")
        if saved:
            say(f"Arrays: {', '.join(map(str, saved))}")
        say(f"Again: {command}")
    if not any(result.valid.any() for result in results.values()):
        raise typer.Exit(1)


def _save_path(save: Path | None, name: str, several: bool) -> Path | None:
    return (
        save if save is None or not several else save.with_name(f"{save.stem}-{name}{save.suffix}")
    )


def _refines(explainer: Explainer, question: Question) -> bool:
    return question.layout.modality != "image" and not explainer.tags.prototype_model


def _command(args: list[str], seed: int) -> str:
    given = any(arg == "--seed" or arg.startswith("--seed=") for arg in args)
    return shlex.join(["contrafact", "explain", *args, *([] if given else ["--seed", str(seed)])])
