"""Sessions of onnxruntime answer as the models that were exported."""

import json
import warnings

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from onnx import TensorProto, helper
from onnx_graphs import IR_VERSION, logits_model, logits_of, model_of, softmax
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

import contrafact as cf
from contrafact.models.remarks import ModelWarning

IRIS, TARGET = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[TARGET]
SERIES = np.random.default_rng(1).normal(size=(7, 1, 8))
ROWS = IRIS[::10].astype(np.float32)


def session(model):
    return onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )


def exported(model, zipmap=True):
    options = None if zipmap else {id(model): {"zipmap": False}}
    return session(to_onnx(model, IRIS[:1].astype(np.float32), options=options, target_opset=17))


@pytest.mark.parametrize("labels", [TARGET, NAMES], ids=["numbers", "names"])
@pytest.mark.parametrize("zipmap", [True, False])
def test_scikit_learn_answers_the_same(labels, zipmap):
    forest = RandomForestClassifier(5, random_state=0).fit(IRIS, labels)
    classifier = cf.as_classifier(exported(forest, zipmap))
    if not zipmap:
        classifier.infer_classes(IRIS, labels)
    assert classifier.classes.tolist() == forest.classes_.tolist()
    np.testing.assert_allclose(
        classifier.predict_proba(ROWS), forest.predict_proba(ROWS), atol=1e-6
    )
    np.testing.assert_array_equal(classifier.predict(ROWS), forest.predict(ROWS))
    assert not classifier.differentiable


def test_the_label_output_decides():
    """Where the threshold is not one half, the most probable class is not the model's answer."""
    two = TARGET[50:] - 1
    model = LogisticRegression(max_iter=500).fit(IRIS[50:], two)
    strict = FixedThresholdClassifier(model, threshold=0.9, response_method="predict_proba")
    rows = IRIS[50:].astype(np.float32)
    onnx_model = to_onnx(model, rows[:1], options={id(model): {"zipmap": False}}, target_opset=17)
    graph = onnx_model.graph
    _, columns = graph.output
    nodes = [
        helper.make_node("Constant", [], ["second"], value_int=1),
        helper.make_node("Gather", [columns.name, "second"], ["p"], axis=1),
        helper.make_node("Constant", [], ["threshold"], value_float=0.9),
        helper.make_node("GreaterOrEqual", ["p", "threshold"], ["above"]),
        helper.make_node("Cast", ["above"], ["decided"], to=TensorProto.INT64),
    ]
    graph.node.extend(nodes)
    graph.output[0].CopyFrom(helper.make_tensor_value_info("decided", TensorProto.INT64, [None]))
    predicted = cf.as_classifier(session(onnx_model), classes=[0, 1]).predict(rows)
    expected = strict.fit(IRIS[50:], two).predict(rows)
    np.testing.assert_array_equal(predicted, expected)
    assert (model.predict(rows) != expected).any()


def test_scores_of_a_machine_become_a_softmax():
    machine = LinearSVC(random_state=0).fit(IRIS, NAMES)
    classifier = cf.as_classifier(exported(machine), classes=machine.classes_)
    scores = machine.decision_function(ROWS)
    np.testing.assert_allclose(classifier.predict_proba(ROWS), softmax(scores), atol=1e-5)
    np.testing.assert_array_equal(classifier.predict(ROWS), machine.predict(ROWS))


def test_logits_become_a_softmax_and_this_is_remarked():
    classifier = cf.as_classifier(session(logits_model()))
    with pytest.warns(ModelWarning, match="'logits' of the ONNX model does not hold probab"):
        classifier.probe(SERIES)
    np.testing.assert_allclose(
        classifier.predict_proba(SERIES), softmax(logits_of(SERIES)), atol=1e-6
    )
    assert classifier.evaluate(SERIES).score.isfinite().all()


def test_probabilities_stay_as_they_are():
    classifier = cf.as_classifier(session(logits_model(softmax=True)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier.probe(SERIES)
    np.testing.assert_allclose(
        classifier.predict_proba(SERIES), softmax(logits_of(SERIES)), atol=1e-6
    )


@pytest.mark.parametrize("sigmoid", [True, False])
def test_one_column_is_the_second_class(sigmoid):
    model = logits_model(n_out=1)
    if sigmoid:
        model.graph.node[-1].output[0] = "raw"
        model.graph.node.append(helper.make_node("Sigmoid", ["raw"], ["logits"]))
    second = 1 / (1 + np.exp(-logits_of(SERIES, 1)))
    np.testing.assert_allclose(
        cf.as_classifier(session(model)).predict_proba(SERIES),
        np.hstack([1 - second, second]),
        atol=1e-6,
    )


@pytest.mark.parametrize("batch", [1, 3])
def test_a_fixed_batch_is_filled(batch):
    classifier = cf.as_classifier(session(logits_model((batch, 1, 8), softmax=True)))
    np.testing.assert_allclose(
        classifier.predict_proba(SERIES), softmax(logits_of(SERIES)), atol=1e-6
    )
    with pytest.warns(ModelWarning, match=r"takes (one row|3 rows) at a time.*dynamic batch"):
        classifier.probe(SERIES)


def test_flat_models_take_series_and_shaped_ones_take_rows():
    flat = cf.as_classifier(session(logits_model(("n", 8))))
    np.testing.assert_allclose(flat.predict_proba(SERIES), softmax(logits_of(SERIES)), atol=1e-6)
    shaped = cf.as_classifier(session(logits_model(("n", 1, 8))))
    np.testing.assert_allclose(
        shaped.predict_proba(SERIES[:, 0]), softmax(logits_of(SERIES)), atol=1e-6
    )


def test_another_shape_is_refused_with_what_the_model_takes():
    classifier = cf.as_classifier(session(logits_model(("n", 8, 2))))
    with pytest.raises(ValueError, match=r"takes \(n, 8, 2\) at 'x'.*\(3, 2, 8\).*Transpose X"):
        classifier.predict_proba(np.zeros((3, 2, 8)))
    with pytest.raises(ValueError, match=r"takes \(n, 8, 2\) at 'x'.*\(3, 5\)") as caught:
        classifier.predict_proba(np.zeros((3, 5)))
    assert "\n" not in str(caught.value)


def test_classes_come_from_the_metadata_the_maps_or_the_user():
    named = logits_model(metadata={"classes": json.dumps(["a", "b", "c"])})
    assert cf.as_classifier(session(named)).classes.tolist() == ["a", "b", "c"]
    assert cf.as_classifier(session(named), classes=[3, 4, 5]).classes.tolist() == [3, 4, 5]
    with pytest.raises(ValueError, match=r"name the classes 'a, b'\. Accepted: a JSON list"):
        cf.as_classifier(session(logits_model(metadata={"classes": "a, b"})))
    forest = RandomForestClassifier(5, random_state=0).fit(IRIS, NAMES)
    mapped = exported(forest)
    turned = cf.as_classifier(mapped, classes=forest.classes_[::-1])
    np.testing.assert_allclose(
        turned.predict_proba(ROWS), forest.predict_proba(ROWS)[:, ::-1], atol=1e-6
    )
    np.testing.assert_array_equal(turned.predict(ROWS), forest.predict(ROWS))


def test_a_label_output_with_other_names_is_remarked():
    forest = RandomForestClassifier(5, random_state=0).fit(IRIS, NAMES)
    classifier = cf.as_classifier(exported(forest, zipmap=False), classes=["x", "y", "z"])
    with pytest.warns(ModelWarning, match="names other classes than .*most probable"):
        classifier.probe(ROWS)
    expected = forest.predict_proba(ROWS).argmax(1)
    np.testing.assert_array_equal(classifier.predict(ROWS), np.array(["x", "y", "z"])[expected])


def test_labels_alone_need_classes():
    model = logits_model()
    model.graph.node.append(helper.make_node("ArgMax", ["logits"], ["label"], axis=1, keepdims=0))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("label", TensorProto.INT64, ["n"]))
    with pytest.raises(ValueError, match=r"pass classes=\[\.\.\.\] to as_classifier"):
        cf.as_classifier(session(model)).predict(SERIES)
    classifier = cf.as_classifier(session(model), classes=[0, 1, 2])
    np.testing.assert_array_equal(classifier.predict(SERIES), logits_of(SERIES).argmax(1))


def test_one_input_per_column_is_asked_by_name():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(50, 9, 80).astype(np.float32),
            "ward": rng.choice(["a", "b"], 80),
            "visits": rng.integers(0, 9, 80),
        }
    )
    y = np.where(frame["age"] + 9 * (frame["ward"] == "a") > 54, "ill", "well")
    encode = ColumnTransformer(
        [("n", StandardScaler(), ["age", "visits"]), ("c", OneHotEncoder(), ["ward"])]
    )
    pipeline = make_pipeline(encode, LogisticRegression()).fit(frame, y)
    types = [
        ("age", FloatTensorType([None, 1])),
        ("ward", StringTensorType([None, 1])),
        ("visits", Int64TensorType([None, 1])),
    ]
    classifier = cf.as_classifier(
        session(to_onnx(pipeline, initial_types=types, target_opset=17)),
        classes=pipeline.classes_,
    )
    assert classifier.feature_names == ["age", "ward", "visits"]
    result = cf.NICE().fit(classifier, frame, y).explain(frame[:5])
    assert result.valid.all()
    np.testing.assert_array_equal(result.cf_labels, pipeline.predict(result.frame_cf))
    np.testing.assert_allclose(result.cf_proba, pipeline.predict_proba(result.frame_cf), atol=1e-5)


def test_whole_numbers_are_not_rounded():
    forest = RandomForestClassifier(3, random_state=0).fit(IRIS.astype(int), TARGET)
    model = cf.as_classifier(session(to_onnx(forest, IRIS[:1].astype(np.int64), target_opset=17)))
    whole = IRIS[::10].astype(int)
    np.testing.assert_array_equal(model.predict(whole), forest.predict(whole))
    with pytest.raises(ValueError, match=r"'X' takes whole numbers \(tensor\(int64\)\)"):
        model.predict(IRIS[::10])


def test_models_with_other_inputs_and_outputs_are_refused():
    two = logits_model()
    two.graph.output.append(helper.make_tensor_value_info("flat", TensorProto.FLOAT, None))
    with pytest.raises(ValueError, match=r"outputs 'logits' .*, 'flat' .*Accepted: one of prob"):
        cf.as_classifier(session(two))
    pair = logits_model()
    pair.graph.input.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, ["n", 4]))
    with pytest.raises(ValueError, match=r"model takes .* at 'x', \(n, 4\) at 'z'"):
        cf.as_classifier(session(pair))
    image = model_of([helper.make_node("Cast", ["x"], ["y"], to=1)], [], ["n"], ["n"], "y")
    image.graph.input[0].type.tensor_type.elem_type = TensorProto.UINT8
    assert image.ir_version == IR_VERSION
    with pytest.raises(ValueError, match=r"takes tensor\(uint8\) at its input 'x'"):
        cf.as_classifier(session(image))


def test_a_model_is_explained():
    data = cf.load_dataset("ItalyPowerDemand")
    model = LogisticRegression(max_iter=1000).fit(data.X_train[:, 0], data.y_train)
    onnx_model = to_onnx(model, data.X_train[:1, 0].astype(np.float32), target_opset=17)
    result = cf.explain(session(onnx_model), data.X_test[:5], reference=data)
    assert result.valid.all()
    np.testing.assert_array_equal(result.cf_labels, model.predict(result.X_cf[:, 0]))
