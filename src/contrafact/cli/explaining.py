"""contrafact explain."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from . import completing
from .telling import bars_aside, print_json, say

if TYPE_CHECKING:
    from ..engine import Counterfactuals, Explainer
    from .question import Question

MODEL_PANEL, LIMITS_PANEL, OUTPUT_PANEL = "Model and data", "What may happen", "Output"


class Remembering(TyperCommand):
    """Keeps what was typed, so that a result can say how to get it again."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta["contrafact.args"] = list(args)
        return super().parse_args(ctx, args)


def explain(
    ctx: typer.Context,
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A TorchScript file; weights of a torch network, with --network; .joblib, .pkl or .pt2, "
            "with --trust; or module:name of a trained model, e.g. train:model.",
        ),
    ],
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="What to explain: .csv (names in the first line), .npz (X, or X_train and X_test; y), .ts, "
            ".tsv, a folder of a UCR pair, or the name of a bundled set; the test part where there is one.",
            autocompletion=completing.datasets,
        ),
    ],
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="A method, see `contrafact methods`; several times: compared. Default: CELS for series, "
            "CoMTE for rows, SVCE for images, PrototypeCounterfactual for the models it is exact for.",
            autocompletion=completing.methods,
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="The class wanted. Default: for each instance the runner-up.")
    ] = None,
    rows: Annotated[
        str | None, typer.Option(help="Which rows of DATA: 0:40 or 3,17. Default: all, up to 200.")
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            help="Data that methods may learn from, as DATA. Default: DATA's training part, or all of it.",
            rich_help_panel=MODEL_PANEL,
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            help="The label column of a .csv. Default: label, class, target or y.",
            rich_help_panel=MODEL_PANEL,
        ),
    ] = None,
    modality: Annotated[
        str | None,
        typer.Option(
            help="row, series or image, where DATA does not say so: a .csv holds rows, or with series one "
            "time step per column.",
            autocompletion=completing.modalities,
            rich_help_panel=MODEL_PANEL,
        ),
    ] = None,
    pad: Annotated[
        bool,
        typer.Option("--pad", help="Extend short series by their last value.", rich_help_panel=MODEL_PANEL),
    ] = False,
    fill: Annotated[
        bool, typer.Option("--fill", help="Impute missing values.", rich_help_panel=MODEL_PANEL)
    ] = False,
    network: Annotated[
        str | None,
        typer.Option(
            help="What weights belong to: module:name of a torch module or of what makes one, or fcn, "
            "bilstm, smallcnn, mlp, resnet8.",
            autocompletion=completing.networks,
            rich_help_panel=MODEL_PANEL,
        ),
    ] = None,
    trust: Annotated[
        bool,
        typer.Option(
            "--trust",
            help="Open a MODEL that can run code when opened (a pickle): only what you made or trust.",
            rich_help_panel=MODEL_PANEL,
        ),
    ] = False,
    freeze: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SPEC",
            help="What may not change, several times if need be. Rows: age, 'column 3'. Series: 0:90 (steps "
            "0 to 89), x or 'ch 2' (a channel), x:0:30. Images: 0:4,2:6 (lines, columns).",
            rich_help_panel=LIMITS_PANEL,
        ),
    ] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SPEC",
            help="Lowest and highest value: 0:1, :5, or of one column or channel glucose=3:12. A later one "
            "takes the place of an earlier one.",
            rich_help_panel=LIMITS_PANEL,
        ),
    ] = None,
    max_step: Annotated[
        float | None,
        typer.Option(
            help="Series: the largest change from one step to the next.", rich_help_panel=LIMITS_PANEL
        ),
    ] = None,
    k: Annotated[
        int, typer.Option("--k", "-k", help="How many different ones each.", rich_help_panel=LIMITS_PANEL)
    ] = 1,
    confidence: Annotated[
        float | None, typer.Option(help="Least P(target) to aim for.", rich_help_panel=LIMITS_PANEL)
    ] = None,
    refine: Annotated[
        bool | None,
        typer.Option(
            "--refine/--no-refine",
            help="Give back every change that is not needed. Default: yes, but for images and exact methods.",
            rich_help_panel=LIMITS_PANEL,
        ),
    ] = None,
    calls: Annotated[
        int | None, typer.Option(help="Rows the model may be asked about.", rich_help_panel=LIMITS_PANEL)
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Time a method may take.", rich_help_panel=LIMITS_PANEL)
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same result.", rich_help_panel=LIMITS_PANEL)] = 0,
    report: Annotated[
        Path | None,
        typer.Option(help="Write a page to look at and to send on, .html.", rich_help_panel=OUTPUT_PANEL),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            help="Write the arrays, .npz; with several methods one file each.", rich_help_panel=OUTPUT_PANEL
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="One JSON object on stdout; all else on stderr.", rich_help_panel=OUTPUT_PANEL
        ),
    ] = False,
) -> None:
    """What would make the model decide otherwise? The smallest believable change of every instance.

    Exit code 0: done, 1: the target was reached for no instance, 2: something given cannot be used.
    """
    with bars_aside():
        from ..engine import Budget
        from ..models import load_model
        from .outcomes import describe, explained, tell
        from .question import check_output, choose_methods, find_target, method_names, read_question
        from .specs import make_constraints

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
                "methods": [{"method": name, **describe(result)} for name, result in results.items()],
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
    return save if save is None or not several else save.with_name(f"{save.stem}-{name}{save.suffix}")


def _refines(explainer: Explainer, question: Question) -> bool:
    return question.layout.modality != "image" and not explainer.tags.prototype_model


def _command(args: list[str], seed: int) -> str:
    given = any(arg == "--seed" or arg.startswith("--seed=") for arg in args)
    return shlex.join(["contrafact", "explain", *args, *([] if given else ["--seed", str(seed)])])
