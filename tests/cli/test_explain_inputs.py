"""Models and data in every format; class order."""

import numpy as np
import pytest
import torch
from sample_files import IRIS

import contrafact as cf
from contrafact.nn import save_weights

#: networks that a test makes, and libraries that it calls itself, draw from the global generators
pytestmark = pytest.mark.usefixtures("own_random_numbers")

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")


@pytest.mark.parametrize(
    "model",
    [
        ["script.pt", "--trust"],
        ["flat.pt", "--trust"],
        ["weights.pt", "--network", "my_model:make"],
        ["weights.pt", "--network", "my_model:network"],
        ["my_model:logistic"],
        ["logistic.joblib", "--trust"],
        ["logistic.skops"],
        ["logistic.onnx"],
        ["weights.safetensors", "--network", "my_model:make"],
    ],
    ids=" ".join,
)
def test_every_kind_of_model(answer, model):
    told = answer(*model, "ItalyPowerDemand", "--rows", "0:6", "--method", "LineSearch")
    (line,) = told["methods"]
    assert (line["asked"], line["reached"], told["classes"]) == (6, 6, ["1", "2"])
    assert [row["label"] for row in line["rows"]] == ["2", "2", "2", "2", "2", "1"]
    assert all(row["cf_label"] == row["target"] != row["label"] for row in line["rows"])
    assert all(row["p_before"] < 0.5 < row["p_after"] for row in line["rows"])


@pytest.mark.parametrize(
    ("data", "n"),
    [
        (["plain.npz"], 30),
        (["split.npz"], 7),
        (["wide.csv", "--modality", "series", "--reference", "split.npz"], 30),
        (["labeled.csv", "--modality", "series"], 30),
        (["days.ts"], 30),
        (["days.tsv"], 30),
        (["italypowerdemand", "--rows", "5:8"], 3),
    ],
    ids=lambda data: data[0] if isinstance(data, list) else None,
)
def test_every_kind_of_data(answer, data, n):
    told = answer("script.pt", "--trust", *data, "--method", "NearestUnlike", "--no-refine")
    assert told["modality"] == "series"
    rows = told["methods"][0]["rows"]
    assert len(rows) == n and all(row["valid"] for row in rows)
    own = any("itself" in note for note in told["notes"])
    assert own == (data[0] in ("plain.npz", "labeled.csv", "days.ts", "days.tsv"))


def test_a_file_of_weights_may_name_its_network_and_classes(answer, tmp_path):
    data = cf.load_dataset("ItalyPowerDemand")
    trained = cf.fit_classifier("mlp", data.X_train, data.y_train, max_epochs=3, random_state=0)
    save_weights(trained, tmp_path / "w.safetensors")
    told = answer(
        tmp_path / "w.safetensors", "plain.npz", "--rows", "0:4", "--method", "LineSearch"
    )
    assert told["classes"] == ["1", "2"] and told["methods"][0]["reached"] == 4
    expected = trained.predict(np.load("plain.npz")["X"][:4]).tolist()
    assert [row["label"] for row in told["methods"][0]["rows"]] == expected


def test_columns_go_by_name(answer):
    plainly = answer(*IRIS, "--rows", "0:20")["methods"][0]["rows"]
    again = answer("iris.joblib", "shuffled.csv", "--trust", "--label", "kind", "--rows", "0:20")
    for one, other in zip(plainly, again["methods"][0]["rows"], strict=True):
        del one["seconds"], other["seconds"]
    assert plainly == again["methods"][0]["rows"]


def test_two_hundred_rows_unless_said_otherwise(ask, answer):
    told = answer(
        "script.pt", "--trust", "ItalyPowerDemand", "--method", "NearestUnlike", "--no-refine"
    )
    assert told["methods"][0]["asked"] == 200
    assert "Explaining the first 200 of 1029 series; --rows chooses others." in told["notes"]
    told = answer(
        "script.pt", "--trust", "ItalyPowerDemand", "--method", "NearestUnlike", "--rows", "700,3:5"
    )
    assert [row["source"] for row in told["methods"][0]["rows"]] == [700, 3, 4]


def test_outputs_in_another_order_are_noticed(ask, shelf, tmp_path):
    weights = torch.load(shelf / "weights.pt")
    torch.save({name: value.flip(0) for name, value in weights.items()}, tmp_path / "flipped.pt")
    told = ask(
        tmp_path / "flipped.pt",
        "split.npz",
        "--network",
        "my_model:make",
        "--method",
        "NearestUnlike",
    )
    assert told.stderr.count("outputs are read as '1', '2', in this order") == 1
    assert "--classes 2,1" in told.stderr
    told = ask("weights.pt", "split.npz", "--network", "my_model:make", "--method", "NearestUnlike")
    assert "order" not in told.stderr


def test_classes_may_be_named_in_their_order(ask, answer, shelf, tmp_path):
    weights = torch.load(shelf / "weights.pt")
    torch.save({name: value.flip(0) for name, value in weights.items()}, tmp_path / "flipped.pt")
    options = ("split.npz", "--network", "my_model:make", "--method", "NearestUnlike")
    expected = answer("weights.pt", *options)
    told = answer(tmp_path / "flipped.pt", *options, "--classes", "2,1")
    assert told["classes"] == ["2", "1"]
    assert not any("order" in note for note in told["notes"])
    for one, other in zip(expected["methods"][0]["rows"], told["methods"][0]["rows"], strict=True):
        assert (one["label"], one["cf_label"]) == (other["label"], other["cf_label"])
    told = ask(tmp_path / "flipped.pt", *options, "--classes", "2,1,3")
    assert told.exit_code == 2 and "2 outputs per row, but classes has 3" in told.stderr
