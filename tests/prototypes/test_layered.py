"""Prototype models as models to explain: metric, twin, explainers."""

import numpy as np
import pytest
import torch
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import contrafact as cf
from contrafact.prototypes import CELVQ, GLVQ, GMLVQ, GRLVQ, LGMLVQ, LVQ1, LVQ21, RSLVQ, NearestMean

FAMILY = [LVQ1, LVQ21, GLVQ, GRLVQ, GMLVQ, LGMLVQ, RSLVQ, CELVQ]


@pytest.mark.parametrize("kind", FAMILY)
def test_metric_gives_the_distances(kind, blobs):
    model = kind(2, max_iter=5, random_state=0).fit(*blobs)
    u, omega = blobs[0][:, None] - model.prototypes_, model.metric_()
    if omega is not None:
        u = np.einsum("krd,nkd->nkr", np.broadcast_to(omega, (6, *omega.shape[-2:])), u)
    np.testing.assert_allclose((u**2).sum(2), model.distances(blobs[0]), rtol=1e-9)
    assert (omega is None) == (kind in (LVQ1, LVQ21, GLVQ, RSLVQ, CELVQ))


@pytest.mark.parametrize("kind", [*FAMILY, NearestMean])
@pytest.mark.parametrize("scaled", [False, True])
def test_twin_has_the_probabilities(kind, scaled, blobs):
    X, y = blobs
    names = np.array(["a", "b", "c"])[y]
    model = kind() if kind is NearestMean else kind(2, max_iter=10, random_state=0)
    model = (make_pipeline(StandardScaler(), model) if scaled else model).fit(X, names)
    classifier = cf.as_classifier(model)
    assert classifier.differentiable is True
    assert list(classifier.classes) == ["a", "b", "c"]
    x = torch.from_numpy(X).requires_grad_()
    logits = classifier.logits(x)
    np.testing.assert_allclose(logits.detach().softmax(1), model.predict_proba(X), atol=1e-9)
    (gradient,) = torch.autograd.grad(logits[:, 0].sum(), x)
    step = 1e-6
    for j in range(4):
        shift = step * np.eye(4)[j]
        up, down = (
            classifier.logits(torch.from_numpy(X + s)).detach()[:, 0] for s in (shift, -shift)
        )
        np.testing.assert_allclose(gradient[:, j], (up - down) / (2 * step), rtol=1e-4, atol=1e-4)


@pytest.fixture(scope="module")
def italy():
    data = cf.load_dataset("ItalyPowerDemand")
    model = GMLVQ(2, max_iter=60, random_state=0).fit(data.X_train, data.y_train)
    assert model.score(data.X_test, data.y_test) > 0.94
    return data, model


@pytest.mark.parametrize("method", ["CELS", "Glacier"])
def test_explainers_descend_on_prototype_models(method, italy):
    data, model = italy
    explainer = getattr(cf, method)().fit(model, data.X_train, data.y_train)
    result = explainer.explain(data.X_test[:12], random_state=0)
    assert result.valid.all()
    np.testing.assert_array_equal(model.predict(result.X_cf), result.target)
    assert (model.predict(data.X_test[:12]) != result.target).all()
