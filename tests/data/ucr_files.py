"""Small datasets, and writers of the file formats of the UCR archive."""

from pathlib import Path

import numpy as np

X = np.array([[[0.5, -1.25, 3.0]], [[2.0, 4.0, 8.0]], [[1.0, 1.0, -7.5]], [[0.0, 9.0, 2.0]]])
NAN = float("nan")


def write_ts(path: Path, series: list[np.ndarray], labels: list[str], header: str = "") -> None:
    lines = [":".join(",".join(map(str, channel)) for channel in x) for x in series]
    declared = (
        f"@univariate false\n{header}@classLabel true {' '.join(sorted(set(labels)))}\n@data\n"
    )
    rows = "".join(f"{line}:{label}\n" for line, label in zip(lines, labels, strict=True))
    path.write_text(declared + rows.replace("nan", "?"))


def write_table(path: Path, series: np.ndarray, labels: list[str], between: str) -> None:
    rows = ([label, *map(str, x[0])] for x, label in zip(series, labels, strict=True))
    path.write_text("\n".join(between.join(row) for row in rows))
