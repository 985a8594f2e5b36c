"""A fitted explainer comes back from a file as it was, and no file can make it run code."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import contrafact as cf
from contrafact.data import make_patients
from contrafact.explainers.registry import explainer_classes
from contrafact.nn.networks import FCN, seeded
from contrafact.prototypes import GMLVQ

ITALY = cf.load_dataset("ItalyPowerDemand")
IRIS = cf.load_dataset("iris")
SETTINGS = [
    (name, number)
    for name, cls in explainer_classes().items()
    for number in range(len(cls._get_test_params()))
]


@pytest.fixture(scope="module")
def network():
    with seeded(0):
        module = FCN(1, 2, widths=(4, 4, 4))
    return cf.fit_classifier(module, ITALY.X_train, ITALY.y_train, max_epochs=2, random_state=0)


@pytest.fixture(scope="module")
def linear():
    return LogisticRegression(max_iter=500).fit(IRIS.X_train, IRIS.y_train)


@pytest.fixture(scope="module")
def prototypes():
    return GMLVQ(n_prototypes=1, max_iter=5, random_state=0).fit(IRIS.X_train, IRIS.y_train)


def assert_same(one: cf.Counterfactuals, other: cf.Counterfactuals) -> None:
    assert np.array_equal(np.asarray(one.X_cf), np.asarray(other.X_cf), equal_nan=True)
    assert one.status.tolist() == other.status.tolist()
    assert one.calls.tolist() == other.calls.tolist()
    assert one.provenance == other.provenance


@pytest.mark.parametrize(("name", "number"), SETTINGS)
def test_what_was_fitted_comes_back(name, number, network, linear, prototypes, tmp_path):
    cls = explainer_classes()[name]
    series = "series" in cls.tags.modalities
    model, data = (network, ITALY) if series else (linear, IRIS)
    if name == "PrototypeCounterfactual":
        model, data = prototypes, IRIS
    explainer = cls(**cls._get_test_params()[number]).fit(model, data.X_train, data.y_train)
    path = explainer.save(tmp_path / "explainer")
    loaded = cf.Explainer.load(path, model)
    assert type(loaded) is cls
    assert_same(explainer.explain(data.X_test[:3]), loaded.explain(data.X_test[:3]))


def test_nothing_is_fitted_again(network, tmp_path, monkeypatch):
    path = cf.TSNUC(max_epochs=1, max_iter=2).fit(network, ITALY.X_train).save(tmp_path / "a.npz")
    monkeypatch.setattr(cf.TSNUC, "_fit", lambda *arguments: pytest.fail("fitted again"))
    assert len(cf.Explainer.load(path, network).explain(ITALY.X_test[:2])) == 2


def test_series_without_channel_axis(tmp_path):
    X = ITALY.X_train[:, 0]
    model = LogisticRegression(max_iter=500).fit(X, ITALY.y_train)
    explainer = cf.NativeGuide().fit(model, X, ITALY.y_train)
    loaded = cf.Explainer.load(explainer.save(tmp_path / "a.npz"), model)
    result = loaded.explain(ITALY.X_test[:2, 0])
    assert_same(explainer.explain(ITALY.X_test[:2, 0]), result)
    assert np.shape(result.X_cf) == (2, 24)


@pytest.mark.parametrize("method", [cf.Graft, cf.NICE, cf.FACE])
def test_tables_keep_their_schema(method, tmp_path):
    frame, y = make_patients(120, random_state=0)
    numbers = frame.select_dtypes("number").columns.tolist()
    text = [name for name in frame.columns if name not in numbers]
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), text), (StandardScaler(), numbers)
    )
    filled = frame.copy()
    filled[numbers] = filled[numbers].fillna(filled[numbers].median())
    model = make_pipeline(encode, LogisticRegression(max_iter=500)).fit(filled, y)
    schema = cf.Schema.infer(filled).edit(numbers[0], cost=3.0)
    explainer = method().fit(model, filled, y, schema=schema)
    loaded = cf.Explainer.load(explainer.save(tmp_path / "a.npz"), model)
    assert loaded.space_.schema == explainer.space_.schema
    assert_same(explainer.explain(filled[:4]), loaded.explain(filled[:4]))


def test_not_fitted():
    with pytest.raises(NotFittedError, match="LineSearch is not fitted"):
        cf.LineSearch().save("nowhere.npz")


def test_another_model(linear, tmp_path):
    path = cf.LineSearch().fit(linear, IRIS.X_train, IRIS.y_train).save(tmp_path / "a.npz")
    two = LogisticRegression(max_iter=500).fit(IRIS.X_train, IRIS.y_train == "setosa")
    with pytest.raises(ValueError, match=r"a\.npz cannot be loaded: y holds labels"):
        cf.Explainer.load(path, two)
    path = cf.LineSearch().fit(linear, IRIS.X_train).save(tmp_path / "a.npz")
    with pytest.raises(ValueError, match=r"a\.npz cannot be loaded: the model has the classes"):
        cf.Explainer.load(path, two)


def change(path, **entries):
    """Write an altered copy of a saved explainer."""
    with np.load(path) as archive:
        arrays = dict(archive)
    content = json.loads(str(arrays["explainer"]))
    arrays["explainer"] = np.array(json.dumps({**content, **entries}))
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"version": "0.0.1"}, "was written by contrafact 0.0.1"),
        ({"method": "os"}, "method 'os' is unknown"),
        (
            {"state": {"guide_": {"number": 1, "object": "os:system", "attributes": {}}}},
            "'os:system' is no class of contrafact",
        ),
        (
            {"state": {"guide_": {"number": 1, "object": "contrafact.os:x", "attributes": {}}}},
            "cannot be loaded",
        ),
        ({"state": {"explain": 1}}, "'explain' is not what is fitted"),
        ({"state": {"guide_": {"number": 1, "array": "none", "scalar": False}}}, "cannot be"),
        ({"labels": {"what": 1}}, "cannot be loaded"),
        ({"parameters": {"unknown": 1}}, "cannot be loaded"),
    ],
)
def test_altered_files_are_refused(entries, message, linear, tmp_path):
    path = cf.LineSearch().fit(linear, IRIS.X_train, IRIS.y_train).save(tmp_path / "a.npz")
    change(path, **entries)
    with pytest.raises(ValueError, match=message):
        cf.Explainer.load(path, linear)


def test_other_files_are_refused(linear, tmp_path):
    np.savez(tmp_path / "b.npz", X=np.zeros(3))
    with pytest.raises(ValueError, match=r"b\.npz holds no explainer"):
        cf.Explainer.load(tmp_path / "b.npz", linear)


def test_what_cannot_be_stored_is_named(tmp_path, linear):
    explainer = cf.LineSearch().fit(linear, IRIS.X_train, IRIS.y_train)
    explainer.note_ = open  # a function
    with pytest.raises(TypeError, match=r"LineSearch\.note_ cannot be saved"):
        explainer.save(tmp_path / "a.npz")
