import numpy as np
import pytest
from scipy.stats import kstest

from contrafact.numerics.randomness import fold_in, row_normal, row_seeds, row_uniform

SEEDS = np.arange(200)


@pytest.mark.parametrize("stream", [0, 1, 12345])
def test_uniform_is_uniform(stream):
    u = row_uniform(SEEDS, 500, stream)
    assert u.min() >= 0 and u.max() < 1
    assert kstest(u.ravel(), "uniform").pvalue > 1e-3
    # down the rows as well: seeds that follow one another must not give numbers that do
    assert kstest(u[:, 0], "uniform").pvalue > 1e-3
    # 100,000 numbers of 53 bits should not collide (expected 5e-7 pairs)
    assert len(np.unique(u)) == u.size


def test_normal_is_normal():
    z = row_normal(SEEDS, 500)
    assert np.isfinite(z).all()
    assert kstest(z.ravel(), "norm").pvalue > 1e-3


def test_rows_streams_and_numbers_are_independent():
    z = row_normal(SEEDS, 2000)
    limit = 6 / np.sqrt(2000)  # six standard deviations, over 19,900 pairs
    correlation = np.corrcoef(z) - np.eye(len(z))
    assert np.abs(correlation).max() < limit
    other = row_normal(SEEDS, 2000, stream=1)
    assert np.abs((z * other).mean(axis=1)).max() < limit
    assert np.abs((z[:, 1:] * z[:, :-1]).mean(axis=1)).max() < limit


def test_neighboring_streams_do_not_overlap():
    u = np.concatenate([row_uniform(SEEDS[:20], 500, stream) for stream in range(10)])
    assert len(np.unique(u)) == u.size


def test_a_row_draws_the_same_anywhere():
    order = np.random.default_rng(0).permutation(len(SEEDS))
    for draw in (row_uniform, row_normal):
        whole = draw(SEEDS, 30)
        assert np.array_equal(draw(SEEDS[order], 30), whole[order])
        assert np.array_equal(draw(SEEDS[17:18], 30)[0], whole[17])
    # asking for more numbers continues the row
    assert np.array_equal(row_uniform(SEEDS, 50)[:, :30], row_uniform(SEEDS, 30))


def test_negative_seeds_are_seeds():
    signed = np.array([-1, -2, 1, 2])
    assert len(np.unique(row_uniform(signed, 1))) == 4


def test_seeds_follow_the_row():
    X = np.random.default_rng(0).normal(size=(50, 2, 7))
    seeds = row_seeds(X, seed=3)
    order = np.random.default_rng(1).permutation(50)
    assert seeds.dtype == np.uint64 and len(np.unique(seeds)) == 50
    assert np.array_equal(row_seeds(X[order], seed=3), seeds[order])
    assert np.array_equal(row_seeds(X[7:8], seed=3), seeds[7:8])


def test_every_input_of_the_seed_matters():
    X = np.zeros((1, 5))
    seeds = [row_seeds(X, seed=0), row_seeds(X, seed=1), row_seeds(X, seed=0, extra=[0])]
    seeds += [
        row_seeds(X, seed=0, extra=[1]),
        row_seeds(X + 1e-300, seed=0),
        row_seeds(X[:, :4], seed=0),
    ]
    seeds += [
        row_seeds(np.eye(5)[[k]], seed=0) for k in range(5)
    ]  # the same numbers in another order
    assert len(np.unique(np.concatenate(seeds))) == len(seeds)


def test_equal_rows_have_equal_seeds_unless_told_apart():
    X = np.array([[0.0, 0.5], [-0.0, 0.5]])
    first, second = row_seeds(X, seed=0)
    assert first == second
    assert np.array_equal(row_seeds(X.astype(np.float32), seed=0), row_seeds(X, seed=0))
    assert len(np.unique(row_seeds(X, seed=0, extra=[0, 1]))) == 2


def test_inputs_are_left_alone():
    X = np.array([[-0.0, 1.0]])
    row_seeds(X, seed=0)
    assert np.signbit(X[0, 0])


@pytest.mark.parametrize("seeds", [[0.5], [[1, 2]], ["a"]])
def test_bad_seeds_are_named(seeds):
    with pytest.raises(ValueError, match="seeds must be one integer per row"):
        row_uniform(seeds, 3)


def test_fold_in_gives_each_step_its_own_seeds():
    steps = np.concatenate([fold_in(SEEDS, step) for step in range(50)])
    assert len(np.unique(steps)) == steps.size
