"""What is printed and what the JSON holds."""

import re
from dataclasses import replace

import pytest
from sample_files import IRIS

import contrafact as cf
from contrafact.cli.summary import summarize_result
from hospital import hospital_result

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")


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
    told = ask("script.pt", "split.npz", "--trust", "--freeze", "0:24", "--method", "NearestUnlike")
    assert told.exit_code == 1
    assert "0 of 7 now get the class that was asked for." in told.stdout
    assert len(re.findall(r"row \d: not reached \(infeasible\)", told.stdout)) == 5
    assert "and 2 more that were not reached" in told.stdout


def test_json_lists_a_one_hot_group_as_one_change():
    result = hospital_result()
    provenance = {**result.provenance, "parameters": {}, "seed": 0}
    rows = summarize_result(replace(result, provenance=provenance))["rows"]
    assert [sorted(row["changes"]) for row in rows] == [
        ["bmi", "smokes"],
        ["bmi", "ward"],
        ["activity", "bmi", "hba1c", "smokes"],
        ["activity", "bmi"],
    ]
    assert rows[0]["changes"] == {"bmi": [31.4, 27.1], "smokes": [True, False]}
    before, after = rows[1]["changes"]["ward"]
    assert before != after and {before, after} <= set("ABC")


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
    (series,) = answer("script.pt", "split.npz", "--trust", "--rows", "0")["methods"][0]["rows"]
    assert "t = " in series["sentence"] and "changes" not in series
