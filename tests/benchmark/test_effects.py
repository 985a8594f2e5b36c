"""Orthogonal arrays, and effects that are known."""

import itertools

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.benchmark import parameter_effects
from contrafact.benchmark.effects import effects_of
from contrafact.benchmark.orthogonal_arrays import assign, orthogonal_array

ITALY = cf.load_dataset("ItalyPowerDemand")


@pytest.mark.parametrize(("name", "shape"), [("L9", (9, 4)), ("L18", (18, 8)), ("L27", (27, 13))])
def test_every_pair_of_columns_is_balanced(name, shape):
    array = orthogonal_array(name)
    assert array.shape == shape
    assert (array.max(0) + 1).tolist() == ([2] if name == "L18" else [3]) + [3] * (shape[1] - 1)
    for a, b in itertools.combinations(range(shape[1]), 2):
        cells, counts = np.unique(array[:, [a, b]], axis=0, return_counts=True)
        assert len(cells) == (array[:, a].max() + 1) * (array[:, b].max() + 1)
        assert counts.min() == counts.max()


def test_the_smallest_array_with_room_is_taken():
    three = [1, 2, 3]
    for n, runs in ((1, 9), (4, 9), (5, 18), (7, 18), (8, 27), (9, 27), (13, 27)):
        assert len(assign({str(i): three for i in range(n)}, "auto")) == runs
    levels = {str(i): three for i in range(7)} | {"two": [0, 1]}
    design = assign(levels, "auto")
    assert len(design) == 18
    assert np.bincount(design[:, -1]).tolist() == [9, 9]
    assert np.bincount(assign({"two": [0, 1]}, "L9")[:, 0]).tolist() == [6, 3]


def test_additive_effects_are_found_exactly():
    """Means of values differ by the effects alone, whatever the others do; nothing interacts."""
    levels = {"a": [0, 1, 2], "b": [0, 1, 2], "c": [5, 7, 9]}
    effects = effects_of(lambda p: {"y": 3 * p["a"] + p["b"] ** 2, "z": 1.0}, levels, "L27")
    means = effects.main.set_index(["parameter", "value"])["y"]
    assert np.allclose(np.diff(means["a"]), 3) and np.allclose(np.diff(means["b"]), [1, 3])
    assert np.allclose(np.diff(means["c"]), 0)
    shares = effects.shares.set_index("term")
    assert shares["clear"].all()
    a, b = np.var([0, 3, 6]), np.var([0, 1, 4])
    np.testing.assert_allclose(shares.loc[["a", "b"], "y"], [a / (a + b), b / (a + b)])
    np.testing.assert_allclose(shares.drop(index=["a", "b"])["y"], 0, atol=1e-12)
    assert (shares["z"] == 0).all()  # what does not vary has nothing to explain


def test_an_interaction_is_told_from_main_effects_where_it_is_clear():
    def product(p):
        return {"y": (p["a"] - 1) * (p["b"] - 1)}

    levels = {"a": [0, 1, 2], "b": [0, 1, 2], "c": [0, 1, 2]}
    clear = effects_of(product, levels, "L27").shares.set_index("term")
    assert clear.loc["a × b", "y"] == pytest.approx(1) and clear["clear"].all()
    mixed = effects_of(product, {**levels, "d": [0, 1, 2]}, "L9").shares.set_index("term")
    assert not mixed["clear"][["a × b", "c × d"]].any()
    assert mixed.loc["c", "y"] + mixed.loc["d", "y"] == pytest.approx(1)


def test_a_score_without_a_value_in_some_run_has_no_shares():
    def score(p):
        return {"y": np.nan if p["a"] == 2 else p["b"], "z": p["b"]}

    levels = {"a": [0, 1, 2], "b": [None, 1, 2.0]}
    effects = effects_of(lambda p: score({**p, "b": p["b"] or 0}), levels, "L9")
    assert effects.shares["y"].isna().all()
    np.testing.assert_allclose(effects.shares["z"][:2], [0, 1], atol=1e-12)
    assert effects.main["y"].isna().tolist() == [False, False, True, True, True, True]
    assert effects.main["value"].tolist() == [0, 1, 2, None, 1, 2.0]


def test_rounding_has_no_shares():
    numbers = iter(0.1 + 1e-17 * np.random.default_rng(0).integers(-9, 9, 9))
    shares = effects_of(lambda p: {"y": next(numbers)}, {"a": [0, 1, 2], "b": [0, 1, 2]}).shares
    assert (shares["y"] == 0).all()


def test_parameters_of_an_explainer():
    """Of CELS, the cut decides how much is copied, and max_iter what it costs."""
    flat = ITALY.X_train[:, 0]
    model = LogisticRegression(max_iter=500).fit(flat, ITALY.y_train)
    effects = parameter_effects(
        cf.CELS(),
        model,
        (ITALY.X_train, ITALY.y_train),
        ITALY.X_test[:6],
        {"threshold": [0.2, 0.5, 0.8], "max_iter": [5, 20, 40], "metric": ["euclidean", "dtw"]},
        ["valid", "sparsity", "calls"],
    )
    assert len(effects.runs) == 9 and (effects.runs["valid"] == 1).all()
    means = effects.main.set_index(["parameter", "value"])
    assert means.loc[("max_iter", 5), "calls"] < means.loc[("max_iter", 40), "calls"]
    shares = effects.shares.set_index("term")
    assert shares.loc["max_iter", "calls"] > shares.loc["threshold", "calls"]
    run = effects.runs.iloc[4]
    chosen = {name: run[name] for name in ("threshold", "max_iter", "metric")}
    again = cf.CELS(**chosen).fit(model, ITALY.X_train, ITALY.y_train).explain(ITALY.X_test[:6])
    assert run["sparsity"] == pytest.approx(again.changed_fraction.mean())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"levels": {"tau": [0.5]}}, "levels must be a dictionary from parameter to two or three"),
        ({"levels": {"speed": [1, 2]}}, "levels holds 'speed'; CELS has the parameters"),
        ({"array": "L12"}, "array must be 'auto', 'L9', 'L18' or 'L27', got 'L12'"),
        ({"metrics": "valid"}, "metrics must be"),
        ({"metrics": ["beauty"]}, "beauty"),
        (
            {"explainer": cf.LatentCF(), "levels": {"tau": [0.5, 0.6]}, "metrics": ["tau"]},
            "metrics and levels both name 'tau'",
        ),
    ],
)
def test_refuses(given, said):
    model = LogisticRegression(max_iter=500).fit(ITALY.X_train[:, 0], ITALY.y_train)
    options = {"explainer": cf.CELS(), "levels": {"max_iter": [2, 3]}, **given}
    data = {"reference": (ITALY.X_train, ITALY.y_train), "X": ITALY.X_test[:2]}
    with pytest.raises((ValueError, TypeError), match=said):
        parameter_effects(model=model, **data, **options)


def test_more_parameters_than_columns_are_refused():
    levels = {str(i): [1, 2, 3] for i in range(14)}
    with pytest.raises(ValueError, match="at most 13 can be varied"):
        assign(levels, "auto")
    with pytest.raises(ValueError, match="L9 takes at most 4"):
        assign(levels, "L9")
    with pytest.raises(ValueError, match="only if one of them has two values"):
        assign({str(i): [1, 2, 3] for i in range(8)}, "L18")
