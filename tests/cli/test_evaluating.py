"""`contrafact evaluate`."""

import re

import pandas as pd
import pytest
from sample_files import IRIS

import contrafact as cf

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")


def test_evaluate(ask, answer, tmp_path):
    for method in ("LineSearch", "NearestUnlike"):
        ask(*IRIS, "--rows", "0:150", "--method", method, "--save", tmp_path / f"{method}.npz")
    line, nearest = tmp_path / "LineSearch.npz", tmp_path / "NearestUnlike.npz"
    told = ask(line, command="evaluate")
    assert told.exit_code == 0, told.output
    assert re.search(r"│ valid +│ ↑ +│ 1 ", told.stdout)
    assert "Left out, as they need --reference: lof," in told.stdout
    assert re.search(r"Left out, as they are for series data: .*dtw,", told.stdout)
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
    nearest = ("--method", "NearestUnlike", "--no-refine")
    ask("script.pt", "split.npz", "--trust", *nearest, "--save", tmp_path / "days.npz")
    days = answer(
        tmp_path / "days.npz", "--reference", "labeled.csv", "--metric", "ynn", command="evaluate"
    )
    assert days["results"]["days"]["metrics"]["ynn"]["mean"] > 0.5
    for args, reason in [
        ([line, "--metric", "lof"], "The metric 'lof' needs more than the result"),
        ([line, "--metric", "nice"], "metric 'nice' is unknown"),
        ([line, "--save", tmp_path / "t.txt"], "has suffix '.txt'"),
        (["iris.csv"], "is not a saved Counterfactuals"),
        (["gone.npz"], "gone.npz"),
    ]:
        told = ask(*args, command="evaluate")
        assert told.exit_code == 2 and reason in told.stderr
