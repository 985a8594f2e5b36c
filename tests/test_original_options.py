"""The table of the originals' options: every line names a test that is there."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "papers.md"


def test_every_line_names_a_test_that_exists():
    section = PAGE.read_text().split("## Options of the originals")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ") and "---" not in line]
    lines = [line for line in lines if line != "| original | here | test |"]
    assert len(lines) > 35
    for line in lines:
        *_, cell, _ = line.split("|")
        name, test = re.fullmatch(r" `(.*)::(.*)` ", cell).groups()
        assert f"def {test}(" in (TESTS / name).read_text(), line
