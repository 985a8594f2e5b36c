"""A benchmark's page says what the table says, failures first."""

import numpy as np
import pandas as pd
import pytest

from contrafact.report import write_benchmark


def table():
    rng = np.random.default_rng(0)
    keys = [
        (d, "LR", e, s, i)
        for d in "AB"
        for e in ("good", "bad")
        for s in (0, 1, 2)
        for i in range(4)
    ]
    frame = pd.DataFrame(keys, columns=["dataset", "classifier", "explainer", "seed", "instance"])
    good = frame["explainer"] == "good"
    return frame.assign(
        source=frame["instance"],
        valid=np.where(good, 1.0, frame["instance"] % 2),
        sparsity=np.where(good, 0.1, 0.5) + 0.01 * rng.random(len(frame)),
        knn_distance=np.where(good, 1.0, 2.0) + rng.random(len(frame)),
        accuracy=0.9,
        cell_status="done",
        message="",
    )


def test_page_and_figures(tmp_path):
    path = write_benchmark(table(), tmp_path / "page.md")
    text = path.read_text()
    assert "| good | 1 [1, 1] |" in text and "| bad | 0.5 [" in text
    assert "No cell failed." in text and "Friedman p" in text
    for name in ("page_valid.png", "page_pareto.png", "page_correlations.png"):
        assert f"({name})" in text and (tmp_path / name).stat().st_size > 1000


def test_failures_are_told_and_lower_the_coverage(tmp_path):
    frame = table()
    lost = (frame["explainer"] == "bad") & (frame["dataset"] == "B")
    frame.loc[lost, ["sparsity", "knn_distance"]] = np.nan
    frame.loc[lost, ["valid", "cell_status", "message"]] = [
        0.0,
        "error",
        "Traceback\nValueError: a | b",
    ]
    text = write_benchmark(frame, tmp_path / "page.md").read_text()
    assert "3 cells failed:" in text and "B, LR, bad, seed 0: error, ValueError: a | b" in text
    assert "(50 %)" in text
    assert "Mean over all requests" in text


def test_means_say_who_was_in_the_target_class_already(tmp_path):
    frame = table()
    already = frame["instance"] == 3
    frame["status"] = np.where(already, "already_target", "valid")
    # Two methods share 2 data sets × 3 seeds × 4 instances.
    text = write_benchmark(frame, tmp_path / "page.md").read_text()
    assert "Mean over 24 instances, 6 of them already in the target class" in text


def test_nothing_finished(tmp_path):
    with pytest.raises(ValueError, match="no cell is finished"):
        write_benchmark(pd.DataFrame(), tmp_path / "page.md")
