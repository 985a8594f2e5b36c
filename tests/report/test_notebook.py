"""What a notebook shows of a result: small, on its own, and text whatever the labels are."""

from __future__ import annotations

import io
import re
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser

import matplotlib
import numpy as np
import pytest
import torch
from PIL import Image

from contrafact.report import plot
from contrafact.report.sentences import outcome, sentence
from hospital import hospital_result

TAGS = {"div", "p", "b", "img", "table", "thead", "tbody", "tr", "th", "td", "code"}


class Fragment(HTMLParser):
    """The elements of a piece of HTML, its texts, and the cells of its table."""

    def __init__(self, result):
        super().__init__()
        self.elements, self.texts, self.lines = [], [], []
        self.in_cell = False
        self.feed(result._repr_html_())

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag == "tr":
            self.lines.append([])
        self.in_cell = tag in ("th", "td")
        if self.in_cell:
            self.lines[-1].append("")

    def handle_endtag(self, tag):
        self.in_cell = False

    def handle_data(self, data):
        self.texts.append(data)
        if self.in_cell:
            self.lines[-1][-1] += data

    @property
    def text(self):
        return "".join(self.texts)

    @property
    def source(self):
        (attributes,) = (found for tag, found in self.elements if tag == "img")
        return attributes["src"]

    @property
    def picture(self):
        data = b64decode(self.source.partition("base64,")[2])
        return Image.open(io.BytesIO(data)).convert("RGB")


def two_classes(n):
    sure = np.tile([0.9, 0.1], (n, 1))
    return sure, sure[:, ::-1]


def small(make, modality, shape, n=8, **other):
    X = np.random.default_rng(0).random((n, *shape))
    X_cf = X.copy()
    X_cf[..., 1:3] += 1
    return make(X, X_cf, *two_classes(n), modality=modality, **other)


KINDS = {"series": (2, 20), "image": (3, 8, 8), "row": (5,)}


@pytest.mark.parametrize("modality", KINDS)
def test_it_has_sentences_a_picture_and_some_rows(make, modality):
    result = small(make, modality, KINDS[modality])
    shown = Fragment(result)
    for words in [*outcome(result), f"row 0: {sentence(result, 0)}", "… and 3 more rows."]:
        assert words in shown.text
    assert shown.picture.width == 900 and len(np.unique(np.asarray(shown.picture))) > 10
    head, *lines = shown.lines
    assert head[1:5] == ["instance", "class before", "class after", "P(wanted class)"]
    assert len(lines) == 5
    assert lines[4][:5] == ["4", "row 4", "'a'", "'b'", "'b': 0.10 → 0.90"]


def test_of_a_row_the_table_says_what_changed(make):
    names = np.array(["age", "weight", "pulse", "cells", "kept"])
    result = small(make, "row", (5,), names=names)
    result.X[0], result.X_cf[0] = 1.0, [1, 2.5, 3, 1, 1]
    changed = Fragment(result).lines[1][5]
    assert changed == "pulse 3 instead of 1; weight 2.5 instead of 1"


def test_a_table_is_shown_by_its_own_words():
    shown = Fragment(hospital_result())
    assert "this row would need bmi 27.1 instead of 31.4; smokes: no instead of yes" in shown.text
    assert shown.lines[1][1] == "row P-1000 (option 1 of 2)"
    assert "more row" not in shown.text
    assert shown.lines[4][6] == "not reached (invalid): best P('low risk') = 0.01"


def test_tensors_are_shown_as_arrays_are(make):
    result = small(make, "row", (5,))
    tensors = replace(result, X=torch.from_numpy(result.X), X_cf=torch.from_numpy(result.X_cf))
    assert tensors._repr_html_() == result._repr_html_()


def test_nothing_is_shown_of_an_empty_result(series):
    shown = Fragment(series[[]])
    assert [tag for tag, _ in shown.elements] == ["div", "p", "b"]
    assert shown.text.endswith(": Nothing was asked.")


def test_the_picture_is_of_a_row_that_reached_its_class(series):
    shown = Fragment(series[[2, 1, 0]])  # already there, failed, reached
    assert f"row 12: {sentence(series, 0)}" in shown.text
    assert f"row 14: {sentence(series, 1)}" in Fragment(series[[2, 1]]).text
    assert f"row 17: {sentence(series, 2)}" in Fragment(series[[2]]).text


def test_every_row_says_how_it_ended(series, silent):
    assert [line[6] for line in Fragment(series).lines[1::2]] == ["valid", "already_target"]
    remark = replace(series, message=np.array(["by a hair", "", ""]))
    assert Fragment(remark).lines[1][6] == "valid: by a hair"
    assert "not reached (infeasible): with a frozen window" in Fragment(series).lines[2][6]
    lines = Fragment(silent).lines[1:]
    assert all(line[6].startswith("not reached (error)") for line in lines)
    assert lines[0][4] == "'point': 0.03 → unknown"


HOSTILE = [
    "<script>alert(1)</script>",
    "</td></table></div><img src=x onerror=alert(2)>",
    '"><svg onload=alert(3)>',
    "'; $x^2$ & &amp; \u202e\x00\n" + "y" * 500,
    "<style>*{display:none}</style>",
]


def test_text_stays_text(make):
    result = small(
        make,
        "row",
        (5,),
        classes=HOSTILE[:2],
        names=np.array(HOSTILE),
        message=np.repeat(HOSTILE[0], 8),
        provenance={"method": "<iframe src=//x>"},
    )
    result.X_cf[:] = result.X + 1
    shown = Fragment(result)
    assert {tag for tag, _ in shown.elements} == TAGS
    attributes = {name for _, found in shown.elements for name in found}
    assert attributes == {"class", "style", "alt", "src"}
    assert shown.source.startswith("data:image/")
    assert "<iframe src=//x>" in shown.text and repr(HOSTILE[0]) in shown.lines[1][2]
    assert not re.search("[\u202e\x00]", shown.text)
    # Notebooks look for formulas between dollars, but not in elements of these classes.
    assert shown.elements[0][1]["class"] == "tex2jax_ignore mathjax_ignore"


def test_a_thousand_rows_are_small(make):
    shown = small(make, "series", (1, 500), n=1000)
    assert len(shown._repr_html_()) < 200_000
    assert "… and 995 more rows." in Fragment(shown).text


def test_photographs_are_small(make):
    result = small(make, "image", (3, 224, 224), n=2)
    result.X_cf[:] = result.X[::-1]
    assert Fragment(result).source.startswith("data:image/jpeg")
    assert len(result._repr_html_()) < 200_000


def test_the_style_of_the_user_does_not_matter(series):
    usual = series._repr_html_()
    with matplotlib.style.context("dark_background"):
        before = dict(dict.items(matplotlib.rcParams))
        assert series._repr_html_() == usual
        assert dict(dict.items(matplotlib.rcParams)) == before


def test_a_figure_is_shown_without_a_backend(series):
    picture = Image.open(io.BytesIO(plot(series, 0)._repr_png_()))
    assert picture.format == "PNG" and picture.width == 1000
