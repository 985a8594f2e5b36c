"""Measurements kept line by line in a file, so that an interrupted run goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd


class Notebook:
    """Lines that were measured, in a file; what is there is not measured again.

    Parameters
    ----------
    path : Path
        The file, one JSON object per line.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[dict[str, Any]] = []
        if path.exists():
            self.lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]

    def measure(self, key: dict[str, Any], call: Callable[[], dict[str, Any]]) -> None:
        """Measure what has this key, unless it was."""
        if any(all(line.get(k) == v for k, v in key.items()) for line in self.lines):
            return
        line = {**key, **call()}
        self.lines.append(line)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        print(line, flush=True)

    def frame(self, kind: str) -> pd.DataFrame:
        """Return the lines of a kind."""
        return pd.DataFrame([line for line in self.lines if line["kind"] == kind])
