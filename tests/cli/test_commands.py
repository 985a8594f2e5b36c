"""Lists and help."""

import json

from sample_files import WIDE
from typer.testing import CliRunner

import contrafact as cf
from contrafact.cli import app


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
