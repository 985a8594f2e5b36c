"""`contrafact bench`, from run to report."""

from typer.testing import CliRunner

from contrafact.cli import app


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
