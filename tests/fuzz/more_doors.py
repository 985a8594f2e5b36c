"""Doors of results, of files, and of what authors of methods and metrics use."""

import tempfile
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch
from door import door, in_own_folder
from result_checks import check_finite, check_made_result, check_rows
from samples import SERIES, TARGET, X, Y, planted, result, row_model, scores, tasks, tensor
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact import benchmark, metrics, models, nn, numerics, report, search, testing

# Results.
LABELS = ("labels", "cf_labels", "target", "classes")
FIELDS = ("source", "valid", "status", "message", "seconds", "calls")


def look_at(**fields):
    """Make a result, and use it."""
    made = cf.Counterfactuals(**fields)
    return made, repr(made), made.to_frame(), made.evaluate()


door(
    "engine.Counterfactuals",
    look_at,
    lambda: dict(vars(result())),
    signature=cf.Counterfactuals,
    arrays=("X", "X_cf", "proba", "cf_proba"),
    labels=LABELS,
    words=(*FIELDS, *LABELS, "X", "X_cf", "proba", "cf_proba", "rows", "info", "provenance"),
    check=check_made_result,
)
door(
    "engine.Counterfactuals.__getitem__",
    lambda rows: result()[rows],
    lambda: {"rows": [0, 2]},
    labels=("rows",),
    words=("row", "rows"),
    check=check_rows,
)
door(
    "engine.Counterfactuals.save",
    in_own_folder(lambda path: cf.Counterfactuals.load(result().save(path))),
    lambda: {"path": "result.npz"},
    signature=lambda path: None,
)
door(
    "engine.Counterfactuals.load",
    cf.Counterfactuals.load,
    lambda: {"path": _saved()},
    words=("npz", "file"),
    ranges={"max_bytes": (1, None)},
)
door(
    "engine.Counterfactuals.report",
    in_own_folder(lambda **given: result().report(**given)),
    lambda: {"path": "page.html"},
    signature=cf.Counterfactuals.report,
    weight=0.1,
)
door(
    "engine.Constraints.check",
    lambda X, X_cf: cf.Constraints(lower=-9, upper=9, frozen=np.arange(4) < 1).check(X, X_cf),
    lambda: {"X": X[:3].copy(), "X_cf": X[:3].copy()},
    arrays=("X", "X_cf"),
)


@cache
def _saved():
    folder = tempfile.mkdtemp(prefix="contrafact-fuzz-")
    return result().save(Path(folder) / "result.npz")


# Weights in files.
door(
    "nn.save_weights",
    in_own_folder(nn.save_weights),
    lambda: {"model": _network(), "path": "weights.safetensors"},
    signature=nn.save_weights,
    words=("module",),
)


@cache
def _network():
    with torch.random.fork_rng(devices=[]):
        return nn.MLP(2, 2).eval()


# Reports in files.
door(
    "report.write_report",
    in_own_folder(report.write_report),
    lambda: {"results": result(), "path": "page.html"},
    signature=report.write_report,
    weight=0.1,
    words=("result",),
)
door(
    "report.write_benchmark",
    in_own_folder(report.write_benchmark),
    lambda: {
        "frame": scores().assign(source=0, cell_status="done"),
        "path": "page.md",
        "metrics": ["l1"],
    },
    signature=report.write_benchmark,
    weight=0.1,
    words=("metric", "table", "cell"),
)

# Benchmarks in folders.
door(
    "benchmark.Store",
    in_own_folder(lambda **given: benchmark.Store(**given).has_model("0123")),
    lambda: {"folder": "cells"},
    signature=benchmark.Store,
)
door(
    "benchmark.progress_of",
    benchmark.progress_of,
    lambda: {"grid": _grid(), "store": benchmark.Store("not-there")},
)
door(
    "benchmark.run",
    in_own_folder(benchmark.run),
    lambda: {"grid": _grid(), "folder": "cells", "progress": False},
    signature=benchmark.run,
    weight=0.05,
    words=("dask", "scheduler"),
    ranges={"n_jobs": (-1, None)},
)
for name in ("TscfEvalPeer", "WildboarPeer"):
    kind = getattr(benchmark, name)
    door(
        f"benchmark.{name}",
        lambda kind=kind, **given: kind(**given).fit(row_model(), X, Y).explain(X[:2]),
        lambda: {"peer": NearestPeer},
        signature=kind,
        words=("explain", "counterfactuals"),
        weight=0.5,
    )
for name in ("region", "smallest", "smallest_edit"):
    door(
        f"benchmark.Planted.{name}",
        lambda name=name, **given: getattr(planted(), name)(**given),
        lambda: {"X": planted().dataset.X_test[:2]},
        signature=getattr(benchmark.Planted, name),
        arrays=("X",),
    )


class NearestPeer:
    """A peer that goes to the nearest row of another class."""

    def __init__(self, model=None, data=None):
        self.X, y = data if data is not None else (X, Y)
        self.label = y if model is None else model.predict(self.X)

    def explain(self, x, y_pred, **options):
        others = self.X[self.label != np.ravel(y_pred)[0]]
        nearest = others[((others - x) ** 2).sum(1).argmin()]
        return nearest.reshape(np.shape(x)), None, {}

    def fit(self, estimator, X, y):
        return self


@cache
def _grid():
    return benchmark.Benchmark(
        {"small": cf.Dataset("small", "row", X[:16], Y[:16], X[16:], Y[16:])},
        {"lr": LogisticRegression()},
        {"nearest": cf.NearestUnlike()},
        instances=2,
        metrics=["valid"],
    )


# Prototype models: what a fitted one is asked.
@cache
def _glvq():
    return cf.prototypes.GLVQ(max_iter=2, random_state=0).fit(X, Y)


for name in ("distances", "margins", "predict_proba", "prototype_statistics", "reject", "score"):
    given = {"X": X[:5]}
    if name in ("score", "prototype_statistics"):
        given["y"] = Y[:5]
    if name == "reject":
        given["threshold"] = 0.5
    door(
        f"prototypes.GLVQ.{name}",
        lambda name=name, **given: getattr(_glvq(), name)(**given),
        partial(dict, given),
        signature=getattr(cf.prototypes.GLVQ, name),
        arrays=("X", "sample_weight"),
        labels=("y",),
        words=("features", "rows", "instances", "label", "labels", "classes"),
        ranges={"threshold": (None, None)},
    )
door(
    "prototypes.GLVQ.fit, more",
    lambda **given: cf.prototypes.GLVQ(max_iter=1, random_state=0).fit(X, Y, **given),
    lambda: {"sample_weight": np.ones(24), "initial_prototypes": (X[:2], np.array([0, 1]))},
    signature=lambda sample_weight=None, initial_prototypes=None, validation_data=None: None,
    arrays=("sample_weight",),
)
door(
    "prototypes.NearestMean.partial_fit",
    lambda **given: cf.prototypes.NearestMean().partial_fit(**given),
    lambda: {"X": X.copy(), "y": Y.copy(), "classes": np.array([0, 1])},
    signature=cf.prototypes.NearestMean.partial_fit,
    arrays=("X", "sample_weight"),
    labels=("y", "classes"),
    words=("labels", "classes", "class", "features", "instances", "rows", "Input"),
)

# Guides and metrics: what a fitted one is asked.
door(
    "guides.NearestUnlikeNeighbor.guide",
    lambda **given: _neighbor().guide(**given),
    lambda: {"X": tensor(X[:3]), "target": torch.tensor(TARGET)},
    signature=cf.guides.NearestUnlikeNeighbor.guide,
    arrays=("X",),
    labels=("target",),
    words=("class", "rows", "target"),
    fixed=("preferred",),
    ranges={"k": (1, None)},
)


@cache
def _neighbor():
    return cf.guides.NearestUnlikeNeighbor().fit(cf.as_classifier(row_model()), X, Y)


door("metrics.MetricInputs", metrics.MetricInputs)
door(
    "models.Verdict.of_proba",
    models.Verdict.of_proba,
    lambda: {"proba": tensor(np.full((3, 2), 0.5))},
    arrays=("proba",),
    allowed=("tensor with nan",),  # of rows that failed
)
door(
    "models.Verdict.of_label",
    models.Verdict.of_label,
    lambda: {"label": torch.tensor([0, 1]), "n_classes": 2},
    labels=("label",),
    ranges={"n_classes": (1, None)},
)

# Numerics and the parts of searches.
door(
    "numerics.broadcast_rows",
    numerics.broadcast_rows,
    lambda: {"values": tensor(np.ones(3)), "like": tensor(np.ones((3, 4)))},
    arrays=("values", "like"),
    allowed=("tensor with nan", "tensor complex", "tensor meta"),  # shapes alone matter
)
door(
    "numerics.fold_in",
    numerics.fold_in,
    lambda: {"seeds": np.arange(3), "data": 1},
    labels=("seeds", "data"),
)
door(
    "numerics.RealDifferences.of",
    numerics.RealDifferences.of,
    lambda: {"X": tensor(SERIES[:5])},
    arrays=("X",),
    allowed=("one nan", "all nan", "tensor with nan"),  # missing values are left out
)
for name in ("seam", "kink", "seam_ratios", "kink_ratios"):
    door(
        f"numerics.RealDifferences.{name}",
        lambda x_cf, x, name=name: getattr(_differences(), name)(x_cf, x),
        lambda: {"x_cf": tensor(SERIES[:2] + 1), "x": tensor(SERIES[:2])},
        arrays=("x_cf", "x"),
        fixed=("name",),
        allowed=("tensor with nan",),  # missing values give NaN
    )


@cache
def _differences():
    return numerics.RealDifferences.of(tensor(SERIES))


FRONTS = np.random.default_rng(5).uniform(size=(2, 6, 3))
door(
    "search.SteepestDescent",
    search.SteepestDescent,
    lambda: {"learning_rate": 0.1, "weights": tensor(np.ones((3, 4)))},
    arrays=("weights",),
)
door(
    "search.front_ranks",
    search.front_ranks,
    lambda: {"F": tensor(FRONTS)},
    arrays=("F",),
    allowed=("one inf", "one -inf"),  # individuals that count as absent
    ranges={"enough": (1, None)},
)
door(
    "search.crowding_distance",
    search.crowding_distance,
    lambda: {"F": tensor(FRONTS), "rank": search.front_ranks(tensor(FRONTS))},
    arrays=("F",),
    labels=("rank",),
    allowed=("one inf", "one -inf"),
)
door(
    "search.survivors",
    search.survivors,
    lambda: {"F": tensor(FRONTS), "count": 3, "elite": torch.tensor([0, 1])},
    arrays=("F",),
    labels=("elite",),
    allowed=("one inf", "one -inf"),
    ranges={"count": (1, None)},
)


def toward_guide(tasks, level):
    """Candidates on the line to the guides, at level 8 the guides themselves."""
    return torch.lerp(tasks.x, tasks["guide"], (level.double() / 8).reshape(-1, 1, 1))


door(
    "search.smallest_level",
    search.smallest_level,
    lambda: {"tasks": tasks(), "candidate": toward_guide, "top": 8},
    labels=("top", "above"),
    ranges={"top": (1, None)},
    words=("level",),
)
door(
    "search.accepted_from",
    search.accepted_from,
    lambda: {
        "tasks": tasks(),
        "candidate": toward_guide,
        "level": torch.tensor([1, 2, 3]),
        "top": 8,
    },
    labels=("level",),
    ranges={"top": (1, None)},
)
door(
    "search.first_on_line",
    search.first_on_line,
    lambda: {"tasks": tasks(), "end": tensor(SERIES[3:6]), "steps": 3},
    arrays=("end",),
    ranges={"steps": (0, None)},
)
door(
    "search.best_known",
    search.best_known,
    lambda: {"tasks": tasks(), "x_cf": tensor(SERIES[3:6])},
    arrays=("x_cf",),
    check=check_finite,
    allowed=("one nan", "all nan", "one inf", "one -inf", "tensor with nan"),  # replaced
)
door(
    "search.grow_mask",
    search.grow_mask,
    lambda: {"tasks": tasks(), "segment": search.segment_ids((1, 16), 4)},
    labels=("segment",),
    ranges={"spare": (0, None)},
)
door(
    "search.minimize",
    search.minimize,
    lambda: {
        "tasks": tasks(),
        "start": tensor(np.zeros((3, 1, 16))),
        "decode": lambda tasks, code: tasks.x + code,
        "loss": lambda point: 1 - point.p_target,
        "step": search.Adam(0.1),
        "stop": search.Stop(0.5, 3, 1e-4, 2),
        "n_directions": 2,
    },
    arrays=("start", "start_code"),
    ranges={"difference": (0, None), "n_directions": (1, None)},
    words=("decode",),
)
door(
    "testing.plan_checks",
    testing.plan_checks,
    lambda: {"explainer": cf.NearestUnlike(), "models": ["linear"], "data": ["row"]},
    words=("check", "model", "data"),
)
