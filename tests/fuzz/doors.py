"""Doors: every public callable, with right arguments to start from and what is known of them."""

import inspect
import tempfile
from functools import cache, partial
from pathlib import Path

import more_doors  # noqa: F401, its doors are added
import numpy as np
import scale_doors  # noqa: F401, its doors are added
import torch
from door import DOORS as DOORS
from door import Door as Door
from door import door, in_own_folder
from PIL import Image
from result_checks import (
    check_request,
    check_scores,
    in_ball,
    no_complaints,
    of_known_classes,
    same_points_finite,
)
from samples import (
    IMAGES,
    SERIES,
    SERIES_Y,
    TARGET,
    X,
    Y,
    fitted,
    planted,
    result,
    row_model,
    scores,
    series_model,
    tensor,
)
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact import (
    benchmark,
    data,
    engine,
    geometry,
    guides,
    metrics,
    models,
    nn,
    numerics,
    prototypes,
    report,
    search,
    tables,
    testing,
)
from contrafact.testing.table_cases import make_table
from contrafact.web import Client, ServiceLimits, make_service

# Explainers: made, fitted, asked.
EXPLAINERS = {
    "CELS": {"max_iter": 2},
    "SETS": {"n_candidates": 5, "max_shapelets": 3},
    "SVCE": {"n_iter": 2, "restarts": 1},
    "TSNUC": {"max_epochs": 1, "max_iter": 2},
    "CoMTE": {"n_distractors": 2},
    "Glacier": {"max_iter": 2},
    "Graft": {"n_donors": 3, "max_rows": 12, "level": "smallest"},
    "LatentCF": {"max_epochs": 1, "max_iter": 2},
    "LineSearch": {},
    "NativeGuide": {},
    "NearestUnlike": {},
    "RandomMask": {},
    "RandomTarget": {},
    "TSEvo": {"population": 4, "generations": 1},
}
#: Those that take long to fit are asked less often.
COSTLY = {"SETS", "TSNUC", "LatentCF", "TSEvo", "Graft"}


def explain_with(cls, **options):
    return cls(**options).fit(series_model, SERIES, SERIES_Y).explain(SERIES[:2])


for name, cheap in EXPLAINERS.items():
    cls = getattr(cf, name)
    door(
        f"explainers.{name}",
        partial(explain_with, cls),
        partial(dict, cheap),
        signature=cls,
        weight=0.2 if name in COSTLY else 0.7,
        check=check_request,
        ranges={"proximity": (0, None)} if name == "LatentCF" else {},  # a weight, not a share
    )
#: those that take rows only
ROW_EXPLAINERS = {
    "DiCE": {"population": 4, "generations": 1},
    "FACE": {},
    "GrowingSpheres": {"n_samples": 5, "max_layers": 2},
    "NICE": {},
    "Wachter": {"max_iter": 2, "max_rounds": 2},
}


def explain_rows_with(cls, **options):
    return cls(**options).fit(row_model(), X, Y).explain(X[:2])


for name, cheap in ROW_EXPLAINERS.items():
    cls = getattr(cf, name)
    door(
        f"explainers.{name}",
        partial(explain_rows_with, cls),
        partial(dict, cheap),
        signature=cls,
        weight=0.7,
        check=check_request,
        ranges={"proximity": (0, None)} if name == "DiCE" else {},  # a weight, not a share
    )
door(
    "explainers.PrototypeCounterfactual",
    lambda **options: cf.PrototypeCounterfactual(**options).fit(_glvq(), X, Y).explain(X[:2]),
    signature=cf.PrototypeCounterfactual,
)


@cache
def _glvq():
    return prototypes.GLVQ(max_iter=3, random_state=0).fit(X, Y)


def fit_base():
    return {"model": row_model(), "X": X.copy(), "y": Y.copy()}


for name in ("LineSearch", "NearestUnlike"):
    cls = getattr(cf, name)
    door(
        f"explainers.{name}.fit",
        lambda cls=cls, **given: cls().fit(**given).explain(X[:2]),
        fit_base,
        signature=cls.fit,
        arrays=("X",),
        labels=("y",),
        models=("model",),
        words=("y", "label", "class", "feature", "instance", "module", "row"),
        check=check_request,
    )


def ask_rows(method="LineSearch", **given):
    explainer = fitted(method)
    rows = given.pop("X")
    return explainer.explain(rows, **given)


def ask_series(method="LineSearch", **given):
    explainer = fitted(method, "series")
    rows = given.pop("X")
    return explainer.explain(rows, **given)


for name in ("LineSearch", "RandomMask"):
    door(
        f"explainers.{name}.explain",
        partial(ask_rows, name),
        lambda: {"X": X[:3].copy(), "target": TARGET.copy()},
        signature=cf.LineSearch.explain,
        arrays=("X",),
        labels=("target",),
        fixed=("progress",),
        words=("class", "seed", "label"),
        check=check_request,
        ranges={"k": (1, None), "confidence": (0, 1)},
    )


def with_constraints(ask, rows, **limits):
    return ask(X=rows.copy(), constraints=cf.Constraints(**limits))


door(
    "engine.Constraints, rows",
    partial(with_constraints, ask_rows, X[:3]),
    lambda: {"lower": X.min(0) - 1, "upper": X.max(0) + 1},
    signature=cf.Constraints,
    arrays=("lower", "upper", "frozen"),
    check=check_request,
    allowed=("inf", "-inf", "one inf", "one -inf", "1e300"),
    words=("max_step",),
)
door(
    "engine.Constraints, series",
    partial(with_constraints, ask_series, SERIES[:3]),
    lambda: {
        "lower": SERIES.min() - np.ones((1, 16)),
        "upper": SERIES.max() + np.ones((1, 16)),
        "frozen": np.arange(16) < 3,
        "max_step": 30.0,
    },
    signature=cf.Constraints,
    arrays=("lower", "upper", "frozen"),
    check=check_request,
    allowed=("inf", "-inf", "one inf", "one -inf", "1e300"),
)


# Tables: a frame with columns of every kind, described, searched, limited.
@cache
def _patients():
    return make_table(24, 0)


def frame():
    return _patients()[0].copy()


def table_model(frame):
    """P of two classes, by two columns."""
    p = 1 / (1 + np.exp(-(frame["bmi"].to_numpy(float) - 27) / 4 - 2 * frame["smokes"].to_numpy()))
    return np.stack([1 - p, p], 1)


@cache
def _fitted_to_a_table():
    return cf.NearestUnlike().fit(table_model, frame())


door(
    "tables.Schema",
    tables.Schema,
    lambda: {"columns": (tables.Column("age", "integer"), tables.Column("bmi", "continuous"))},
    words=("column", "group"),
)
door(
    "tables.Schema.infer",
    tables.Schema.infer,
    lambda: {"frame": frame(), "kinds": {"age": "continuous"}},
)
door(
    "tables.Column",
    tables.Column,
    lambda: {"name": "age", "kind": "integer", "lower": 0.0, "upper": 99.0},
    allowed=("inf", "-inf", "1e300"),
    words=("levels", "lower", "group", "step"),
)
door("tables.is_frame", tables.is_frame, lambda: {"X": frame()}, fixed=("X",))
door(
    "tables.join_frames",
    tables.join_frames,
    lambda: {"first": frame(), "second": frame()},
    words=("frame", "X_cf"),
)
door(
    "explainers.NearestUnlike.fit, frames",
    lambda **given: cf.NearestUnlike().fit(table_model, frame(), **given).explain(frame()[:3]),
    lambda: {"schema": tables.Schema.infer(frame())},
    signature=lambda schema=None: None,
    words=("schema",),
)
door(
    "engine.Constraints, tables",
    lambda **limits: _fitted_to_a_table().explain(
        frame()[:3], constraints=cf.Constraints(**limits)
    ),
    lambda: {
        "frozen": ["sex"],
        "bounds": {"hba1c": (4, 9)},
        "increasing": ["age"],
        "decreasing": ["dose"],
        "max_changed": 4,
        "relations": ["age >= prior"],
        "forbidden": {"sex": [("f", "m")]},
    },
    signature=cf.Constraints,
    fixed=("lower", "upper", "max_step"),
    words=("column", "max_step"),
)
door(
    "engine.Budget",
    lambda **limits: ask_rows(X=X[:3].copy(), budget=cf.Budget(**limits)),
    lambda: {"calls": 50, "seconds": 5.0},
    signature=cf.Budget,
    check=check_request,
    ranges={"calls": (1, None), "seconds": (0, None)},
)
door("engine.Request", engine.Request, dict, fixed=("committee",), words=("random_state",))
door("engine.Tags", engine.Tags, dict)
door(
    "engine.Counterfactuals.from_arrays",
    cf.Counterfactuals.from_arrays,
    lambda: {"model": row_model(), "X": X[:3].copy(), "X_cf": X[3:6].copy(), "target": TARGET},
    arrays=("X", "X_cf"),
    labels=("target",),
    models=("model",),
    words=("class", "instances", "features", "module", "label"),
    check=check_request,
)
door(
    "explainers.explain",
    cf.explain,
    lambda: {
        "model": row_model(),
        "X": X[:2].copy(),
        "target": np.array([1, 0]),
        "reference": (X, Y),
        "method": "linesearch",
    },
    arrays=("X",),
    labels=("target",),
    models=("model",),
    words=("class", "instances", "features", "module", "labels", "X"),
    check=check_request,
)
door(
    "explainers.recommend",
    cf.recommend,
    lambda: {"classifier": row_model(), "modality": "row"},
    models=("classifier",),
)
door(
    "explainers.recommend, measured",
    lambda **given: cf.recommend(row_model(), "row", measure=True, X=X, y=Y, **given),
    lambda: {
        "instances": X[:2].copy(),
        "weights": {"change": 1.0},
        "budget": cf.Budget(calls=200),
        "random_state": 0,
    },
    arrays=("instances",),
    weight=0.05,
    words=("X", "features", "budget"),
)
door(
    "explainers.class_audit",
    cf.class_audit,
    lambda: {"model": series_model, "X": SERIES[:6].copy(), "target": 1, "window": 4},
    arrays=("X",),
    models=("model",),
    weight=0.05,
    words=("class", "instances", "module"),
)
door(
    "explainers.audit_classes",
    cf.audit_classes,
    lambda: {"model": series_model, "X": SERIES[:6].copy(), "window": 4, "n_starts": 2},
    arrays=("X",),
    models=("model",),
    weight=0.05,
    words=("class", "instances", "module"),
)
door(
    "explainers.advise_norm",
    cf.advise_norm,
    lambda: {
        "model": torch.nn.Linear(4, 2),
        "X": X[:8].copy(),
        "y": Y[:8].copy(),
        "reference": torch.nn.Linear(4, 2),
        "norms": (2,),
        "n_iter": 2,
    },
    arrays=("X",),
    labels=("y",),
    models=("model", "reference"),
    weight=0.1,
    words=("class", "label", "module", "instances", "features", "y", "rows"),
)
door("explainers.list_explainers", cf.list_explainers)


def explored(**given):
    """Start the explorer and stop it."""
    with cf.explore(**given) as explorer:
        assert explorer.running


door(
    "web.explore",
    explored,
    lambda: {"model": row_model(), "data": X.copy(), "reference": (X.copy(), Y)},
    signature=cf.explore,
    arrays=("data",),
    models=("model",),
    weight=0.2,
    words=("class", "instances", "features", "module", "labels", "X", "host", "port"),
)


def served(**given):
    """Make a service and close it."""
    make_service(**given).service.close()


door(
    "web.make_service",
    served,
    lambda: {"model": row_model(), "reference": (X.copy(), Y)},
    signature=make_service,
    models=("model",),
    weight=0.2,
    words=("class", "instances", "features", "module", "labels", "X", "y", "hosts", "reference"),
)
door("web.ServiceLimits", ServiceLimits, lambda: {"max_instances": 8, "max_seconds": 2.0})
door(
    "web.Client",
    Client,
    lambda: {"url": "http://127.0.0.1:8000", "token": "secret"},
)
door(
    "search.refine",
    cf.refine,
    lambda: {"result": result(), "model": row_model()},
    models=("model",),
    check=check_request,
    ranges={"confidence": (0, 1)},
    words=("class", "module", "rows"),
)
door(
    "search.segment_ids",
    search.segment_ids,
    lambda: {"shape": (1, 16), "width": 4},
)

# Models.
door(
    "models.as_classifier",
    lambda **given: cf.as_classifier(**given).predict_proba(X[:5].copy()),
    lambda: {"model": row_model()},
    signature=cf.as_classifier,
    models=("model",),
    labels=("classes",),
    words=("module", "function", "class", "X", "features"),
    ranges={"batch_size": (1, None)},
)
door(
    "models.as_classifier, module",
    lambda **given: cf.as_classifier(**given).predict(X[:5].copy()),
    lambda: {"model": torch.nn.Linear(4, 2), "classes": np.array([0, 1])},
    signature=cf.as_classifier,
    models=("model",),
    labels=("classes",),
    words=("module", "function", "class", "X", "features"),
    ranges={"batch_size": (1, None)},
)
for method in ("predict", "predict_proba"):
    door(
        f"models.Classifier.{method}",
        lambda X, method=method: getattr(cf.as_classifier(row_model()), method)(X),
        lambda: {"X": X[:5].copy()},
        arrays=("X",),
        fixed=("method",),
        words=("features", "rows"),
        check=of_known_classes if method == "predict" else no_complaints,
    )
door(
    "models.Committee",
    models.Committee,
    lambda: {"members": [row_model(), row_model()]},
    words=("member", "committee", "model"),
)

door(
    "models.Ensemble",
    lambda **given: models.Ensemble(**given).predict_proba(X[:5]),
    lambda: {"members": [row_model(), row_model()]},
    signature=models.Ensemble,
    words=("member", "model"),
)

# Guides.
for name in ("NearestUnlikeCluster", "NearestUnlikeNeighbor", "NearestUnlikePrototype"):
    cls = getattr(guides, name)
    door(
        f"guides.{name}",
        lambda cls=cls, **options: cls(**options).fit(row_model(), X, Y),
        lambda name=name: {"n_prototypes": 1} if "Prototype" in name else {},
        signature=cls,
        weight=0.2 if "Prototype" in name else 0.7,
    )
door(
    "guides.NearestUnlikeNeighbor.fit",
    lambda **given: guides.NearestUnlikeNeighbor().fit(**given),
    fit_base,
    signature=guides.NearestUnlikeNeighbor.fit,
    arrays=("X",),
    labels=("y",),
    models=("model",),
    words=("y", "label", "class", "feature", "instance", "module", "row"),
)

# Prototype models.
LVQ = {"max_iter": 2, "random_state": 0}
for name in ("GLVQ", "GMLVQ", "GRLVQ", "LGMLVQ", "LVQ1", "LVQ21", "CELVQ", "RSLVQ"):
    cls = getattr(prototypes, name)
    door(
        f"prototypes.{name}",
        lambda cls=cls, **options: cls(**options).fit(X, Y).predict(X),
        partial(dict, LVQ),
        signature=cls,
        weight=0.5,
        check=of_known_classes,
    )
door(
    "prototypes.DeepLVQ",
    lambda **options: prototypes.DeepLVQ(**options).fit(X, Y).predict(X),
    lambda: {"max_iter": 1, "random_state": 0, "backbone": "mlp", "embedding": 3},
    signature=prototypes.DeepLVQ,
    weight=0.3,
    check=of_known_classes,
)
for name in ("MedianLVQ", "NearestMean"):
    cls = getattr(prototypes, name)
    door(
        f"prototypes.{name}",
        lambda cls=cls, **options: cls(**options).fit(X, Y).predict(X),
        dict,
        signature=cls,
        check=of_known_classes,
        weight=0.5,
    )
door(
    "prototypes.SoftDTW",
    lambda **options: (
        prototypes.GLVQ(distance_fn=prototypes.SoftDTW(**options), **LVQ)
        .fit(SERIES, SERIES_Y)
        .predict(SERIES)
    ),
    lambda: {"gamma": 0.1, "window": 0.5},
    signature=prototypes.SoftDTW,
    check=of_known_classes,
    weight=0.3,
)
door(
    "prototypes.MedianLVQ, series",
    lambda **options: prototypes.MedianLVQ(**options).fit(SERIES, SERIES_Y).predict(SERIES),
    lambda: {"metric": "dtw", "window": 0.2},
    signature=prototypes.MedianLVQ,
    check=of_known_classes,
    weight=0.3,
)
for name in ("GLVQ", "NearestMean", "MedianLVQ"):
    cls = getattr(prototypes, name)
    options = dict(LVQ) if name == "GLVQ" else {}
    door(
        f"prototypes.{name}.fit",
        lambda X, y, cls=cls, options=options: cls(**options).fit(X, y).predict(X),
        lambda: {"X": X.copy(), "y": Y.copy()},
        arrays=("X",),
        labels=("y",),
        fixed=("cls", "options"),
        words=("labels", "classes", "class", "features", "instances", "rows", "Input"),
    )
    door(
        f"prototypes.{name}.predict",
        lambda X, cls=cls, options=options: _prototype_model(cls, tuple(options.items())).predict(
            X
        ),
        lambda: {"X": X[:5].copy()},
        arrays=("X",),
        fixed=("cls", "options"),
        words=("features", "rows", "instances"),
        check=of_known_classes,
    )


@cache
def _prototype_model(cls, options):
    return cls(**dict(options)).fit(X, Y)


door(
    "prototypes.PrototypeMemory",
    lambda **given: prototypes.PrototypeMemory(**given).energy(X[:2].copy()),
    lambda: {"prototypes": X[:4].copy(), "labels": Y[:4].copy()},
    signature=prototypes.PrototypeMemory,
    arrays=("prototypes",),
    labels=("labels",),
    words=("label",),
    ranges={"beta": (0, None)},
)
#: Points that are not finite give values that are not, as documented; the check looks at them.
NOT_FINITE = ("one nan", "all nan", "tensor with nan", "one inf", "one -inf")
for name in ("energy", "gradient", "project", "step"):
    door(
        f"prototypes.PrototypeMemory.{name}",
        lambda name=name, **given: getattr(prototypes.PrototypeMemory(X[:4], labels=Y[:4]), name)(
            **given
        ),
        lambda: {"x": X[:2].copy()},
        signature=getattr(prototypes.PrototypeMemory, name),
        arrays=("x",),
        labels=("label",),
        words=("X", "rows", "points"),
        check=same_points_finite,
        allowed=NOT_FINITE,
    )
for name in ("Diversity", "Orthogonality", "RelevanceFloor", "SparseRelevance"):
    cls = getattr(prototypes, name)
    first = next(iter(inspect.signature(cls).parameters))
    door(
        f"prototypes.{name}",
        lambda cls=cls, **given: prototypes.GRLVQ(
            max_iter=1, random_state=0, regularizers=(cls(**given),)
        ).fit(X, Y),
        partial(dict, {first: 0.1}),
        signature=cls,
        weight=0.5,
    )
for name in ("orthogonality_loss", "prototype_diversity_loss"):
    door(
        f"prototypes.{name}",
        getattr(prototypes, name),
        lambda: {"prototypes": tensor(X[:4]), "labels": torch.tensor([0, 0, 1, 1])},
        arrays=("prototypes",),
        labels=("labels",),
    )
for name in ("elastic_net_proximal", "sparse_relevance_proximal"):
    more = {"l2_weight": 0.1} if "elastic" in name else {}
    door(
        f"prototypes.{name}",
        getattr(prototypes, name),
        lambda more=more: {"relevances": tensor(np.full(4, 0.25)), "l1_weight": 0.1, **more},
        arrays=("relevances",),
    )
door(
    "prototypes.select_diverse",
    prototypes.select_diverse,
    lambda: {"candidates": tensor(X[:6][None]), "k": 2},
    arrays=("candidates", "quality"),
    words=("k",),
)

# Geometry.
NORMS = (1, 1.5, 2, float("inf"))
for name in ("lmo", "project", "duality_gap"):
    door(
        f"geometry.{name}",
        getattr(geometry, name),
        {
            "lmo": lambda: {"w": X[:3].copy(), "x": np.full((3, 4), 0.5), "eps": 0.3, "p": 1.5},
            "project": lambda: {
                "x": X[:3].copy(),
                "center": np.full((3, 4), 0.5),
                "eps": 0.3,
                "p": 2,
            },
            "duality_gap": lambda: {
                "w": X[:3].copy(),
                "x": np.full((3, 4), 0.5),
                "delta": np.zeros((3, 4)),
                "eps": 0.3,
                "p": 2,
            },
        }[name],
        arrays=("w", "x", "center", "delta", "mask"),
        check=in_ball if name == "project" else no_complaints,
        ranges={"p": (1, None), "eps": (0, None)},
    )
door(
    "geometry.nearest_point",
    geometry.nearest_point,
    lambda: {
        "x": tensor(X[:3]),
        "A": tensor(np.ones((3, 1, 4))),
        "b": tensor(np.full((3, 1), 2.0)),
    },
    arrays=("x", "A", "b"),
)

# Data.
door(
    "data.Dataset",
    cf.Dataset,
    lambda: {
        "name": "small",
        "modality": "row",
        "X_train": X[:8].copy(),
        "y_train": Y[:8].copy(),
        "X_test": X[8:12].copy(),
        "y_test": Y[8:12].copy(),
    },
    arrays=("X_train", "X_test"),
    labels=("y_train", "y_test"),
    words=("train", "test", "features", "labels", "shape"),
)
door("data.load_dataset", cf.load_dataset, lambda: {"name_or_path": "GunPoint"}, weight=0.1)
door("data.list_datasets", cf.list_datasets)
door(
    "data.read_mask",
    data.read_mask,
    lambda: {"path": _mask_file(), "shape": (4, 5)},
    ranges={"threshold": (0, 1)},
    weight=0.2,
)
door(
    "data.make_patients",
    data.make_patients,
    lambda: {"n": 12},
    ranges={"n": (2, None), "random_state": (0, None)},
    weight=0.2,
)
door(
    "data.disagreeing_rows",
    data.disagreeing_rows,
    lambda: {"X": X.copy(), "y": Y.copy()},
    words=("y",),
    arrays=("X",),
    labels=("y",),
    ranges={"k": (1, None)},
)
door(
    "data.fill_missing",
    data.fill_missing,
    lambda: {"X": SERIES[:3].copy()},
    arrays=("X",),
    allowed=("one nan", "tensor with nan", "masked", "None", "nan"),
)
door(
    "data.pad",
    data.pad,
    lambda: {"X": [SERIES[0], SERIES[1][:, :9]]},
    allowed=("ragged", "ragged objects", "nan"),
)

# Networks and training.
door(
    "nn.fit_classifier",
    cf.fit_classifier,
    lambda: {"module": "mlp", "X": X.copy(), "y": Y.copy(), "max_epochs": 1},
    arrays=("X",),
    labels=("y",),
    fixed=("progress",),
    weight=0.4,
    words=("labels", "classes", "class", "module", "instances", "X_val"),
)
door(
    "nn.fit_autoencoder",
    cf.fit_autoencoder,
    lambda: {"module": "cnn", "X": SERIES.copy(), "max_epochs": 1},
    arrays=("X",),
    fixed=("progress",),
    weight=0.3,
)
NETWORKS = {
    "FCN": ({"n_channels": 1, "n_classes": 2, "widths": (2, 2, 2)}, (2, 1, 16)),
    "MLP": ({"n_features": 4, "n_classes": 2, "hidden": (3,)}, (2, 4)),
    "BiLSTM": ({"n_channels": 1, "n_classes": 2, "hidden": 2}, (2, 1, 16)),
    "ConvAutoencoder": ({"shape": (1, 16), "latent": 2, "widths": (2, 2)}, (2, 1, 16)),
    "LSTMAutoencoder": ({"shape": (1, 16), "latent": 2, "hidden": 2}, (2, 1, 16)),
    "InceptionTime": ({"n_channels": 1, "n_classes": 2, "width": 2, "depth": 3}, (2, 1, 16)),
    "ResNet8": ({"n_channels": 1, "n_classes": 2, "widths": (2, 2, 2)}, (2, 1, 8, 8)),
    "SmallCNN": ({"n_channels": 1, "n_classes": 2, "widths": (2, 2)}, (2, 1, 8, 8)),
}
for name, (sizes, _) in NETWORKS.items():
    cls = getattr(nn, name)

    def make(cls=cls, **sizes):
        with torch.random.fork_rng(devices=[]):  # a network draws its weights, as torch's own do
            return cls(**sizes)

    door(f"nn.{name}", make, partial(dict, sizes), signature=cls, allowed=("np.array([1, 2])",))
door(
    "nn.normalized",
    nn.normalized,
    lambda: {"module": torch.nn.Flatten(), "mean": [0.5], "std": [0.25]},
    arrays=("mean", "std"),
)
door(
    "nn.RobustTrainer",
    lambda **options: nn.RobustTrainer(**options).fit("smallcnn", IMAGES, np.arange(12) % 2),
    lambda: {"max_epochs": 1, "steps": 1, "batch_size": 6},
    signature=nn.RobustTrainer,
    fixed=("progress",),
    weight=0.2,
)
door(
    "nn.robust_accuracy",
    cf.robust_accuracy,
    lambda: {
        "model": torch.nn.Linear(4, 2),
        "X": np.abs(X[:6]) % 1,
        "y": Y[:6].copy(),
        "steps": 1,
        "restarts": 1,
    },
    arrays=("X",),
    labels=("y",),
    models=("model",),
    words=("class", "label", "module", "instances", "features", "y"),
    ranges={"eps": (0, None)},
)
door(
    "nn.robust_report",
    cf.robust_report,
    lambda: {
        "model": torch.nn.Linear(4, 2),
        "X": np.abs(X[:6]) % 1,
        "y": Y[:6].copy(),
        "steps": 1,
        "restarts": 1,
    },
    arrays=("X",),
    labels=("y",),
    models=("model",),
    words=("class", "label", "module", "instances", "features", "y"),
    ranges={"eps": (0, None)},
)
door(
    "nn.spectral_report",
    cf.spectral_report,
    lambda: {"model": torch.nn.Linear(4, 2), "X": X[:6].copy()},
    arrays=("X",),
    models=("model",),
    words=("module", "rows", "features"),
)
door(
    "nn.FeatureExtractor",
    lambda **options: nn.FeatureExtractor(**options).fit(X, Y).transform(X),
    lambda: {"module": "mlp", "max_epochs": 1},
    signature=nn.FeatureExtractor,
    fixed=("progress",),
    weight=0.3,
)
door(
    "nn.FeatureExtractor.of",
    lambda model: nn.FeatureExtractor.of(model).transform(X[:3]),
    lambda: {"model": torch.nn.Linear(4, 2)},
    models=("model",),
    words=("module", "X"),
)
door(
    "nn.reconstruction_report",
    cf.reconstruction_report,
    lambda: {"autoencoder": _autoencoder(), "model": series_model, "X": SERIES[:6].copy()},
    arrays=("X",),
    labels=("y",),
    models=("model",),
    words=("module", "instances", "label"),
)
door(
    "nn.committee",
    cf.committee,
    lambda: {"model": row_model(), "X": X.copy(), "y": Y.copy(), "n": 2},
    arrays=("X",),
    labels=("y",),
    models=("model",),
    weight=0.3,
    words=("module", "class", "labels", "classes", "instances", "features"),
)
door(
    "nn.load_model",
    cf.load_model,
    lambda: {"path": "not-there.pt"},
    words=("model", "file"),
)


@cache
def _autoencoder():
    with torch.random.fork_rng(devices=[]):
        return nn.ConvAutoencoder((1, 16), 2, (2, 2)).eval()


# Metrics.
door(
    "metrics.evaluate",
    metrics.evaluate,
    lambda: {"result": result(), "reference": (X, Y), "metrics": ["l1", "sparsity", "lof"]},
    check=check_scores,
    words=("metric", "reference", "model"),
)
door(
    "metrics.Reference",
    metrics.Reference,
    lambda: {"X": X.copy(), "y": Y.copy()},
    arrays=("X",),
    labels=("y",),
    words=("reference", "label"),
)
door("metrics.NoiseSurvival", metrics.NoiseSurvival, ranges={"sigma": (0, None)})
door("metrics.list_metrics", metrics.list_metrics)
door(
    "metrics.frechet_distance",
    metrics.frechet_distance,
    lambda: {"features": X[:5].copy(), "reference": X[5:].copy()},
    arrays=("features", "reference"),
)
door(
    "metrics.aggregate",
    metrics.aggregate,
    lambda: {"frame": metrics.evaluate(result(), ["l1"]), "n_resamples": 20},
)

# Reports.
door(
    "report.plot",
    report.plot,
    lambda: {"result": result("series"), "i": 0},
    weight=0.1,
    words=("row",),
)
for name, kind in (("montage", "image"), ("plot_many", "series")):
    door(
        f"report.{name}",
        getattr(report, name),
        lambda kind=kind: {"result": result(kind), "rows": [0, 1]},
        weight=0.05,
        words=("row",),
    )
door(
    "report.plot_methods",
    report.plot_methods,
    lambda: {"results": {"a": result("series"), "b": result("series")}},
    weight=0.05,
    words=("row", "result"),
)
door(
    "report.plot_pareto",
    report.plot_pareto,
    lambda: {"frame": scores(), "x": "l1", "y": "sparsity"},
    weight=0.05,
    words=("metric",),
)
door("report.plot_audit", report.plot_audit, lambda: {"audit": _audit()}, weight=0.05)
door(
    "report.write_audit",
    in_own_folder(report.write_audit),
    lambda: {"audit": _ranking(), "path": "audit.html"},
    signature=report.write_audit,
    weight=0.05,
)
door(
    "report.plot_correlations",
    report.plot_correlations,
    lambda: {"table": benchmark.correlations(scores(), ["l1", "sparsity"])},
    weight=0.05,
)
door(
    "report.plot_critical_difference",
    report.plot_critical_difference,
    lambda: {"comparison": benchmark.nemenyi(scores(), "l1")},
    weight=0.05,
)
door(
    "prototypes.robustness_radius",
    prototypes.robustness_radius,
    lambda: {"model": _glvq(), "X": X.copy()},
    arrays=("X",),
    weight=0.3,
    words=("features",),
)
door(
    "prototypes.unsupervised_relevance",
    prototypes.unsupervised_relevance,
    lambda: {"X": X.copy(), "max_iter": 2, "random_state": 0},
    arrays=("X",),
    weight=0.3,
)
door(
    "report.plot_prototypes",
    report.plot_prototypes,
    lambda: {"model": _glvq(), "X": X.copy(), "y": Y.copy()},
    arrays=("X",),
    labels=("y",),
    weight=0.05,
    words=("features", "rows", "label"),
)
door(
    "report.plot_warping",
    report.plot_warping,
    lambda: {"model": _warped(), "x": SERIES[0].copy(), "classes": tuple(_warped().classes_)},
    arrays=("x",),
    labels=("classes",),
    weight=0.05,
    words=("X", "features", "rows", "label"),
)
door(
    "report.plot_projection",
    report.plot_projection,
    lambda: {"model": _gmlvq(), "X": X.copy(), "y": Y.copy()},
    arrays=("X",),
    labels=("y",),
    weight=0.05,
    words=("features", "rows", "label"),
)
door(
    "report.plot_relevances",
    report.plot_relevances,
    lambda: {"model": _gmlvq(), "names": list("abcd")},
    weight=0.05,
)
door(
    "report.plot_saliency",
    report.plot_saliency,
    lambda: {"result": _cels_result(), "i": 0},
    weight=0.05,
    words=("row",),
)
door(
    "report.plot_latent",
    report.plot_latent,
    lambda: {"explainer": _latent()[0], "result": _latent()[1]},
    weight=0.05,
    words=("row",),
)


@cache
def _warped():
    return prototypes.MedianLVQ(metric="dtw").fit(SERIES, SERIES_Y)


@cache
def _gmlvq():
    return prototypes.GMLVQ(max_iter=3, random_state=0).fit(X, Y)


@cache
def _mask_file():
    path = Path(tempfile.mkdtemp()) / "mask.png"
    Image.fromarray(np.eye(4, 5, dtype=bool)).save(path)
    return str(path)


@cache
def _ranking():
    return cf.audit_classes(series_model, SERIES[:6], window=4, n_starts=2)


@cache
def _audit():
    return cf.class_audit(series_model, SERIES[:6], 1, window=4)


@cache
def _cels_result():
    return cf.CELS(max_iter=3).fit(series_model, SERIES, SERIES_Y).explain(SERIES[:2])


@cache
def _latent():
    explainer = cf.LatentCF(max_epochs=1, max_iter=3).fit(series_model, SERIES, SERIES_Y)
    return explainer, explainer.explain(SERIES[:2])


# The benchmark's statistics and planted data.
for name in ("friedman", "nemenyi", "ranks", "wilcoxon_holm"):
    door(
        f"benchmark.{name}",
        getattr(benchmark, name),
        lambda: {"frame": scores(), "metric": "l1"},
        ranges={"alpha": (0, 1)},
    )
for name in ("correlations", "pareto_front"):
    door(
        f"benchmark.{name}",
        getattr(benchmark, name),
        lambda: {"frame": scores(), "metrics": ["l1", "sparsity"]},
        words=("metric",),
    )
for name in ("scalarize", "sensitivity"):
    door(
        f"benchmark.{name}",
        getattr(benchmark, name),
        lambda name=name: {
            "frame": scores(),
            "weights": {"l1": 1.0, "sparsity": 2.0},
            **({"draws": 20} if name == "sensitivity" else {}),
        },
        words=("weight", "metric"),
    )
door(
    "benchmark.parameter_effects",
    lambda **given: benchmark.parameter_effects(
        cf.LineSearch(), _glvq(), (X, Y), **{"X": X[:2], **given}
    ),
    lambda: {"levels": {"steps": [2, 5]}, "metrics": ["valid"], "random_state": 0},
    weight=0.05,
)
door(
    "benchmark.visual_protocol",
    lambda **given: benchmark.visual_protocol({"a": _image_model()}, **given),
    lambda: {
        "explainers": {"line": cf.LineSearch()},
        "X": IMAGES[:4].copy(),
        "X_other": IMAGES[4:8].copy(),
        "reference": (IMAGES, np.arange(12) % 2),
        "features": _means_of_rows,
        "real": IMAGES[8:].copy(),
        "confidence": 0.5,
    },
    signature=lambda explainers, X, X_other, reference, features, real, confidence: None,
    weight=0.1,
    words=("features", "instances", "labels", "images"),
)


def _means_of_rows(images):
    return np.asarray(images).mean(axis=(1, 3))


@cache
def _image_model():
    images = np.concatenate([IMAGES, 1 - IMAGES])
    return cf.fit_classifier("smallcnn", images, np.arange(24) % 2, max_epochs=1)


door(
    "benchmark.planted_series",
    benchmark.planted_series,
    lambda: {"n": 12, "length": 16, "width": 4},
    weight=0.5,
)
door(
    "benchmark.planted_images",
    benchmark.planted_images,
    lambda: {"n": 12, "size": 8, "width": 3},
    weight=0.5,
)
for name in ("localization", "optimality_gap"):
    door(
        f"benchmark.{name}",
        getattr(benchmark, name),
        lambda: {"result": _planted_result(), "planted": planted()},
    )
door(
    "benchmark.Benchmark",
    lambda **given: benchmark.Benchmark(**given).cells,
    lambda: {
        "datasets": ["GunPoint"],
        "classifiers": {"lr": LogisticRegression()},
        "explainers": {"line": cf.LineSearch()},
    },
    signature=benchmark.Benchmark,
    fixed=("_read",),
    weight=0.5,
)


@cache
def _planted_result():
    rows = planted().dataset.X_test[:2]
    explainer = cf.LineSearch().fit(
        planted().model, planted().dataset.X_train, planted().dataset.y_train
    )
    return explainer.explain(rows)


# Numerics.
door("numerics.ceil_div", numerics.ceil_div, lambda: {"a": 7, "b": 2})
door(
    "numerics.channel_correlations",
    numerics.channel_correlations,
    lambda: {"series": tensor(np.concatenate([SERIES[:3], SERIES[3:6]], 1))},
    arrays=("series",),
)
door(
    "numerics.occurrence",
    numerics.occurrence,
    lambda: {"groups": torch.tensor([0, 1, 0])},
    labels=("groups",),
)
door(
    "numerics.quantile_near",
    numerics.quantile_near,
    lambda: {"values": tensor(SERIES[:5]), "quantile": 0.5, "reach": 1},
    arrays=("values",),
    ranges={"quantile": (0, 1), "reach": (0, None)},
    allowed=("one nan", "all nan", "tensor with nan"),  # missing values are left out
)
for name in ("row_normal", "row_uniform"):
    door(
        f"numerics.{name}",
        getattr(numerics, name),
        lambda: {"seeds": np.arange(3), "size": 4},
        labels=("seeds",),
        ranges={"size": (0, None)},
    )
door(
    "numerics.row_seeds",
    numerics.row_seeds,
    lambda: {"X": X[:3].copy(), "seed": 0},
    arrays=("X",),
    allowed=("one nan", "all nan", "one inf", "one -inf", "tensor with nan", "nan"),
)
door(
    "numerics.zeroth_order_gradient",
    numerics.zeroth_order_gradient,
    lambda: {
        "function": lambda x: x.reshape(len(x), -1).square().sum(1),
        "x": tensor(X[:3]),
        "seeds": np.arange(3),
        "n_directions": 4,
    },
    arrays=("x",),
    labels=("seeds",),
)
door("search.Adam", search.Adam, lambda: {"learning_rate": 0.1})
door(
    "search.Stop",
    search.Stop,
    lambda: {"tau": 0.5, "patience": 3, "tolerance": 1e-4, "max_iter": 10},
    ranges={"tau": (None, None)},
)
door(
    "testing.make_case",
    testing.make_case,
    lambda: {"model_kind": "linear", "data_kind": "row"},
    weight=0.2,
)
door(
    "testing.check_explainer",
    cf.check_explainer,
    lambda: {
        "explainer": cf.NearestUnlike(),
        "models": ["linear"],
        "data": ["row"],
        "checks": ["batch_equals_loop"],
    },
    weight=0.05,
    words=("check", "model", "data"),
)

#: Public names that no user calls with values of their own: constants, abstract bases of classes,
#: records that functions return, and parts of the engine that methods get ready-made.
NOT_DOORS = {
    "Relation",
    "Table",
    "TableSpace",
    "check_columns",
    "__version__",
    "CHECKS",
    *("Autoencoder", "Classifier", "Explainer", "FallbackExplainer", "Guide", "GuidedExplainer"),
    "Metric",
    *("Case", "Cell", "Check", "ClassAudit", "ModelAudit", "DisagreeingRows", "Nearest", "Optimum"),
    *("Explorer", "ParameterEffects", "PlannedCell", "Recommendation", "Scores", "ServiceError"),
    *("NormAdvice", "VisualProtocol"),
    *("Candidates", "Oracle", "Point", "Tasks"),
}
