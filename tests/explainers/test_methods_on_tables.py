"""Methods on a mixed table: numbers, whole numbers, categories, an order, a group, missing."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import contrafact as cf
from contrafact.prototypes import GLVQ
from contrafact.testing.case_models import with_quick_votes
from quick_columns import QuickColumns

TEXTS = ["sex", "ward", "grade"]
GROUP = ["insurance_a", "insurance_b", "insurance_c"]
METHODS = {
    "nearest_unlike": cf.NearestUnlike(),
    "line_search": cf.LineSearch(),
    "random_mask": cf.RandomMask(),
    "random_target": cf.RandomTarget(),
    "comte": cf.CoMTE(),
    "svce": cf.SVCE(n_iter=10, restarts=1),
    "graft": cf.Graft(),
}
STRICT = cf.Constraints(
    frozen=["sex", "ward", *GROUP],
    increasing=["age"],
    bounds={"hba1c": (4.0, 9.0)},
    relations=["age >= years_employed"],
)
FEW = cf.Constraints(frozen=["sex"], increasing=["age"], max_changed=3)


def make_table(n, seed):
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 90, n)
    insurance = rng.integers(0, 3, n)
    grade = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "age": age,
            "years_employed": np.minimum(rng.integers(0, 40, n), age - 18),
            "sex": rng.choice(["f", "m"], n),
            "bmi": rng.normal(28, 5, n).round(1),
            "hba1c": rng.normal(6.5, 1.3, n).clip(4, 14).round(1),
            "sbp": rng.normal(135, 18, n).round(),
            "prior": rng.poisson(1.2, n),
            "smokes": rng.random(n) < 0.4,
            "ward": rng.choice(["A", "B", "C", "D"], n),
            "grade": pd.Categorical.from_codes(grade, ["low", "mid", "high"], ordered=True),
        }
    )
    for i, name in enumerate(GROUP):
        frame[name] = (insurance == i).astype(int)
    risk = (
        0.04 * (age - 55)
        + 0.12 * (frame["bmi"] - 28)
        + 0.7 * (frame["hba1c"] - 6.5)
        + 0.5 * (frame["prior"] - 1.2)
        + 1.2 * frame["smokes"]
        + 0.6 * (grade - 1)
        + 0.5 * (frame["ward"] == "C")
    )
    y = np.where(risk + rng.normal(0, 0.7, n) > 0.6, "high", "low")
    frame.loc[rng.random(n) < 0.06, "bmi"] = np.nan
    return frame, y


def make_model(kind, frame, y):
    numbers = [name for name in frame if name not in TEXTS]
    scaled = make_pipeline(SimpleImputer(), StandardScaler())
    prepare = {"logistic": scaled, "forest": SimpleImputer(), "boosting": "passthrough"}[kind]
    encoder = OneHotEncoder(sparse_output=False)
    columns = QuickColumns([("texts", encoder, TEXTS), ("numbers", prepare, numbers)])
    last = {
        "logistic": LogisticRegression(max_iter=1000),
        "forest": RandomForestClassifier(20, max_depth=8, random_state=0),
        "boosting": HistGradientBoostingClassifier(max_iter=30, random_state=0),
    }[kind]
    pipeline = make_pipeline(columns, last).fit(frame, y)
    if kind == "forest":
        with_quick_votes(last)
    return pipeline


@pytest.fixture(scope="module")
def table():
    return make_table(300, 0)


@pytest.fixture(scope="module")
def models(table):
    return {kind: make_model(kind, *table) for kind in ("logistic", "forest", "boosting")}


def is_changed(result):
    """Return which columns changed; a missing value is equal to a missing one."""
    before, after = result.X, result.X_cf
    return (before != after) & ~(np.isnan(before) & np.isnan(after))


def changed_parts(result):
    """Return the names of the columns and groups that each counterfactual changes."""
    names = ["insurance" if name in GROUP else name for name in result.frame.columns]
    return [{names[i] for i in np.flatnonzero(row)} for row in is_changed(result)]


def check_rows(result):
    after = result.frame_cf
    assert (after[GROUP].sum(axis=1) == 1).all()
    assert after["ward"].isin(["A", "B", "C", "D"]).all()
    assert list(after.dtypes) == list(result.frame.dtypes)
    filled = result.frame["bmi"].notna()
    assert after.loc[filled.to_numpy(), "bmi"].notna().all()
    assert (after["sbp"] == after["sbp"].round()).all()


@pytest.mark.parametrize("kind", ["logistic", "forest", "boosting"])
@pytest.mark.parametrize("name", METHODS)
def test_valid_within_constraints(table, models, kind, name):
    method = METHODS[name].fit(models[kind], *table)
    rows, _ = make_table(8, 1)
    for constraints in (STRICT, FEW):
        result = method.explain(rows, constraints=constraints, on_error="raise")
        assert result.valid.all(), result.message
        check_rows(result)
        before, after = result.frame, result.frame_cf
        assert (before["sex"] == after["sex"]).all()
        assert (after["age"] >= before["age"]).all()
        if constraints is FEW:
            assert max(len(parts) for parts in changed_parts(result)) <= 3
        else:
            assert (before[["ward", *GROUP]] == after[["ward", *GROUP]]).all(axis=None)
            moved = (before["hba1c"] != after["hba1c"]).to_numpy()
            assert after["hba1c"][moved].between(4, 9).all()
            assert (after["age"] >= after["years_employed"]).all()


@pytest.mark.parametrize("how", ["minimal", "believable"])
@pytest.mark.parametrize("name", ["nearest_unlike", "line_search", "comte", "svce"])
def test_refine_leaves_no_column_that_is_not_needed(table, models, name, how):
    model = models["forest"]
    rows, _ = make_table(6, 2)
    result = METHODS[name].fit(model, *table).explain(rows, refine=how, on_error="raise")
    assert result.valid.all()
    check_rows(result)
    columns = result.frame.columns
    for i, parts in enumerate(changed_parts(result)):
        for part in parts:
            undone = result.frame_cf.iloc[[i]].copy()
            own = GROUP if part == "insurance" else [part]
            for column in own:
                undone[column] = result.frame.iloc[[i]][column].to_numpy()
            assert model.predict(undone[columns])[0] != result.target[i] or len(parts) == 1


@pytest.mark.parametrize("name", ["nearest_unlike", "line_search", "comte", "graft"])
def test_options_change_different_columns(table, models, name):
    rows, _ = make_table(6, 3)
    result = METHODS[name].fit(models["forest"], *table).explain(rows, k=3, on_error="raise")
    assert result.valid.all()
    parts = [frozenset(names) for names in changed_parts(result)]
    for row in range(6):
        own = [parts[i] for i in np.flatnonzero(result.source == row)]
        assert len(set(own)) == len(own)
        assert len(own) == 3


def test_message_where_there_is_no_other_option(table, models):
    frame, y = table
    others = [name for name in frame if name != "hba1c"]
    rows, _ = make_table(6, 3)
    method = cf.Graft().fit(models["logistic"], frame, y)
    result = method.explain(rows, k=3, constraints=cf.Constraints(frozen=others))
    valid = result[result.valid]
    first = np.unique(valid.source, return_index=True)[1]
    further = np.delete(valid.message, first)
    assert len(first) and len(further)
    told = "the same columns as option 1, with other values"
    assert all(text.startswith(told) for text in further)
    assert all("no other set of columns was found" in text for text in further)


def test_an_option_may_need_less_of_an_earlier_column():
    """Only x changes the class alone, and without x nothing does."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 3)).round(2), columns=["x", "a", "b"])
    model = LogisticRegression().fit(frame, (frame["x"] > 0).to_numpy())
    model.coef_ = np.array([[5.0, 1.0, 1.0]])
    model.intercept_ = np.array([0.0])
    row = pd.DataFrame({"x": [-2.0], "a": [0.0], "b": [0.0]})
    result = cf.Graft().fit(model, frame).explain(row, k=3, on_error="raise")
    assert result.valid.all()
    changed = [frozenset(frame.columns[columns]) for columns in is_changed(result)]
    assert changed[0] == {"x"}
    assert len(changed) == 3 and len(set(changed)) >= 2
    assert all("x" in names for names in changed)


def test_one_column_of_a_far_value_is_less_than_many_of_near_ones():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 8)).round(3)).add_prefix("x")
    model = LogisticRegression().fit(frame, (frame.sum(axis=1) > 0).to_numpy())
    rows = pd.DataFrame(np.full((1, 8), -0.25)).add_prefix("x")
    result = cf.Graft(n_donors=4).fit(model, frame).explain(rows, on_error="raise")
    assert result.valid.all()
    assert is_changed(result).sum() == 1


@pytest.mark.parametrize("name", ["nearest_unlike", "line_search", "comte", "graft"])
def test_no_search_without_rows(table, models, name):
    """A single yes or no leaves nothing to search for the second option."""
    frame, y = table
    others = [column for column in frame if column != "smokes"]
    rows, _ = make_table(6, 3)
    method = METHODS[name].fit(models["logistic"], frame, y)
    limits = cf.Constraints(frozen=others)
    result = method.explain(rows, k=3, constraints=limits, on_error="raise")
    assert len(result) == 6


def test_infeasible_says_under_which_limits(table, models):
    frame, y = table
    others = [name for name in frame if name != "years_employed"]
    method = cf.NearestUnlike().fit(models["logistic"], frame, y)
    rows, _ = make_table(6, 4)
    result = method.explain(rows, constraints=cf.Constraints(frozen=others))
    refused = result.status == "infeasible"
    assert refused.any()
    assert all("frozen" in text for text in result.message[refused])


@pytest.mark.parametrize("name", ["nearest_unlike", "line_search", "comte", "graft"])
def test_units_do_not_matter(table, models, name):
    frame, y = table
    model = models["logistic"]
    rows, _ = make_table(6, 5)

    def in_thousandths(data):
        return data.assign(bmi=(data["bmi"] * 1000).round())

    def ask(data):
        return model.predict_proba(data.assign(bmi=data["bmi"] / 1000))

    plain = METHODS[name].fit(lambda data: model.predict_proba(data), frame, y).explain(rows)
    large = METHODS[name].fit(ask, in_thousandths(frame), y).explain(in_thousandths(rows))
    assert changed_parts(plain) == changed_parts(large)
    expected = in_thousandths(plain.frame_cf)["bmi"]
    np.testing.assert_allclose(large.frame_cf["bmi"], expected, rtol=1e-9)


def test_graft_changes_fewer_columns_than_comte(table, models):
    rows, _ = make_table(20, 6)
    fewer = cf.Graft().fit(models["boosting"], *table).explain(rows)
    more = cf.CoMTE().fit(models["boosting"], *table).explain(rows, refine="minimal")
    assert fewer.valid.all()
    count = [sum(map(len, changed_parts(result))) for result in (fewer, more)]
    assert count[0] <= count[1]


def test_noise_moves_numbers_only(table, models):
    method = cf.Graft().fit(models["logistic"], *table)
    numbers = method.space_.is_line
    assert (method.scale_[numbers] > 0).all()
    assert (method.scale_[~numbers] == 0).all()


def test_svce_exchanges_levels_where_numbers_are_frozen(table, models):
    frame, y = table
    numbers = ["age", "years_employed", "bmi", "hba1c", "sbp", "prior"]
    rows, _ = make_table(10, 7)
    svce = cf.SVCE(n_iter=10, restarts=1).fit(models["logistic"], frame, y)
    result = svce.explain(rows, constraints=cf.Constraints(frozen=numbers), on_error="raise")
    assert result.valid.any()
    check_rows(result)
    assert not (result.status == "error").any()


@pytest.mark.parametrize("how", ["minimal", "believable"])
def test_linked_column_follows_and_can_be_undone(table, models, how):
    frame, y = table

    def half_of_age(data):
        return data["age"] // 2

    rows, _ = make_table(6, 8)
    frame = frame.assign(years_employed=half_of_age)
    rows = rows.assign(years_employed=half_of_age)
    constraints = cf.Constraints(linked={"years_employed": half_of_age})
    method = cf.NearestUnlike().fit(models["forest"], frame, y)
    result = method.explain(rows, constraints=constraints, refine=how, on_error="raise")
    assert result.valid.all()
    assert result.calls.max() < 200
    after = result.frame_cf
    assert (after["years_employed"] == half_of_age(after)).all()
    assert np.mean([len(parts) for parts in changed_parts(result)]) < 6


def test_prototypes_certify_what_is_not_rounded():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(120, 3)) * [1.0, 30.0, 0.01]
    y = (values[:, 0] + values[:, 1] / 30 > 0).astype(int)
    exact = pd.DataFrame(values, columns=["a", "b", "c"])
    rounded = exact.assign(b=exact["b"].round())
    for frame, certified in ((exact, True), (rounded, False)):
        # Of rows right at the boundary, a step of the table's coordinates is 4e-6 of the distance.
        model = GLVQ(n_prototypes=2, beta=1.5, random_state=0).fit(frame.to_numpy(), y)
        result = cf.PrototypeCounterfactual().fit(model, frame, y).explain(frame[:10])
        assert result.valid.all()
        assert bool(result.info["certified"].all()) is certified
        assert (result.info["gap"] > -1e-9).all()


def test_prototypes_certify_nothing_where_a_flag_could_change():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.normal(size=80), "flag": rng.random(80) < 0.5})
    y = (frame["a"] + frame["flag"] > 0.4).astype(int)
    model = GLVQ(n_prototypes=1, random_state=0).fit(frame.to_numpy(dtype=float), y)
    method = cf.PrototypeCounterfactual().fit(model, frame, y)
    assert not method.explain(frame[:8]).info["certified"].any()
    kept = method.explain(frame[:8], constraints=cf.Constraints(frozen=["flag"]))
    assert kept.info["certified"].any()


def test_same_answer_in_a_batch_and_alone(table, models):
    rows, _ = make_table(5, 9)
    method = cf.Graft().fit(models["boosting"], *table)
    together = method.explain(rows, constraints=FEW)
    for i in range(5):
        alone = method.explain(rows[i : i + 1], constraints=FEW)
        np.testing.assert_array_equal(alone.X_cf[0], together.X_cf[i])
    assert torch.is_tensor(method.scale_)
