"""The page: complete, honest about what it leaves out, and safe whatever the labels are."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

from contrafact.report import page, write_report


class Page(HTMLParser):
    """Tags, attributes and text of a page; every tag must be closed."""

    VOID = ("meta", "img")

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.words, self.open = [], [], "", []
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
        self.words += data


def read(result, tmp_path):
    path = write_report(result, tmp_path / "report.html")
    return Page(path.read_text(encoding="utf-8"))


def test_summary_counts_everyone(series, tmp_path):
    found = read(series, tmp_path)
    assert "3 counterfactuals by CELS" in found.words
    assert "1 of 2 now get the class that was asked for. 1 had it already" in found.words
    assert "Typical change: 12 % of the values, in 3 stretches" in found.words
    assert "row 14: not reached (infeasible): with a frozen window; best P('point') = 0.44" in found.words
    assert found.tags.count("img") == 3
    assert found.tags.count("tr") == 4
    assert '"seed": 0' in found.words


def test_nothing_is_fetched_and_nothing_runs(series, tmp_path):
    found = read(series, tmp_path)
    assert {"script", "link", "iframe"}.isdisjoint(found.tags)
    assert all(value.startswith("data:") for name, value in found.attributes if name in ("src", "href"))
    assert "prefers-color-scheme: dark" in found.words


def test_labels_messages_and_methods_are_escaped(series, tmp_path):
    evil = "\"'><script>alert(1)</script>"
    classes = np.array(["gun", evil])
    result = replace(
        series,
        classes=classes,
        target=np.repeat(evil, 3),
        cf_labels=np.array([evil, "gun", evil]),
        labels=np.array(["gun", "gun", evil]),
        message=np.repeat(evil, 3),
        provenance={"method": evil, evil: evil},
    )
    clean, dirty = read(series, tmp_path), read(result, tmp_path)
    # Row 0 has a message now, which is text: the tags stay as they were.
    assert dirty.tags == clean.tags
    assert {name for name, _ in dirty.attributes} == {name for name, _ in clean.attributes}
    assert "<script>" not in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert evil in dirty.words


def test_what_is_left_out_is_said(series, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "MOST_PLOTS", 2)
    monkeypatch.setattr(page, "MOST_LINES", 1)
    found = read(series, tmp_path)
    assert found.tags.count("img") == 2
    assert "1 more rows are not drawn" in found.words
    assert "The first 1 rows; 2 more are left out" in found.words
    pictures = [value for name, value in found.attributes if name == "alt"]
    assert [text.split(":")[0] for text in pictures] == ["row 12", "row 17"]


def test_many_reasons(series, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "MOST_PLOTS", 0)
    monkeypatch.setattr(page, "MOST_REASONS", 1)
    messages = np.array(["too far", "too near", "too far"])
    found = read(
        replace(series, valid=np.zeros(3, bool), status=np.repeat("invalid", 3), message=messages), tmp_path
    )
    assert "row 12, row 17: not reached (invalid): too far" in found.words
    assert "and 1 more, see the table" in found.words
    assert "Typical change" not in found.words


def test_empty_result(series, tmp_path):
    found = read(series[:0], tmp_path)
    assert "0 of 0 now get the class" in found.words
    assert "img" not in found.tags


@pytest.mark.parametrize("modality", ["image", "row"])
def test_other_modalities(make, modality, tmp_path):
    X = np.zeros((1, 1, 4, 4) if modality == "image" else (1, 4))
    result = make(X, X + 1, [[0.75, 0.25]], [[0.25, 0.75]], modality=modality)
    found = read(result, tmp_path)
    assert "Typical change: 100 % of the values" in found.words
    assert ("in 1 region" in found.words) == (modality == "image")


def test_result_writes_its_own(series, tmp_path):
    path = series.report(str(tmp_path / "again.html"))
    assert path == tmp_path / "again.html"
    assert Page(path.read_text(encoding="utf-8")).words == read(series, tmp_path).words
