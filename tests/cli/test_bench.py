"""`contrafact bench`, from run to report."""

import pytest
from typer.testing import CliRunner

from contrafact.cli import app


def test_bench_from_run_to_report(tmp_path):
    grid, folder, page = tmp_path / "grid.toml", tmp_path / "cells", tmp_path / "page.md"
    grid.write_text(
        """
        datasets = ["ItalyPowerDemand"]
        seeds = [0, 1]
        instances = 3
        metrics = ["valid", "l2", "dtw_lof"]
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
    assert "dtw_lof ↓" in page.read_text() and page.with_suffix(".tex").exists()
    assert "nearest,dtw_lof," in page.with_suffix(".csv").read_text()

    # What is missing or damaged is told, and blocks nothing.
    one, other, *_ = sorted((folder / "cells").glob("*.parquet"))
    one.unlink()
    other.write_bytes(b"half")
    told = CliRunner().invoke(app, ["bench", "report", str(folder), "--out", str(page)], env=wide)
    assert told.exit_code == 0 and "**Not finished: 2 of 4 cells are missing**" in page.read_text()
    told = CliRunner().invoke(app, ["bench", "status", str(folder)], env=wide)
    assert told.exit_code == 0 and f"1 damaged cell: {other}" in told.output


def test_failed_cells_are_told_with_their_reasons(tmp_path):
    grid = tmp_path / "grid.toml"
    grid.write_text(
        """
        datasets = ["ItalyPowerDemand"]
        instances = 3
        time_limit = 0.001
        classifiers.LR = "sklearn.linear_model:LogisticRegression"
        explainers.nearest = "NearestUnlike"
        explainers.line = "LineSearch"
        """
    )
    told = CliRunner().invoke(app, ["bench", "run", str(grid), str(tmp_path / "cells")])
    assert told.exit_code == 1
    text = " ".join(told.output.split())
    assert "2 × the classifier could not be trained: ended after 0.001 seconds" in text
    page = tmp_path / "page.md"
    report = ["bench", "report", str(tmp_path / "cells"), "--out", str(page)]
    assert CliRunner().invoke(app, report).exit_code == 0
    assert "2 cells failed:" in page.read_text()


@pytest.mark.parametrize("command", [["status"], ["resume"], ["report", "--out", "page.md"]])
def test_a_folder_that_is_not_there_is_not_made(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = CliRunner().invoke(app, ["bench", *command[:1], "none", *command[1:]])
    assert told.exit_code == 2 and "The folder none does not exist." in told.output
    assert not any(tmp_path.iterdir())


def test_a_mistake_in_the_grid_is_told_before_anything_runs(tmp_path):
    grid = tmp_path / "grid.toml"
    grid.write_text(
        """
        datasets = ["ItalyPowerDemand"]
        metrics = ["sparsty"]
        classifiers.LR = "sklearn.linear_model:LogisticRegression"
        explainers.line = "LineSearch"
        """
    )
    told = CliRunner().invoke(app, ["bench", "run", str(grid), str(tmp_path / "cells")])
    assert told.exit_code == 2 and "Did you mean 'sparsity'?" in told.output
    assert not (tmp_path / "cells").exists()


def test_sensitivity_prints_effects_and_keeps_the_runs(tmp_path):
    out = tmp_path / "runs.csv"
    command = ["bench", "sensitivity", "ItalyPowerDemand", "CELS", "--instances", "3"]
    vary = ["--vary", "threshold=0.3,0.5,0.7", "--vary", "init=small,uniform"]
    more = ["--vary", "max_iter=3,6,9", "--metric", "sparsity", "--out", str(out)]
    told = CliRunner().invoke(app, [*command, *vary, *more], env={"COLUMNS": "200"})
    assert told.exit_code == 0, told.output
    assert "CELS: means over 9 runs" in told.output and "threshold × max_iter" in told.output
    assert "uniform" in told.output and "%" in told.output
    lines = out.read_text().splitlines()
    assert lines[0] == "threshold,init,max_iter,sparsity" and len(lines) == 10
    told = CliRunner().invoke(app, [*command, "--vary", "tau=0.5"])
    assert told.exit_code == 2 and "is not understood. Accepted: NAME=VALUE" in told.output
    told = CliRunner().invoke(app, [*command, "--vary", "tau=0.5,0.6", "--vary", "tau=0.7,0.8"])
    assert told.exit_code == 2 and "--vary names 'tau' twice" in told.output
