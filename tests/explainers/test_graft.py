"""Graft: what it returns on real series, level by level, within constraints, in odd cases."""

import numpy as np
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.nn.networks import FCN, seeded
from contrafact.numerics import RealDifferences
from contrafact.prototypes import GLVQ

ITALY = cf.load_dataset("ItalyPowerDemand")
GUNPOINT = cf.load_dataset("GunPoint")
DATA = {"ItalyPowerDemand": ITALY, "GunPoint": GUNPOINT}
N = 16


def rows_of(data, n=N):
    return data.X_test[np.random.default_rng(0).permutation(len(data.X_test))[:n]]


def fit(make, data):
    return make.fit(data.X_train.reshape(len(data.X_train), -1), data.y_train)


@pytest.fixture(scope="module")
def models():
    """A linear model and a forest of each set, and a small network."""
    found = {}
    for name, data in DATA.items():
        found[name, "linear"] = fit(LogisticRegression(max_iter=500), data)
        found[name, "forest"] = fit(RandomForestClassifier(20, random_state=0), data)
    with seeded(0):
        module = FCN(1, 2, widths=(8, 16, 8))
    found["ItalyPowerDemand", "fcn"] = cf.fit_classifier(
        module, ITALY.X_train, ITALY.y_train, max_epochs=30
    )
    return found


CELLS = [
    ("ItalyPowerDemand", "linear"),
    ("ItalyPowerDemand", "forest"),
    ("ItalyPowerDemand", "fcn"),
    ("GunPoint", "linear"),
    ("GunPoint", "forest"),
]


@pytest.fixture(scope="module")
def results(models):
    """Answers of the default level for every model."""
    return {
        (name, kind): explain(models[name, kind], DATA[name], rows_of(DATA[name]))
        for name, kind in CELLS
    }


def explain(model, data, rows, *, options=None, y="given", **params):
    labels = data.y_train if isinstance(y, str) else y
    explainer = cf.Graft(**params).fit(model, data.X_train, labels)
    return explainer.explain(rows, **(options or {}))


def runs(changed):
    """Starts and lengths of the runs of a mask (length,)."""
    step = np.diff(np.concatenate([[0], changed.astype(int), [0]]))
    start = np.flatnonzero(step == 1)
    return start, np.flatnonzero(step == -1) - start


def edges(result, data):
    """Seam and kink of every answer, against the reference."""
    limits = RealDifferences.of(torch.from_numpy(data.X_train))
    pair = torch.from_numpy(result.X_cf), torch.from_numpy(result.X)
    return limits.seam(*pair).numpy(), limits.kink(*pair).numpy()


# --- what is returned -----------------------------------------------------------------------------


@pytest.mark.parametrize("cell", CELLS)
def test_all_answers_are_valid_and_look_real(results, cell):
    result = results[cell]
    data = DATA[cell[0]]
    assert set(result.status) == {"valid"}
    seam, kink = edges(result, data)
    tested = result.info["level"] >= 0
    assert tested.mean() > 0.9
    assert (result.info["level"][tested] == 1).all()
    assert (seam[tested] <= 1 + 1e-5).all()
    assert (kink[tested] <= 1 + 1e-5).all()
    np.testing.assert_allclose(result.info["seam"], seam, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(result.info["kink"], kink, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cell", CELLS)
def test_info_tells_where_the_change_is(results, cell):
    result = results[cell]
    info = result.info
    for i, (x_cf, x) in enumerate(zip(result.X_cf, result.X, strict=True)):
        start, length = runs((x_cf != x).any(0))
        assert len(start) >= 1
        assert (info["start"][i], info["length"][i]) == (start[0], length[0])
        second = (start[1], length[1]) if len(start) > 1 else (-1, 0)
        assert (info["second_start"][i], info["second_length"][i]) == second


@pytest.mark.parametrize("cell", CELLS)
def test_windows_come_from_reference_rows_of_the_target_class(results, models, cell):
    result = results[cell]
    data = DATA[cell[0]]
    donor = data.X_train[result.info["donor"]]
    classifier = cf.as_classifier(models[cell])
    assert (classifier.predict(donor) == result.target).all()
    tilted = 0
    time = np.arange(donor.shape[-1]) - result.info["shift"][:, None]
    moved = np.take_along_axis(donor[:, 0], time.clip(0, donor.shape[-1] - 1), axis=1)
    for x_cf, own, start, length, pair in zip(
        result.X_cf[:, 0],
        moved,
        result.info["start"],
        result.info["length"],
        result.info["second_donor"] >= 0,
        strict=True,
    ):
        window = slice(start, start + length)
        line = x_cf[window] - own[window]
        is_line = length < 3 or np.abs(np.diff(line, 2)).max() < 1e-5
        # a faded graft is the donor itself but for its ramps
        is_faded = np.abs(line[4:-4]).max(initial=0) < 1e-5
        assert is_line or is_faded or pair
        tilted += is_line
    assert tilted > 0


@pytest.mark.parametrize("cell", CELLS)
def test_changes_are_small_and_cost_little(results, cell):
    assert results[cell].changed_fraction.mean() < 0.35
    assert results[cell].calls.mean() <= 300


# --- levels ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def by_level(models):
    model = models["GunPoint", "linear"]
    rows = rows_of(GUNPOINT, 12)
    return {
        level: explain(model, GUNPOINT, rows, level=level)
        for level in ("smallest", "steady", "lasting")
    }


def test_the_more_an_answer_withstands_the_larger_it_is(by_level):
    sizes = [by_level[level].changed_fraction.mean() for level in ("smallest", "steady", "lasting")]
    assert sizes[0] <= sizes[1] <= sizes[2]
    assert sizes[0] < sizes[2]
    for number, level in enumerate(("smallest", "steady", "lasting")):
        assert set(by_level[level].info["level"]) <= {-1, number}


def test_steady_answers_survive_noise(by_level, models):
    steady = by_level["steady"]
    passed = steady.info["level"] == 1
    assert (steady.info["noise_survival"][passed] >= 5 / 6 - 1e-9).all()
    assert np.isnan(by_level["smallest"].info["noise_survival"]).all()
    model = models["GunPoint", "linear"]
    scale = 0.05 * GUNPOINT.X_train.std()
    noise = np.random.default_rng(1).normal(size=(40, *steady.X_cf.shape)) * scale
    stays = [model.predict((steady.X_cf + e)[:, 0]) == steady.target for e in noise]
    assert np.mean(stays) > 0.85


def test_lasting_answers_convince_the_committee_and_are_typical(by_level, models):
    lasting = by_level["lasting"]
    passed = lasting.info["level"] == 2
    assert passed.mean() > 0.8
    assert (lasting.info["committee_votes"] == lasting.info["committee_size"])[passed].all()
    assert lasting.info["committee_size"].min() >= 3
    p = lasting.target_proba[:, 1]
    # at least the least sure quarter of the class, where that is not very sure
    reference = models["GunPoint", "linear"].predict_proba(GUNPOINT.X_train[:, 0])
    typical = np.quantile(reference.max(1), 0.1)
    assert (p[passed] >= min(typical, 0.55)).all()
    assert p.mean() > by_level["smallest"].target_proba[:, 1].mean()


def test_a_front_goes_from_small_to_lasting(models):
    rows = rows_of(GUNPOINT, 8)
    front = explain(models["GunPoint", "linear"], GUNPOINT, rows, spread="front", options={"k": 3})
    assert front.valid.all()
    assert len(front) >= 15
    level = front.info["level"]
    place = np.arange(len(front)) - np.searchsorted(front.source, front.source)
    whole = np.bincount(front.source)[front.source] == 3
    passed = whole & (level >= 0)
    assert (level[passed] == place[passed]).all()
    assert {0, 1, 2} <= set(level)
    sizes = [front.changed_fraction[whole & (place == number)].mean() for number in range(3)]
    assert sizes[0] <= sizes[1] <= sizes[2]


# --- several answers ------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", [("GunPoint", "linear"), ("ItalyPowerDemand", "forest")])
def test_different_answers_overlap_less_than_half(models, cell):
    data = DATA[cell[0]]
    result = explain(models[cell], data, rows_of(data, 10), options={"k": 3})
    assert result.valid.all()
    count = np.bincount(result.source)
    assert count.mean() > 2.5
    changed = (result.X_cf != result.X).any(1)
    for row in range(10):
        own = changed[result.source == row]
        for a in range(len(own)):
            for b in range(a):
                assert (own[a] & own[b]).sum() <= 0.5 * (own[a] | own[b]).sum() + 1e-9
    first = np.searchsorted(result.source, np.arange(10))
    alone = explain(models[cell], data, rows_of(data, 10))
    assert np.array_equal(result.X_cf[first], alone.X_cf)


# --- constraints ----------------------------------------------------------------------------------


def test_frozen_steps_and_bounds_hold(models):
    frozen = np.zeros(150, bool)
    frozen[40:75] = True
    limits = cf.Constraints(frozen=frozen, lower=-1.2, upper=1.95)
    rows = rows_of(GUNPOINT, 12)
    result = explain(models["GunPoint", "linear"], GUNPOINT, rows, options={"constraints": limits})
    assert np.array_equal(result.X_cf[..., frozen], rows[..., frozen])
    changed = result.X_cf != rows
    assert (result.X_cf[changed] <= 1.95).all()
    assert (result.X_cf[changed] >= -1.2).all()
    assert result.valid.mean() > 0.9


def test_steps_stay_within_their_limit(models):
    step = 1.05 * np.abs(np.diff(ITALY.X_test, axis=-1)).max()
    rows = rows_of(ITALY, 12)
    limits = cf.Constraints(max_step=float(step))
    result = explain(
        models["ItalyPowerDemand", "linear"], ITALY, rows, options={"constraints": limits}
    )
    assert np.abs(np.diff(result.X_cf, axis=-1)).max() <= step * (1 + 1e-6)
    assert result.valid.mean() > 0.9


def test_a_target_out_of_reach_ends_with_a_status(models):
    frozen = np.ones(24, bool)
    frozen[11] = False
    limits = cf.Constraints(frozen=frozen, lower=-0.01, upper=0.01)
    rows = rows_of(ITALY, 6)
    result = explain(
        models["ItalyPowerDemand", "linear"], ITALY, rows, options={"constraints": limits}
    )
    assert len(result) == 6
    assert not result.valid.any()
    assert set(result.status) <= {"invalid", "infeasible"}
    assert all(result.message)
    assert np.array_equal(result.X_cf[..., frozen], rows[..., frozen])


# --- the same answer ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["linear", "fcn"])
def test_batch_equals_loop(results, models, kind):
    cell = ("ItalyPowerDemand", kind)
    rows = rows_of(ITALY)
    explainer = cf.Graft().fit(models[cell], ITALY.X_train, ITALY.y_train)
    for i in (0, 5, 9):
        alone = explainer.explain(rows[i : i + 1])
        np.testing.assert_allclose(alone.X_cf[0], results[cell].X_cf[i], atol=1e-6)
    backward = explainer.explain(rows[::-1])
    np.testing.assert_allclose(backward.X_cf[::-1], results[cell].X_cf, atol=1e-6)


def test_seeds_reproduce(models):
    model = models["GunPoint", "forest"]
    rows = rows_of(GUNPOINT, 8)
    again = [explain(model, GUNPOINT, rows, options={"random_state": seed}) for seed in (3, 3, 4)]
    assert np.array_equal(again[0].X_cf, again[1].X_cf)
    assert not np.array_equal(again[0].X_cf, again[2].X_cf)


def test_parts_do_not_change_the_answers(results, models, monkeypatch):
    cell = ("ItalyPowerDemand", "linear")
    monkeypatch.setattr("contrafact.explainers.graft.MAX_ELEMENTS", 100_000)
    assert np.array_equal(explain(models[cell], ITALY, rows_of(ITALY)).X_cf, results[cell].X_cf)


# --- cost -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [4, 5, 6, 10, 16, 20, 30])
def test_a_budget_is_kept_and_still_gives_an_answer(models, share):
    rows = rows_of(ITALY)
    budget = cf.Budget(calls=N * share)
    result = explain(models["ItalyPowerDemand", "linear"], ITALY, rows, options={"budget": budget})
    assert (result.calls <= share).all()
    assert result.valid.all()
    if share >= 16:
        # what was found is not thrown away because noise can no longer be asked about
        assert result.changed_fraction.mean() < 0.3


def test_no_time_at_all_gives_a_donor(models):
    late = cf.Budget(seconds=1e-9)
    rows = rows_of(ITALY)
    result = explain(models["ItalyPowerDemand", "fcn"], ITALY, rows, options={"budget": late})
    assert result.valid.all()


def test_more_rows_give_smaller_changes(models):
    model = models["GunPoint", "forest"]
    rows = rows_of(GUNPOINT)
    few, many = (explain(model, GUNPOINT, rows, max_rows=n) for n in (16, 250))
    assert few.calls.mean() < many.calls.mean()
    assert many.changed_fraction.mean() < few.changed_fraction.mean()


def test_more_donors_do_not_hurt(models):
    model = models["GunPoint", "linear"]
    rows = rows_of(GUNPOINT)
    one, many = (explain(model, GUNPOINT, rows, n_donors=n) for n in (1, 32))
    assert one.valid.all()
    assert many.changed_fraction.mean() < one.changed_fraction.mean()


# --- odd cases ------------------------------------------------------------------------------------


def toy(length, channels=1, n=12, seed=0):
    """Slow waves; those of class 1 have a bump in the middle."""
    random = np.random.default_rng(seed)
    time = np.arange(length)
    phase = random.uniform(0, 6, (n, channels, 1))
    label = np.arange(n) % 2
    bump = np.exp(-0.5 * ((time - (length - 1) / 2) / max(length / 8, 1)) ** 2)
    return 0.1 * np.sin(time / 3 + phase) + label[:, None, None] * bump, label


def higher(X):
    """Class 1 where the middle is above 1/2."""
    p = 1 / (1 + np.exp(-6 * (X[:, :, X.shape[2] // 2].mean(1) - 0.5)))
    return np.stack([1 - p, p], 1)


@pytest.mark.parametrize("level", ["smallest", "steady", "lasting"])
@pytest.mark.parametrize("length", [2, 3, 8, 24])
def test_short_series(length, level):
    X, y = toy(length)
    model = cf.as_classifier(higher, classes=[0, 1])
    result = cf.Graft(level=level).fit(model, X, y).explain(X)
    assert result.valid.all()
    assert (result.status == "valid").all()


def test_series_of_one_step():
    X, y = toy(1)
    model = cf.as_classifier(higher, classes=[0, 1])
    assert cf.Graft().fit(model, X, y).explain(X).valid.all()


def test_constant_series():
    y = np.arange(10) % 2
    X = np.repeat(y.astype(float)[:, None, None], 20, 2)
    model = cf.as_classifier(higher, classes=[0, 1])
    result = cf.Graft().fit(model, X, y).explain(X, k=2)
    assert result.valid.all()
    # nothing but a whole constant series looks like the reference
    first = np.searchsorted(result.source, np.arange(10))
    assert (result.info["seam"][first][result.info["level"][first] >= 0] <= 1).all()


@pytest.mark.parametrize("level", ["smallest", "lasting"])
def test_one_reference_row_per_class(level):
    X, y = toy(30, n=20)
    model = cf.as_classifier(higher, classes=[0, 1])
    result = cf.Graft(level=level).fit(model, X[:2], y[:2]).explain(X[2:])
    assert result.valid.all()
    assert set(result.info["donor"]) <= {-1, 0, 1}


def test_several_channels():
    """Only the middle channel matters: it is the one that changes."""
    X, y = toy(40, channels=3, n=30)
    X[:, [0, 2]] = toy(40, channels=2, n=30, seed=1)[0] * 0.2

    def middle(X):
        return higher(X[:, 1:2])

    model = cf.as_classifier(middle, classes=[0, 1])
    result = cf.Graft(level="smallest").fit(model, X, y).explain(X[:10])
    assert result.valid.all()
    changed = (result.X_cf != result.X).any(2)
    assert (changed.sum(1) == 1).mean() > 0.5
    assert changed[:, 1].all()
    k = cf.Graft().fit(model, X, y).explain(X[:6], k=2)
    assert k.valid.all()


def test_labels_only_and_text_as_classes():
    X, y = toy(30, n=24)
    names = np.array(["low", "high"])[y]

    class Labels:
        classes_ = np.array(["high", "low"])

        def predict(self, X):
            X = np.asarray(X).reshape(len(X), 30)
            return np.where(X[:, 15] > 0.5, "high", "low")

    result = cf.Graft().fit(Labels(), X, names).explain(X[:8])
    assert result.valid.all()
    assert set(result.target) == {"low", "high"}
    assert (result.changed_fraction < 1).any()


@pytest.mark.parametrize("level", ["steady", "lasting"])
def test_no_labels_at_all(models, level):
    rows = rows_of(ITALY, 6)
    result = explain(
        models["ItalyPowerDemand", "linear"], ITALY, rows, y=None, level=level, max_rows=60
    )
    assert result.valid.all()


def test_a_class_without_reference_rows_is_refused(models):
    data = ITALY
    one = data.y_train == data.y_train[0]
    model = models["ItalyPowerDemand", "linear"]
    seen = model.predict(data.X_train[:, 0]) == data.y_train[0]
    keep = one & seen
    explainer = cf.Graft().fit(model, data.X_train[keep])
    other = next(c for c in model.classes_ if c != data.y_train[0])
    own = data.X_train[keep][:3]
    result = explainer.explain(own, target=other)
    assert not result.valid.any()
    assert set(result.status) == {"infeasible"}
    assert all("no guide" in message for message in result.message)


@pytest.mark.parametrize(
    ("option", "value"), [("level", "firm"), ("n_donors", 0), ("max_rows", 0), ("spread", "all")]
)
def test_bad_options_are_refused(models, option, value):
    with pytest.raises(ValueError, match=rf"{option}.*{value}"):
        explain(models["ItalyPowerDemand", "linear"], ITALY, rows_of(ITALY, 1), **{option: value})


def test_donors_may_be_prototype_images():
    digits = cf.load_dataset("digits")
    X, y = digits.X_train[:300] / 16, digits.y_train[:300]
    forest = RandomForestClassifier(20, random_state=0).fit(X.reshape(300, -1), y)
    prototypes = GLVQ(2, max_iter=5, random_state=0).fit(X, y)
    graft = cf.Graft().fit(forest, prototypes.prototypes_, prototypes.prototype_labels_)
    result = graft.explain(digits.X_test[:6] / 16)
    assert result.valid.all()
    donor = result.info["donor"]
    assert (prototypes.prototype_labels_[donor] == result.target).all()
    whole = (
        cf.NearestUnlike()
        .fit(forest, prototypes.prototypes_)
        .explain(digits.X_test[:6] / 16, result.target)
    )
    assert result.changed.mean() < 0.8 * whole.changed.mean()  # a patch, not the prototype
