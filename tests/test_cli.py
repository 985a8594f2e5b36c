"""The command line and the demo, as a newcomer meets them."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from rich.console import Console
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from torch import nn
from typer.testing import CliRunner

import contrafact as cf
from contrafact.cli import app, completion, summary
from contrafact.cli.console import plain
from contrafact.cli.specs import Layout, parse_rows
from contrafact.demo import run
from contrafact.prototypes import GLVQ

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
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


@pytest.fixture(scope="module")
def shelf(tmp_path_factory) -> Path:
    """A folder with one model of electricity demand in every kind of file, and one of flowers."""
    folder = tmp_path_factory.mktemp("shelf")
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
    return folder


@pytest.fixture
def ask(shelf, monkeypatch):
    """`contrafact explain` in that folder."""
    monkeypatch.chdir(shelf)

    def invoke(*args: object, command: str = "explain"):
        return CliRunner().invoke(app, [command, *map(str, args)], env=WIDE)

    yield invoke
    sys.modules.pop("my_model", None)


@pytest.fixture
def answer(ask):
    """The JSON of a run that went well."""

    def invoke(*args: object, command: str = "explain"):
        told = ask(*args, "--json", command=command)
        assert told.exit_code == 0, told.output
        return json.loads(told.stdout)

    return invoke


IRIS = ("iris.joblib", "iris.csv", "--trust", "--label", "kind")


# --- models and data ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        ["script.pt"],
        ["flat.pt"],
        ["weights.pt", "--network", "my_model:make"],
        ["weights.pt", "--network", "my_model:network"],
        ["my_model:logistic"],
        ["logistic.joblib", "--trust"],
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
    told = answer("script.pt", *data, "--method", "NearestUnlike", "--no-refine")
    assert told["modality"] == "series"
    rows = told["methods"][0]["rows"]
    assert len(rows) == n and all(row["valid"] for row in rows)
    own = any("itself" in note for note in told["notes"])
    assert own == (data[0] in ("plain.npz", "labeled.csv", "days.ts", "days.tsv"))


def test_a_pickle_needs_trust(ask, shelf):
    told = ask("logistic.joblib", "ItalyPowerDemand")
    assert told.exit_code == 2 and told.stdout == ""
    assert re.search(
        r"^Error: logistic\.joblib is a pickle: opening it runs any code .*--trust", told.stderr
    )


def test_columns_go_by_name(answer):
    plainly = answer(*IRIS, "--rows", "0:20")["methods"][0]["rows"]
    again = answer("iris.joblib", "shuffled.csv", "--trust", "--label", "kind", "--rows", "0:20")
    for one, other in zip(plainly, again["methods"][0]["rows"], strict=True):
        del one["seconds"], other["seconds"]
    assert plainly == again["methods"][0]["rows"]


def test_two_hundred_rows_unless_said_otherwise(ask, answer):
    told = answer("script.pt", "ItalyPowerDemand", "--method", "NearestUnlike", "--no-refine")
    assert told["methods"][0]["asked"] == 200
    assert "Explaining the first 200 of 1029 series; --rows chooses others." in told["notes"]
    told = answer("script.pt", "ItalyPowerDemand", "--method", "NearestUnlike", "--rows", "700,3:5")
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
    assert "of the labels only. Its outputs were taken for '1', '2', in this order" in told.stderr
    told = ask("weights.pt", "split.npz", "--network", "my_model:make", "--method", "NearestUnlike")
    assert "order" not in told.stderr


# --- what is asked ------------------------------------------------------------------------------------------


def test_default_methods(ask, answer, shelf):
    assert answer("script.pt", "split.npz", "--rows", "0")["methods"][0]["method"] == "CELS"
    told = answer(*IRIS, "--rows", "0:3")
    assert told["methods"][0]["method"] == "CoMTE" and told["methods"][0]["options"]["refine"]
    assert not answer(*IRIS, "--rows", "0:3", "--no-refine")["methods"][0]["options"]["refine"]
    data = cf.load_dataset("ItalyPowerDemand")
    joblib.dump(
        GLVQ(max_iter=20, random_state=0).fit(data.X_train, data.y_train), shelf / "lvq.joblib"
    )
    exact = answer("lvq.joblib", "split.npz", "--trust")["methods"][0]
    assert exact["method"] == "PrototypeCounterfactual" and not exact["options"]["refine"]
    steady = answer("lvq.joblib", "split.npz", "--trust", "--max-step", "3", "--rows", "0")[
        "methods"
    ][0]
    assert steady["method"] == "CELS"  # the exact one knows no steps


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
    assert (saved.X_cf[saved.valid, 3] >= 0.5).all() and (saved.X_cf[saved.valid, 3] <= 2).all()
    told = ask(
        "script.pt",
        "split.npz",
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
        "refine": True,
        "confidence": 0.8,
        "constraints": [],
        "budget": {"calls": 4000, "seconds": 50.0},
    }
    assert line["seed"] == 7 and line["asked"] == 4 and len(line["rows"]) > 4
    assert line["calls"] <= 4000 and all(row["p_after"] >= 0.8 for row in line["rows"])


# --- what is told -------------------------------------------------------------------------------------------


def test_several_methods_side_by_side(ask, tmp_path):
    page, arrays = tmp_path / "why.html", tmp_path / "out.npz"
    told = ask(
        *IRIS,
        "--rows",
        "0:5",
        "--method",
        "comte",
        "--method",
        "LineSearch",
        "--report",
        page,
        "--save",
        arrays,
    )
    assert told.exit_code == 0, told.output
    files = [tmp_path / "out-CoMTE.npz", tmp_path / "out-LineSearch.npz"]
    assert f"Arrays: {files[0]}, {files[1]}" in told.stdout and not arrays.exists()
    assert [cf.Counterfactuals.load(file).provenance["method"] for file in files] == [
        "CoMTE",
        "LineSearch",
    ]
    assert (
        re.search(r"│ CoMTE +│ 100%", told.stdout) and "LineSearch: 5 of 5 now get" in told.stdout
    )
    text = page.read_text(encoding="utf-8")
    again = f"contrafact explain {' '.join(IRIS)} --rows 0:5 --method comte --method LineSearch"
    assert f"Again: {again} --report {page} --save {arrays} --seed 0" in told.stdout
    assert f"Report: {page}" in told.stdout and again in text and "sepal w" in text


def test_failures_are_told_and_nothing_reached_is_exit_code_1(ask):
    told = ask("script.pt", "split.npz", "--freeze", "0:24", "--method", "NearestUnlike")
    assert told.exit_code == 1
    assert "0 of 7 now get the class that was asked for." in told.stdout
    assert len(re.findall(r"row \d: not reached \(infeasible\)", told.stdout)) == 5
    assert "and 2 more that were not reached" in told.stdout


def test_json_says_what_changed(answer):
    told = answer(*IRIS, "--rows", "0:2")["methods"][0]["rows"]
    for row in told:
        assert row["changes"] and set(row["changes"]) <= {
            "sepal l",
            "sepal w",
            "petal l",
            "petal w",
        }
        assert all(before != after for before, after in row["changes"].values())
        assert row["sentence"].startswith("To be called ")
    (series,) = answer("script.pt", "split.npz", "--rows", "0")["methods"][0]["rows"]
    assert "t = " in series["sentence"] and "changes" not in series


def test_json_is_strict():
    told = plain(
        {
            "a": [np.float32("nan"), np.inf, np.int64(3)],
            1: np.array([True]),
            "p": Path("x"),
            "n": None,
        }
    )
    assert told == {"a": [None, None, 3], "1": [True], "p": "x", "n": None}
    json.dumps(told, allow_nan=False)


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["nowhere.pt", "split.npz"], r"model 'nowhere\.pt' does not exist"),
        (["my_model:nothing", "split.npz"], r"no 'nothing' in it"),
        (["weights.pt", "split.npz"], r"--network"),
        (["script.pt", "nowhere.npz"], r"'nowhere\.npz' does not exist"),
        (["script.pt", "gunpont"], r"Did you mean 'GunPoint'"),
        (
            ["script.pt", "GunPoint"],
            r"cannot answer for an instance of shape \(1, 150\): mat1 and mat2",
        ),
        (["script.pt", "JapaneseVowels"], r"unequal lengths"),
        (
            ["script.pt", "split.npz", "--target", "3"],
            r"--target '3' is not a class .* Classes: '1', '2'",
        ),
        (
            ["script.pt", "split.npz", "--method", "CELLS"],
            r"Did you mean CELS\? Methods: CELS, CoMTE",
        ),
        (["script.pt", "split.npz", "--rows", "5:9"], r"'5:9' is not within the 7 rows, 0 to 6"),
        (["script.pt", "split.npz", "--rows", "a"], r"'a' is no row\. Accepted: 0:40"),
        (["script.pt", "split.npz", "--freeze", "20:30"], r"'20:30' is not a window within 0:24"),
        (["script.pt", "split.npz", "--freeze", "ch 1"], r"'ch 1' is not understood.*'0:90'"),
        (
            ["script.pt", "split.npz", "--bounds", "2:1"],
            r"lowest value, 2, is above the highest, 1",
        ),
        (
            ["script.pt", "split.npz", "--bounds", "x=0:1"],
            r"no channel 'x'\. There are channel 0 to 0",
        ),
        (["script.pt", "split.npz", "--confidence", "1.5"], r"between 0 and 1, got 1\.5"),
        (["script.pt", "split.npz", "--calls", "3"], r"calls=3 is too small"),
        (
            ["script.pt", "split.npz", "--reference", "GunPoint"],
            r"shape \(1, 150\), split\.npz of \(1, 24\)",
        ),
        (
            ["script.pt", "split.npz", "--report", "why.pdf"],
            r"--report why\.pdf has suffix '\.pdf'",
        ),
        (["script.pt", "split.npz", "--report", "no/why.html"], r"the folder no does not exist"),
        (["script.pt", "split.npz", "--save", "split.npz"], r"would overwrite what is read"),
        ([*IRIS, "--method", "CELS"], r"CELS takes series data, not row"),
        (
            [*IRIS, "--freeze", "sepals"],
            r"'sepals' is not understood.*columns 'sepal l', 'sepal w'",
        ),
        ([*IRIS, "--max-step", "1"], r"--max-step applies to series"),
        ([*IRIS[:-1], "sort"], r"--label 'sort': there is no such column in iris\.csv"),
        ([*IRIS, "--method", "PrototypeCounterfactual"], r"must be a fitted prototype model"),
        (
            ["iris.joblib", "one.csv", "--trust", "--label", "kind"],
            r"one class only \(setosa\): --reference has",
        ),
        (
            ["my_model:pair", "split.npz"],
            r"cannot answer for an instance .*: The module must give one tensor",
        ),
        (
            ["nameless.joblib", "numbered.csv", "--trust", "--label", "kind"],
            r"an identifier, have to be left",
        ),
        (
            ["iris.joblib", "gap.csv", "--trust"],
            r"contains NaN at feature 1\. .*--fill on the command line",
        ),
        (["iris.joblib", "plain.npz", "--trust"], r"trained on 4 features per row, but X has 24"),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, list) else None,
)
def test_mistakes_are_told_in_one_line(ask, args, reason):
    told = ask(*args)
    assert told.exit_code == 2 and told.stdout == ""
    error = told.stderr.strip().splitlines()[-1]
    assert error.startswith("Error: ") and re.search(reason, error), told.stderr


def test_faults_of_the_program_are_not_hidden(ask, monkeypatch):
    def broken(*args, **options):
        raise KeyError("a fault")

    monkeypatch.setattr(summary, "explained", broken)
    assert isinstance(ask("script.pt", "split.npz").exception, KeyError)
    told = CliRunner().invoke(app, ["--debug", "explain", "nowhere.pt", "split.npz"])
    assert isinstance(told.exception, FileNotFoundError)


def test_stopping_is_quiet(ask, monkeypatch):
    def stopped(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(summary, "explained", stopped)
    told = ask("script.pt", "split.npz")
    assert told.exit_code == 130 and told.stderr.endswith("Stopped.\n")


# --- the small languages ------------------------------------------------------------------------------------


def test_rows():
    assert parse_rows("3,17,0:2,1", 20, 200).tolist() == [3, 17, 0, 1]
    assert parse_rows("18:", 20, 200).tolist() == [18, 19]
    assert parse_rows(None, 20, 5).tolist() == [0, 1, 2, 3, 4]


def test_what_can_be_frozen_and_bounded():
    series = Layout((2, 6), "series", ("x", "a:b"))
    assert series.frozen(["0:2"]).tolist() == [[True] * 2 + [False] * 4] * 2
    assert series.frozen(["x", "a:b:4:"]).tolist() == [[True] * 6, [False] * 4 + [True] * 2]
    assert series.frozen(["ch 1::1"]).sum() == 1 and series.frozen([]) is None
    image = Layout((1, 4, 5), "image")
    assert image.frozen(["1:2,3:5"])[0, 1].tolist() == [False] * 3 + [True] * 2
    assert image.frozen(["0:2"]).sum() == 10 and image.frozen(["ch 0"]).all()
    row = Layout((3,), "row", ("age", "0:1", "a=b"))
    assert row.frozen(["1:3"]).tolist() == [False, True, True]
    assert row.frozen(["0:1"]).tolist() == [False, True, False]  # a name comes first
    lower, upper = row.bounds([":5", "a=b=-1e2:", "age=3:12"])
    assert lower.tolist() == [3, -np.inf, -100] and upper.tolist() == [12, 5, np.inf]
    for layout, spec in [
        (row, "x:0:1"),
        (row, ":"),
        (series, "0:2,0:2"),
        (series, "3:3"),
        (image, "0:-1"),
    ]:
        with pytest.raises(ValueError, match=r"--freeze .*(Accepted|within)"):
            layout.frozen([spec])


# --- the other commands -------------------------------------------------------------------------------------


def test_evaluate(ask, answer, tmp_path):
    for method in ("LineSearch", "NearestUnlike"):
        ask(*IRIS, "--rows", "0:150", "--method", method, "--save", tmp_path / f"{method}.npz")
    line, nearest = tmp_path / "LineSearch.npz", tmp_path / "NearestUnlike.npz"
    told = ask(line, command="evaluate")
    assert told.exit_code == 0, told.output
    assert re.search(r"│ valid +│ ↑ +│ 1 ", told.stdout)
    assert "Left out, as they need --reference: lof," in told.stdout
    assert "Left out, as they are for series data: dtw," in told.stdout
    table, known = tmp_path / "table.csv", ("--reference", "shuffled.csv", "--label", "kind")
    told = ask(
        line,
        nearest,
        *known,
        "--metric",
        "sparsity",
        "--metric",
        "lof",
        "--save",
        table,
        command="evaluate",
    )
    assert told.exit_code == 0, told.output
    stored = pd.read_csv(table).set_index(["result", "metric"])
    expected = cf.Counterfactuals.load(nearest).changed_fraction.mean()
    assert stored.loc[("NearestUnlike", "sparsity"), "mean"] == pytest.approx(expected)
    assert f"{expected:.4g}" in told.stdout and "Left out" not in told.stdout
    told = answer(line, nearest, *known, command="evaluate")
    assert told["results"]["NearestUnlike"]["metrics"]["sparsity"]["mean"] == pytest.approx(
        expected
    )
    assert (
        told["results"]["LineSearch"]["method"] == "LineSearch"
        and "dtw" in told["results"]["LineSearch"]["left_out"]
    )
    # A .csv has the labels 1 and 2, the model '1' and '2'.
    ask("script.pt", "split.npz", "--method", "NearestUnlike", "--save", tmp_path / "days.npz")
    days = answer(
        tmp_path / "days.npz", "--reference", "labeled.csv", "--metric", "ynn", command="evaluate"
    )
    assert days["results"]["days"]["metrics"]["ynn"]["mean"] > 0.5
    for args, reason in [
        ([line, "--metric", "lof"], "The metric 'lof' needs more than the result"),
        ([line, "--metric", "nice"], "The metric 'nice' is unknown"),
        ([line, "--save", tmp_path / "t.txt"], "has suffix '.txt'"),
        (["iris.csv"], "is not a saved Counterfactuals"),
        (["gone.npz"], "gone.npz"),
    ]:
        told = ask(*args, command="evaluate")
        assert told.exit_code == 2 and reason in told.stderr


def test_lists():
    methods = CliRunner().invoke(app, ["methods"], env=WIDE)
    datasets = CliRunner().invoke(app, ["datasets"], env=WIDE)
    assert methods.exit_code == datasets.exit_code == 0
    assert all(name in methods.stdout for name in cf.list_explainers().index)
    assert "GunPoint" in datasets.stdout and "digits" in datasets.stdout
    methods, datasets = (
        json.loads(CliRunner().invoke(app, [name, "--json"]).stdout)
        for name in ("methods", "datasets")
    )
    assert [line["method"] for line in methods] == cf.list_explainers().index.tolist()
    assert {
        "name": "iris",
        "modality": "row",
        "train": 105,
        "test": 45,
        "shape": [4],
        "classes": 3,
    } in datasets


def test_no_command_shows_help():
    assert "demo" in CliRunner().invoke(app, []).output


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("ex", ["explain"]),
        ("explain m.pt Gun", ["GunPoint"]),
        ("explain m.pt x.npz --method Near", ["NearestUnlike"]),
        ("explain m.pt x.npz --network f", ["fcn"]),
        ("evaluate r.npz --metric dtw_lof_i", ["dtw_lof_increase", "dtw_lof_inlier"]),
    ],
)
def test_completion(typed, offered):
    shell = {
        "_CONTRAFACT_COMPLETE": "complete_bash",
        "COMP_WORDS": f"contrafact {typed}",
        "COMP_CWORD": str(len(typed.split())),
    }
    told = CliRunner().invoke(app, [], prog_name="contrafact", env=shell)
    assert told.stdout.split() == offered


def test_completion_knows_every_method():
    assert sorted(completion.methods()) == sorted(cf.list_explainers().index)


def test_a_process_pipes_json_alone(shelf):
    contrafact = Path(sys.executable).with_name("contrafact")
    command = [contrafact, "explain", "my_model:logistic", "split.npz", "--json"]
    told = subprocess.run(command, capture_output=True, text=True, cwd=shelf)
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["methods"][0]["reached"] == 7
    assert (
        "a model may print what it likes" in told.stderr and "Explaining with CELS" in told.stderr
    )
    told = subprocess.run([contrafact, "--version"], capture_output=True, text=True)
    assert told.stdout == f"contrafact {cf.__version__}\n"


def test_demo(tmp_path):
    console = Console(record=True, width=300)
    report = run(tmp_path / "out", n_instances=6, console=console)
    assert "CELS, refined" in report.read_text(encoding="utf-8")
    for picture in ("counterfactuals.png", "methods.png"):
        assert (tmp_path / "out" / picture).read_bytes().startswith(b"\x89PNG")
    text = console.export_text()
    assert "6 of 6 recordings now read as the other movement" in text
    assert float(text.split("Test accuracy ")[1].split()[0]) > 0.9
    # The next step that it offers works.
    command = shlex.split(text.partition("contrafact explain ")[2].partition("\n")[0])
    told = CliRunner().invoke(app, ["explain", *command, "--rows", "0:3"])
    assert told.exit_code == 0 and (tmp_path / "out" / "mine.html").exists(), told.output


def test_bench_from_run_to_report(tmp_path):
    grid, folder, page = tmp_path / "grid.toml", tmp_path / "cells", tmp_path / "page.md"
    grid.write_text(
        """
        datasets = ["ItalyPowerDemand"]
        seeds = [0, 1]
        instances = 3
        metrics = ["valid", "l2"]
        classifiers.LR = { model = "sklearn.linear_model:LogisticRegression", max_iter = 500 }
        explainers.nearest = "NearestUnlike"
        explainers.line = "LineSearch"
        """
    )
    wide = {"COLUMNS": "200"}
    for command in (
        ["run", str(grid), str(folder)],
        ["resume", str(folder)],
        ["status", str(folder)],
    ):
        told = CliRunner().invoke(app, ["bench", *command], env=wide)
        assert told.exit_code == 0, told.output
        assert all(
            f"{name} │ 2    │ 0      │ 0" in told.output for name in ("nearest  ", "line     ")
        )
    told = CliRunner().invoke(app, ["bench", "report", str(folder), "--out", str(page)], env=wide)
    assert told.exit_code == 0 and "| nearest | 1 [1, 1] |" in page.read_text()
