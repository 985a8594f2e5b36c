"""The arguments and options of `contrafact explain`, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from . import completion

MODEL_PANEL = "Model and data"
LIMITS_PANEL = "Limits"
OUTPUT_PANEL = "Output"
LARGE_PANEL = "Large data"

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="Weights of a torch network, with --network; TorchScript, .pt2, .joblib or .pkl, with "
        "--trust; or module:name of a trained model, e.g. train:model.",
    ),
]
Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Instances to explain: a table, .csv (names in the first line) or .parquet; .npz (X, "
        "or X_train and X_test; y), .npy, .zarr, lists in .parquet, .ts, .tsv, a folder with a UCR "
        "pair or with .parquet files, or the name of a bundled set; the test part where there is "
        "one.",
        autocompletion=completion.datasets,
    ),
]
Methods = Annotated[
    list[str] | None,
    typer.Option(
        help="A method, see `contrafact methods`; repeat it to compare several. Default: what "
        "contrafact.recommend chooses for the model and the data.",
        autocompletion=completion.methods,
    ),
]
GraftLevel = Annotated[
    Literal["smallest", "steady", "lasting"] | None,
    typer.Option(
        help="What answers of Graft have to withstand. smallest: nothing; steady, the default: "
        "small noise; lasting: also the vote of three more models, which are trained first.",
    ),
]
Target = Annotated[
    str | None, typer.Option(help="The class wanted. Default: the runner-up of each instance.")
]
Rows = Annotated[
    str | None, typer.Option(help="Rows of DATA: 0:40 or 3,17. Default: the first 200.")
]
ReferenceFile = Annotated[
    str | None,
    typer.Option(
        help="Data that methods may learn from, in the same formats as DATA. Default: the "
        "training part of DATA, or all of it.",
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
        help="row, series or image, where DATA does not say: a .csv holds rows; with series, one "
        "time step per column.",
        autocompletion=completion.modalities,
        rich_help_panel=MODEL_PANEL,
    ),
]
Pad = Annotated[
    bool,
    typer.Option(
        "--pad",
        help="Extend short series by their last value.",
        rich_help_panel=MODEL_PANEL,
    ),
]
Fill = Annotated[
    bool,
    typer.Option(
        "--fill",
        help="Impute missing values.",
        rich_help_panel=MODEL_PANEL,
    ),
]
NetworkName = Annotated[
    str | None,
    typer.Option(
        help="The network that weights belong to: module:name of a torch module or of a function "
        "that makes one, or fcn, inceptiontime, bilstm, smallcnn, mlp, resnet8.",
        autocompletion=completion.networks,
        rich_help_panel=MODEL_PANEL,
    ),
]
Classes = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="The classes of a model that does not name them, in the order of its outputs: "
        "ok,bearing. Default: the labels of the reference, sorted.",
        rich_help_panel=MODEL_PANEL,
    ),
]
Trust = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Open a MODEL that can run code: a pickle, TorchScript, .pt2. Use it only for files "
        "that you made or whose author you trust.",
        rich_help_panel=MODEL_PANEL,
    ),
]
Freeze = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SPEC",
        help="What may not change; may be repeated. Tables: age, 'column 3'. Series: 0:90 (steps 0 "
        "to 89), x or 'ch 2' (a channel), x:0:30. Images: 0:4,2:6 (lines, columns), "
        "or mask.png (a picture of their size: what is white stays).",
        rich_help_panel=LIMITS_PANEL,
    ),
]
Bounds = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SPEC",
        help="Lowest and highest value: 0:1, :5, or for one column or channel glucose=3:12; may "
        "be repeated, a later one replaces an earlier one.",
        rich_help_panel=LIMITS_PANEL,
    ),
]
SchemaFile = Annotated[
    Path | None,
    typer.Option(
        help="What the columns of a table hold, .json; `contrafact schema DATA` writes one to "
        "correct. Default: it is inferred from the reference.",
        rich_help_panel=MODEL_PANEL,
    ),
]
Increasing = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Tables: a column whose values may not fall; may be repeated.",
        rich_help_panel=LIMITS_PANEL,
    ),
]
Decreasing = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Tables: a column whose values may not rise; may be repeated.",
        rich_help_panel=LIMITS_PANEL,
    ),
]
MaxChanged = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Tables: how many columns may change.",
        rich_help_panel=LIMITS_PANEL,
    ),
]
Relations = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TEXT",
        help="Tables: a comparison to keep, e.g. 'age >= years_employed + 16'; may be repeated.",
        rich_help_panel=LIMITS_PANEL,
    ),
]
Forbidden = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SPEC",
        help="Tables: a level that may not become another, married=yes:no; may be repeated.",
        rich_help_panel=LIMITS_PANEL,
    ),
]
Costs = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SPEC",
        help="Tables: how dear changes of a column are, age=2; 1 by default; may be repeated.",
        rich_help_panel=LIMITS_PANEL,
    ),
]
MaxStep = Annotated[
    float | None,
    typer.Option(
        help="Series: the largest change from one step to the next.",
        rich_help_panel=LIMITS_PANEL,
    ),
]
K = Annotated[
    int,
    typer.Option(
        "--k",
        "-k",
        help="Number of different counterfactuals per instance.",
        rich_help_panel=LIMITS_PANEL,
    ),
]
Confidence = Annotated[
    float | None,
    typer.Option(
        help="Least P(target) to aim for.",
        rich_help_panel=LIMITS_PANEL,
    ),
]
CommitteeSize = Annotated[
    int,
    typer.Option(
        "--committee",
        min=0,
        help="Number of models that have to agree besides the one explained: the model trained "
        "again on parts of the reference data, or other kinds of model that learn its answers.",
        rich_help_panel=LIMITS_PANEL,
    ),
]
Refine = Annotated[
    Literal["minimal", "believable"] | None,
    typer.Option(
        help="Make changes smaller. minimal: undo every value that is not needed; believable: give "
        "back whole stretches, their ends and amplitude, without new jumps and kinks. Default: "
        "what is recommended; for a --method, believable except for images, Graft and exact "
        "methods.",
        rich_help_panel=LIMITS_PANEL,
    ),
]
NoRefine = Annotated[
    bool,
    typer.Option(
        "--no-refine",
        help="Leave changes as the method found them.",
        rich_help_panel=LIMITS_PANEL,
    ),
]
Calls = Annotated[
    int | None,
    typer.Option(
        help="Number of rows the model may be asked about.",
        rich_help_panel=LIMITS_PANEL,
    ),
]
Seconds = Annotated[
    float | None,
    typer.Option(
        help="Time that each method may take.",
        rich_help_panel=LIMITS_PANEL,
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        help="Seed; the same seed gives the same result.",
        rich_help_panel=LIMITS_PANEL,
    ),
]
ReportFile = Annotated[
    Path | None,
    typer.Option(
        help="Write a page to read and to share, .html.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
SaveFile = Annotated[
    Path | None,
    typer.Option(
        help="Write the arrays, .npz; with several methods one file each.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
OutFolder = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Explain all of DATA, read and written in chunks: a folder of Parquet files. The same "
        "command goes on where a run was stopped.",
        rich_help_panel=LARGE_PANEL,
    ),
]
Chunk = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="With --out, instances of each file. Default: 10000, or fewer where they are long.",
        rich_help_panel=LARGE_PANEL,
    ),
]
WorkerCount = Annotated[
    int | None,
    typer.Option(
        "--workers",
        help="With --out, processes on this machine; -1 for as many as cores. Default: this one.",
        rich_help_panel=LARGE_PANEL,
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="With --out, the scheduler of a dask.distributed cluster that does the work: "
        "tcp://host:8786.",
        rich_help_panel=LARGE_PANEL,
    ),
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print one JSON object on stdout, and everything else on stderr.",
        rich_help_panel=OUTPUT_PANEL,
    ),
]
