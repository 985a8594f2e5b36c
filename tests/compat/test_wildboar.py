"""wildboar's classifiers as models, and its counterfactuals as peers."""

import numpy as np
import pytest
from compat_checks import check_explained, series_data

from contrafact.benchmark.peers import WildboarPeer

LIBRARY = "wildboar"
BESIDE = ("scikit-learn",)
pytest.importorskip(LIBRARY)


def forest():
    from wildboar.ensemble import ShapeletForestClassifier

    return ShapeletForestClassifier(10, random_state=0)


def test_forest(ledger):
    X, y = series_data()
    model = forest().fit(X[:, 0], y)
    check_explained(
        ledger, "ShapeletForestClassifier", model, X, y, lambda x: model.predict(x[:, 0])
    )


def test_counted_peer(ledger):
    """A peer that only asks the model gets the stand-in, and its rows are counted."""
    from wildboar.explain.counterfactual import PrototypeCounterfactual

    X, y = series_data()
    model = forest().fit(X[:, 0], y)
    peer = WildboarPeer(PrototypeCounterfactual(random_state=0), hand_over="counted")
    result = check_explained(
        ledger,
        "ShapeletForestClassifier, explained by wildboar's PrototypeCounterfactual",
        model,
        X,
        y,
        lambda x: model.predict(x[:, 0]),
        method=peer,
    )
    assert result.info["counted"].all()
    assert np.all(result.calls > 4)
