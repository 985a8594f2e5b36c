"""Names that moved out of contrafact.models are still found there, with a warning."""

import pytest

import contrafact.models
import contrafact.nn
import contrafact.numerics

NEW = {"FeatureExtractor", "InceptionTime", "committee", "robust_report", "save_weights"}
MOVED = {name: getattr(contrafact.nn, name) for name in set(contrafact.nn.__all__) - NEW}
MOVED["normalised"] = contrafact.nn.normalized
MOVED["zeroth_order_gradient"] = contrafact.numerics.zeroth_order_gradient


@pytest.mark.parametrize("name", sorted(MOVED))
def test_moved_names_are_found_with_a_warning(name):
    with pytest.warns(DeprecationWarning, match=rf"contrafact\.models\.{name} is now contrafact\."):
        found = getattr(contrafact.models, name)
    assert found is MOVED[name]


def test_the_warning_points_to_the_import():
    with pytest.warns(DeprecationWarning, match=r"is now contrafact\.nn\.FCN") as caught:
        from contrafact.models import FCN
    assert FCN is contrafact.nn.FCN
    assert {warning.filename for warning in caught} == {__file__}


def test_names_that_stayed_and_names_that_never_were():
    for name in contrafact.models.__all__:
        assert hasattr(contrafact.models, name)
    with pytest.raises(AttributeError, match="has no attribute 'Transformer'"):
        _ = contrafact.models.Transformer
