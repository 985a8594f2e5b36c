"""Models and data in every kind of file that the command line reads."""

from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import skops.io
import torch
from skl2onnx import to_onnx
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from torch import nn

import contrafact as cf
from contrafact.nn import save_weights

IRIS = ("iris.joblib", "iris.csv", "--trust", "--label", "kind")
WIDE = {"COLUMNS": "200"}
MODULE = """
import joblib
import torch

print("a model may print what it likes")
network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(24, 2))
logistic = joblib.load("logistic.joblib")


def make():
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(24, 2))


class Pair(torch.nn.Module):
    def forward(self, x):
        return x, x


pair = Pair()
"""


def write_sample_files(folder: Path) -> None:
    """Write one model of electricity demand in every kind of file, and one of flowers."""
    data = cf.load_dataset("ItalyPowerDemand")
    logistic = LogisticRegression(max_iter=1000).fit(data.X_train[:, 0], data.y_train)
    joblib.dump(logistic, folder / "logistic.joblib")
    module = nn.Sequential(nn.Flatten(), nn.Linear(24, 2))
    weight, bias = (
        torch.from_numpy(part).float() for part in (logistic.coef_, logistic.intercept_)
    )
    with torch.no_grad():  # the softmax of these two is the logistic function of the one
        module[1].weight.copy_(torch.cat([-weight, weight]) / 2)
        module[1].bias.copy_(torch.cat([-bias, bias]) / 2)
    torch.save(module.state_dict(), folder / "weights.pt")
    torch.jit.script(module).save(folder / "script.pt")
    torch.jit.script(module[1]).save(folder / "flat.pt")  # takes series without a channel
    skops.io.dump(logistic, folder / "logistic.skops")
    save_weights(cf.as_classifier(module, classes=["1", "2"]), folder / "weights.safetensors")
    flat = data.X_train[:1, 0].astype(np.float32)
    onnx_model = to_onnx(logistic, flat, target_opset=17)
    (folder / "logistic.onnx").write_bytes(onnx_model.SerializeToString())
    (folder / "my_model.py").write_text(MODULE)
    X, y = data.X_test[:30], data.y_test[:30]
    np.savez(folder / "plain.npz", X=X)
    np.savez(
        folder / "split.npz", X_train=data.X_train, y_train=data.y_train, X_test=X[:7], y_test=y[:7]
    )
    wide = pd.DataFrame(X[:, 0])
    wide.to_csv(folder / "wide.csv")
    wide.assign(label=y).to_csv(folder / "labeled.csv", index=False)
    lines = [",".join(map(str, x[0])) + f":{label}" for x, label in zip(X, y, strict=True)]
    (folder / "days.ts").write_text(
        "@univariate true\n@classLabel true 1 2\n@data\n" + "\n".join(lines)
    )
    (folder / "days.tsv").write_text(
        "\n".join("\t".join([b, *map(str, a[0])]) for a, b in zip(X, y, strict=True))
    )

    iris = load_iris(as_frame=True)
    frame = iris.data.set_axis(["sepal l", "sepal w", "petal l", "petal w"], axis=1)
    kind = iris.target_names[iris.target]
    joblib.dump(LogisticRegression(max_iter=1000).fit(frame, kind), folder / "iris.joblib")
    frame.assign(kind=kind).to_csv(folder / "iris.csv", index=False)
    joblib.dump(
        LogisticRegression(max_iter=1000).fit(frame.to_numpy(), kind), folder / "nameless.joblib"
    )
    frame.reset_index(names="plant").assign(kind=kind).to_csv(folder / "numbered.csv", index=False)
    frame.mask(frame == 3.0).to_csv(folder / "gap.csv", index=False)
    frame[:5].assign(kind=kind[:5]).to_csv(folder / "one.csv", index=False)
    shuffled = frame[["petal w", "sepal w", "sepal l", "petal l"]].assign(kind=kind)
    shuffled.insert(0, "plant", [f"no. {i}" for i in range(150)])
    shuffled.to_csv(folder / "shuffled.csv", index=False)
