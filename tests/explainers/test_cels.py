"""CELS: the equation, its options, and what other implementations get wrong."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.nn.networks import seeded
from contrafact.search import Adam

ITALY = cf.load_dataset("ItalyPowerDemand")
MOTIONS = cf.load_dataset("BasicMotions")
X = ITALY.X_test[np.random.default_rng(0).permutation(len(ITALY.X_test))[:20]]


def explain(model, X=X, reference=ITALY, **params):
    explainer = cf.CELS(**{"max_iter": 150, **params})
    return explainer.fit(model, reference.X_train, reference.y_train).explain(X)


def loss_of(explainer, theta, p=0.3):
    """The objective at θ with the model's part held at probability p."""
    return explainer._loss(theta, torch.full_like(theta[:, 0, 0], p))


def test_the_loss_is_the_papers():
    theta = torch.tensor([[[0.0, 1.0, 1.0, 0.5]]], dtype=torch.float64)
    expected = (
        0.7 * (1 - 0.3) + 0.6 * 2.5 / 4 + 0.5 * (1 + 0 + 0.125) / 3
    )  # the mean is over differences
    assert loss_of(cf.CELS(), theta).item() == pytest.approx(expected)


def test_the_gradient_is_that_of_the_loss():
    theta = torch.rand(2, 3, 7, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    torch.autograd.gradcheck(lambda t: loss_of(cf.CELS(), t), theta.requires_grad_(), atol=1e-7)


def test_the_smoothness_term_smooths():
    """Descend on it alone: its value must fall by half, where a wrong sign makes it rise."""
    explainer = cf.CELS(max_coeff=0.0, budget_coeff=0.0)
    theta = torch.rand(1, 1, 30, generator=torch.Generator().manual_seed(0))
    before, step = loss_of(explainer, theta).item(), Adam(0.02)
    for _ in range(30):
        theta = theta.detach().requires_grad_()
        loss = loss_of(explainer, theta)
        (gradient,) = torch.autograd.grad(loss.sum(), theta)
        theta = step(theta.detach(), gradient, loss.detach())
    assert loss_of(explainer, theta).item() < before / 2


@pytest.mark.parametrize("binarize", [True, False])
def test_values_that_are_held_do_not_count_as_copied(binarize):
    model = LogisticRegression(max_iter=500).fit(ITALY.X_train[:, 0], ITALY.y_train)
    frozen = np.arange(24) < 8
    explainer = cf.CELS(max_iter=60, binarize=binarize).fit(model, ITALY.X_train, ITALY.y_train)
    result = explainer.explain(X, constraints=cf.Constraints(frozen=frozen))
    mask = result.info["mask"]
    assert not mask[..., frozen].any() and mask[..., ~frozen].any()
    np.testing.assert_allclose(result.info["mask_density"], (mask > 0).mean((1, 2)))


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_coeff", 3.0),
        ("budget_coeff", 0.05),
        ("tv_coeff", 20.0),
        ("tv_beta", 1.0),
        ("learning_rate", 0.01),
        ("tau", 0.95),
        ("patience", 3),
        ("tolerance", 0.05),
        ("threshold", 0.9),
        ("init", "uniform"),
        ("binarize", False),
        ("max_iter", 4),
        ("temperature", 50.0),
        ("random_state", 5),
    ],
)
def test_every_option_matters(network, option, value):
    plain, other = explain(network), explain(network, **{option: value})
    assert not np.array_equal(plain.X_cf, other.X_cf)


def test_shared_mask_and_metric_matter():
    flat = MOTIONS.X_train.reshape(len(MOTIONS.X_train), -1)
    model = LogisticRegression(max_iter=500).fit(flat, MOTIONS.y_train)
    rows = MOTIONS.X_test[:6]
    plain = explain(model, rows, MOTIONS, max_iter=40)
    shared = explain(model, rows, MOTIONS, max_iter=40, shared_mask=True)
    warped = explain(model, rows, MOTIONS, max_iter=40, metric="dtw")
    assert (shared.info["mask"] == shared.info["mask"][:, :1]).all()
    assert not (plain.info["mask"] == plain.info["mask"][:, :1]).all()
    assert not np.array_equal(plain.info["guide_index"], warped.info["guide_index"])
    walked = explain(model, rows, MOTIONS, max_iter=40, shared_mask=True, threshold=0.99)
    assert walked.valid.all() and (walked.info["mask"] == walked.info["mask"][:, :1]).all()


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_units_do_not_matter(scale):
    with seeded(0):
        module = torch.nn.Sequential(
            torch.nn.Flatten(), torch.nn.Linear(24, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)
        )
    model = cf.fit_classifier(
        module.double(), ITALY.X_train, ITALY.y_train, max_epochs=30, learning_rate=0.02
    )

    class Units(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model.module

        def forward(self, x):
            return self.inner(x / scale)

    plain = explain(model)
    other = (
        cf.CELS(max_iter=150)
        .fit(cf.as_classifier(Units(), classes=model.classes), ITALY.X_train * scale, ITALY.y_train)
        .explain(X * scale)
    )
    assert np.array_equal(plain.info["mask"], other.info["mask"])


def test_every_row_is_valid_and_copied_from_its_guide(network):
    result = explain(network)
    assert result.valid.all()
    mask, guide = result.info["mask"].astype(bool), ITALY.X_train[result.info["guide_index"]]
    assert np.array_equal(result.X_cf, np.where(mask, guide, result.X))
    assert (network.predict(guide[:, 0]) == result.target).all()
    np.testing.assert_allclose(result.info["mask_density"], mask.mean((1, 2)))


def test_where_cutting_undoes_the_flip_the_smallest_mask_that_flips_is_taken(linear):
    """With the cut at 0.99 next to nothing is copied at first, so the walk has to find the
    masks."""
    result = explain(linear, threshold=0.99)
    assert result.valid.all()
    saliency, mask = (
        result.info["saliency"].reshape(len(X), -1),
        result.info["mask"].reshape(len(X), -1).astype(bool),
    )
    guide = ITALY.X_train[result.info["guide_index"]].reshape(len(X), -1)
    low, high = saliency.min(1, keepdims=True), saliency.max(1, keepdims=True)
    at_the_cut = ((saliency - low) / (high - low) > 0.99).sum(1)
    walked = np.flatnonzero(mask.sum(1) > at_the_cut)
    assert len(walked) >= 3
    for i in walked:
        assert saliency[i][mask[i]].min() >= saliency[i][~mask[i]].max(initial=-1)
        fewer = mask[i].copy()
        fewer[np.flatnonzero(mask[i])[np.argmin(saliency[i][mask[i]])]] = False
        undone = linear.predict(np.where(fewer, guide[i], result.X[i].ravel())[None])
        assert undone[0] != result.target[i]


def test_soft_blends_stay_between_instance_and_guide(network):
    result = explain(network, binarize=False)
    guide = ITALY.X_train[result.info["guide_index"]]
    low, high = np.minimum(guide, result.X) - 1e-9, np.maximum(guide, result.X) + 1e-9
    assert result.valid.all() and ((result.X_cf >= low) & (result.X_cf <= high)).all()
    assert not np.isin(result.X_cf, [guide, result.X]).all()


@pytest.mark.parametrize("kind", ["forest", "function"])
def test_models_without_gradients(kind, linear):
    if kind == "forest":
        model = RandomForestClassifier(30, random_state=0).fit(ITALY.X_train[:, 0], ITALY.y_train)
    else:
        model = cf.as_classifier(
            lambda X: linear.predict_proba(X.reshape(len(X), -1)), classes=linear.classes_
        )
    result = explain(model, max_iter=15)
    assert result.valid.all()
    assert result.changed_fraction.mean() < 0.6
    assert result.calls.max() < 200


@pytest.mark.parametrize("kind", ["network", "forest"])
@pytest.mark.parametrize("binarize", [True, False])
def test_the_loss_reported_is_that_of_the_map_returned(kind, binarize, network):
    """With gradients and without: the equation of the docstring, with the model's own P(c)."""
    model = network
    if kind == "forest":
        model = RandomForestClassifier(30, random_state=0).fit(ITALY.X_train[:, 0], ITALY.y_train)
    result = explain(model, binarize=binarize, max_coeff=0.8, tv_beta=2.0)
    theta, guide = result.info["saliency"], ITALY.X_train[result.info["guide_index"]]
    blend = result.X * (1 - theta) + guide * theta
    column = [list(result.classes).index(label) for label in result.target]
    p = cf.as_classifier(model, classes=result.classes).predict_proba(blend)
    p = p[np.arange(len(X)), column]
    np.testing.assert_allclose(result.info["target_prob"], p, atol=1e-5)
    expected = (
        0.8 * (1 - p)
        + 0.6 * np.abs(theta).mean((1, 2))
        + 0.5 * (np.abs(np.diff(theta)) ** 2).mean((1, 2))
    )
    np.testing.assert_allclose(result.info["loss"], expected, atol=1e-5)


def test_a_row_that_was_never_asked_about_has_no_loss(network):
    result = cf.CELS().fit(network, ITALY.X_train, ITALY.y_train)
    result = result.explain(X[:3], budget=cf.Budget(calls=12))
    assert np.isnan(result.info["loss"]).all()


def test_a_share_of_the_segments_is_tried_in_each_round():
    """Half of the segments cost fewer questions, and others are copied."""
    model = RandomForestClassifier(30, random_state=0).fit(ITALY.X_train[:, 0], ITALY.y_train)
    every = explain(model, n_segments=12)
    half = explain(model, n_segments=12, gradient_subsample=0.5)
    assert half.valid.all()
    assert half.calls.mean() < 0.8 * every.calls.mean()
    assert not np.array_equal(every.info["mask"], half.info["mask"])
    same = explain(model, n_segments=12, gradient_subsample=1.0)
    np.testing.assert_array_equal(same.X_cf, every.X_cf)


def test_the_seed_of_the_constructor_is_the_default_of_explain(network):
    plain = cf.CELS(max_iter=30).fit(network, ITALY.X_train, ITALY.y_train)
    seeded = cf.CELS(max_iter=30, random_state=7).fit(network, ITALY.X_train, ITALY.y_train)
    maps = [
        plain.explain(X[:4], random_state=7),
        seeded.explain(X[:4]),
        plain.explain(X[:4]),
        seeded.explain(X[:4], random_state=0),
    ]
    first, own, other, zero = (result.info["saliency"] for result in maps)
    np.testing.assert_array_equal(first, own)
    np.testing.assert_array_equal(other, zero)
    assert not np.array_equal(first, other)


def test_temperature_1_climbs_on_the_models_own_probability(linear):
    """Where P(c) is saturated, that has no slope: the automatic T is what gets the search going."""
    with seeded(0):
        module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(24, 2)).double()
    with torch.no_grad():
        module[1].weight.copy_(torch.from_numpy(linear.coef_ * [[-500.0], [500.0]]))
        module[1].bias.copy_(torch.from_numpy(linear.intercept_ * [-500.0, 500.0]))
    saturated = cf.as_classifier(module, classes=linear.classes_)
    automatic = explain(saturated, max_iter=60)
    own = explain(saturated, max_iter=60, temperature=1.0)
    assert automatic.info["converged"].sum() > own.info["converged"].sum()


def test_earlier_calls_do_not_matter(network):
    explainer = cf.CELS(max_iter=60).fit(network, ITALY.X_train, ITALY.y_train)
    fresh = explainer.explain(X[:5])
    explainer.explain(X[5:] * 3)
    np.testing.assert_array_equal(explainer.explain(X[:5]).X_cf, fresh.X_cf)


def test_k_counterfactuals_come_from_k_guides(network):
    explainer = cf.CELS(max_iter=60).fit(network, ITALY.X_train, ITALY.y_train)
    result = explainer.explain(X[:6], k=3)
    assert len(result) == 18 and result.valid.all()
    assert result.info["k_index"].tolist() == [0, 1, 2] * 6
    assert all(len(set(result.info["guide_index"][result.source == i])) == 3 for i in range(6))


def test_images_are_refused():
    digits = cf.load_dataset("digits")
    with pytest.raises(ValueError, match="image"):
        cf.CELS().fit(lambda X: X, digits.X_train, digits.y_train)


def test_parameters_by_their_old_names_still_work():
    with pytest.warns(DeprecationWarning, match=r"CELS\(lr=...\) is now learning_rate=..."):
        old = cf.CELS(g=1.0, a=0.2, b=0.3, beta=2.0, lr=0.05)
    new = cf.CELS(max_coeff=1.0, budget_coeff=0.2, tv_coeff=0.3, tv_beta=2.0, learning_rate=0.05)
    assert old.get_params() == new.get_params()


def test_the_old_spelling_of_the_guide_still_works(linear):
    plain = explain(linear, X[:4])
    with pytest.warns(DeprecationWarning, match="guide='neighbour' is now guide='neighbor'"):
        old = explain(linear, X[:4], guide="neighbour")
    np.testing.assert_array_equal(old.X_cf, plain.X_cf)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_coeff", -0.1),
        ("budget_coeff", -0.1),
        ("budget_coeff", "0.6"),
        ("tv_coeff", -0.1),
        ("tv_beta", 0),
        ("learning_rate", 0),
        ("learning_rate", "0.1"),
        ("learning_rate", np.nan),
        ("max_iter", 0),
        ("max_iter", -3),
        ("max_iter", 2.5),
        ("max_iter", True),
        ("tau", 0),
        ("tau", 5),
        ("patience", 0),
        ("threshold", 0),
        ("threshold", 1.0),
        ("init", "large"),
        ("binarize", "no"),
        ("guide", "friend"),
        ("n_segments", 0),
        ("n_segments", None),
        ("gradient_subsample", 0),
        ("gradient_subsample", 50),
        ("temperature", 0),
        ("random_state", "now"),
    ],
)
def test_bad_parameters_are_refused_before_any_work(linear, option, value):
    with pytest.raises(ValueError, match=f"CELS: {option} must be .*, got {value!r}"):
        explain(linear, **{option: value})


def test_parameters_set_after_fit_are_checked_too(linear):
    explainer = cf.CELS().fit(linear, ITALY.X_train, ITALY.y_train)
    explainer.set_params(learning_rate="0.1")
    with pytest.raises(ValueError, match=r"learning_rate must be a number above 0 .*, got '0\.1'"):
        explainer.explain(X)
