"""Estimators in skops files: harmless types only, and trees that lead nowhere else."""

import io
import json
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
import sklearn
import skops.io
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import load_iris
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import contrafact as cf
from contrafact.models.files import find_model
from contrafact.models.skops_files import HARMLESS
from contrafact.models.tree_checks import check_trees
from contrafact.nn import load_model

pytestmark = pytest.mark.usefixtures("own_random_numbers")
IRIS, TARGET = load_iris(return_X_y=True)
LOGISTIC = LogisticRegression(max_iter=500)
FOREST = RandomForestClassifier(3, random_state=0)
MODELS = [
    AdaBoostClassifier(n_estimators=2),
    BaggingClassifier(n_estimators=2, max_features=2),
    CalibratedClassifierCV(LOGISTIC, cv=2),
    DecisionTreeClassifier(),
    FOREST,
    GaussianNB(),
    GradientBoostingClassifier(n_estimators=2),
    GridSearchCV(LOGISTIC, {"C": [1, 2]}, cv=2),
    GridSearchCV(LOGISTIC, {"C": [1, 2]}, scoring="accuracy", cv=2),
    HistGradientBoostingClassifier(max_iter=2),
    KNeighborsClassifier(algorithm="brute"),
    LOGISTIC,
    MLPClassifier((4,), max_iter=5),
    SVC(),
    StackingClassifier([("a", GaussianNB()), ("b", FOREST)], FOREST, cv=2),
    VotingClassifier([("a", GaussianNB()), ("b", FOREST)]),
    make_pipeline(SelectKBest(k=2), FunctionTransformer(np.log1p), StandardScaler(), GaussianNB()),
]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.skops"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_estimators_answer_the_same(path, model):
    model.fit(IRIS, TARGET)
    skops.io.dump(model, path, compression=zipfile.ZIP_DEFLATED)
    assert find_model(path).kind == "skops"
    rows = IRIS[::7]
    loaded = cf.as_classifier(load_model(path))
    np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))
    np.testing.assert_array_equal(
        loaded.predict_proba(rows), cf.as_classifier(model).predict_proba(rows)
    )


@pytest.mark.parametrize("last", [LOGISTIC, FOREST, HistGradientBoostingClassifier(max_iter=2)])
def test_pipelines_of_tables_are_read_and_explained(path, last):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 9, 90),
            "ward": rng.choice(["a", "b", "c"], 90),
            "visits": rng.integers(0, 9, 90),
        }
    )
    frame.loc[3, "age"] = np.nan
    y = np.where(frame["age"].fillna(50) + 9 * (frame["ward"] == "a") > 54, "ill", "well")
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    encode = ColumnTransformer(
        [
            ("numbers", numbers, make_column_selector(dtype_include=float)),
            ("codes", OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["ward"]),
        ],
        remainder="passthrough",
    )
    pipeline = make_pipeline(encode, last).fit(frame, y)
    skops.io.dump(pipeline, path)
    model = load_model(path)
    np.testing.assert_array_equal(model.predict_proba(frame), pipeline.predict_proba(frame))
    result = cf.NICE().fit(model, frame, y).explain(frame[4:8])
    assert result.valid.all()
    np.testing.assert_array_equal(result.cf_labels, pipeline.predict(result.frame_cf))


def test_categories_of_boosting_are_checked_and_kept(path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"ward": pd.Categorical(rng.choice(list("abcd"), 200)), "age": range(200)})
    model = HistGradientBoostingClassifier(max_iter=3).fit(frame, frame["ward"].isin(["a", "c"]))
    skops.io.dump(model, path)
    np.testing.assert_array_equal(load_model(path).predict_proba(frame), model.predict_proba(frame))
    nodes = model._predictors[0][0].nodes
    assert nodes["is_categorical"].any()
    nodes["bitset_idx"][nodes["is_categorical"] == 1] = 10**6
    with pytest.raises(ValueError, match="a category that is none"):
        check_trees(model)


class Own(BaseEstimator):
    """An estimator that nobody knows."""


def test_other_types_are_named_and_need_trust(path):
    skops.io.dump(make_pipeline(StandardScaler(), Own()), path)
    name = f"{Own.__module__}.Own"
    with pytest.raises(ValueError, match=rf"holds objects of {name}: .*trust=True \(--trust\)\.$"):
        load_model(path)
    assert isinstance(load_model(path, trust=True)[-1], Own)


def test_neighbors_by_trees_need_trust(path):
    """Nothing checks the numbers in these trees."""
    model = KNeighborsClassifier(algorithm="kd_tree").fit(IRIS, TARGET)
    skops.io.dump(model, path)
    with pytest.raises(ValueError, match=r"holds objects of .*KDTree.*--trust"):
        load_model(path)
    np.testing.assert_array_equal(load_model(path, trust=True).predict(IRIS), model.predict(IRIS))


def test_the_list_of_harmless_types_is_of_three_libraries():
    libraries = {name.partition(".")[0] for name in HARMLESS}
    assert libraries == {"functools", "numpy", "scipy", "sklearn"}


def test_an_older_scikit_learn_is_told_in_one_sentence(path, monkeypatch):
    model = make_pipeline(StandardScaler(), LOGISTIC).fit(IRIS, TARGET)
    monkeypatch.setattr("sklearn.base.__version__", "0.1")
    skops.io.dump(model, path)
    monkeypatch.undo()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_model(path)
    (warning,) = caught
    assert f"saved with scikit-learn 0.1, this is {sklearn.__version__}" in str(warning.message)
    assert warning.filename == __file__


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("left_child", 10**6, "leads to no node"),
        ("right_child", 0, "leads to no node"),
        ("feature", 4, "asks for no column"),
        ("feature", -3, "asks for no column"),
    ],
)
@pytest.mark.parametrize("model", [DecisionTreeClassifier(), FOREST], ids=["tree", "forest"])
def test_trees_that_lead_elsewhere_are_refused(path, model, field, value, reason):
    """As a file can hold them: scikit-learn would read memory that is not the tree's."""
    model.fit(IRIS, TARGET)
    tree = model.tree_ if hasattr(model, "tree_") else model.estimators_[1].tree_
    state = tree.__getstate__()
    state["nodes"] = state["nodes"].copy()
    state["nodes"][field][0] = value
    tree.__setstate__(state)
    skops.io.dump(model, path)
    with pytest.raises(ValueError, match=rf"model\.skops cannot be opened .*{reason}"):
        load_model(path)


@pytest.mark.parametrize(("field", "value"), [("left", 10**6), ("right", 0), ("feature_idx", 4)])
def test_trees_of_boosting_that_lead_elsewhere_are_refused(path, field, value):
    model = HistGradientBoostingClassifier(max_iter=2).fit(IRIS, TARGET)
    model._predictors[1][0].nodes[field][0] = value
    skops.io.dump(model, path)
    with pytest.raises(ValueError, match=r"model\.skops cannot be opened .*a node of a tree"):
        load_model(path)


def test_trees_of_other_widths_are_refused(path):
    forest = RandomForestClassifier(3, random_state=0).fit(IRIS, TARGET)
    forest.n_features_in_ = 2
    skops.io.dump(forest, path)
    with pytest.raises(ValueError, match="a tree is not made for the columns of its model"):
        load_model(path)
    loose = DecisionTreeClassifier().fit(IRIS, TARGET)
    other = GaussianNB().fit(IRIS, TARGET)
    other.tree_ = loose.tree_
    skops.io.dump(other, path)
    with pytest.raises(ValueError, match="a tree outside of the models that have trees"):
        load_model(path)


def rewritten(path, change=None, **members):
    """Write a skops file anew, with a changed description and other members."""
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(contents["schema.json"])
    if change is not None:
        change(schema)
    contents["schema.json"] = json.dumps(schema).encode()
    contents |= members
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)


def zeros_in_a_zip(n):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.npy", bytes(n))
    return buffer.getvalue()


def test_bombs_are_refused_before_they_are_unpacked(path, monkeypatch):
    model = make_pipeline(StandardScaler(), LOGISTIC).fit(IRIS, TARGET)
    skops.io.dump(model, path)
    monkeypatch.setattr("contrafact.models.skops_files.MAX_BYTES", 10**6)
    load_model(path)
    rewritten(path, bomb=bytes(2 * 10**6))
    with pytest.raises(ValueError, match="its arrays take more than the 1,000,000 bytes allowed"):
        load_model(path)
    rewritten(path, bomb=zeros_in_a_zip(2 * 10**6))
    with pytest.raises(ValueError, match="its arrays take more than the 1,000,000 bytes allowed"):
        load_model(path)
    monkeypatch.setattr("contrafact.models.skops_files.MAX_SCHEMA", 100)
    rewritten(path, bomb=b"")
    with pytest.raises(ValueError, match=r"schema\.json takes more than 100 bytes"):
        load_model(path)


@pytest.mark.parametrize(
    "schema",
    [
        b"",
        b"[]",
        b"{}",
        b"[" * 10**6,
        b'{"protocol": 1}',
        b'{"protocol": 2, "__class__": "x", "__module__": "os", "__loader__": "ListNode"}',
        b'{"protocol": 2, "__id__": 5, "__loader__": "CachedNode", '
        b'"__class__": "", "__module__": ""}',
        b"\xff\xfe",
    ],
)
def test_descriptions_that_describe_nothing_are_refused(path, schema):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", schema)
    with pytest.raises(ValueError, match=r"model\.skops cannot be opened as skops") as told:
        load_model(path)
    assert "\n" not in str(told.value)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_damaged_files_end_in_one_line_or_answer(path):
    skops.io.dump(make_pipeline(StandardScaler(), FOREST).fit(IRIS, TARGET), path)
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(150):
        content = bytearray(good)
        if rng.random() < 0.3:
            content = content[: rng.integers(len(content))]
        else:
            for place in rng.integers(len(good), size=rng.integers(1, 4)):
                content[place] = rng.integers(256)
        path.write_bytes(content)
        try:
            load_model(path).predict(IRIS[:2])
        except ValueError as error:
            refused += 1
            assert str(path) in str(error) and "\n" not in str(error)
    assert refused > 100


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_changed_descriptions_end_in_an_error_or_answer(path):
    """Damage that no checksum finds: words and numbers of the description are exchanged."""
    skops.io.dump(make_pipeline(StandardScaler(), FOREST).fit(IRIS, TARGET), path)
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    strange = [None, -1, 2**40, "", "os", [], {}, 1.5, "ListNode", "builtins", "dict"]
    refused = 0
    for _ in range(60):
        path.write_bytes(good)
        rewritten(path, lambda schema: _exchange(schema, rng, strange))
        try:
            model = load_model(path)
        except ValueError as error:
            refused += 1
            assert str(path) in str(error) and "\n" not in str(error)
            continue
        assert isinstance(model, object)
    assert refused > 30


def _exchange(schema, rng, strange):
    """Replace a value somewhere in nested dictionaries and lists."""
    place = schema
    while True:
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = keys[rng.integers(len(keys))]
        inner = place[key]
        if isinstance(inner, dict | list) and inner and rng.random() < 0.9:
            place = inner
            continue
        place[key] = strange[rng.integers(len(strange))]
        return
