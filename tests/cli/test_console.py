"""Errors in one line, strict JSON."""

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from sample_files import IRIS
from typer.testing import CliRunner

from contrafact.cli import app, explain_request
from contrafact.cli.console import to_json_types

#: networks that a test makes, and libraries that it calls itself, draw from the global generators
pytestmark = pytest.mark.usefixtures("own_random_numbers")

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")


def test_json_is_strict():
    told = to_json_types(
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
        (["script.pt", "--trust", "nowhere.npz"], r"'nowhere\.npz' does not exist"),
        (["script.pt", "--trust", "gunpont"], r"Did you mean 'GunPoint'"),
        (
            ["script.pt", "--trust", "GunPoint"],
            r"cannot answer for an instance of shape \(1, 150\): mat1 and mat2",
        ),
        (["script.pt", "--trust", "JapaneseVowels"], r"unequal lengths"),
        (
            ["script.pt", "split.npz", "--trust", "--target", "3"],
            r"--target '3' is not a class .* Classes: '1', '2'",
        ),
        (
            ["script.pt", "split.npz", "--trust", "--method", "CELLS"],
            r"Did you mean CELS\? Methods: CELS, CoMTE",
        ),
        (
            ["script.pt", "split.npz", "--trust", "--rows", "5:9"],
            r"'5:9' is not within the 7 rows, 0 to 6",
        ),
        (
            ["script.pt", "split.npz", "--trust", "--rows", "a"],
            r"'a' is not a row\. Accepted: 0:40",
        ),
        (
            ["script.pt", "split.npz", "--trust", "--freeze", "20:30"],
            r"'20:30' is not a window within 0:24",
        ),
        (
            ["script.pt", "split.npz", "--trust", "--freeze", "ch 1"],
            r"'ch 1' is not understood.*'0:90'",
        ),
        (
            ["script.pt", "split.npz", "--trust", "--bounds", "2:1"],
            r"lowest value, 2, is above the highest, 1",
        ),
        (
            ["script.pt", "split.npz", "--trust", "--bounds", "x=0:1"],
            r"no channel 'x'\. There are channel 0 to 0",
        ),
        (
            ["script.pt", "split.npz", "--trust", "--confidence", "1.5"],
            r"above 0 and below 1, got 1\.5",
        ),
        (["script.pt", "split.npz", "--trust", "--calls", "3"], r"calls=3 is too small"),
        (
            ["script.pt", "split.npz", "--trust", "--reference", "GunPoint"],
            r"shape \(1, 150\), split\.npz of \(1, 24\)",
        ),
        (
            ["script.pt", "split.npz", "--trust", "--report", "why.pdf"],
            r"--report why\.pdf has suffix '\.pdf'",
        ),
        (
            ["script.pt", "split.npz", "--trust", "--report", "no/why.html"],
            r"the folder no does not exist",
        ),
        (["script.pt", "split.npz", "--trust", "--save", "split.npz"], r"would overwrite an input"),
        ([*IRIS, "--method", "CELS"], r"CELS takes series data, not row data"),
        (
            [*IRIS, "--freeze", "sepals"],
            r"'sepals' is not understood.*columns 'sepal l', 'sepal w'",
        ),
        ([*IRIS, "--max-step", "1"], r"--max-step applies to series"),
        ([*IRIS[:-1], "sort"], r"--label 'sort': there is no such column in iris\.csv"),
        ([*IRIS, "--method", "PrototypeCounterfactual"], r"must be a fitted prototype model"),
        (
            ["iris.joblib", "one.csv", "--trust", "--label", "kind"],
            r"one class only \(setosa\)\. Give a --reference",
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
            r"column .sepal w. of X has no value in row .*--fill on the command line",
        ),
        (["iris.joblib", "plain.npz", "--trust"], r"trained on 4 features per row, but X has 24"),
    ],
    ids=lambda value: " ".join(value[-2:]) if isinstance(value, list) else None,
)
def test_errors_are_reported_in_one_line(ask, args, reason):
    told = ask(*args)
    assert told.exit_code == 2 and told.stdout == ""
    error = told.stderr.strip().splitlines()[-1]
    assert error.startswith("Error: ") and re.search(reason, error), told.stderr


def test_faults_of_the_program_are_not_hidden(ask, monkeypatch):
    def broken(*args, **options):
        raise KeyError("a fault")

    monkeypatch.setattr(explain_request, "_explain", broken)
    assert isinstance(ask("script.pt", "split.npz", "--trust").exception, KeyError)
    told = CliRunner().invoke(app, ["--debug", "explain", "nowhere.pt", "split.npz"])
    assert isinstance(told.exception, FileNotFoundError)


def test_stopping_is_quiet(ask, monkeypatch):
    def stopped(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(explain_request, "_explain", stopped)
    told = ask("script.pt", "split.npz", "--trust")
    assert told.exit_code == 130 and told.stderr.endswith("Stopped.\n")


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (["explain", "model.pt"], r"Error: Missing argument 'DATA'\. Help: \S+ explain --help"),
        (["explain", "m", "d", "--k", "x"], r"Error: Invalid value for .*--k.* Help: .*"),
        (["explain", "m", "d", "--no"], r"Error: No such option: --no.* Help: \S+ explain --help"),
        (["explian"], r"Error: No such command 'explian'.* Help: \S+ --help"),
        (["--nothing"], r"Error: No such option: --nothing.* Help: \S+ --help"),
        (["bench", "run"], r"Error: Missing argument '(?i:grid)'\. Help: \S+ bench run --help"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_usage_errors_are_reported_in_one_line(args, line):
    told = CliRunner().invoke(app, args)
    assert told.exit_code == 2 and told.stdout == ""
    assert re.fullmatch(line, told.stderr.strip()), told.stderr


def test_warnings_are_notes_of_one_line(ask, monkeypatch):
    def warned(*args, **options):
        warnings.warn("first line\nsecond line", UserWarning, stacklevel=1)
        raise ValueError("and an error")

    monkeypatch.setattr(explain_request, "_explain", warned)
    told = ask("script.pt", "split.npz", "--trust", "--method", "NearestUnlike")
    assert told.stderr.endswith("Note: first line\nError: and an error\n")
