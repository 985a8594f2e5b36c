"""`explain_dataset`: explain more than memory holds, here or on a cluster."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..data.fingerprints import describe, digest
from ..data.writing import only_writer
from ..engine import Request
from ..engine.progress import row_progress
from ..engine.provenance import provenance_of
from ..explainers.registry import fitted_explainer
from ..explainers.support.explainer import Explainer
from ..extras import require_extra
from ..models.class_labels import read_targets
from ..models.classifier import Array
from ..process_state import keeping_random_numbers
from ..tables import Schema
from ..validation import FilePath, Instance, Integer, ListOf, Nothing, OneOf, Rule, check_parameters
from .dataset import CounterfactualsDataset
from .folders import MANIFEST, Manifest, ResultFolder, reference_rows, versions
from .jobs import Job
from .opening import check_source, open_source
from .running import run_chunks
from .sources import Source

#: numbers, and instances, of a chunk where the user does not say
CHUNK_ELEMENTS = 2**18
CHUNK_ROWS = 10_000

_NAME = Nothing() | Instance(str, "the name of a column")
RULES: dict[str, Rule] = {
    "out": FilePath(),
    "columns": Nothing() | ListOf(Instance(str), "names of columns"),
    "label": _NAME,
    "ids": _NAME,
    "chunk": Nothing() | Integer(at_least=1),
    "workers": Nothing() | Integer(at_least=1) | OneOf(-1),
    "scheduler": Nothing() | Instance(str, "the address of a scheduler"),
}


@keeping_random_numbers()  # clusters draw from Python's
def explain_dataset(
    model: Any,
    source: Any,
    out: str | Path,
    target: Any = None,
    *,
    reference: Any,
    method: str | Explainer | None = None,
    modality: Any = None,
    schema: Schema | None = None,
    columns: Sequence[str] | None = None,
    label: str | None = None,
    ids: str | None = None,
    chunk: int | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    **options: Any,
) -> CounterfactualsDataset:
    """Explain instances chunk by chunk, into a folder of Parquet files.

    The counterfactuals are those that one call of `explain` gives, however the source is divided:
    a row's random numbers and its share of the budget do not depend on other rows. A file appears
    when its chunk is complete. A run that was killed goes on where it was when it is called again
    with the same arguments; with others it is refused.

    Parameters
    ----------
    model : Classifier or model
        The trained model; anything `as_classifier` takes. For other processes it is pickled.
    source : array, data frame, str or Path
        The instances: an array of any kind that can be sliced; an .npy file, or an .npz file with X
        (not read whole unless it is compressed); a Parquet file or a folder of them, with lists for
        series, one column per channel, or plain columns for rows; a zarr array or group.
    out : str or Path
        The folder for the results.
    target : label or sequence of n labels, optional
        The class wanted; default: the runner-up class of each instance.
    reference : array, (X_train, y_train) or Dataset
        Data the method may learn from.
    method : str or Explainer, optional
        An explainer or the name of one; default: what `recommend` chooses.
    modality : {"series", "image", "row"}, optional
        The kind of data, as for `explain`.
    schema : Schema, optional
        What the columns of data frames hold; default: inferred from the reference.
    columns : sequence of str, optional
        Columns of Parquet files that make an instance; default: those of the reference, else all
        columns of lists, else all but `label` and `ids`.
    label, ids : str, optional
        Columns of Parquet files with labels and identifiers, which are carried along; default:
        columns called label, class, target or y, and id. Archives and groups have y and id.
    chunk : int, default=10,000 or fewer
        Instances of each file; fewer where instances are long.
    workers : int, optional
        Processes on this machine, −1 for as many as cores; default: all work in this process.
    scheduler : str, optional
        Address of a dask.distributed scheduler ("tcp://…"), whose workers do the work.
    **options
        As for `Explainer.explain`: constraints, k, budget, refine, confidence, committee, on_error,
        random_state, progress. The budget is that of all instances together.

    Returns
    -------
    CounterfactualsDataset
        The results, read when they are needed; `Counterfactuals.open(out)` opens them again.

    Raises
    ------
    ValueError, TypeError
        If an argument or a row of the source is not accepted, or `out` holds another run.
    BlockingIOError
        If another process writes to `out`.

    Examples
    --------
    >>> import contrafact as cf
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LogisticRegression(max_iter=500).fit(X, y)
    >>> found = cf.explain_dataset(
    ...     model, X, "found", target=1, reference=(X, y), method="NearestUnlike", chunk=40
    ... )
    >>> found
    <CounterfactualsDataset: 150 rows of 4 by NearestUnlike in 4 files, complete>
    >>> found[70:80].valid.all()
    np.True_
    """
    require_extra("parquet", "explain_dataset")
    check_parameters("explain_dataset", RULES, locals())
    if scheduler is not None:
        require_extra("scale", "A scheduler")
        if workers is not None:
            raise ValueError("workers and scheduler exclude each other: give one of them.")
    if reference is None:
        raise ValueError("reference is needed: an array, (X_train, y_train) or a Dataset.")
    check_source(source)
    explainer, options = fitted_explainer(model, reference, method, modality, schema, options)
    progress = bool(options.pop("progress", False))
    opened = open_source(
        source,
        columns=columns or explainer._names,
        label=label,
        ids=ids,
        are_steps=explainer.modality_ == "series",
    )
    if len(opened) == 0:
        raise ValueError("source holds no instances.")
    options = _checked_options(explainer, options, len(opened))
    wanted = _read_target(target, explainer.classifier_.classes, len(opened))
    folder = Path(out).resolve()
    with only_writer(folder, "writes results"):
        manifest = _make_manifest(explainer, options, opened, wanted, chunk, folder)
        _begin(folder, manifest)
        job = Job(explainer, opened, wanted, options, ResultFolder(folder, manifest))
        _run(job, workers, scheduler, progress)
    return CounterfactualsDataset(folder)


def _checked_options(explainer: Explainer, options: dict[str, Any], rows: int) -> dict[str, Any]:
    """Return all options of `explain`, the committee among them; check that the budget suffices."""
    names = ("constraints", "k", "budget", "refine", "confidence", "on_error")
    request = Request(**{name: options[name] for name in names if name in options})
    request.check_supported(explainer.tags.constraints)
    request.feasible_set(explainer.shape_, explainer.classifier_)
    calls = None if request.budget is None else request.budget.calls
    least = explainer.classifier_.rows_per_verdict * (1 + request.k)
    if calls is not None and calls < rows * least:
        raise ValueError(
            f"budget.calls={calls} is too small for {rows} instances with k={request.k}: asking "
            f"for each one's class before and after alone takes {rows * least}."
        )
    return {
        **{name: getattr(request, name) for name in names},
        # Made here, for the workers would each make their own.
        "committee": explainer._find_committee(options.get("committee")),
        "random_state": options.get("random_state") or 0,
    }


def _read_target(target: Any, classes: Array, rows: int) -> Any:
    """Check the classes wanted: one label, an array of one for each row, or None."""
    if target is None:
        return None
    if isinstance(target, (list, tuple)) or getattr(target, "ndim", 0) > 0:
        return classes[read_targets(target, classes, rows)]
    return classes[read_targets(target, classes, 1)][0]


def _make_manifest(
    explainer: Explainer,
    options: dict[str, Any],
    source: Source,
    target: Any,
    chunk: int | None,
    folder: Path,
) -> Manifest:
    """Describe the run; a chunk size that is not given is that of the run in the folder."""
    if chunk is None and (folder / MANIFEST).exists():
        chunk = Manifest.read(folder).chunk
    if chunk is None:
        size = int(np.prod(explainer.shape_))
        chunk = min(CHUNK_ROWS, max(1, CHUNK_ELEMENTS // size))
    classifier = explainer.classifier_
    asked = {name: value for name, value in options.items() if name != "random_state"}
    request = Request(**asked, seed=options["random_state"])
    provenance = provenance_of(explainer, classifier, request)
    x, y = explainer._reference
    content = {
        "method": provenance["method"],
        "parameters": describe(explainer.get_params(deep=False)),
        "version": provenance["version"],
        "seed": provenance["seed"],
        "options": provenance["options"],
        "constraints": None
        if request.constraints is None
        else digest(describe(request.constraints)),
        "target": describe(target.tolist() if isinstance(target, np.generic) else target),
        "source": source.fingerprint(),
        "reference": digest(describe([x, None if y is None else y.astype(str)])),
    }
    answers = classifier.verdict(x[reference_rows(len(x))]).proba
    return Manifest(
        rows=len(source),
        chunk=int(chunk),
        request=_plain(content),
        classes=[str(label) for label in classifier.classes.tolist()],
        answers=np.round(answers.cpu().double().numpy(), 6).tolist(),
        provenance=_plain(provenance),
        made_with=versions(),
    )


def _plain(content: dict[str, Any]) -> dict[str, Any]:
    """Return what a file of JSON gives back; numbers of NumPy become those of Python."""
    text = json.dumps(content, default=lambda value: value.item())
    plain: dict[str, Any] = json.loads(text)
    return plain


def _begin(folder: Path, manifest: Manifest) -> None:
    """Write the manifest into a new folder, or see that the run in it is this one."""
    if (folder / MANIFEST).exists():
        differences = Manifest.read(folder).differences(manifest)
        if differences:
            raise ValueError(
                f"out {folder} holds results of another run, which differs in this: "
                f"{'; '.join(differences)}. Give another folder, or remove this one."
            )
        return
    others = [path.name for path in folder.iterdir() if path.name != ".lock"]
    if others:
        raise ValueError(
            f"out {folder} is not empty, and holds no results of explain_dataset: "
            f"{', '.join(sorted(others)[:5])}. Give another folder."
        )
    manifest.write(folder)


def _run(job: Job, workers: int | None, scheduler: str | None, progress: bool) -> None:
    """Explain the chunks that are missing."""
    due = list(job.folder.due())
    manifest = job.manifest
    left = sum(stop - start for start, stop in map(manifest.bounds, due))
    name = type(job.explainer).__name__
    done = manifest.rows - left
    with row_progress(manifest.rows, name, show=progress, done=done) as advance:
        for finished in run_chunks(job, due, workers, scheduler):
            advance(finished.rows)
