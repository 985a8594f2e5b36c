"""Finding methods by name, and the one-line way to use them."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact import explainers
from contrafact.engine import Tags
from contrafact.explainers.registry import explainer_classes
from contrafact.explainers.support.explainer import Explainer


def test_every_method_of_the_room_is_found():
    found = explainer_classes()
    classes = {
        name: getattr(explainers, name) for name in explainers.__all__ if name != "ClassAudit"
    }
    public = {name for name, thing in classes.items() if inspect.isclass(thing)}
    assert public == set(found) >= {"NearestUnlike", "LineSearch", "RandomMask", "RandomTarget"}
    assert all(issubclass(cls, Explainer) and not inspect.isabstract(cls) for cls in found.values())
    assert "GuidedExplainer" not in found
    assert all(getattr(cf, name) is cls for name, cls in found.items())


def test_the_list_tells_what_each_takes():
    frame = cf.list_explainers()
    assert list(frame.index) == list(explainer_classes())
    line = frame.loc["RandomMask"]
    assert line["does"] == "Segments of the guide copied in random order, as few as turn the class."
    assert line["modalities"] == "series, image, row" and not line["gradient"]
    assert line["constraints"] == "bounds, frozen, max_step"
    assert frame["does"].str.endswith(".").all()


@pytest.fixture(scope="module")
def iris():
    data = cf.load_dataset("iris")
    return data, LogisticRegression(max_iter=500).fit(data.X_train, data.y_train)


@pytest.mark.parametrize("reference", ["array", "tuple", "dataset"])
def test_one_line_equals_fit_and_explain(iris, reference):
    data, model = iris
    given = {"array": data.X_train, "tuple": (data.X_train, data.y_train), "dataset": data}[
        reference
    ]
    X = data.X_test[:10]
    result = cf.explain(model, X, "setosa", reference=given, method="NearestUnlike", k=2)
    expected = cf.NearestUnlike().fit(model, data.X_train, data.y_train).explain(X, "setosa", k=2)
    np.testing.assert_array_equal(result.X_cf, expected.X_cf)
    assert result.provenance == expected.provenance


def test_without_reference_the_instances_serve(iris):
    data, model = iris
    result = cf.explain(model, data.X_test)
    own = cf.LineSearch().fit(model, data.X_test).explain(data.X_test)
    np.testing.assert_array_equal(result.X_cf, own.X_cf)
    assert result.provenance["method"] == "LineSearch" and result.valid.all()


def test_a_dataset_brings_its_modality():
    data = cf.load_dataset("ItalyPowerDemand")
    model = LogisticRegression().fit(data.X_train[:, 0], data.y_train)
    result = cf.explain(model, data.X_test[:5, 0], reference=data)
    assert result.modality == "series" and result.X_cf.shape == (5, 24) and result.valid.all()
    flat = cf.explain(model, data.X_test[:5, 0], reference=data.X_train[:, 0])
    assert flat.modality == "row"
    np.testing.assert_allclose(flat.X_cf, result.X_cf)


def test_rows_of_a_dataset_are_not_taken_for_series(iris):
    class SeriesOnly(cf.NearestUnlike):
        tags = Tags(modalities=("series",))

    data, model = iris
    with pytest.raises(ValueError, match="holds row data"):
        cf.explain(model, data.X_test, reference=data, method=SeriesOnly())
    assert (
        cf.explain(model, data.X_test, reference=data.X_train, method=SeriesOnly()).modality
        == "series"
    )


def test_an_explainer_with_its_parameters_serves_as_the_method(iris):
    data, model = iris
    X = data.X_test[:10]
    result = cf.explain(model, X, reference=data, method=cf.LineSearch(steps=1))
    assert set(result.info["step"]) <= {0.5, 1.0} and result.provenance["parameters"]["steps"] == 1


def test_unknown_methods_are_named(iris):
    data, model = iris
    with pytest.raises(
        ValueError, match=r"method 'Nearest' is unknown. Methods: .*LineSearch.*NearestUnlike"
    ):
        cf.explain(model, data.X_test, method="Nearest")
    with pytest.raises(
        TypeError, match=r"an Explainer object or the name of one, got .*LineSearch"
    ):
        cf.explain(model, data.X_test, method=cf.LineSearch)
