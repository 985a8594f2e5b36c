"""What is asked: methods, targets, limits, options."""

import json
import re

import joblib
import numpy as np
import pandas as pd
import pytest
from sample_files import IRIS
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.prototypes import GLVQ
from contrafact.report.sentences import sentence

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")


def test_a_pickle_needs_trust(ask, shelf):
    told = ask("logistic.joblib", "ItalyPowerDemand")
    assert told.exit_code == 2 and told.stdout == ""
    assert re.search(
        r"^Error: logistic\.joblib is a pickle: opening it runs any code .*--trust", told.stderr
    )


def test_torchscript_needs_trust(ask):
    told = ask("script.pt", "split.npz")
    assert told.exit_code == 2 and told.stdout == ""
    assert "script.pt is TorchScript: it is a program that runs when" in told.stderr
    assert "If you made it, or trust who did, pass trust=True (--trust)" in told.stderr


def test_default_methods(ask, answer, shelf):
    assert (
        answer("script.pt", "split.npz", "--trust", "--rows", "0")["methods"][0]["method"]
        == "Graft"
    )
    told = answer(*IRIS, "--rows", "0:3")
    (method,) = told["methods"]
    assert method["method"] == "Graft" and not method["options"]["refine"]
    for options, refine in [
        (["--no-refine"], False),
        (["--refine", "minimal"], "minimal"),
        (["--refine", "believable"], "believable"),
    ]:
        told = answer(*IRIS, "--rows", "0:3", *options)
        assert told["methods"][0]["options"]["refine"] == refine
    data = cf.load_dataset("ItalyPowerDemand")
    joblib.dump(
        GLVQ(max_iter=20, random_state=0).fit(data.X_train, data.y_train), shelf / "lvq.joblib"
    )
    exact = answer("lvq.joblib", "split.npz", "--trust")["methods"][0]
    assert exact["method"] == "PrototypeCounterfactual" and not exact["options"]["refine"]
    steady = answer("lvq.joblib", "split.npz", "--trust", "--max-step", "3", "--rows", "0")[
        "methods"
    ][0]
    assert steady["method"] == "Graft"  # the exact one knows no steps


def test_named_methods_are_refined_where_that_makes_sense(answer):
    named = ["--method", "CoMTE", "--method", "Graft"]
    told = answer(*IRIS, "--rows", "0:3", *named)
    refined = {entry["method"]: entry["options"]["refine"] for entry in told["methods"]}
    assert refined == {"CoMTE": "believable", "Graft": False}


def test_the_level_of_grafts(ask, answer, shelf):
    def level(*options: str) -> tuple[str, bool]:
        told = answer(*IRIS, "--rows", "0:3", *options)
        (method,) = told["methods"]
        return method["parameters"]["level"], any("has to agree" in note for note in told["notes"])

    assert level() == ("steady", False)
    assert level("--level", "smallest") == ("smallest", False)
    assert level("--method", "Graft", "--level", "lasting") == ("lasting", True)
    told = ask(*IRIS, "--method", "CoMTE", "--level", "lasting")
    assert told.exit_code == 2
    assert "--level lasting is for Graft; here the method is CoMTE. Add --method" in told.stderr


def test_default_method_for_images(answer, shelf):
    data = cf.load_dataset("digits")
    flat = data.X_train[:300].reshape(300, -1)
    forest = RandomForestClassifier(10, random_state=0).fit(flat, data.y_train[:300])
    joblib.dump(forest, shelf / "forest.joblib")
    (method,) = answer("forest.joblib", "digits", "--trust", "--rows", "0:2")["methods"]
    assert method["method"] == "Graft" and not method["options"]["refine"]
    (named,) = answer(
        "forest.joblib", "digits", "--trust", "--rows", "0:2", "--method", "RandomMask"
    )["methods"]
    assert not named["options"]["refine"]


def test_command_line_and_python_give_the_same(answer, shelf):
    told = answer(*IRIS, "--rows", "0:5")
    reason = cf.recommend(joblib.load(shelf / "iris.joblib"), "row").reason
    assert f"Method: Graft. {reason} --method chooses others." in told["notes"]
    frame = pd.read_csv(shelf / "iris.csv")
    kind = frame.pop("kind").to_numpy(dtype=str)
    result = cf.explain(joblib.load(shelf / "iris.joblib"), frame[:5], reference=(frame, kind))
    rows = told["methods"][0]["rows"]
    assert [row["sentence"] for row in rows] == [sentence(result, i) for i in range(5)]
    assert [row["p_after"] for row in rows] == result.to_frame()["p_after"].tolist()


@pytest.mark.parametrize(
    ("labels", "typed"),
    [
        ([0, 1], "1"),
        ([1.0, 2.0], "2"),
        ([False, True], "True"),
        (["1", "2"], "2"),
        (["ok", "<script>alert(1)</script>"], "<script>alert(1)</script>"),
        (["[red]a[/red]", "👍 'quoted' \x1b[31m"], "👍 'quoted' \x1b[31m"),
        (["x" * 10_000, "y"], "x" * 10_000),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_labels_of_any_kind(ask, tmp_path, labels, typed):
    X = np.linspace(-1, 1, 40).reshape(20, 2)
    y = np.array(labels)[(X[:, 0] > 0).astype(int)]
    joblib.dump(LogisticRegression().fit(X, y), tmp_path / "m.joblib")
    np.savez(tmp_path / "d.npz", X=X, y=y)
    command = [tmp_path / "m.joblib", tmp_path / "d.npz", "--trust", "--target", typed]
    told = ask(*command)
    assert told.exit_code == 0, told.output
    assert "10 of 10 now get the class that was asked for. 10 had it already" in told.stdout
    assert "\x1b" not in told.output.partition("Again:")[0]
    line = json.loads(ask(*command, "--json").stdout)["methods"][0]
    assert (line["asked"], line["reached"], line["already"]) == (10, 10, 10)
    reached = line["rows"]
    assert {row["cf_label"] for row in reached} == {y.dtype.type(typed == "True" or typed).item()}


def test_limits_are_kept_in_what_is_saved(ask, tmp_path):
    path = tmp_path / "out.npz"
    limits = [
        "--freeze",
        "sepal w",
        "--freeze",
        "column 0",
        "--bounds",
        "0:7",
        "--bounds",
        "petal w=0.5:2",
    ]
    told = ask(*IRIS, "--rows", "0:150", "--method", "NearestUnlike", *limits, "--save", path)
    assert told.exit_code == 0 and f"Arrays: {path}" in told.stdout
    saved = cf.Counterfactuals.load(path)
    assert saved.names.tolist() == ["sepal l", "sepal w", "petal l", "petal w"]
    assert saved.valid.sum() > 50 and not saved.changed[:, :2].any()
    widths = saved.X_cf[saved.changed[:, 3], 3]
    assert len(widths) > 20 and (widths >= 0.5).all() and (widths <= 2).all()
    told = ask(
        "script.pt",
        "split.npz",
        "--trust",
        "--method",
        "LineSearch",
        "--freeze",
        "0:6",
        "--freeze",
        "ch 0:20:",
        "--max-step",
        "3",
        "--save",
        path,
    )
    saved = cf.Counterfactuals.load(path)
    assert (
        saved.changed.any()
        and not saved.changed[..., :6].any()
        and not saved.changed[..., 20:].any()
    )
    assert (np.abs(np.diff(saved.X_cf[saved.valid])) <= 3).all()


def test_a_committee_is_made_from_the_reference_and_told(answer):
    told = answer(*IRIS, "--rows", "0:3", "--committee", 2)
    options = told["methods"][0]["options"]
    assert options["committee"].startswith("Committee(2 x ")
    assert any("Committee(2 x " in note for note in told["notes"])


def test_options_arrive(answer):
    told = answer(
        *IRIS,
        "--rows",
        "0:4",
        "--k",
        2,
        "--confidence",
        0.8,
        "--calls",
        4000,
        "--seconds",
        50,
        "--seed",
        7,
    )
    line = told["methods"][0]
    assert line["options"] == {
        "k": 2,
        "refine": False,
        "confidence": 0.8,
        "committee": None,
        "constraints": [],
        "budget": {"calls": 4000, "seconds": 50.0},
    }
    assert line["seed"] == 7 and line["asked"] == 4 and len(line["rows"]) > 4
    assert line["calls"] <= 4000 and all(row["p_after"] >= 0.8 for row in line["rows"])
