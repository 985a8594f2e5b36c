"""The demo, and the next step that it offers."""

import shlex

from rich.console import Console
from typer.testing import CliRunner

from contrafact.cli import app
from contrafact.demo import run


def test_demo(tmp_path):
    console = Console(record=True, width=300)
    report = run(tmp_path / "out", n_instances=6, console=console)
    page = report.read_text(encoding="utf-8")
    assert "Graft (lasting)" in page and "CELS (refined)" in page
    for picture in ("counterfactuals.png", "methods.png"):
        assert (tmp_path / "out" / picture).read_bytes().startswith(b"\x89PNG")
    text = console.export_text()
    assert "6 of 6 days now read as the other half of the year" in text
    assert float(text.split("Test accuracy ")[1].split()[0]) > 0.9
    # The next step that it offers works.
    command = shlex.split(text.partition("contrafact explain ")[2].partition("\n")[0])
    told = CliRunner().invoke(app, ["explain", *command, "--rows", "0:3"])
    assert told.exit_code == 0 and (tmp_path / "out" / "mine.html").exists(), told.output
