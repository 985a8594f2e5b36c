"""Files to read, and the command line to read them with."""

import json
import sys
from pathlib import Path

import pytest
from sample_files import WIDE, write_sample_files
from typer.testing import CliRunner

from contrafact.cli import app


@pytest.fixture(scope="session")
def shelf(tmp_path_factory) -> Path:
    """A folder with the sample files."""
    folder = tmp_path_factory.mktemp("shelf")
    write_sample_files(folder)
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
