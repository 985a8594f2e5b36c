"""What `contrafact explain` can be told."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import completion

MODEL_PANEL, LIMITS_PANEL, OUTPUT_PANEL = "Model and data", "What may happen", "Output"

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A TorchScript file; weights of a torch network, with --network; .joblib, .pkl or .pt2, "
        "with --trust; or module:name of a trained model, e.g. train:model.",
    ),
]
Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="What to explain: .csv (names in the first line), .npz (X, or X_train and X_test; y), .ts, "
        ".tsv, a folder of a UCR pair, or the name of a bundled set; the test part where there is one.",
        autocompletion=completion.datasets,
    ),
]
Methods = Annotated[
    list[str] | None,
    typer.Option(
        help="A method, see `contrafact methods`; several times: compared. Default: CELS for series, "
        "CoMTE for rows, SVCE for images, PrototypeCounterfactual for the models it is exact for.",
        autocompletion=completion.methods,
    ),
]
Target = Annotated[
    str | None, typer.Option(help="The class wanted. Default: for each instance the runner-up.")
]
Rows = Annotated[
    str | None, typer.Option(help="Which rows of DATA: 0:40 or 3,17. Default: all, up to 200.")
]
ReferenceFile = Annotated[
    str | None,
    typer.Option(
        help="Data that methods may learn from, as DATA. Default: DATA's training part, or all of it.",
        rich_help_panel=MODEL_PANEL,
    ),
]
Label = Annotated[
    str | None,
    typer.Option(
        help="The label column of a .csv. Default: label, class, target or y.",
        rich_help_panel=MODEL_PANEL,
    ),
]
ModalityName = Annotated[
    str | None,
    typer.Option(
        help="row, series or image, where DATA does not say so: a .csv holds rows, or with series one "
        "time step per column.",
        autocompletion=completion.modalities,
        rich_help_panel=MODEL_PANEL,
    ),
]
Pad = Annotated[
    bool,
    typer.Option(
        "--pad", help="Extend short series by their last value.", rich_help_panel=MODEL_PANEL
    ),
]
Fill = Annotated[
    bool, typer.Option("--fill", help="Impute missing values.", rich_help_panel=MODEL_PANEL)
]
NetworkName = Annotated[
    str | None,
    typer.Option(
        help="What weights belong to: module:name of a torch module or of what makes one, or fcn, "
        "bilstm, smallcnn, mlp, resnet8.",
        autocompletion=completion.networks,
        rich_help_panel=MODEL_PANEL,
    ),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Open a MODEL that can run code when opened (a pickle): only what you made or trust.",
        rich_help_panel=MODEL_PANEL,
    ),
]
Freeze = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SPEC",
        help="What may not change, several times if need be. Rows: age, 'column 3'. Series: 0:90 (steps "
        "0 to 89), x or 'ch 2' (a channel), x:0:30. Images: 0:4,2:6 (lines, columns).",
        rich_help_panel=LIMITS_PANEL,
    ),
]
Bounds = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SPEC",
        help="Lowest and highest value: 0:1, :5, or of one column or channel glucose=3:12. A later one "
        "takes the place of an earlier one.",
        rich_help_panel=LIMITS_PANEL,
    ),
]
MaxStep = Annotated[
    float | None,
    typer.Option(
        help="Series: the largest change from one step to the next.", rich_help_panel=LIMITS_PANEL
    ),
]
K = Annotated[
    int,
    typer.Option("--k", "-k", help="How many different ones each.", rich_help_panel=LIMITS_PANEL),
]
Confidence = Annotated[
    float | None, typer.Option(help="Least P(target) to aim for.", rich_help_panel=LIMITS_PANEL)
]
Refine = Annotated[
    bool | None,
    typer.Option(
        "--refine/--no-refine",
        help="Give back every change that is not needed. Default: yes, but for images and exact methods.",
        rich_help_panel=LIMITS_PANEL,
    ),
]
Calls = Annotated[
    int | None,
    typer.Option(help="Rows the model may be asked about.", rich_help_panel=LIMITS_PANEL),
]
Seconds = Annotated[
    float | None, typer.Option(help="Time a method may take.", rich_help_panel=LIMITS_PANEL)
]
Seed = Annotated[int, typer.Option(help="Same seed, same result.", rich_help_panel=LIMITS_PANEL)]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        help="Write a page to look at and to send on, .html.", rich_help_panel=OUTPUT_PANEL
    ),
]
SaveFile = Annotated[
    Path | None,
    typer.Option(
        help="Write the arrays, .npz; with several methods one file each.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        help="One JSON object on stdout; all else on stderr.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
