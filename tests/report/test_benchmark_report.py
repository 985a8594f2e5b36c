"""A benchmark's page says what the table says, failures first."""

import numpy as np
import pandas as pd
import pytest

from contrafact.benchmark import Cell
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


def test_what_is_asked_for_is_reported(tmp_path):
    frame = table().assign(dtw_lof=1.5, l2=2.0, calls=3.0)
    text = write_benchmark(frame, tmp_path / "page.md", ["dtw_lof", "l1"]).read_text()
    assert "dtw_lof ↓ | calls ↓" in text and "sparsity" not in text
    assert "Asked for, but no finished cell has a value or the direction is unknown: l1" in text
    text = write_benchmark(frame, tmp_path / "page.md").read_text()
    assert "In the table, not on this page: l2, dtw_lof." in text


def test_missing_cells_are_counted_and_are_not_the_worst(tmp_path):
    """The better method is missing where the other is there: it stays first."""
    frame = table()
    rest = frame[(frame["explainer"] == "bad") | (frame["seed"] != 2)]
    text = write_benchmark(rest, tmp_path / "page.md", ["sparsity"]).read_text()
    assert "**Not finished: 2 of 12 cells are missing** (good 2)." in text
    assert "over 2 data sets; p = 0.046 over 4 runs" in text
    cells = [
        Cell(d, "LR", e, s, "", "") for d in "AB" for e in ("good", "bad", "new") for s in range(3)
    ]
    text = write_benchmark(rest, tmp_path / "page.md", ["sparsity"], cells=cells).read_text()
    assert "8 of 18 cells are missing** (good 2, new 6)." in text
    one = frame[(frame["explainer"] == "bad") ^ (frame["dataset"] == "A")]
    assert "No test: fewer than two runs" in write_benchmark(one, tmp_path / "p.md").read_text()


def test_a_grid_in_which_every_cell_failed_has_a_page(tmp_path):
    frame = table().drop(columns=["sparsity", "knn_distance", "accuracy"])
    frame = frame.assign(valid=False, cell_status="error", message="ValueError: no luck")
    text = write_benchmark(frame, tmp_path / "page.md", ["sparsity"]).read_text()
    assert "12 cells failed:" in text and "ValueError: no luck" in text


def test_blocks_are_stated(tmp_path):
    text = write_benchmark(table(), tmp_path / "page.md").read_text()
    assert "Blocks are data sets" in text and "over 2 data sets; p =" in text
    one = table().query("dataset == 'A'")
    text = write_benchmark(one, tmp_path / "page.md").read_text()
    assert "There is one data set, so the blocks are its runs" in text and "over 3 runs" in text


def test_tables_for_other_programs(tmp_path):
    frame = table().replace({"explainer": {"good": "a_b & 50 %"}})
    path = write_benchmark(frame, tmp_path / "page.md", ["sparsity"])
    means = pd.read_csv(tmp_path / "page.csv").set_index(["dataset", "explainer", "metric"])
    own = frame[(frame["dataset"] == "B") & (frame["explainer"] == "bad")]["sparsity"]
    assert means.loc[("B", "bad", "sparsity"), "mean"] == pytest.approx(own.mean())
    assert len(means) == 3 * 2
    latex = (tmp_path / "page.tex").read_text()
    assert latex.count(r"\begin{tabular}") == 3 and r"a\_b \& 50 \% & 0.10" in latex
    assert "## By data set" in path.read_text() and "(page.csv)" in path.read_text()
    with pytest.raises(ValueError, match="must be a Markdown file"):
        write_benchmark(frame, tmp_path / "page.csv")
