"""PrototypeMemory: the energy, its gradient, and the way down."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from contrafact.prototypes import PrototypeMemory

RNG = np.random.default_rng(0)
POINTS, LABELS = RNG.normal(size=(6, 2, 3)), np.array(["a", "b", "a", "c", "b", "b"])
ROWS = RNG.normal(size=(5, 2, 3))
SCALES = {"default": None, "number": 0.7, "per value": np.linspace(0.5, 2, 6).reshape(2, 3)}
every_scale = pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)


def energy_by_hand(x, points, beta, scale):
    scale = np.sqrt(points.var(axis=0).mean()) if scale is None else scale
    squared = (((x[:, None] - points) / scale) ** 2).reshape(len(x), len(points), -1).sum(2)
    return -logsumexp(-beta / 2 * squared, axis=1) / beta


@every_scale
@pytest.mark.parametrize("beta", [0.3, 1.0, 20.0])
def test_energy_by_hand(beta, scale):
    memory = PrototypeMemory(POINTS, LABELS, beta=beta, scale=scale)
    np.testing.assert_allclose(
        memory.energy(ROWS), energy_by_hand(ROWS, POINTS, beta, memory.scale.numpy())
    )
    default = np.sqrt(POINTS.var(axis=0).mean())
    assert scale is not None or float(memory.scale) == pytest.approx(default)


@every_scale
def test_energy_of_a_class_is_that_of_its_own_prototypes(scale):
    memory = PrototypeMemory(POINTS, LABELS, scale=scale)
    width = memory.scale.numpy()
    for label in "abc":
        own = energy_by_hand(ROWS, POINTS[label == LABELS], 1.0, width)
        np.testing.assert_allclose(memory.energy(ROWS, label), own)
        assert (own > memory.energy(ROWS)).all()
    wanted = ["c", "a", "b", "b", "a"]
    each = [memory.energy(ROWS[[i]], label)[0] for i, label in enumerate(wanted)]
    np.testing.assert_allclose(memory.energy(ROWS, wanted), each)
    steps = [memory.step(ROWS[[i]], label)[0] for i, label in enumerate(wanted)]
    np.testing.assert_allclose(memory.step(ROWS, wanted), steps)
    np.testing.assert_allclose(memory.step(ROWS, "c"), np.broadcast_to(POINTS[3], ROWS.shape))


@every_scale
@pytest.mark.parametrize(
    "label", [None, "a", ["c", "a", "b", "b", "a"]], ids=["all", "one", "each"]
)
def test_gradient(scale, label):
    memory = PrototypeMemory(POINTS, LABELS, beta=2.0, scale=scale)
    x = torch.from_numpy(ROWS).requires_grad_()
    (automatic,) = torch.autograd.grad(memory.energy(x, label).sum(), x)
    closed = memory.gradient(ROWS, label)
    np.testing.assert_allclose(closed, automatic, rtol=1e-9, atol=1e-12)
    step = 1e-6
    differences = np.zeros_like(ROWS)
    for place in np.ndindex(2, 3):
        shift = np.zeros((2, 3))
        shift[place] = step
        difference = memory.energy(ROWS + shift, label) - memory.energy(ROWS - shift, label)
        differences[(slice(None), *place)] = difference / (2 * step)
    np.testing.assert_allclose(closed, differences, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("apart", [0.0, 1e-12])
def test_gradient_on_a_prototype_is_finite(apart):
    memory = PrototypeMemory(POINTS)
    x = torch.from_numpy(POINTS + apart).requires_grad_()
    (gradient,) = torch.autograd.grad(memory.energy(x).sum(), x)
    np.testing.assert_allclose(gradient, memory.gradient(POINTS + apart), atol=1e-9)


def test_far_from_the_origin():
    near, far = PrototypeMemory(POINTS, scale=1.0), PrototypeMemory(POINTS + 1e6, scale=1.0)
    np.testing.assert_allclose(far.energy(ROWS + 1e6), near.energy(ROWS), rtol=1e-7)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(1, 8),
    beta=st.floats(0.01, 100),
    spread=st.sampled_from([0.1, 1.0, 30.0]),
    own_class=st.booleans(),
    per_value=st.booleans(),
)
def test_mean_shift_never_raises_the_energy(seed, k, beta, spread, own_class, per_value):
    rng = np.random.default_rng(seed)
    points, labels = rng.normal(size=(k, 3)), rng.integers(0, 2, k)
    scale = rng.uniform(0.2, 3, 3) if per_value else None
    memory = PrototypeMemory(points, labels, beta=beta, scale=scale)
    label = int(labels[0]) if own_class else None
    x = spread * rng.normal(size=(10, 3))
    before = memory.energy(x, label)
    for _ in range(4):
        x = memory.step(x, label)
        after = memory.energy(x, label)
        assert (after <= before + 1e-9 * (1 + np.abs(before))).all()
        before = after


def test_project_ends_in_the_data():
    memory = PrototypeMemory(POINTS, LABELS, beta=60.0)
    there = memory.project(ROWS, "b", n_steps=30)
    nearest = ((there[:, None] - POINTS[LABELS == "b"]) ** 2).sum((2, 3)).min(1)
    assert nearest.max() < 1e-6
    one = memory.project(ROWS, n_steps=1)
    np.testing.assert_array_equal(one, memory.step(ROWS))
    np.testing.assert_array_equal(memory.project(ROWS, n_steps=0), ROWS)


def test_beta_and_scale_matter():
    energies = [
        PrototypeMemory(POINTS, beta=b, scale=s).energy(ROWS) for b, s in ((1, 1), (2, 1), (1, 2))
    ]
    assert np.ptp(energies, axis=0).min() > 1e-3


@pytest.mark.parametrize("name", ["energy", "gradient", "step", "project"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kind_in_is_kind_out(name, dtype):
    memory = PrototypeMemory(POINTS.astype(dtype), LABELS)
    numpy = getattr(memory, name)(ROWS.astype(dtype))
    tensor = getattr(memory, name)(torch.from_numpy(ROWS.astype(dtype)))
    assert type(numpy) is np.ndarray and isinstance(tensor, torch.Tensor)
    assert numpy.dtype == dtype
    np.testing.assert_allclose(numpy, tensor, rtol=1e-5)
    assert np.asarray(getattr(memory, name)(ROWS.tolist())).shape == numpy.shape


def test_torch_of_another_dtype_is_answered_in_it():
    memory = PrototypeMemory(POINTS)
    assert memory.energy(torch.from_numpy(ROWS).float()).dtype == torch.float32


@pytest.mark.parametrize(
    ("points", "options", "said"),
    [
        (np.zeros(3), {}, r"prototypes must be \(K, \*shape\)"),
        (np.zeros((0, 3)), {}, "at least one"),
        (POINTS, {"labels": ["a"]}, r"labels must be one per prototype, \(6,\); got shape \(1,\)"),
        (POINTS, {"beta": 0.0}, "beta must be a number above 0, got 0"),
        (POINTS, {"beta": np.nan}, "beta must be a number above 0, got nan"),
        (POINTS, {"scale": 0.0}, "scale must be above 0"),
        (POINTS, {"scale": [1.0, -1.0, 1.0]}, "scale must be above 0"),
    ],
)
def test_wrong_memories_are_refused(points, options, said):
    with pytest.raises(ValueError, match=said):
        PrototypeMemory(points, **options)


def test_wrong_labels_are_refused():
    with pytest.raises(ValueError, match="made without labels"):
        PrototypeMemory(POINTS).energy(ROWS, "a")
    with pytest.raises(ValueError, match="label 'z' has no prototype"):
        PrototypeMemory(POINTS, LABELS).step(ROWS, "z")


def test_labels_of_another_length_are_refused():
    with pytest.raises(ValueError, match="label"):
        PrototypeMemory(POINTS, LABELS).energy(ROWS, ["a", "b"])


def test_integer_prototypes_are_numbers():
    points = np.array([[0, 0], [4, 0], [1, 2]])
    whole, real = PrototypeMemory(points), PrototypeMemory(points.astype(float))
    np.testing.assert_allclose(whole.energy([[0.5, 0.5]]), real.energy([[0.5, 0.5]]))


def test_memory_is_its_own():
    points = POINTS.copy()
    memory = PrototypeMemory(points)
    before = memory.energy(ROWS)
    points += 1
    np.testing.assert_array_equal(memory.energy(ROWS), before)
