"""Results in a folder are read lazily, and say the same as a result in one piece."""

import numpy as np
import pandas as pd
import pytest
from scale_samples import check_same, power

import contrafact as cf


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A result in one piece, and the same in seven files."""
    data, model = power()
    folder = tmp_path_factory.mktemp("found")
    options = {"reference": data, "method": "RandomMask", "k": 2, "target": "1"}
    one = cf.explain(model, data.X_test[:64], **options)
    found = cf.explain_dataset(model, data.X_test[:64], folder, chunk=10, **options)
    return one, found


ROWS = [0, -1, slice(None), slice(5, 60, 7), [70, 3, 41, 3], np.array([9, 2]), []]


@pytest.mark.parametrize("rows", ROWS)
def test_rows_are_those_of_a_result_in_one_piece(both, rows):
    one, found = both
    check_same(one[rows], found[rows])


def test_masks_and_wrong_rows(both):
    one, found = both
    assert len(found) == len(one) and found.rows == 64
    check_same(one[one.valid], found[one.valid])
    for rows in (len(one), "first", 1.5):
        with pytest.raises((IndexError, TypeError), match="rows must be"):
            found[rows]


def test_iteration_is_by_file(both):
    one, found = both
    parts = list(found)
    assert len(parts) == 7 and sum(map(len, parts)) == len(one)
    assert parts[1].source.min() == 10 and parts[1].source.max() == 19


def test_the_table_is_that_of_a_result_in_one_piece(both):
    one, found = both
    costs = ["seconds", "calls"]
    pd.testing.assert_frame_equal(
        one.to_frame().drop(columns=costs), found.to_frame().drop(columns=costs), check_dtype=False
    )
    summary = found.summary()
    assert summary["statuses"] == one.to_frame()["status"].value_counts().to_dict()
    assert summary["rows"] == 64 and summary["missing"] == 0
    assert summary["changed_fraction"] == pytest.approx(
        one.changed_fraction[one.status == "valid"].mean()
    )


def test_scores_are_those_of_a_result_in_one_piece(both):
    one, found = both
    data, model = power()
    expected = one.evaluate(reference=data, model=model)
    scores = found.evaluate(reference=data, model=model)
    costs = ["seconds", "calls"]
    pd.testing.assert_frame_equal(
        expected.drop(columns=costs), scores.drop(columns=costs), check_names=False
    )
    assert scores.metrics.keys() == expected.metrics.keys()


def test_a_page_shows_a_sample_and_says_so(both, tmp_path):
    one, found = both
    sample = found.sample(20)
    assert len(sample) == 20 and sample.source[0] == 0 and sample.source[-1] == 63
    text = found.report(tmp_path / "why.html", most=20).read_text()
    assert f"A sample: 20 of {len(one)} counterfactuals, evenly spaced." in text
    assert "A sample" not in found.report(tmp_path / "all.html").read_text()


def test_other_tools_read_the_folder(both):
    one, found = both
    frame = pd.read_parquet(found.folder)
    assert frame["row"].tolist() == one.source.tolist()
    np.testing.assert_array_equal(np.stack(frame["X_cf"]), one.X_cf.reshape(len(one), -1))


def test_what_is_no_folder_of_results_is_refused(tmp_path, both):
    with pytest.raises(FileNotFoundError, match="holds no results of explain_dataset"):
        cf.Counterfactuals.open(tmp_path)
    (tmp_path / "_manifest.json").write_text("{}")
    with pytest.raises(ValueError, match="is damaged or of another version"):
        cf.Counterfactuals.open(tmp_path)


def test_a_run_that_has_finished_nothing_is_empty(tmp_path, both):
    _, found = both
    manifest = found.folder / "_manifest.json"
    (tmp_path / "_manifest.json").write_text(manifest.read_text())
    empty = cf.Counterfactuals.open(tmp_path)
    assert len(empty) == 0 and empty.missing == 64 and len(empty.to_frame()) == 0
    assert repr(empty).endswith("0 rows by RandomMask in 0 files, 64 rows missing>")
    for use in (lambda: empty[:], empty.evaluate, empty.sample):
        with pytest.raises((IndexError, ValueError), match="no finished rows"):
            use()
