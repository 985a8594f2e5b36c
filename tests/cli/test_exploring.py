"""`contrafact explore` as a process of its own."""

import os
import signal
import subprocess
import sys

import httpx
import pytest


@pytest.fixture
def started(shelf):
    """Start the command in the folder with the sample files."""
    processes = []

    def start(*args):
        process = subprocess.Popen(
            [sys.executable, "-m", "contrafact", "explore", *args, "--no-open"],
            cwd=shelf,
            env={**os.environ, "CONTRAFACT_TOKEN": "token-for-the-tests"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_it_prints_the_address_answers_and_ends_with_ctrl_c(started):
    process = started("my_model:logistic", "split.npz")
    line = process.stdout.readline()
    assert line.startswith("Explorer: http://127.0.0.1:")
    url = line.split()[1]
    assert url.endswith("/token-for-the-tests/")
    overview = httpx.get(f"{url}api/overview", trust_env=False).json()
    assert overview["instances"]["count"] == 7
    assert overview["data"] == "split.npz, 7 series"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert out == ""
    assert err.rstrip().endswith("Stopped.")


def test_another_host_comes_with_a_warning(started):
    process = started("my_model:logistic", "split.npz", "--host", "0.0.0.0")
    assert "Explorer: http://0.0.0.0:" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert "Warning: --host 0.0.0.0" in err and "not encrypted" in err


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("missing.pt", "split.npz"), "missing.pt"),
        (("my_model:logistic", "missing.npz"), "missing.npz"),
        (("my_model:logistic", "split.npz", "--port", "99999"), "--port"),
        (("my_model:logistic", "split.npz", "--host", "no.such.host.invalid"), "no.such.host"),
        (("logistic.joblib", "split.npz"), "--trust"),
    ],
)
def test_what_cannot_be_used_is_told_in_one_line(ask, args, word):
    told = ask(*args, command="explore")
    assert told.exit_code == 2
    assert word in told.output
    assert "Traceback" not in told.output


def test_help_loads_no_web_library():
    code = "import sys; from contrafact.cli import app; print('fastapi' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert told.stdout.strip() == "False"
