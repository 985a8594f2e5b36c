"""A model whose moods tests choose, and hands for the explorer's page."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager

import numpy as np
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.web.explorer import explore

CLASSES = np.array(["summer", "winter"])


class Moody:
    """Logistic regression that is slow or fails when a test says so."""

    def __init__(self, X, y):
        self.inner = LogisticRegression(max_iter=500).fit(X.reshape(len(X), -1), y)
        self.classes_ = self.inner.classes_
        self.seconds = 0.0
        self.reason = ""

    def predict_proba(self, X):
        time.sleep(self.seconds)
        if self.reason:
            raise RuntimeError(self.reason)
        return self.inner.predict_proba(np.asarray(X).reshape(len(X), -1))

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(1)]

    def percent(self, values, label):
        """What the page has to show for an instance."""
        p = self.predict_proba(np.array(values)[None])[0][list(self.classes_).index(label)]
        if 0.005 <= p <= 0.995:
            return f"{int(np.floor(100 * p + 0.5))} %"
        return "<1 %" if p < 0.5 else ">99 %"


def power_demand():
    """Days of 24 hours, their half of the year, and a model of them."""
    data = cf.load_dataset("ItalyPowerDemand")
    known, labels = data.X_train, CLASSES[(data.y_train == "1").astype(int)]
    model = Moody(known, labels)
    days = data.X_test[:200]
    truth = CLASSES[(data.y_test[:200] == "1").astype(int)]
    return model, (days, truth), (known, labels)


@contextmanager
def running(model, data, reference=None, **options):
    """Run an explorer that has finished what it does at the start."""
    explorer = explore(model, data, reference=reference, **options)
    try:
        explorer._app.workspace.known.complete.wait(20)
        from contrafact.web.methods import MethodChoice

        explorer._app.methods.fitted(MethodChoice())
        yield explorer
    finally:
        explorer.stop()


class Asked:
    """The questions that a page sends."""

    def __init__(self, page):
        self.sent = []
        page.on("request", self._note)

    def _note(self, request):
        if request.method == "POST":
            self.sent.append((request.url.split("/api/")[1], json.loads(request.post_data)))

    def of(self, kind):
        return [content for name, content in self.sent if name == kind]

    def last(self, kind):
        return self.of(kind)[-1]


def shown(page, label):
    """Return the probability of a class that the page shows."""
    line = page.locator(".probabilities .class").filter(has_text=label)
    return line.locator(".caption > span").last.inner_text()


def spot(page, across, down, what=".editor .chart svg"):
    """Return a place of the chart in pixels, by shares of its size."""
    page.locator(what).first.scroll_into_view_if_needed()
    box = page.locator(what).first.bounding_box()
    return box["x"] + across * box["width"], box["y"] + down * box["height"]


def drag(page, start, stop, steps=8, what=".editor .chart svg"):
    """Drag from one place of the chart to another."""
    start, stop = spot(page, *start, what), spot(page, *stop, what)
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*stop, steps=steps)
    page.mouse.up()


def pick(page, name):
    page.get_by_label(name, exact=True).check()


def settled(page, condition, *, seconds=8.0):
    """Wait until a condition holds; the page's policy forbids Playwright's own way."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        page.wait_for_timeout(20)


def rested(page, asked):
    """Wait until the page shows the answer to its last question about values."""
    bars = page.locator(".probabilities")
    settled(
        page,
        lambda: (
            asked.of("predict")
            and bars.get_attribute("data-tag") == str(asked.last("predict")["tag"])
        ),
    )


def ask(page):
    """Press the button and wait for the answer."""
    page.get_by_role("button", name="What would change the decision?").click()
    page.wait_for_selector(".way .told")
