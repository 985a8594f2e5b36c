"""A real browser that is offline, and fails a test that makes it complain or ask for anything."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.engine.result import Counterfactuals
from contrafact.report import write_report

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser():
    """One browser per worker."""
    found = os.environ.get("CONTRAFACT_BROWSER") or next(
        filter(None, map(shutil.which, BROWSERS)), None
    )
    if found is None:
        reason = (
            f"no browser: none of {', '.join(BROWSERS)} is on the path. Install one "
            "(Debian: apt install chromium) or name it in CONTRAFACT_BROWSER."
        )
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def visit(browser):
    """Open a page in a fresh, offline context; it may fetch nothing and complain of nothing."""
    contexts, complaints = [], []

    def opened(path, fragment="", width=1280, height=900, ready=".detail > *", **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        context.set_offline(True)
        context.set_default_timeout(10_000)
        page = context.new_page()

        def judge(route):
            if route.request.url.split("#")[0] != path.as_uri():
                complaints.append(f"asked for {route.request.url}")
            route.continue_()

        context.route("**/*", judge)
        page.on(
            "console",
            lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None,
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.goto(path.as_uri() + fragment)
        page.wait_for_selector(ready)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def enter(browser, own_warning_filters):
    """Open the page of a running explorer; it may ask its own server alone and complain of nothing.

    What the browser itself notes of answers that are errors counts only if it is not expected.
    """
    contexts, complaints = [], []

    def opened(url, fragment="", width=1280, height=900, expected=None, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        context.set_default_timeout(10_000)
        page = context.new_page()
        server = url.split("/")[2]

        def judge(request):
            if not request.url.startswith(("blob:", "data:")) and server not in request.url:
                complaints.append(f"asked for {request.url}")

        def hear(message):
            is_expected = expected is not None and expected in message.text
            if message.type in ("error", "warning") and not is_expected:
                complaints.append(message.text)

        page.on("request", judge)
        page.on("console", hear)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.goto(url + fragment)
        page.wait_for_selector(".says strong")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


def made(X, X_cf, modality, *, classes=("gun", "point"), valid=True, **other):
    """A result written by hand: half of the rows have each class, and all want the other."""
    n = len(X)
    classes = np.array(classes)
    before = np.arange(n) % 2
    after = 1 - before if valid else before
    sure = np.linspace(0.6, 0.9, n)
    proba, cf_proba = np.full((2, n, len(classes)), 0.0)
    rows = np.arange(n)
    proba[rows, before], proba[rows, 1 - before] = sure, 1 - sure
    cf_proba[rows, after], cf_proba[rows, 1 - after] = sure[::-1], 1 - sure[::-1]
    fields = {
        "source": np.arange(n) + 100,
        "status": np.repeat("valid" if valid else "invalid", n),
        "message": np.repeat("" if valid else "no way", n),
        "provenance": {"method": "Hand"},
    }
    return Counterfactuals(
        X=X,
        X_cf=X_cf,
        labels=classes[before],
        cf_labels=classes[after],
        target=classes[1 - before],
        proba=proba,
        cf_proba=cf_proba,
        valid=np.full(n, valid),
        seconds=np.full(n, 0.25),
        calls=np.arange(n) + 1,
        classes=classes,
        modality=modality,
        **fields | other,
    )


def changed(X, share=0.3, seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.random(X.shape) < share, X + rng.normal(size=X.shape), X)


@pytest.fixture(scope="session")
def univariate(folder):
    """Two methods on real series: (page, results, reference)."""
    data = cf.load_dataset("GunPoint")
    known, labels = data.X_train, np.array(["gun", "point"])[(data.y_train == "2").astype(int)]
    model = LogisticRegression(max_iter=200).fit(known[:, 0], labels)
    limits = cf.Constraints(lower=-2.5, upper=2.0, frozen=np.arange(150) < 20)
    ask = {"constraints": limits, "k": 2}
    results = {
        "CELS": cf.CELS(max_iter=20).fit(model, known, labels).explain(data.X_test[:8], **ask),
        "LineSearch": cf.LineSearch()
        .fit(model, known, labels)
        .explain(data.X_test[:8], constraints=limits),
    }
    path = write_report(
        results,
        folder / "univariate.html",
        reference=(known, labels),
        constraints=limits,
        command="again",
    )
    return path, results, known


@pytest.fixture(scope="session")
def multivariate(folder):
    """Four channels with names; the second method fails, and leaves one row alone."""
    X = np.random.default_rng(1).normal(size=(5, 4, 30))
    X_cf = X.copy()
    X_cf[:, 1] = changed(X[:, 1])
    names = np.array(["acc x", "acc y", "acc z", "gyro"])
    good = made(X, X_cf, "series", names=names, info={"saliency": np.abs(X_cf - X)})
    bad = made(X, changed(X), "series", valid=False, names=names)
    bad.cf_proba[1] = np.nan
    bad.X_cf[2] = X[2]
    bad = replace(
        bad,
        target=np.where(np.arange(5) == 2, bad.labels, bad.target),
        valid=np.arange(5) == 2,
        status=np.array(["invalid", "error", "already_target", "budget", "infeasible"]),
    )
    results = {"good": good, "bad": bad}
    return write_report(results, folder / "multivariate.html"), results


@pytest.fixture(scope="session")
def images(folder):
    """Gray and color, one method each."""
    pages = {}
    for channels in (1, 3):
        X = np.random.default_rng(2).random(size=(4, channels, 8, 8))
        result = made(
            X, changed(X, 0.1), "image", info={"saliency": X, "guide_index": np.arange(4)}
        )
        path = write_report(result, folder / f"image{channels}.html", reference=X[::-1].copy())
        pages[channels] = (path, result)
    return pages


@pytest.fixture(scope="session")
def rows(folder):
    """A table with column names and a frozen column."""
    X = np.random.default_rng(3).normal(size=(6, 5)) * [1, 10, 100, 1e4, 1e-2]
    X_cf = changed(X, 0.5)
    X_cf[:, 4] = X[:, 4]
    result = made(X, X_cf, "row", names=np.array(["age", "weight", "pulse", "cells", "kept"]))
    limits = cf.Constraints(frozen=np.arange(5) == 4)
    return write_report(result, folder / "rows.html", constraints=limits), result


@pytest.fixture(scope="session")
def every(univariate, multivariate, images, rows):
    """A page of each kind."""
    return {
        "univariate": univariate[0],
        "multivariate": multivariate[0],
        "gray": images[1][0],
        "color": images[3][0],
        "rows": rows[0],
    }


@pytest.fixture
def hand():
    """`made` and `changed`, for tests that build their own."""
    return made, changed
