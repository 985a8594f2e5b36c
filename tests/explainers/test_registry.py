"""Finding methods by name, and explaining in one call."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact import explainers
from contrafact.engine import Tags
from contrafact.engine.constraints import KINDS
from contrafact.explainers.registry import (
    as_explainer,
    check_support,
    explainer_classes,
    find_explainer,
)
from contrafact.explainers.support.explainer import Explainer
from contrafact.prototypes import GLVQ


def test_every_method_of_the_package_is_found():
    found = explainer_classes()
    not_methods = ("ClassAudit", "ModelAudit", "NormAdvice", "Recommendation")
    members = {
        name: getattr(explainers, name) for name in explainers.__all__ if name not in not_methods
    }
    classes = {name for name, member in members.items() if inspect.isclass(member)}
    public = {name for name in classes if not inspect.isabstract(members[name])}
    assert public == set(found) >= {"NearestUnlike", "LineSearch", "RandomMask", "RandomTarget"}
    assert all(issubclass(cls, Explainer) and not inspect.isabstract(cls) for cls in found.values())
    assert "GuidedExplainer" not in found
    assert all(getattr(cf, name) is cls for name, cls in found.items())


def test_the_list_tells_what_each_takes():
    frame = cf.list_explainers()
    assert list(frame.index) == list(explainer_classes())
    line = frame.loc["RandomMask"]
    assert line["does"] == "Copy segments of the guide in random order, as few as change the class."
    assert line["modalities"] == "series, image, row" and not line["gradient"]
    assert line["constraints"] == ", ".join(sorted(KINDS))
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
    result = cf.explain(model, data.X_test, method="LineSearch")
    own = cf.LineSearch().fit(model, data.X_test).explain(data.X_test)
    np.testing.assert_array_equal(result.X_cf, own.X_cf)
    assert result.provenance["method"] == "LineSearch" and result.valid.all()


def test_without_a_method_the_recommended_one_serves(iris):
    data, model = iris
    X = data.X_test[:10]
    result = cf.explain(model, X, reference=data)
    chosen = cf.recommend(model, "row")
    expected = chosen.method.fit(model, data.X_train, data.y_train).explain(X, **chosen.options)
    np.testing.assert_array_equal(result.X_cf, expected.X_cf)
    assert result.provenance == expected.provenance and result.valid.all()
    assert not result.provenance["options"]["refine"]
    assert result.changed_fraction.mean() < 0.5  # the default changes few values


def test_options_given_take_precedence_over_recommended_ones(iris):
    data, model = iris
    result = cf.explain(model, data.X_test[:5], reference=data, refine="minimal", k=2)
    assert result.provenance["options"]["refine"] == "minimal"
    assert result.provenance["options"]["k"] == 2


def test_the_recommendation_sees_modality_and_constraints():
    data = cf.load_dataset("ItalyPowerDemand")
    model = GLVQ(max_iter=20, random_state=0).fit(data.X_train, data.y_train)
    X = data.X_test[:3]

    def method(X, **options):
        return cf.explain(model, X, **options).provenance["method"]

    assert method(X, reference=data) == "PrototypeCounterfactual"
    steady = cf.Constraints(max_step=3.0)
    assert method(X, reference=data, constraints=steady) == "Graft"
    assert method(X, reference=data.X_train, constraints=steady) == "Graft"
    assert method(X[:, 0], reference=data.X_train[:, 0], modality="series") == (
        "PrototypeCounterfactual"
    )
    with pytest.raises(TypeError, match="constraints must be None or a Constraints object"):
        cf.explain(model, X, reference=data, constraints={})
    with pytest.raises(ValueError, match="entries of unequal shape"):
        cf.explain(model, [[[1.0, 2.0]], [[1.0]]])


def test_the_target_may_be_given_by_position(iris):
    data, model = iris
    result = cf.explain(model, data.X_test[:5], "setosa", reference=data)
    assert set(result.target) == {"setosa"}


def test_a_dataset_brings_its_modality():
    data = cf.load_dataset("ItalyPowerDemand")
    model = LogisticRegression().fit(data.X_train[:, 0], data.y_train)
    result = cf.explain(model, data.X_test[:5, 0], reference=data, method="LineSearch")
    assert result.modality == "series" and result.X_cf.shape == (5, 24) and result.valid.all()
    flat = cf.explain(model, data.X_test[:5, 0], reference=data.X_train[:, 0], method="LineSearch")
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
    thirds = np.rint(3 * result.info["step"]) / 3  # 2**steps + 1 levels, none of them half way
    np.testing.assert_allclose(result.info["step"], thirds)
    assert result.provenance["parameters"]["steps"] == 1


def test_unknown_methods_are_named(iris):
    data, model = iris
    known = r"Did you mean NearestUnlike\? Methods: .*LineSearch.*NearestUnlike"
    with pytest.raises(ValueError, match=r"method 'Nearest' is unknown\. " + known):
        cf.explain(model, data.X_test, method="Nearest")
    with pytest.raises(ValueError, match=r"method 'x' is unknown\. Methods: CELS, "):
        cf.explain(model, data.X_test, method="x")
    with pytest.raises(
        TypeError,
        match=r"an Explainer object or the name of one, got the class LineSearch; "
        r"create it first: LineSearch\(\)\.",
    ):
        cf.explain(model, data.X_test, method=cf.LineSearch)
    with pytest.raises(TypeError, match=r"an Explainer object or the name of one, got 3\."):
        cf.explain(model, data.X_test, method=3)


def test_names_are_found_in_any_case():
    assert find_explainer("comte") is cf.CoMTE and find_explainer("CELS") is cf.CELS
    assert isinstance(as_explainer("linesearch"), cf.LineSearch)
    explainer = cf.CELS(max_iter=3)
    assert as_explainer(explainer) is explainer


def test_support_is_checked_before_any_work():
    check_support(cf.CELS(), "series", cf.Constraints(max_step=1.0))
    with pytest.raises(ValueError, match=r"CELS takes series data, not row data\."):
        check_support(cf.CELS(), "row")
    check_support(cf.PrototypeCounterfactual(), "series", cf.Constraints(lower=0.0))
    with pytest.raises(
        ValueError, match=r"PrototypeCounterfactual cannot keep constraints of this kind: max_step"
    ):
        check_support(cf.PrototypeCounterfactual(), "series", cf.Constraints(max_step=1.0))
