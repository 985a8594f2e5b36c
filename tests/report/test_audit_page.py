"""write_audit: a page with one row for each class."""

import re

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.explainers import ModelAudit
from contrafact.report import write_audit

RNG = np.random.default_rng(0)


def images(n=60):
    """Noise of three channels; class "<b>" has a mark in a corner."""
    X = RNG.random((n, 3, 6, 8))
    y = np.array(["<b>", "dog"])[np.arange(n) % 2]
    X[y == "<b>", :, :2, 6:] = 1.0
    return X, y


@pytest.fixture(scope="module")
def ranking():
    X, y = images()
    model = LogisticRegression(max_iter=200).fit(X.reshape(len(X), -1), y)
    return cf.audit_classes(
        model, X, n_starts=5, window=2, explainer=cf.NearestUnlike().fit(model, X)
    )


def test_the_page_names_the_suspect_and_its_place(ranking, tmp_path):
    page = write_audit(ranking, tmp_path / "audit.html", command="contrafact audit <x>").read_text()
    assert ranking[0].target == "<b>"
    assert "&#x27;&lt;b&gt;&#x27; deserves a look" in page and "<b>" not in page
    assert "rows 0…1, columns 6…7" in page
    assert "contrafact audit &lt;x&gt;" in page
    assert page.count("<tr") == 1 + 2 and len(re.findall('class="alarm"', page)) == 1
    # two maps, and three examples of two pictures, for each class; all of them in the file
    assert page.count("data:image/png;base64,") == 2 * (2 + 3 * 2)
    assert page.count('class="suspect" x="6" y="0" width="2" height="2"') >= 8
    assert not re.search(r'(src|href)="(?!data:)', page)


def test_examples_and_title(ranking, tmp_path):
    page = write_audit(ranking, tmp_path / "a.html", title="Marks & more", examples=0).read_text()
    assert "<h1>Marks &amp; more</h1>" in page
    assert page.count("data:image/png;base64,") == 4 and "<pre>" not in page


def test_series_are_drawn_as_lines(tmp_path):
    X = RNG.normal(size=(40, 1, 12))
    y = np.arange(40) % 2
    X[y == 1, 0, 4:6] = 3.0
    model = LogisticRegression().fit(X[:, 0], y)
    audit = cf.audit_classes(model, X, n_starts=4, window=2)
    page = write_audit(audit, tmp_path / "audit.html", examples=1).read_text()
    assert "t = 4…5" in page and "image/png" not in page
    assert page.count('<path class="before"') == 2 and page.count('<path class="after"') == 6


def test_nothing_reached(tmp_path):
    page = write_audit(ModelAudit([], ["cat"]), tmp_path / "audit.html").read_text()
    assert (
        "no class was reached" in page and "Not reached from any instance: &#x27;cat&#x27;" in page
    )
