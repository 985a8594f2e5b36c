"""Metrics of tables: in units of the schema, by columns, and never NaN for a missing value."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import contrafact as cf
from contrafact.metrics import Reference, evaluate, list_metrics
from contrafact.metrics.metric import flat_arrays, flat_changed
from contrafact.metrics.table_rows import noisy_rows, part_changes, table_coordinates
from hospital import hospital_result, patients, risk, risk_model

#: what is undefined for rows without saliency, or by the number of answers asked for
NOT_HERE = {"lipschitz", "perturbation_auc", "perturbation_auc_reversed"}


@pytest.fixture(scope="module")
def result():
    return hospital_result()


@pytest.fixture(scope="module")
def reference():
    frame = patients()
    return frame, np.array(["high risk", "low risk"])[risk(frame).argmax(1)]


def test_changes_are_in_units_of_the_schema(result):
    schema = result.table.schema
    size = dict(zip(schema.parts, part_changes(result).T, strict=True))
    np.testing.assert_allclose(size["bmi"], np.array([4.3, 7.4, 13, 1.5]) / schema["bmi"].scale)
    np.testing.assert_array_equal(size["smokes"], [1, 0, 1, 0])
    np.testing.assert_array_equal(size["ward"], [0, 1, 0, 0])  # two columns of one group
    np.testing.assert_array_equal(size["hba1c"], [0, 0, 1, 0])  # it was missing
    np.testing.assert_allclose(size["activity"], np.array([0, 0, 1, 1]) / schema["activity"].scale)
    np.testing.assert_array_equal(size["admitted"], 0)


def test_costs_count(result):
    schema = result.table.schema.edit("smokes", cost=3.0)
    dear = replace(result, table=replace(result.table, schema=schema))
    difference = part_changes(dear) - part_changes(result)
    np.testing.assert_array_equal(difference.sum(1), [2, 0, 2, 0])


def test_distances_follow_the_changes(result):
    size = part_changes(result)
    scores = evaluate(result, ["l1", "l2", "linf", "mae", "rmse"])
    np.testing.assert_allclose(scores["l1"], size.sum(1))
    np.testing.assert_allclose(scores["l2"], np.sqrt((size**2).sum(1)))
    np.testing.assert_allclose(scores["linf"], size.max(1))
    np.testing.assert_allclose(scores["mae"], size.sum(1) / 9)
    np.testing.assert_allclose(scores["rmse"], np.sqrt((size**2).sum(1) / 9))


def test_units_do_not_matter():
    def scores(factor):
        before = patients(30)
        before["bmi"] = before["bmi"] * factor
        after = before.copy()
        after["bmi"] = before["bmi"].to_numpy()[::-1]
        after["sex"] = before["sex"].to_numpy()[::-1]
        model = lambda X: np.tile([0.0, 1.0], (len(X), 1))  # noqa: E731
        schema = cf.Schema.infer(pd.concat([before, after])).edit("bmi", decimals=None)
        result = cf.Counterfactuals.from_arrays(model, before, after, schema=schema)
        return evaluate(result, ["l1", "knn_distance", "lof", "gini"], before)

    small, large = scores(1), scores(1000)
    for name in ("l1", "knn_distance", "lof", "gini"):
        np.testing.assert_allclose(small[name], large[name], rtol=1e-6)


def test_columns_are_counted_by_parts(result):
    scores = evaluate(result, ["sparsity", "unchanged_fraction", "segments"])
    assert scores["segments"].tolist() == [2, 2, 4, 2]
    np.testing.assert_allclose(scores["sparsity"], np.array([2, 2, 4, 2]) / 9)
    np.testing.assert_allclose(scores["sparsity"] + scores["unchanged_fraction"], 1)
    assert flat_changed(result).shape == (4, 9)


def test_no_missing_value_reaches_a_score(result, reference):
    assert np.isnan(result.X).any()
    assert np.isfinite(np.concatenate(flat_arrays(result))).all()
    model = risk_model()
    scores = evaluate(
        result, reference=reference, model=model, other_model=model, other_models=[model, risk]
    )
    assert set(scores.left_out) & NOT_HERE == NOT_HERE
    assert scores.left_out["lipschitz"] == "is for arrays; this result holds the rows of a table"
    rows = list_metrics().set_index("name")["modalities"].str.contains("row")
    assert set(scores.metrics) == set(rows.index[rows]) - NOT_HERE
    computed = scores.drop(columns=["source", "status"])
    # NaN is what these say of a row that has no reference row of its class nearby or one answer.
    assert computed.columns[computed.isna().any()].tolist() == []


def test_other_models_are_asked_with_frames(result, reference):
    seen = []

    def other(frame):
        seen.append(type(frame).__name__)
        return 1 - risk(frame)

    scores = evaluate(result, ["survival"], other_models=[risk_model(), other])
    np.testing.assert_allclose(scores["survival"], 0.5)
    assert set(seen) == {"DataFrame"}


def test_a_model_that_lacks_the_target_is_named(result):
    model = risk_model()
    model.classes_ = np.array(["a", "b"])
    model.predict = lambda X: model.classes_[risk(X).argmax(1)]
    with pytest.raises(ValueError, match="other_model does not know the class 'low risk'"):
        evaluate(result, ["transfer_validity"], other_model=model)


def test_reversals_keep_groups_whole(result):
    """Controllability sets values back: the model never sees half of a one-hot group."""
    seen = []

    class Watching(type(risk_model())):
        def predict_proba(self, X):
            seen.append(X[["ward_A", "ward_B", "ward_C"]].sum(axis=1))
            return risk(X)

        predict = None

    model = Watching()
    model.predict = lambda X: np.array(["high risk", "low risk"])[model.predict_proba(X).argmax(1)]
    scores = evaluate(result, ["controllability"], model=model)
    assert scores["controllability"].between(0, 1).all()
    assert all((total == 1).all() for total in seen)
    assert sum(map(len, seen)) > 100


def test_noise_moves_numbers_alone(result):
    table = result.table
    noise = np.full((4, 3, len(table.schema)), 0.26)
    noisy = noisy_rows(table, result.X, noise)
    names = list(table.schema.names)
    moved = (noisy != result.X[:, None]) & ~np.isnan(noisy)
    assert {names[j] for j in np.flatnonzero(moved.any((0, 1)))} == {"bmi", "hba1c"}
    # To the decimals of the column; whole numbers stay whole.
    bmi = noisy[:, :, names.index("bmi")]
    np.testing.assert_allclose(bmi, np.round(bmi, 1))
    assert (np.isnan(noisy) == np.isnan(result.X)[:, None]).all()


def test_noise_of_a_model_that_is_sure(result, reference):
    sure = risk_model()
    scores = evaluate(result, ["noise_survival"], reference, model=sure)
    assert scores["noise_survival"].iloc[1] == 1.0  # bmi 24: far from the boundary
    assert scores["noise_survival"].iloc[3] == 0.0


def test_the_reference_is_read_by_the_schema_of_the_result(result, reference):
    frame, y = reference
    known = Reference.read((frame, y), result)
    np.testing.assert_allclose(known.rows, table_coordinates(result.table, known.codes))
    shared = Reference(frame, y, result.table.schema)
    assert Reference.read(shared, result) is shared
    bare = Reference.read(Reference(frame[["age", "bmi"]], y), hospital_of_two(frame))
    assert bare.schema is not None
    with pytest.raises(ValueError, match="column"):
        evaluate(result, ["lof"], frame.drop(columns="sex"))
    with pytest.raises(ValueError, match="'sex' of reference holds 'other'"):
        evaluate(result, ["lof"], frame.assign(sex="other"))
    with pytest.raises(ValueError, match="no rows"):
        evaluate(result, ["lof"], frame[:0])


def hospital_of_two(frame):
    """A result of two columns."""
    model = lambda X: np.tile([0.0, 1.0], (len(X), 1))  # noqa: E731
    few = frame[["age", "bmi"]]
    labels = np.array(["high risk", "low risk"])
    result = cf.Counterfactuals.from_arrays(model, few, few)
    return replace(
        result,
        classes=labels,
        labels=labels[result.labels],
        cf_labels=labels[result.cf_labels],
        target=labels[result.target],
    )


def test_feature_diversity(result):
    scores = evaluate(result, ["feature_diversity"])
    # {bmi, smokes} and {bmi, ward} share one of three; an option that failed is no other option.
    np.testing.assert_allclose(scores["feature_diversity"], [2 / 3, 2 / 3, 0, 0])


def test_feature_diversity_of_one_answer_is_undefined(result):
    options = {**result.provenance["options"], "k": 1}
    alone = replace(result[[0, 2]], provenance={"options": options})
    assert evaluate(alone, ["feature_diversity"])["feature_diversity"].isna().all()


def test_what_is_given_back_is_never_a_fixed_value():
    """`refine` reads the rows again, which numbers their dates and identifiers anew."""
    frame = patients()
    labels = np.array(["high risk", "low risk"])[risk(frame).argmax(1)]
    explainer = cf.NearestUnlike().fit(risk, frame, labels)
    result = explainer.explain(frame[-4:])
    refined = cf.refine(result, risk)
    assert refined.frame_cf["admitted"].equals(frame["admitted"][-4:])
    scores = evaluate(result, ["redundancy"], model=risk)
    assert scores["redundancy"].between(0, 1).all()
    assert scores["redundancy"].max() > 0


def test_fixed_values_do_not_matter(result, reference):
    """A forest sees every coordinate; identifiers are none."""
    frame, y = reference
    other = frame.assign(admitted=frame["admitted"].to_numpy()[::-1])
    one = evaluate(result, ["isolation_forest", "lof"], (frame, y))
    two = evaluate(result, ["isolation_forest", "lof"], (other, y))
    pd.testing.assert_frame_equal(pd.DataFrame(one), pd.DataFrame(two))
