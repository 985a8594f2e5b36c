"""Doors of large data: runs into folders, and what reads them."""

import atexit
import shutil
import tempfile
from functools import cache

from door import door
from more_doors import in_own_folder
from samples import X, Y, row_model

from contrafact import scale


def explain_here(**given):
    """Run into a folder of its own, and read all of it."""
    found = scale.explain_dataset(**given)
    return found, repr(found), found[:]


door(
    "scale.explain_dataset",
    in_own_folder(explain_here),
    lambda: {
        "model": row_model(),
        "source": X[:3].copy(),
        "out": "found",
        "reference": (X, Y),
        "method": "linesearch",
        "chunk": 2,
    },
    signature=scale.explain_dataset,
    arrays=("source",),
    labels=("target",),
    models=("model",),
    fixed=("scheduler", "workers"),  # strange numbers of processes would be started
    words=("class", "instances", "features", "module", "labels", "X", "rows", "column", "Methods"),
    weight=0.3,
    ranges={"chunk": (1, None)},
)


@cache
def folder():
    """A finished run."""
    path = tempfile.mkdtemp(prefix="contrafact-fuzz-")
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    scale.explain_dataset(row_model(), X[:4], path, reference=(X, Y), method="linesearch", chunk=2)
    return path


@cache
def found():
    return scale.CounterfactualsDataset(folder())


door(
    "scale.CounterfactualsDataset",
    lambda **given: repr(scale.CounterfactualsDataset(**given)),
    lambda: {"folder": folder()},
    signature=scale.CounterfactualsDataset,
    words=("folder", "results"),
)
door(
    "scale.CounterfactualsDataset.__getitem__",
    lambda rows: found()[rows],
    lambda: {"rows": [0, 2]},
    labels=("rows",),
    words=("row", "rows"),
)
door(
    "scale.CounterfactualsDataset.sample",
    lambda **given: found().sample(**given),
    lambda: {"most": 2},
    signature=scale.CounterfactualsDataset.sample,
)
door(
    "scale.CounterfactualsDataset.evaluate",
    lambda **given: found().evaluate(**given),
    lambda: {"metrics": ["valid", "l1"], "reference": X},
    signature=scale.CounterfactualsDataset.evaluate,
    arrays=("reference",),
    models=("model", "other_model"),
    words=("metric", "classes", "Reference", "reference", "other_model", "model", "y"),
    weight=0.5,
)
