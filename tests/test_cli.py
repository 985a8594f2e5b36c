"""The command line and the demo, as a newcomer meets them."""

import numpy as np
from rich.console import Console
from typer.testing import CliRunner

import contrafact as cf
from contrafact.cli import app
from contrafact.demo import run


def test_lists():
    methods = CliRunner().invoke(app, ["methods"], env={"COLUMNS": "200"})
    datasets = CliRunner().invoke(app, ["datasets"], env={"COLUMNS": "200"})
    assert methods.exit_code == datasets.exit_code == 0
    assert all(name in methods.stdout for name in cf.list_explainers().index)
    assert "GunPoint" in datasets.stdout and "digits" in datasets.stdout


def test_no_command_shows_help():
    assert "demo" in CliRunner().invoke(app, []).output


def test_demo(tmp_path):
    console = Console(record=True, width=120)
    picture = run(tmp_path / "out", n_instances=6, console=console)
    assert picture.read_bytes().startswith(b"\x89PNG")
    stored = cf.Counterfactuals.load(tmp_path / "out" / "counterfactuals.npz")
    assert len(stored) == 6 and stored.valid.all() and set(stored.classes) == {"gun", "point"}
    assert (stored.changed_fraction < 0.5).all()
    text = console.export_text()
    assert "CELS + refine" in text and "6 of 6 series" in text
    accuracy = float(text.split("Test accuracy ")[1].split()[0])
    assert accuracy > 0.9 and np.isfinite(stored.cf_proba).all()


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
    for command in (["run", str(grid), str(folder)], ["resume", str(folder)], ["status", str(folder)]):
        told = CliRunner().invoke(app, ["bench", *command], env=wide)
        assert told.exit_code == 0, told.output
        assert all(f"{name} │ 2    │ 0      │ 0" in told.output for name in ("nearest  ", "line     "))
    told = CliRunner().invoke(app, ["bench", "report", str(folder), "--out", str(page)], env=wide)
    assert told.exit_code == 0 and "| nearest | 1 [1, 1] |" in page.read_text()
