"""A hospital's table as it is: the troubles that a new user met, each of them as a test."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import contrafact as cf
from contrafact.explainers.registry import explainer_classes
from quick_columns import QuickColumns

N = 240
WARDS = np.array(["cardiology", "surgery", "internal"])
METHODS = [
    name
    for name, cls in explainer_classes().items()
    if "row" in cls.tags.modalities and not cls.tags.prototype_model
]
#: those of the complaint
ROW_METHODS = ["CoMTE", "LineSearch", "SVCE", "NearestUnlike"]
STATED = cf.Constraints(frozen=["sex"], increasing=["age"])


def make_method(name):
    cls = getattr(cf, name)
    return cls(**cls._get_test_params()[0])


@pytest.fixture(scope="module")
def hospital():
    """Numbers, integers, categories, booleans, missing values, and who is at risk."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 90, N),
            "sex": rng.choice(["female", "male"], N),
            "bmi": rng.normal(28.0, 5.0, N).round(1),
            "systolic": rng.normal(135, 18, N).round(0),
            "hba1c": np.where(rng.random(N) < 0.15, np.nan, rng.normal(6.4, 1.1, N).round(1)),
            "smokes": rng.random(N) < 0.35,
            "ward": np.where(rng.random(N) < 0.1, None, rng.choice(WARDS, N)),
            "prior_admissions": pd.array(rng.poisson(1.2, N), dtype="Int64"),
        },
        index=pd.Index([f"patient {i}" for i in range(N)], name="patient"),
    )
    score = (
        (frame["age"] - 55) / 18
        + (frame["bmi"] - 28) / 5
        + (frame["systolic"] - 135) / 18
        + frame["hba1c"].fillna(6.4)
        - 6.4
        + 1.5 * frame["smokes"]
        + 0.5 * frame["prior_admissions"].astype(float)
    )
    y = np.where(score > 1.2, "high", "low")
    return frame, y


def make_boosting(hospital, columns):
    frame, y = hospital
    numbers = ["age", "bmi", "systolic", "hba1c", "prior_admissions"]
    first = columns(
        [
            ("levels", OneHotEncoder(handle_unknown="ignore"), ["sex", "ward"]),
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), numbers),
            ("flags", "passthrough", ["smokes"]),
        ]
    )
    last = HistGradientBoostingClassifier(max_iter=30, random_state=0)
    return make_pipeline(first, last).fit(frame, y)


@pytest.fixture(scope="module")
def as_usual(hospital):
    """A pipeline as people have it; slow to ask."""
    return make_boosting(hospital, ColumnTransformer)


@pytest.fixture(scope="module")
def boosting(hospital):
    """The same, but quick."""
    return make_boosting(hospital, QuickColumns)


@pytest.fixture(scope="module")
def at_risk(hospital, boosting):
    frame, _ = hospital
    return frame[boosting.predict(frame) == "high"][:10]


def assert_sensible(result, frame, constraints=STATED):
    """Check every value as a doctor would."""
    before, after = result.frame, result.frame_cf
    assert list(after.dtypes) == list(frame.dtypes)
    assert set(after["sex"]) <= {"female", "male"}
    assert set(after["ward"].dropna()) <= set(WARDS)
    assert not (after.isna() & ~before.isna()).any(axis=None)
    if constraints is not None:
        assert (after["sex"] == before["sex"]).all()
        assert (after["age"] >= before["age"]).all()


@pytest.mark.parametrize("name", METHODS)
def test_the_table_is_taken_as_it_is(hospital, as_usual, at_risk, name):
    """It never worked: "X has dtype object"."""
    frame, y = hospital
    explainer = make_method(name).fit(as_usual, frame, y)
    result = explainer.explain(at_risk, "low", constraints=STATED)
    assert not (result.status == "error").any(), result.message
    pd.testing.assert_frame_equal(result.frame, at_risk, check_exact=True)
    assert_sensible(result, frame)
    assert ((as_usual.predict(result.frame_cf) == "low") == result.valid).all()
    assert result.valid.any() and all(result.message[~result.valid])


@pytest.fixture(scope="module")
def by_hand(hospital):
    """The same table with integer codes made by hand, and a model of them."""
    frame, y = hospital
    codes = pd.DataFrame(
        {
            "sex": (frame["sex"] == "male").astype(int),
            "smokes": frame["smokes"].astype(int),
            "prior_admissions": frame["prior_admissions"].astype(int),
            "age": frame["age"],
            "bmi": frame["bmi"],
        }
    )
    return codes, y, make_pipeline(StandardScaler(), LogisticRegression()).fit(codes, y)


@pytest.mark.parametrize("name", METHODS)
def test_codes_made_by_hand_stay_codes(by_hand, name):
    """The answers were "sex 0.5 instead of 1" and "prior_admissions 1.5 instead of 2"."""
    codes, y, model = by_hand
    rows = codes[model.predict(codes) == "high"][: 5 if name == "SVCE" else 20]
    for refine in (False, True):
        result = make_method(name).fit(model, codes, y).explain(rows, "low", refine=refine)
        after = result.frame_cf
        assert set(after["sex"]) | set(after["smokes"]) <= {0, 1}
        assert (result.X_cf[:, 2] == result.X_cf[:, 2].round()).all()
        assert after["prior_admissions"].between(0, codes["prior_admissions"].max()).all()
        assert result.valid.any()


@pytest.mark.parametrize("name", ROW_METHODS)
def test_refine_keeps_the_rows(hospital, boosting, at_risk, name):
    """`refine` raised and lost all rows."""
    frame, y = hospital
    result = make_method(name).fit(boosting, frame, y).explain(at_risk, "low", constraints=STATED)
    smaller = cf.refine(result, boosting, constraints=STATED)
    assert len(smaller) == len(result)
    assert (smaller.valid == result.valid).all()
    assert_sensible(smaller, frame)
    assert ((boosting.predict(smaller.frame_cf) == "low") == smaller.valid).all()
    assert (smaller.changed.sum(1) <= result.changed.sum(1)).all()


@pytest.mark.parametrize("name", ROW_METHODS)
def test_one_hot_groups_stay_intact(hospital, name):
    """They did in 62 % (CoMTE), 32 % (LineSearch), 7 % (SVCE) of 60 rows, all called valid."""
    frame, y = hospital
    known = frame.assign(ward=frame["ward"].fillna("none"), hba1c=frame["hba1c"].fillna(6.4))
    flags = pd.get_dummies(known, columns=["sex", "ward"], dtype=int).astype(float)
    schema = cf.Schema.infer(flags)
    assert set(schema.groups) == {"sex", "ward"}
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(flags, y)
    rows = flags[model.predict(flags) == "high"][: 10 if name == "SVCE" else 60]
    for refine in (False, True):
        result = make_method(name).fit(model, flags, y).explain(rows, "low", refine=refine)
        for group in ("sex_", "ward_"):
            members = result.frame_cf.filter(like=group)
            assert (members.isin([0, 1]).all(axis=None)) and (members.sum(axis=1) == 1).all()
        assert result.valid.any()


@pytest.mark.parametrize("name", ROW_METHODS)
def test_three_options_differ_in_what_they_change(hospital, boosting, at_risk, name):
    """k = 3 gave two options on the same features in half of the cases."""
    frame, y = hospital
    explainer = make_method(name).fit(boosting, frame, y)
    result = explainer.explain(at_risk, "low", constraints=STATED, k=3, refine=True)
    valid = result[result.valid]
    told = 0
    for source in np.unique(valid.source):
        options = valid[valid.source == source]
        sets = [tuple(row) for row in options.changed.tolist()]
        repeats = [columns in sets[:i] for i, columns in enumerate(sets)]
        messages = options.message[repeats]
        told += any(repeats)
        assert all(text.startswith("the same columns as option") for text in messages)
    assert told <= len(at_risk) // 3


@pytest.mark.parametrize("name", ROW_METHODS)
def test_units_do_not_change_what_is_named(hospital, boosting, at_risk, name):
    """A change of units (mmHg to kPa) changed which features were named."""
    frame, y = hospital
    kpa = 0.133322

    def in_kpa(rows):
        return boosting.predict_proba(rows.assign(systolic=(rows["systolic"] / kpa).round(6)))

    def in_mmhg(rows):
        return boosting.predict_proba(rows)

    schema = cf.Schema.infer(frame, kinds={"systolic": "continuous"}).edit(
        "systolic", decimals=None
    )
    column = schema["systolic"]
    scaled = schema.edit(
        "systolic",
        lower=column.lower * kpa,
        upper=column.upper * kpa,
        center=column.center * kpa,
        scale=column.scale * kpa,
    )
    named = []
    for model, used, factor in ((in_mmhg, schema, 1.0), (in_kpa, scaled, kpa)):
        reference = frame.assign(systolic=frame["systolic"] * factor)
        rows = at_risk.assign(systolic=at_risk["systolic"] * factor)
        classifier = cf.as_classifier(model, classes=["high", "low"])
        explainer = make_method(name).fit(classifier, reference, y, schema=used)
        named.append(explainer.explain(rows, "low").changed)
    assert np.array_equal(*named)


def test_a_bound_that_the_patient_breaks_is_no_need(hospital, boosting, at_risk):
    """It said "would need age 60 instead of 45" although hba1c alone turned the class."""
    frame, y = hospital
    young = at_risk[at_risk["age"] < 60]
    limits = cf.Constraints(bounds={"age": (60, 90)})
    for name in ROW_METHODS:
        explainer = make_method(name).fit(boosting, frame, y)
        result = explainer.explain(young, "low", constraints=limits, refine=True)
        free = explainer.explain(young, "low", constraints=cf.Constraints(frozen=["age"]))
        # Where the class turns without the age, a refined answer does not name it.
        turned = free.valid & result.valid
        after = result.frame_cf["age"]
        grew = (after > result.frame["age"]).to_numpy()
        assert (after[grew] >= 60).all()
        alone = [
            boosting.predict(result.frame_cf[i : i + 1].assign(age=young["age"].iloc[i]))[0]
            for i in range(len(result))
        ]
        assert not (grew & turned & (np.array(alone) == "low")).any()
