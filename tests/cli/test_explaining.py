"""`contrafact explain` as a process."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import contrafact as cf

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")


def test_a_process_pipes_json_alone(shelf):
    contrafact = Path(sys.executable).with_name("contrafact")
    command = [contrafact, "explain", "my_model:logistic", "split.npz", "--json"]
    told = subprocess.run(command, capture_output=True, text=True, cwd=shelf)
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["methods"][0]["reached"] == 7
    assert (
        "a model may print what it likes" in told.stderr and "Explaining with Graft" in told.stderr
    )
    told = subprocess.run([contrafact, "--version"], capture_output=True, text=True)
    assert told.stdout == f"contrafact {cf.__version__}\n"
