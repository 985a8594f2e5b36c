"""Sessions of ONNX models, from scikit-learn and from torch."""

import numpy as np
import pytest
import torch
from compat_checks import check_explained, rows_of_data, series_data
from sklearn.ensemble import RandomForestClassifier
from torch import nn

import contrafact as cf

LIBRARY = "onnxruntime"
BESIDE = ("onnx", "skl2onnx", "torch")
onnxruntime = pytest.importorskip(LIBRARY)


def session(content):
    return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])


def test_forest(ledger):
    skl2onnx = pytest.importorskip("skl2onnx")
    X, y = rows_of_data()
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    options = {id(forest): {"zipmap": False}}
    model = session(
        skl2onnx.to_onnx(forest, X[:1].astype(np.float32), options=options).SerializeToString()
    )

    def ask(x):
        return model.run(None, {model.get_inputs()[0].name: x.astype(np.float32)})

    check_explained(
        ledger,
        "RandomForestClassifier by skl2onnx",
        model,
        X,
        y,
        lambda x: ask(x)[0],
        wrap=cf.as_classifier(model, classes=forest.classes_),
    )


def test_network(ledger, tmp_path):
    X, y = series_data()
    torch.manual_seed(0)
    network = cf.fit_classifier(nn.Sequential(nn.Flatten(), nn.Linear(64, 2)), X, y, max_epochs=30)
    path = tmp_path / "network.onnx"
    torch.onnx.export(
        network.module,
        (torch.zeros(2, 1, 64),),
        path,
        dynamo=False,
        input_names=["x"],
        dynamic_axes={"x": {0: "n"}},
    )
    model = session(path)

    def proba(x):
        logits = model.run(None, {"x": x.astype(np.float32)})[0]
        return torch.from_numpy(logits).double().softmax(1).numpy()

    check_explained(
        ledger,
        "network by torch.onnx",
        model,
        X,
        y,
        lambda x: network.classes[proba(x).argmax(1)],
        wrap=cf.as_classifier(model, classes=network.classes),
    )
