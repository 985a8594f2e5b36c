"""Failures that were found once, each by its name."""

import pytest
from judging import Case, judge

pytestmark = pytest.mark.usefixtures("own_random_numbers")

REFUSED = [
    ("models.as_classifier, module", "batch_size", "2.5"),
    ("models.as_classifier, module", "batch_size", "'3'"),
    ("models.as_classifier, module", "batch_size", "True"),
    ("models.as_classifier, module", "device", "'no'"),
    ("models.as_classifier, module", "classes", "5"),
    ("models.as_classifier", "model", "gives None"),
    ("models.as_classifier", "model", "gives 1"),
    ("models.as_classifier", "model", "gives P(1) alone"),
    ("models.as_classifier", "model", "module None"),
    ("models.as_classifier", "model", "estimator 7 p"),
    ("models.as_classifier", "model", "gives 7 p"),
    *[
        (f"prototypes.{name}", option, value)
        for name in ("GLVQ", "GMLVQ", "RSLVQ", "DeepLVQ")
        for option in ("learning_rate", "max_iter", "beta" if name != "RSLVQ" else "temperature")
        for value in ("'3'", "[1]", "{}")
    ],
    ("prototypes.GLVQ", "max_iter", "None"),
    ("engine.Constraints, rows", "lower", "'no'"),
    ("engine.Constraints, rows", "upper", "{'a': 1}"),
    ("engine.Constraints, rows", "lower", "ragged"),
    ("engine.Constraints, rows", "upper", "complex"),
    ("explainers.LineSearch.explain", "X", "tensor meta"),
    ("explainers.LineSearch.explain", "X", "ragged"),
    ("explainers.LineSearch.explain", "X", "Raising"),
    ("explainers.LineSearch.explain", "X", "masked"),
    ("explainers.CELS", "learning_rate", "'0.1'"),
    ("explainers.CELS", "max_iter", "-3"),
    ("explainers.CELS", "tau", "5"),
    ("explainers.LineSearch.explain", "refine", "'no'"),
]
ACCEPTED = [
    ("geometry.nearest_point", "x", "reversed"),
    ("geometry.nearest_point", "A", "Fortran"),
    ("engine.Constraints, series", "max_step", "np.array([1, 2])"),
]
EITHER = [
    ("explainers.LineSearch.explain", "X", "sparse"),
    ("explainers.LineSearch.explain", "X", "tensor sparse"),
    ("explainers.LineSearch.fit", "model", "module tiny"),
]


@pytest.mark.parametrize(("door", "name", "value"), REFUSED)
def test_refused_in_clear_words(door, name, value):
    assert judge(Case(door, ((name, value),))).kind == "clear"


@pytest.mark.parametrize(("door", "name", "value"), ACCEPTED + EITHER)
def test_nothing_unclear(door, name, value):
    outcome = judge(Case(door, ((name, value),)))
    assert not outcome.finding, outcome
