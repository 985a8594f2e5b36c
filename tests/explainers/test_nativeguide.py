"""NativeGuide: windows of the guide, blends with it, and class activation."""

import numpy as np
import pytest
import torch
from aeon.distances import dtw_distance
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.explainers.nativeguide import barycenter, warping_paths
from contrafact.explainers.support.class_activation import averages_over_time
from contrafact.nn.networks import FCN, seeded

ITALY = cf.load_dataset("ItalyPowerDemand")
X = ITALY.X_test[np.random.default_rng(0).permutation(len(ITALY.X_test))[:30]]
MODES = ("window", "blend", "cam")


def explain(model, data=ITALY, rows=X, *, options=None, **params):
    return (
        cf.NativeGuide(**params)
        .fit(model, data.X_train, data.y_train)
        .explain(rows, **(options or {}))
    )


def fit(make, data):
    return make.fit(data.X_train.reshape(len(data.X_train), -1), data.y_train)


@pytest.fixture(scope="module")
def fcn():
    with seeded(0):
        module = FCN(1, 2, widths=(8, 16, 8))
    return cf.fit_classifier(module, ITALY.X_train, ITALY.y_train, max_epochs=30)


# --- windows --------------------------------------------------------------------------------------


def test_the_edit_is_one_window_of_the_guide(linear):
    result = explain(linear)
    guide = ITALY.X_train[result.info["guide_index"]]
    time = np.arange(24)
    start, length = (result.info[key][:, None] for key in ("window_start", "window_length"))
    window = ((time >= start) & (time < start + length))[:, None]
    assert result.valid.all() and (result.info["window_length"] < 24).any()
    assert np.array_equal(result.X_cf, np.where(window, guide, result.X))
    assert (linear.predict(guide[:, 0]) == result.target).all()


def test_on_a_linear_model_no_shorter_window_does(linear):
    """Gains of single steps add up there, so a window lies where it does most: compared with all
    windows."""
    result = explain(linear, n_segments=24)
    for i, length in enumerate(result.info["window_length"].tolist()):
        guide = ITALY.X_train[result.info["guide_index"][i]]
        tried = []
        for start in range(24 - length + 2):
            other = X[i].copy()
            other[:, start : start + length - 1] = guide[:, start : start + length - 1]
            tried.append(other[0])
        assert (linear.predict(np.array(tried)) != result.target[i]).all()


def test_steps_of_a_forest_are_explored_too():
    forest = RandomForestClassifier(50, random_state=0).fit(ITALY.X_train[:, 0], ITALY.y_train)
    ours = explain(forest)
    floor = cf.RandomMask().fit(forest, ITALY.X_train, ITALY.y_train).explain(X)
    assert ours.valid.all() and ours.changed_fraction.mean() < floor.changed_fraction.mean()


def test_windows_go_across_channels():
    data = cf.load_dataset("BasicMotions")
    model = fit(LogisticRegression(max_iter=500), data)
    result = explain(model, data, data.X_test[:12])
    for x_cf, x, start, length in zip(
        result.X_cf,
        result.X,
        result.info["window_start"],
        result.info["window_length"],
        strict=True,
    ):
        changed = (x_cf != x).any(1)
        assert (
            changed.all()
            and not (x_cf != x)[:, :start].any()
            and not (x_cf != x)[:, start + length :].any()
        )


# --- blends ---------------------------------------------------------------------------------------


def pairs(channels=2, length=30, n=5):
    walk = np.random.default_rng(1).normal(size=(2, n, channels, length)).cumsum(3)
    return torch.from_numpy(walk)


@pytest.mark.parametrize("beta", [0.0, 0.3, 0.5, 0.8, 1.0])
def test_barycenter_is_the_average_along_the_path(beta):
    x, n = pairs()
    paths = warping_paths(x.numpy(), n.numpy())
    curve = barycenter(
        x, n, torch.from_numpy(paths), torch.full((len(x),), beta, dtype=torch.float64)
    )
    for a, b, path, found in zip(x.numpy(), n.numpy(), paths, curve.numpy(), strict=True):
        i, j = path[: 1 + int((path.sum(1) < 2 * 29).sum())].T
        for c in range(2):
            values = (1 - beta) * a[c, i] + beta * b[c, j]
            expected = np.interp(np.arange(30), (1 - beta) * i + beta * j, values)
            np.testing.assert_allclose(found[c], expected, atol=1e-12)
        cost = (1 - beta) * beta**2 + beta * (1 - beta) ** 2  # of the curve before it is read off
        exact = cost * ((a[:, i] - b[:, j]) ** 2).sum()
        np.testing.assert_allclose(exact, beta * (1 - beta) * dtw_distance(a, b), rtol=1e-9)


def test_barycenter_begins_at_the_instance_and_ends_at_the_guide():
    for dtype in (torch.float32, torch.float64):
        x, n = (part.to(dtype) for part in pairs())
        path = torch.from_numpy(warping_paths(x.double().numpy(), n.double().numpy()))
        ends = torch.zeros(len(x), dtype=dtype)
        assert torch.equal(barycenter(x, n, path, ends), x)
        assert torch.equal(barycenter(x, n, path, ends + 1), n)


def test_barycenter_is_nearer_to_both_than_the_straight_average():
    time = np.arange(60)
    x, n = (
        np.stack([np.exp(-0.5 * ((time - at - lag) / 3) ** 2) for lag in lags])[:, None]
        for at, lags in ((15, (0, 0, 0, 0)), (15, (7, 12, 17, 22)))
    )
    half = torch.full((4,), 0.5, dtype=torch.float64)
    curve = barycenter(*map(torch.from_numpy, (x, n, warping_paths(x, n))), half).numpy()
    for a, b, ours, plain in zip(x, n, curve, (x + n) / 2, strict=True):
        far = dtw_distance(plain, a) + dtw_distance(plain, b)
        assert dtw_distance(ours, a) + dtw_distance(ours, b) < 0.8 * far


def test_a_bump_moves_where_the_straight_line_would_make_two():
    time = torch.arange(60.0, dtype=torch.float64)
    x, n = (torch.exp(-0.5 * ((time - at) / 2) ** 2)[None, None] for at in (20, 40))
    half = torch.tensor([0.5], dtype=torch.float64)
    middle = barycenter(x, n, torch.from_numpy(warping_paths(x.numpy(), n.numpy())), half)[0, 0]
    assert (
        int(middle.argmax()) == 30
        and float(middle[30]) > 0.95
        and float(middle[[20, 40]].max()) < 0.1
    )


def test_blend_takes_the_smallest_weight(linear):
    result = explain(linear, mode="blend")
    weight = result.info["weight"]
    assert result.valid.all() and (weight < 1).any()
    guide = torch.from_numpy(ITALY.X_train[result.info["guide_index"]])
    rows = torch.from_numpy(X)
    path = torch.from_numpy(warping_paths(X, guide.numpy()))
    np.testing.assert_allclose(
        result.X_cf, barycenter(rows, guide, path, torch.from_numpy(weight)), atol=1e-12
    )
    less = barycenter(rows, guide, path, torch.from_numpy(weight - 2**-10)).numpy()
    # Right at the boundary the model's word alone is not enough: a search wants a clear lead.
    lead = (
        2
        * linear.predict_proba(less[:, 0])[
            np.arange(30), np.searchsorted(linear.classes_, result.target)
        ]
        - 1
    )
    assert (lead < 1e-4).all()


# --- class activation -----------------------------------------------------------------------------


def test_activation_adds_up_to_the_change_of_the_lead(fcn):
    result = explain(fcn, mode="cam")
    guide = ITALY.X_train[result.info["guide_index"]]
    with torch.no_grad():
        logits = [fcn.logits(fcn.as_input(rows)).numpy() for rows in (guide, X)]
    column = [np.searchsorted(fcn.classes, labels) for labels in (result.target, result.labels)]
    gain = (logits[0] - logits[1])[np.arange(30), column[0]] - (logits[0] - logits[1])[
        np.arange(30), column[1]
    ]
    np.testing.assert_allclose(result.info["importance"].mean(1), gain, rtol=1e-3, atol=1e-3)


def test_activation_costs_two_rows_and_places_windows_well(fcn):
    cam, window = explain(fcn, mode="cam"), explain(fcn, mode="window", n_segments=24)
    assert cam.valid.all()
    assert cam.calls.mean() <= 2 + 2 + np.ceil(np.log2(24)) < window.calls.mean()
    assert cam.changed_fraction.mean() <= 1.3 * window.changed_fraction.mean()


class Head(torch.nn.Module):
    """Convolution, a way of pooling, a linear layer."""

    def __init__(self, pool):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Conv1d(1, 6, 3), torch.nn.ReLU(), pool)
        self.head = torch.nn.Linear(6, 2)

    def forward(self, x):
        return self.head(self.layers(x).flatten(1))


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (Head(torch.nn.AdaptiveAvgPool1d(1)), True),
        (Head(torch.nn.AdaptiveMaxPool1d(1)), False),
        (FCN(1, 2), True),
        (torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(24, 2)), False),
        (lambda X: np.tile([0.5, 0.5], (len(X), 1)), False),
    ],
)
def test_networks_that_average_over_time_are_known_by_what_they_do(module, expected):
    classifier = cf.as_classifier(module, classes=[0, 1])
    assert averages_over_time(classifier, classifier.as_input(X[:2])) == expected
    if expected:
        assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())


def test_other_models_are_explored_as_in_window(linear):
    assert np.array_equal(explain(linear, mode="cam").X_cf, explain(linear, mode="window").X_cf)


# --- all modes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_valid_guide_is_never_thrown_away(mode):
    """A model that knows the reference rows of class 1 by heart and says 0 of everything else."""
    known = ITALY.X_train[ITALY.y_train == np.unique(ITALY.y_train)[1]]

    def by_heart(X):
        p = (np.abs(X[:, None] - known[None]).max((2, 3)) < 1e-9).any(1)
        return np.stack([1 - p, p], 1)

    model = cf.as_classifier(by_heart, classes=np.unique(ITALY.y_train))
    result = explain(model, mode=mode)
    assert result.valid.all() and np.array_equal(
        result.X_cf, ITALY.X_train[result.info["guide_index"]]
    )


@pytest.mark.parametrize("mode", MODES)
def test_a_small_budget_gives_the_guide(linear, mode):
    full = explain(linear, mode=mode)
    for share in (4, 6, 12, 40):
        result = explain(linear, mode=mode, options={"budget": cf.Budget(calls=30 * share)})
        assert result.valid.all() and (result.calls <= share).all()
    assert np.array_equal(result.X_cf, full.X_cf)
    late = explain(linear, mode=mode, options={"budget": cf.Budget(seconds=1e-9)})
    assert late.valid.all() and np.array_equal(late.X_cf, ITALY.X_train[late.info["guide_index"]])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["GunPoint", "ArrowHead", "BasicMotions"])
@pytest.mark.parametrize(
    "make", [LogisticRegression(max_iter=500), RandomForestClassifier(30, random_state=0)]
)
def test_validity_is_one_on_real_data(name, mode, make):
    data = cf.load_dataset(name)
    model = fit(make, data)
    result = explain(model, data, data.X_test[:25], mode=mode)
    assert set(result.status) == {"valid"} and result.target.dtype.kind == "U"
    assert (model.predict(result.X_cf.reshape(25, -1)) == result.target).all()


@pytest.mark.parametrize("mode", MODES)
def test_a_frozen_window_and_a_frozen_channel_stay(mode):
    data = cf.load_dataset("BasicMotions")
    model = fit(LogisticRegression(max_iter=500), data)
    frozen = np.zeros((6, 100), bool)
    frozen[2], frozen[:, 30:45] = True, True
    rows = data.X_test[:20]
    result = explain(
        model, data, rows, mode=mode, options={"constraints": cf.Constraints(frozen=frozen)}
    )
    assert np.array_equal(result.X_cf[:, frozen], rows[:, frozen])
    assert result.valid.mean() >= 0.9 and (result.X_cf != rows)[:, ~frozen].any(1).all()


def test_with_constraints_the_best_of_what_was_tried_is_kept():
    """The guide of ones is out of reach with one value frozen; its first third alone does, and was
    tried."""

    def thirds(X):
        high = X[:, 0] > 0.5
        p = high.all(1) | (high[:, :8].all(1) & ~high[:, 8:].any(1))
        return np.stack([1 - p, p], 1)

    reference = np.repeat([0.0, 1.0], 3)[:, None, None] * np.ones((6, 1, 24))
    model = cf.as_classifier(thirds, classes=[0, 1])
    explainer = cf.NativeGuide(n_segments=3).fit(model, reference, np.repeat([0, 1], 3))
    result = explainer.explain(
        np.zeros((2, 1, 24)), constraints=cf.Constraints(frozen=np.arange(24) == 12)
    )
    assert result.valid.all() and (result.X_cf[:, 0] == (np.arange(24) < 8)).all()


@pytest.mark.parametrize("mode", MODES)
def test_k_counterfactuals_come_from_k_guides(linear, mode):
    result = explain(linear, mode=mode, options={"k": 3})
    assert len(result) == 90 and result.valid.all()
    assert all(len(set(three)) == 3 for three in result.info["guide_index"].reshape(-1, 3))


@pytest.mark.parametrize("mode", MODES)
def test_confidence_is_reached_where_a_guide_has_it(linear, mode):
    result = explain(linear, mode=mode, options={"confidence": 0.9})
    plain = explain(linear, mode=mode)
    assert (result.target_proba[:, 1] >= 0.9).all() and (plain.target_proba[:, 1] < 0.9).any()


@pytest.mark.parametrize(
    ("mode", "option", "value"),
    [
        ("window", "metric", "dtw"),
        ("window", "n_segments", 4),
        ("blend", "steps", 3),
        ("window", "mode", "blend"),
    ],
)
def test_every_option_matters(linear, mode, option, value):
    plain, other = explain(linear, mode=mode), explain(linear, **{"mode": mode, option: value})
    assert not np.array_equal(plain.X_cf, other.X_cf)


@pytest.mark.parametrize(
    ("option", "value"),
    [("mode", "gradient"), ("n_segments", 1), ("steps", 0), ("metric", "manhattan")],
)
def test_bad_options_are_refused(linear, option, value):
    with pytest.raises(ValueError, match=rf"{option}.*{value}"):
        explain(linear, **{option: value})
