"""Constraints: what is asked for holds exactly, whatever the precision; nonsense is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import contrafact as cf
from contrafact.engine.constraints import Constraints, round_inward

CPU = torch.device("cpu")
numbers = st.integers(-30, 30).map(lambda v: v / 10)


@st.composite
def boxes(draw, shape=(2, 4)):
    """Candidates, instances and a box with frozen places, in one precision."""
    dtype = draw(st.sampled_from([torch.float32, torch.float64]))
    lower = draw(arrays(np.float64, shape, elements=numbers | st.just(-np.inf)))
    upper = np.maximum(lower, draw(arrays(np.float64, shape, elements=numbers | st.just(np.inf))))
    frozen = draw(arrays(bool, shape))
    x, x_cf = (
        torch.from_numpy(draw(arrays(np.float64, (3, *shape), elements=numbers))).to(dtype)
        for _ in "ab"
    )
    return Constraints(lower=lower, upper=upper, frozen=frozen), x, x_cf


@settings(deadline=None, max_examples=150)
@given(boxes())
def test_projection_is_exact_and_settles(case):
    """Bounds hold against the float64 numbers the user gave, frozen values to the last bit."""
    constraints, x, x_cf = case
    feasible = constraints.resolve(tuple(x.shape[1:]), x.dtype, CPU)
    projected = feasible.project(x_cf, x)
    possible = torch.tensor([not reason for reason in feasible.impossible(x)])
    assert torch.equal(projected[:, constraints.frozen], x[:, constraints.frozen])
    assert torch.equal(feasible.project(projected, x), projected)
    assert feasible.allows(projected, x)[possible].all()
    moved = (projected != x).numpy() & possible.numpy()[:, None, None]
    values = projected.double().numpy()
    assert (values >= constraints.lower)[moved].all() and (values <= constraints.upper)[moved].all()
    already = feasible.allows(x_cf, x)
    assert torch.equal(projected[already], x_cf[already])


def test_rounding_is_inward_and_by_one_step_at_most():
    bound = np.array([0.1, 0.3, -0.1, 0.5, np.inf, -np.inf])
    for up, beyond in ((True, np.greater_equal), (False, np.less_equal)):
        rounded = round_inward(bound, torch.float32, up=up).numpy()
        assert beyond(rounded.astype(np.float64), bound).all()
        one_step = np.abs(np.spacing(bound[:4].astype(np.float32)))
        assert (np.abs(rounded[:4].astype(np.float64) - bound[:4]) <= one_step).all()
        np.testing.assert_array_equal(
            rounded[3:], bound[3:].astype(np.float32)
        )  # no rounding, no change


@pytest.fixture(scope="module")
def network():
    """A float32 module on float64 series, so that every bound has to be rounded; and its data."""
    rng = np.random.default_rng(0)
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(6, 2))
    with torch.no_grad():
        module[1].weight.copy_(torch.tensor([[-1.0], [1.0]]) * torch.linspace(1, 2, 6))
        module[1].bias.zero_()
    return module, rng.normal(size=(30, 1, 6))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_results_keep_bounds_in_float64(network, dtype):
    module, X = network
    X = X.astype(dtype)
    explainer = cf.NearestUnlike().fit(module, X)
    result = explainer.explain(X, constraints=cf.Constraints(lower=-0.1, upper=0.3))
    assert (result.status == "valid").sum() > 10
    moved = result.X_cf[result.status == "valid"].astype(np.float64)
    assert moved.min() >= -0.1 and moved.max() <= 0.3


def test_values_at_their_bound_are_left_alone(network):
    """Bounds taken from the data: rounding to the model's precision must not move or condemn the
    extremes."""
    module, X = network
    explainer = cf.RandomMask(n_segments=6).fit(module, X)
    free = explainer.explain(X)
    limited = explainer.explain(X, constraints=cf.Constraints(lower=X.min(0), upper=X.max(0)))
    np.testing.assert_array_equal(limited.changed, free.changed)
    first = np.arange(6) < 2
    frozen = explainer.explain(X, constraints=cf.Constraints(X.min(0), X.max(0), frozen=first))
    assert not any("outside the bounds" in message for message in frozen.message)


def test_vector_goes_by_channel_or_by_point():
    by_channel = Constraints(lower=[0.0, 1.0, 2.0]).resolve((3, 5), torch.float64, CPU).lower
    assert by_channel.tolist() == [[0.0] * 5, [1.0] * 5, [2.0] * 5]
    by_point = Constraints(lower=np.arange(5.0)).resolve((3, 5), torch.float64, CPU).lower
    assert by_point.tolist() == [list(range(5))] * 3
    image = Constraints(frozen=[True, False, False]).resolve((3, 4, 4), torch.float64, CPU).frozen
    assert image[0].all() and not image[1:].any()
    single = Constraints(upper=np.arange(5.0)).resolve((1, 5), torch.float64, CPU).upper
    assert single.tolist() == [list(range(5))]


def test_ambiguous_vector_is_refused_and_a_shape_settles_it():
    with pytest.raises(ValueError, match=r"lower has 3 entries.*\(3, 1\) or \(3, 3\)"):
        Constraints(lower=[0.0, 1.0, 2.0]).resolve((3, 3), torch.float64, CPU)
    lower = Constraints(lower=[[0.0], [1.0], [2.0]]).resolve((3, 3), torch.float64, CPU).lower
    assert lower.tolist() == [[0.0] * 3, [1.0] * 3, [2.0] * 3]


@pytest.mark.parametrize("name", ["lower", "upper", "frozen"])
def test_torch_tensors_serve_as_well_as_arrays(name):
    array = np.array([[True, False, True]]) if name == "frozen" else np.array([[0.1, 0.2, 0.3]])
    given, same = (
        getattr(Constraints(**{name: v}).resolve((1, 3), torch.float32, CPU), name)
        for v in (torch.from_numpy(array), array)
    )
    assert torch.equal(given, same)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"lower": [0.0, np.nan]}, "lower contains NaN"),
        ({"upper": np.nan}, "upper contains NaN"),
        ({"frozen": [0, 1, 1]}, "boolean array.*int64"),
        ({"frozen": torch.tensor([0.0, 1.0])}, "boolean array.*float32"),
        ({"max_step": 0.0}, "max_step must be positive.*got 0.0"),
        ({"max_step": np.nan}, "max_step must be positive.*got nan"),
        ({"max_step": [1.0, -1.0]}, r"max_step must be positive.*got \[1.0, -1.0\]"),
        ({"lower": "0"}, "constraints.lower must be an array, got '0'"),
        ({"upper": ["0"]}, "constraints.upper has dtype"),
        ({"lower": {"a": 1}}, "constraints.lower must be an array"),
        ({"lower": [[1.0], [1.0, 2.0]]}, "constraints.lower has entries of unequal shape"),
        ({"upper": [1j]}, "constraints.upper has dtype complex"),
        ({"upper": [None, 1.0]}, r"constraints.upper\[0\] is None"),
        ({"lower": True}, "constraints.lower must be a number.*got True"),
        ({"max_step": True}, "constraints.max_step must be a number.*got True"),
        ({"lower": np.inf}, "constraints.lower is inf somewhere"),
        ({"upper": [0.0, -np.inf]}, "constraints.upper is -inf somewhere"),
        ({"max_step": "fast"}, "constraints.max_step must be an array"),
        ({"max_step": {"a": 1}}, "constraints.max_step must be an array"),
        ({"frozen": "night"}, "constraints.frozen must be a boolean array or a list of column"),
        ({"frozen": np.array(["night"])}, "constraints.frozen must be a boolean array"),
        ({"frozen": [[True], [True, False]]}, "constraints.frozen has entries of unequal"),
    ],
)
def test_nonsense_is_refused_at_once(arguments, words):
    with pytest.raises((ValueError, TypeError), match=words):
        Constraints(**arguments)


@pytest.mark.parametrize(
    ("arguments", "shape", "words"),
    [
        (
            {"lower": 1.0, "upper": [2.0, 0.5, 2.0]},
            (1, 3),
            r"lower 1.0 is above upper 0.5 at position \(0, 1\)",
        ),
        ({"upper": np.zeros(4)}, (1, 3), r"upper has shape \(4,\).*\(1, 3\)"),
        ({"frozen": np.ones((2, 3), bool)}, (3,), r"frozen has shape \(2, 3\)"),
        ({"max_step": 1.0}, (3,), r"max_step applies to series.*\(3,\)"),
        ({"max_step": 1.0}, (1, 3, 3), "max_step applies to series"),
        ({"max_step": np.ones(3)}, (2, 3), r"max_step has shape \(3,\).*one per channel, \(2,\)"),
        ({"max_step": np.ones((1, 3))}, (1, 3), r"max_step has shape \(1, 3\)"),
    ],
)
def test_what_does_not_fit_the_instance_is_refused(arguments, shape, words):
    with pytest.raises(ValueError, match=words):
        Constraints(**arguments).resolve(shape, torch.float32, CPU)


def test_reasons_why_nothing_can_be_done():
    x = torch.tensor([[[0.0, 5.0, 0.0]], [[0.0, 0.0, 0.0]]])

    def reasons(**arguments):
        return Constraints(**arguments).resolve((1, 3), x.dtype, CPU).impossible(x)

    assert reasons(frozen=[True] * 3) == ["every point is frozen"] * 2
    outside, fine = reasons(frozen=[False, True, False], upper=1.0)
    assert outside == "the frozen value 5 at (0, 1) is outside the bounds" and fine == ""
    steep, fine = reasons(frozen=[True, True, False], max_step=1.0)
    assert "max_step=1" in steep and fine == ""
    assert reasons(frozen=[True, True, False], max_step=5.0) == ["", ""]
    both = reasons(lower=0.1, upper=0.1)  # float32 has no number there
    assert all("no float32 number" in reason and "[0.1, 0.1]" in reason for reason in both)
    assert reasons(lower=0.5, upper=0.5) == ["", ""]


def test_limits_in_words():
    feasible = Constraints(-1.0, 2.5, [True, False, False], 0.5).resolve((1, 3), torch.float32, CPU)
    assert feasible.describe() == "1 of 3 points frozen, values within [-1, 2.5], steps up to 0.5"
    by_channel = Constraints(max_step=[0.5, 2.0]).resolve((2, 3), torch.float32, CPU)
    assert by_channel.describe() == "steps up to 0.5 to 2, by channel"
    assert Constraints(frozen=[False] * 3, max_step=2.0).kinds == {"frozen", "max_step"}


@pytest.mark.parametrize("X_cf", [np.zeros((2, 3)), np.zeros((1, 4)), [[1.0], [1.0, 2.0]], None])
def test_arrays_to_check_have_to_agree(X_cf):
    with pytest.raises((ValueError, TypeError), match="X_cf"):
        Constraints(upper=1.0).check(np.zeros((1, 3)), X_cf)


def test_steps_are_checked_channel_by_channel():
    X_cf = np.array([[[0.0, 0.5], [0.0, 2.0]], [[0.0, 1.0], [0.0, 0.0]]])
    kept = Constraints(max_step=[0.5, 2.0]).check(np.zeros((2, 2, 2)), X_cf)
    assert kept["max_step"].tolist() == [True, False]


def test_results_keep_a_slope_limit_per_channel():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2, 6)).cumsum(-1)

    def model(X):
        p = 1 / (1 + np.exp(-X.mean((1, 2))))
        return np.stack([1 - p, p], 1)

    limit = np.array([0.3, np.inf])
    explainer = cf.NearestUnlike().fit(model, X)
    result = explainer.explain(X, constraints=cf.Constraints(max_step=limit))
    moved = result.status == "valid"
    steps = np.abs(np.diff(result.X_cf[moved])).max(-1)
    assert moved.sum() > 5 and (steps <= limit).all()
    assert steps[:, 1].max() > 0.3
    free = explainer.explain(X, constraints=cf.Constraints(max_step=np.inf))
    np.testing.assert_array_equal(free.X_cf, explainer.explain(X).X_cf)


def test_only_what_was_given_is_printed():
    assert repr(Constraints()) == "Constraints()"
    limits = Constraints(upper=3.0, frozen=np.zeros(1000, dtype=bool), increasing=["age"])
    shown = "upper=3.0, frozen=ndarray of shape (1000,), increasing=['age']"
    assert repr(limits) == f"Constraints({shown})"
