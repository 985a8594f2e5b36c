"""The written lists agree with the methods, and listing imports none of the heavy libraries."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

import contrafact as cf
from contrafact.catalog import METHODS, datasets_text, methods_text

PROBE = """
import sys
import time
from contrafact.__main__ import main
sys.argv = ["contrafact", {argument!r}]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
heavy = [name for name in ("torch", "numpy", "pandas", "sklearn", "rich") if name in sys.modules]
print("heavy:", heavy)
"""


def test_written_methods_are_those_that_exist():
    found = cf.list_explainers().reset_index(names="method").to_dict(orient="records")
    assert [entry._asdict() for entry in METHODS] == found


@pytest.mark.parametrize("argument", ["--help", "methods", "datasets"])
def test_first_answers_import_no_heavy_library(argument):
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(argument=argument)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    *answer, last = done.stdout.splitlines()
    assert last == "heavy: []"
    assert len(answer) > 5


def test_lists_fit_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = f"{methods_text()}\n{datasets_text()}"
    assert max(map(len, text.splitlines())) <= 80
    assert all(entry.method in text for entry in METHODS)


def test_first_answers_come_soon_after_a_bare_python():
    """At most 8 times as long, measured in turns on an idle machine; here with room for others."""
    commands = {
        "bare": ["-c", "pass"],
        **{name: ["-m", "contrafact", name] for name in ("methods", "datasets", "--help")},
    }
    best = dict.fromkeys(commands, 60.0)
    for _ in range(5):
        for name, arguments in commands.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
            best[name] = min(best[name], time.perf_counter() - start)
    bare = best.pop("bare")
    assert all(seconds <= max(16 * bare, 0.3) for seconds in best.values()), (bare, best)
