"""The protocol of visual counterfactuals: targets of the ensemble, both sets, doing nothing."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import contrafact as cf
from contrafact.benchmark import visual_protocol
from contrafact.metrics import frechet_distance

DIGITS = load_digits()
IMAGES = (DIGITS.images[:, None] / 16).astype(np.float32)
Y = DIGITS.target
TRAIN = (IMAGES[:300], Y[:300])
X = IMAGES[1000:1020]
OTHER = np.random.default_rng(0).uniform(size=X.shape).astype(np.float32)
REAL = IMAGES[400:700]


def pixels(images):
    """Features: the sums of the rows of an image."""
    return images.sum(axis=(1, 3))


@pytest.fixture(scope="module")
def models():
    return {
        name: cf.fit_classifier("smallcnn", *TRAIN, max_epochs=4, random_state=seed)
        for seed, name in enumerate(["one", "two"])
    }


@pytest.fixture(scope="module")
def found(models):
    methods = {"neighbor": cf.NearestUnlike(), "line": cf.LineSearch()}
    return visual_protocol(models, methods, X, OTHER, TRAIN, pixels, REAL, confidence=0.6)


def test_every_model_and_method_has_a_line_beside_doing_nothing(found):
    names = found.table[["model", "method"]].to_numpy().tolist()
    pairs = [[model, method] for model in ("one", "two") for method in ("neighbor", "line")]
    assert names == [["", "unchanged"], *pairs]
    assert "rewards doing nothing" in found.reading


def test_targets_are_those_of_the_ensemble(found, models):
    ensemble = cf.Ensemble(list(models.values()))
    second = ensemble.classes[np.argsort(ensemble.predict_proba(X), axis=1)[:, -2]]
    for model in models:
        assert (found.results[model, "line", "in"].target == second).all()
        assert (found.results[model, "line", "out"].target == ensemble.predict(OTHER)).all()


def test_distances_are_those_of_the_images(found):
    line = found.table.set_index(["model", "method"]).loc["two", "line"]
    for kind in ("in", "out"):
        result = found.results["two", "line", kind]
        expected = frechet_distance(pixels(result.X_cf), pixels(REAL))
        assert line[f"frechet_{kind}"] == pytest.approx(expected)
        assert line[f"valid_{kind}"] == result.valid.mean()
    assert line["frechet_mean"] == pytest.approx((line["frechet_in"] + line["frechet_out"]) / 2)


def test_doing_nothing_is_worst_outside_of_the_domain_only(found):
    table = found.table.set_index("method")
    unchanged = table.loc["unchanged"]
    assert unchanged["frechet_in"] < table["frechet_in"].max()
    assert unchanged["frechet_out"] == table["frechet_out"].max()
    assert unchanged["frechet_in"] == pytest.approx(frechet_distance(pixels(X), pixels(REAL)))
    assert np.isnan(unchanged["valid_in"])


def test_images_already_in_the_class_are_changed_up_to_the_confidence(found):
    out = found.results["one", "neighbor", "out"]
    already = out.status == "already_target"
    in_class = out.labels == out.target
    assert ((out.target_proba[:, 0] >= 0.6) == already).all()
    assert (in_class & ~already).any()
    assert (out.X_cf[~already] != OTHER[~already]).any(axis=(1, 2, 3)).all()


def test_refuses(models):
    rest = (X, OTHER, TRAIN, pixels, REAL)
    with pytest.raises(ValueError, match="models must be a mapping"):
        visual_protocol([], {"line": cf.LineSearch()}, *rest)
    with pytest.raises(ValueError, match="explainers must be a mapping"):
        visual_protocol(models, {"line": "line"}, *rest)
    with pytest.raises(ValueError, match="features must be"):
        visual_protocol(models, {"line": cf.LineSearch()}, X, OTHER, TRAIN, None, REAL)
