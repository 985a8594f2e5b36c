"""The explorer's page when things go wrong: hostile names, failing models, servers that vanish."""

import numpy as np
import pytest
from explorer_driving import Asked, Moody, ask, drag, power_demand, rested, running, settled, shown
from sklearn.linear_model import LogisticRegression

HOSTILE = "<img src=x onerror=alert(1)>"
NAMES = ["<script>alert(2)</script>", '"><svg onload=alert(3)>']
PLAIN = "<b>plain</b>" + "x" * 40
TOKEN = "explorer-of-the-tests"


@pytest.fixture(scope="module")
def demand():
    model, data, reference = power_demand()
    with running(model, data, reference) as explorer:
        yield explorer, model


def test_names_are_text_and_never_markup(enter):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2, 12))
    y = np.where(X.mean((1, 2)) > 0, HOSTILE, PLAIN)
    model = LogisticRegression().fit(X.reshape(40, -1), y)
    with running(model, (X, y), names=NAMES) as explorer:
        page = enter(explorer.url)
        ask(page)
        page.get_by_role("button", name="Why is it not smaller?").click()
        page.wait_for_selector(".parts li")
        page.get_by_text("What may change?").click()
        page.get_by_text("Take it with you").click()
        page.wait_for_selector(".code")
        assert page.locator("img, script:not([src]), body b").count() == 0
        assert page.locator(".says strong").inner_text() in (HOSTILE, PLAIN)
        assert page.locator(".editor .name").all_text_contents() == NAMES
        narrow = enter(explorer.url, width=390, height=800)
        ask(narrow)
        assert narrow.evaluate("document.documentElement.scrollWidth") == 390


def test_a_model_that_raises_is_a_message_and_the_page_lives_on(demand, enter):
    explorer, model = demand
    page = enter(explorer.url, expected="502 (Bad Gateway)")
    asked = Asked(page)
    model.reason = "the sensor is unplugged"
    try:
        drag(page, (0.5, 0.5), (0.5, 0.2))
        page.wait_for_selector(".notice[data-about=model]")
        assert "the sensor is unplugged" in page.locator(".notice").inner_text()
        page.get_by_role("button", name="What would change the decision?").click()
        status = page.locator(".question [role=status]")
        settled(page, lambda: "the sensor is unplugged" in status.inner_text())
    finally:
        model.reason = ""
    drag(page, (0.7, 0.5), (0.7, 0.3))
    settled(page, lambda: page.locator(".notice").count() == 0)
    settled(
        page,
        lambda: shown(page, "winter") == model.percent(asked.last("predict")["values"], "winter"),
    )
    ask(page)


def test_an_answer_that_is_no_number_is_a_message(enter):
    _, data, reference = power_demand()

    class Unsure(Moody):
        def predict_proba(self, X):
            proba = super().predict_proba(X)
            return np.where(np.asarray(X).max() > 50, np.nan, proba)

    strange = Unsure(*reference)
    with running(strange, data, reference) as explorer:
        page = enter(explorer.url, expected="502 (Bad Gateway)")
        page.get_by_text("What may change?").click()
        page.get_by_label("channel 0: at most").fill("100")
        page.get_by_label("channel 0: at most").press("Tab")
        drag(page, (0.5, 0.9), (0.5, 0.01))
        page.wait_for_selector(".notice[data-about=model]")
        page.get_by_role("button", name="Reset").click()
        assert page.locator(".says strong").inner_text() in ("summer", "winter")


def test_a_server_that_comes_back_finds_the_edits_as_they_were(enter, monkeypatch):
    monkeypatch.setenv("CONTRAFACT_TOKEN", TOKEN)
    model, data, reference = power_demand()
    with running(model, data, reference) as explorer:
        port = int(explorer.url.split(":")[2].split("/")[0])
        page = enter(explorer.url, expected="Failed to load resource")
        asked = Asked(page)
        drag(page, (0.5, 0.5), (0.5, 0.2))
        settled(page, lambda: page.get_by_role("button", name="Undo").is_enabled())
        rested(page, asked)
        edited = asked.last("predict")["values"]
        certain = shown(page, "winter")
    drag(page, (0.8, 0.5), (0.8, 0.6), steps=2)
    page.wait_for_selector(".notice[data-about=server]")
    page.keyboard.press("Control+z")
    with running(model, data, reference, port=port) as explorer:
        settled(page, lambda: page.locator(".notice").count() == 0)
        settled(page, lambda: asked.last("predict")["values"] == edited)
        settled(page, lambda: shown(page, "winter") == certain)
        ask(page)
        page.get_by_role("button", name="next").click()
        settled(page, lambda: page.url.endswith("#series=1"))


def test_two_tabs_do_not_disturb_each_other(demand, enter):
    explorer, model = demand
    one, two = enter(explorer.url), enter(explorer.url, "#series=5")
    questions = Asked(one), Asked(two)
    drag(one, (0.5, 0.5), (0.5, 0.2))
    drag(two, (0.3, 0.5), (0.3, 0.8))
    for page, asked in zip((one, two), questions, strict=True):
        settled(page, lambda asked=asked: len(asked.of("predict")) > 1)
        settled(
            page,
            lambda page=page, asked=asked: (
                shown(page, "winter") == model.percent(asked.last("predict")["values"], "winter")
            ),
        )
    for page in (one, two):
        page.get_by_role("button", name="What would change the decision?").click()
    for page in (one, two):
        page.wait_for_selector(".way .told")
    assert questions[0].last("explain")["instance"] == 0
    assert questions[1].last("explain")["instance"] == 5


def test_ten_thousand_instances_scroll_without_delay(enter):
    model, _, reference = power_demand()
    X = np.random.default_rng(0).normal(size=(10_000, 1, 24))
    with running(model, X, reference) as explorer:
        page = enter(explorer.url)
        assert page.locator(".list [role=status]").inner_text() == "10,000 instances"
        assert page.locator(".line").count() < 40
        typical = page.evaluate(
            """async () => {
              const box = document.querySelector(".scroller");
              const times = [];
              for (let i = 0; i < 40; i++) {
                const start = performance.now();
                box.scrollTop = (i * 9973 * 40) % box.scrollHeight;
                await new Promise((next) => requestAnimationFrame(() => setTimeout(next)));
                times.push(performance.now() - start);
              }
              return times.sort((a, b) => a - b)[20];
            }"""
        )
        assert typical < 100
        page.get_by_role("listbox").focus()
        page.keyboard.press("End")
        settled(page, lambda: page.url.endswith("#series=9999"))
        page.get_by_label("Find by name or class").fill("4321")
        assert page.locator(".line .who").all_inner_texts() == ["series 4321"]
