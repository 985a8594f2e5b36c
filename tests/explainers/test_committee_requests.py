"""Requests with a committee: given, made or kept; what the result says of it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.engine.survival import PRIOR_AGREE, PRIOR_DISAGREE, survival_probability
from contrafact.models import as_classifier


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] > 0, "yes", "no")
    return X, y


@pytest.fixture(scope="module")
def model(data):
    return LogisticRegression().fit(*data)


def shifted(level):
    """A model whose boundary is at x_0 = level; its columns stand in the other order."""

    def proba(X):
        p = 1 / (1 + np.exp(-4 * (X[:, 0] - level)))
        return np.stack([p, 1 - p], 1)

    return as_classifier(proba, classes=["yes", "no"])


@pytest.fixture
def explainer(data, model):
    return cf.LineSearch().fit(model, *data)


def no_rows(data, count=5):
    X, y = data
    return X[y == "no"][:count]


def test_given_models_are_honored_whatever_the_order_of_their_classes(data, explainer):
    X = no_rows(data)
    plain = explainer.explain(X, "yes")
    result = explainer.explain(X, "yes", committee=[shifted(0.0), shifted(0.8)])
    assert (plain.X_cf[:, 0] < 0.8).any()
    assert (result.X_cf[:, 0] > 0.8).all()
    assert result.info["committee_votes"].tolist() == [2] * 5
    assert result.info["committee_size"].tolist() == [2] * 5
    a, b = PRIOR_AGREE, PRIOR_DISAGREE
    np.testing.assert_allclose(result.info["survival"], (a + 2) / (a + b + 2))
    assert not result.message.any()
    assert "given" in result.provenance["options"]["committee"]


def test_a_committee_out_of_reach_is_told(data, explainer):
    result = explainer.explain(no_rows(data), "yes", committee=[shifted(0.0), shifted(99.0)])
    assert result.valid.all()
    assert set(result.info["committee_votes"]) <= {0, 1}
    for votes, message in zip(result.info["committee_votes"], result.message, strict=True):
        assert message == f"{votes} of 2 members of the committee agree"


def test_a_batch_is_the_loop(data, explainer):
    X = no_rows(data)
    members = [shifted(0.3), shifted(0.8)]
    batch = explainer.explain(X, "yes", committee=members, refine=True)
    single = [explainer.explain(x[None], "yes", committee=members, refine=True) for x in X]
    np.testing.assert_allclose(batch.X_cf, np.concatenate([one.X_cf for one in single]))
    calls = np.concatenate([one.info["committee_calls"] for one in single])
    assert batch.info["committee_calls"].tolist() == calls.tolist()


def test_auto_makes_a_committee_once_and_a_new_fit_drops_it(data, model, explainer):
    X = no_rows(data)
    result = explainer.explain(X, "yes", committee="auto")
    made = explainer.committee_
    kinds = "2 x LogisticRegression, 1 x RandomForestClassifier"
    assert repr(made) == f"Committee({kinds}, trained on bootstraps, every third of another kind)"
    assert (result.info["committee_votes"] == 3).all()
    explainer.explain(X, "yes", committee="auto")
    assert explainer.committee_ is made
    explainer.fit(model, *data)
    assert not hasattr(explainer, "committee_")


def test_refine_keeps_the_committee_convinced(data, model):
    result = cf.NearestUnlike().fit(model, *data).explain(no_rows(data), "yes")
    strict = shifted(0.3)
    before = strict.predict(result.X_cf) == "yes"
    refined = cf.refine(result, model, committee=[strict])
    assert before.any()
    after = strict.predict(refined.X_cf) == "yes"
    np.testing.assert_array_equal(after, before)
    assert (strict.predict(cf.refine(result, model).X_cf) == "no").any()  # not so without it
    assert refined.info["committee_votes"].tolist() == after.astype(int).tolist()


def test_votes_on_the_arrays_before_refinement_are_not_kept(data, model):
    explainer = cf.NearestUnlike().fit(model, *data)
    result = explainer.explain(no_rows(data), "yes", committee=[shifted(0.3)])
    assert "committee_votes" not in cf.refine(result, model).info


def test_an_exception_of_a_member_is_an_error_of_its_row(data, explainer):
    X = no_rows(data)

    def touchy(Z):
        if (X[2] == Z).all(1).any():
            return np.stack([Z[:, 0] * 0 + 1, Z[:, 0] * 0], 1)
        if (Z[:, 1] == X[2, 1]).any():
            raise RuntimeError("touched")
        return np.stack([Z[:, 0] * 0, Z[:, 0] * 0 + 1], 1)

    freeze = cf.Constraints(frozen=np.array([False, True, False, False]))
    with pytest.warns(RuntimeWarning, match="touched"):
        result = explainer.explain(X, "yes", committee=[touchy], constraints=freeze)
    assert (result.status == "error").tolist() == [False, False, True, False, False]


@pytest.mark.parametrize(
    ("committee", "error", "match"),
    [
        ([], ValueError, "committee holds no model"),
        ("all", TypeError, "list of models or a Committee, got 'all'"),
        (shifted(0.0), TypeError, "one model: \\[model\\]"),
        ([as_classifier(shifted(0.0).function, classes=["yes", "nay"])], ValueError, "nay"),
    ],
)
def test_what_is_no_committee_is_refused(data, explainer, committee, error, match):
    with pytest.raises(error, match=match):
        explainer.explain(no_rows(data), "yes", committee=committee)


def test_survival_rises_with_the_votes_and_lies_within_the_unit_interval():
    p = survival_probability(np.arange(-1, 6), 5)
    assert np.isnan(p[0])
    assert (np.diff(p[1:]) > 0).all() and p[1] > 0 and p[-1] < 1
    assert survival_probability(30, 30) > survival_probability(3, 3)
