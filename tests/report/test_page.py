"""The page before any script runs: complete, and safe whatever the names are."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser

import numpy as np
import pytest

from contrafact import Constraints
from contrafact.report import payload, sections, write_report
from contrafact.report.words import percent_text


class Page(HTMLParser):
    """Tags, attributes and text of a page; every tag must be closed."""

    VOID = ("meta", "link")

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.words, self.open = [], [], "", []
        self.inside = {"script": [], "style": []}
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in self.inside:
            self.inside[self.open[-1]].append(data)
        else:
            self.words += data

    @property
    def payload(self):
        return json.loads(self.inside["script"][0])


@pytest.fixture
def read(tmp_path):
    def write_and_read(results, **options):
        path = write_report(results, tmp_path / "report.html", **options)
        return Page(path.read_text(encoding="utf-8"))

    return write_and_read


def test_summary_counts_everyone(series, read):
    found = read(series)
    assert "3 series of 20 time steps in 2 channels · CELS" in found.words
    assert (
        "1 of 2 now get the class that was asked for. 1 had it already and was left" in found.words
    )
    assert "Typical change: 12 % of the values, in 3 stretches" in found.words
    assert "1 did not reach the class asked for" in found.words
    assert (
        "row 14: not reached (infeasible): with a frozen window; best P('point') = 0.44"
        in found.words
    )
    assert '"seed": 0' in found.words
    assert "Methods side by side" not in found.words
    assert len(found.payload["instances"]) == 3


def test_the_browser_may_load_nothing_and_run_only_this(series, read):
    found = read(series)
    (policy,) = (
        value for name, value in found.attributes if name == "content" and "default-src" in value
    )
    hashes = {
        name: b64encode(sha256(text.encode()).digest()).decode()
        for name, text in (
            ("script", found.inside["script"][1]),
            ("style", found.inside["style"][0]),
        )
    }
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashes['style']}'; "
        f"script-src 'sha256-{hashes['script']}'; img-src data:"
    )
    assert [value for name, value in found.attributes if name in ("src", "href")] == ["data:,"]


def test_names_labels_and_messages_stay_text(series, read):
    evil = "\"'><script>alert(1)</script><!--"
    result = replace(
        series,
        classes=np.array(["gun", evil]),
        target=np.repeat(evil, 3),
        cf_labels=np.array([evil, "gun", evil]),
        labels=np.array(["gun", "gun", evil]),
        message=np.repeat(evil, 3),
        names=np.array([evil, evil]),
        provenance={"method": evil, evil: evil},
    )
    clean, dirty = read(series, title="t", command="c"), read(result, title=evil, command=evil)
    assert dirty.tags == clean.tags
    assert [name for name, _ in dirty.attributes] == [name for name, _ in clean.attributes]
    assert dirty.words.count(evil) >= 4
    assert dirty.payload["names"][0].startswith("\"'><script>")


@pytest.mark.parametrize("title", ["\ud800", "\x00", "\u2028", "שלום", "🙂" * 10_000])
def test_any_title_can_be_written(series, read, title):
    assert "Summary" in read({title: series}, title=title, command=title).words


def test_methods_are_compared(series, read):
    quick = replace(
        series,
        seconds=np.zeros(3),
        valid=np.ones(3, dtype=bool),
        status=np.array(["valid", "valid", "already_target"]),
        cf_labels=series.target,
    )
    found = read({"slow": series, "quick": quick})
    assert (
        "quick reaches the class asked for most often (100 %), changing 12 % of the values "
        "(means over 3 instances, 1 of them already in the target class)." in found.words
    )
    found = read({"one": series, "two": replace(series, X_cf=series.X)})
    assert (
        "Both methods reach the class asked for equally often (67 %); of these two changes"
        in found.words
    )
    assert "Methods side by side" in found.words
    assert "P(c | x')" in found.words
    assert (
        "Means over 3 instances, 1 of them already in the target class; failures included"
        in found.words
    )


def test_means_of_methods_that_had_other_instances_in_the_target_class(series, read):
    other = replace(series, status=np.array(["valid", "infeasible", "valid"]))
    words = read({"one": series, "two": other}).words
    assert "one: over 3 instances, 1 of them already in the target class; two: over 3" in words


def test_one_quantity_has_one_name_and_one_text(series, read):
    found = read(series)
    assert "changed ↓" in found.words
    assert "sparsity ↓" not in found.words
    mean = percent_text(float(series.changed_fraction.mean()))
    assert mean in found.words
    titles = [value for name, value in found.attributes if name == "title"]
    assert any(title.startswith("sparsity: ") for title in titles)


def test_the_best_mean_is_bold_and_so_is_what_reads_the_same(series, read):
    slower = replace(series, seconds=series.seconds + 1e-9, calls=series.calls + 100)
    found = read({"one": series, "two": slower})
    cells = [value for name, value in found.attributes if name == "class" and "number" in value]
    assert cells.count("number best") == 2 * 7 + 1


def test_names_that_read_the_same_once_shortened_are_numbered(series, read):
    names = ["x" * 60 + "a", "x" * 60 + "b", " "]
    found = read(dict.fromkeys(names, series))
    assert found.payload["methods"] == ["x" * 59 + "…", "x" * 59 + "… (2)", "unnamed"]
    assert len(found.payload["instances"][0]["answers"]) == 3


def test_models_of_different_classes_are_refused(series, read):
    other = replace(series, classes=np.array(["point", "gun"]))
    with pytest.raises(ValueError, match=r"'b' answer for models of different classes: \['gun'"):
        read({"a": series, "b": other})


def test_limits_are_counted(series, read):
    found = read(series, constraints=Constraints(frozen=np.arange(20) > 17))
    assert "4 of 40 values frozen" in found.words
    assert "2 of 3" in found.words
    assert "Constraints" not in read(series, constraints=Constraints()).words
    asked = replace(series, provenance={"options": {"constraints": ["bounds"]}})
    assert "In force: bounds. Not checked again here." in read(asked).words


def test_a_metric_that_is_missing_everywhere(series, silent, read):
    found = read({"heard": series, "silent": silent})
    assert "– where the model could not be asked" in found.words
    assert "nan" not in found.words.lower().split()


def test_what_is_left_out_is_said(series, read, monkeypatch):
    monkeypatch.setattr(payload, "MOST_CHARACTERS", 1)
    assert (
        "2 instances are listed without a picture, to keep this file small." in read(series).words
    )
    assert "1 instance is listed without" in read(series[:2]).words
    monkeypatch.undo()
    assert "without a picture" not in read(series).words


def test_many_reasons(series, read, monkeypatch):
    monkeypatch.setattr(sections, "MOST_REASONS", 1)
    messages = np.array(["too far", "too near", "too far"])
    failed = replace(
        series,
        valid=np.zeros(3, bool),
        status=np.repeat("invalid", 3),
        cf_labels=np.repeat("gun", 3),
        message=messages,
    )
    found = read(failed)
    assert "row 12, row 17: not reached (invalid): too far" in found.words
    assert "and 1 more, see the table" in found.words
    assert "Typical change" not in found.words


def test_long_provenance_is_cut(series, read):
    found = read(replace(series, provenance={"method": "m", "note": "x" * 30_000}))
    assert "more characters" in found.words
    assert len(found.words) < 25_000


@pytest.mark.parametrize("results", [1, 2])
def test_empty_result(series, read, results):
    empty = {str(n): series[:0] for n in range(results)}
    found = read(empty, reference=series.X, constraints=Constraints(lower=0.0, max_step=1.0))
    assert "Nothing was asked." in found.words
    assert found.payload["instances"] == []


@pytest.mark.parametrize(
    ("modality", "shape", "scope"),
    [
        ("series", (4,), "1 series of 4 time steps ·"),
        ("image", (1, 4, 5), "1 image of 4 × 5 pixels ·"),
        ("image", (3, 4, 5), "1 image of 4 × 5 pixels in 3 channels ·"),
        ("row", (1,), "1 row of 1 feature ·"),
    ],
)
def test_every_modality(make, read, modality, shape, scope):
    X = np.zeros((1, *shape))
    found = read(make(X, X + 1, [[0.75, 0.25]], [[0.25, 0.75]], modality=modality))
    assert scope in found.words
    values = "pixels visibly" if modality == "image" else "values"
    assert f"Typical change: 100 % of the {values}" in found.words


def test_result_writes_its_own(series, tmp_path):
    path = series.report(str(tmp_path / "again.html"), title="Why?")
    assert path == tmp_path / "again.html"
    assert (
        path.read_bytes() == write_report(series, tmp_path / "same.html", title="Why?").read_bytes()
    )
