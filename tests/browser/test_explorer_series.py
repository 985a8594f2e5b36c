"""The explorer on series: change them by hand, ask, and take the answer away."""

import json
import re

import numpy as np
import pytest
from explorer_driving import (
    Asked,
    ask,
    drag,
    pick,
    power_demand,
    rested,
    running,
    settled,
    shown,
    spot,
)

import contrafact as cf


@pytest.fixture(scope="module")
def demand():
    """(explorer, model, days)."""
    model, data, reference = power_demand()
    with running(model, data, reference) as explorer:
        yield explorer, model, data[0]


@pytest.fixture
def page(demand, enter):
    return enter(demand[0].url)


@pytest.fixture
def asked(page):
    return Asked(page)


def test_the_probability_follows_a_drag(page, asked, demand):
    _, model, days = demand
    before = shown(page, "winter")
    assert before == model.percent(days[0], "winter")
    drag(page, (0.5, 0.5), (0.5, 0.1))
    settled(page, lambda: shown(page, "winter") != before)
    settled(
        page,
        lambda: shown(page, "winter") == model.percent(asked.last("predict")["values"], "winter"),
    )
    questions = asked.of("predict")
    assert len(questions) > 2
    moved = np.array(questions[-1]["values"])[0] - days[0, 0]
    assert moved.max() > 0.5 and moved.argmax() in (11, 12)
    # A narrow bend leaves the ends of the day alone.
    assert not moved[:8].any() and not moved[16:].any()


def test_a_stroke_is_drawn(page, asked, demand):
    pick(page, "Draw")
    drag(page, (0.3, 0.2), (0.7, 0.2))
    rested(page, asked)
    values = np.array(asked.last("predict")["values"])[0]
    drawn = np.flatnonzero(values != demand[2][0, 0])
    assert drawn.min() >= 5 and drawn.max() <= 17 and len(drawn) >= 8
    assert np.ptp(values[drawn]) < 0.05


def test_a_slow_model_is_asked_about_the_newest_values_only(page, asked, demand):
    _, model, _ = demand
    model.seconds = 0.1
    try:
        drag(page, (0.5, 0.5), (0.5, 0.15), steps=60)
        settled(page, lambda: page.get_by_role("button", name="Undo").is_enabled())
        page.wait_for_timeout(400)
    finally:
        model.seconds = 0.0
    assert 2 <= len(asked.of("predict")) < 20
    tags = [question["tag"] for question in asked.of("predict")]
    assert tags == sorted(set(tags))
    assert shown(page, "winter") == model.percent(asked.last("predict")["values"], "winter")


def test_undo_redo_and_reset(page, asked):
    drag(page, (0.5, 0.5), (0.5, 0.2))
    settled(page, lambda: page.get_by_role("button", name="Undo").is_enabled())
    drag(page, (0.8, 0.5), (0.8, 0.7))
    settled(page, lambda: len(asked.of("predict")) > 4)
    rested(page, asked)
    twice = asked.last("predict")["values"]
    page.keyboard.press("Control+z")
    settled(page, lambda: asked.last("predict")["values"] != twice)
    page.keyboard.press("Control+z")
    settled(page, lambda: not page.get_by_role("button", name="Undo").is_enabled())
    note = page.locator(".decision .small").first
    settled(page, lambda: note.inner_text() == "The data say the same.")
    page.keyboard.press("Control+Shift+z")
    page.get_by_role("button", name="Redo").click()
    settled(page, lambda: asked.last("predict")["values"] == twice)
    page.get_by_role("button", name="Reset").click()
    settled(page, lambda: not page.get_by_role("button", name="Reset").is_enabled())
    page.get_by_role("button", name="Undo").click()
    settled(page, lambda: page.get_by_role("button", name="Reset").is_enabled())


@pytest.mark.parametrize("tool", ["shift up", "larger", "smooth", "paste from"])
def test_tools_change_the_selected_stretch_alone(page, asked, demand, tool):
    _, _, days = demand
    pick(page, "Select")
    drag(page, (0.4, 0.3), (0.6, 0.3))
    first, last = map(int, re.findall(r"\d+", page.locator(".which").inner_text()))
    page.get_by_role("button", name=tool).click()
    rested(page, asked)
    values = np.array(asked.last("predict")["values"])[0]
    x = days[0, 0]
    inside = (np.arange(24) >= first) & (np.arange(24) <= last)
    assert (values == x)[~inside].all()
    assert (values != x)[inside].any()
    if tool == "shift up":
        assert np.allclose(np.diff(values - x)[first:last], 0)
    elif tool == "larger":
        assert np.ptp(values[inside]) == pytest.approx(1.2 * np.ptp(x[inside]))
    elif tool == "smooth":
        assert np.abs(np.diff(values[inside], 2)).sum() < np.abs(np.diff(x[inside], 2)).sum()
    else:
        url = demand[0].url
        reply = page.request.get(url + "api/instances/0").json()
        others = [n for n in reply["neighbors"] if n["label"] != reply["label"]]
        assert (values[inside] == np.array(others[0]["values"])[0][inside]).all()


def test_a_selected_stretch_is_dragged_as_a_whole(page, asked, demand):
    pick(page, "Select")
    drag(page, (0.4, 0.3), (0.6, 0.3))
    drag(page, (0.5, 0.6), (0.5, 0.4))
    rested(page, asked)
    moved = np.array(asked.last("predict")["values"])[0] - demand[2][0, 0]
    assert np.allclose(moved[moved != 0], moved.max()) and moved.max() > 0.3


def test_what_must_stay_stays(page, asked):
    pick(page, "Select")
    drag(page, (0.45, 0.3), (0.95, 0.3))
    page.get_by_role("button", name="must stay").click()
    settled(page, lambda: page.locator(".editor rect.frozen").count() == 1)
    ask(page)
    frozen = np.array(asked.last("explain")["limits"]["frozen"])
    assert 8 <= frozen.sum() <= 16
    for card in range(page.locator(".card").count() or 1):
        if page.locator(".card").count():
            page.locator(".card").nth(card).click()
        page.get_by_role("button", name="Take it into the editor").click()
        rested(page, asked)
        values = np.array(asked.last("predict")["values"])
        original = np.array(
            page.request.get(page.url.split("#")[0] + "api/instances/0").json()["values"]
        )
        assert (values == original)[frozen].all()
    page.get_by_text("What may change?").click()
    page.get_by_role("button", name="Everything may change").click()
    settled(page, lambda: page.locator(".editor rect.frozen").count() == 0)


def test_what_cannot_be_reached_is_said(page):
    pick(page, "Select")
    drag(page, (0.11, 0.3), (0.9, 0.3))
    page.get_by_role("button", name="must stay").click()
    ask(page)
    assert "No change that makes the model say" in page.locator(".way .told.bad").inner_text()
    assert page.get_by_role("button", name="Why is it not smaller?").count() == 0
    assert page.locator(".way .chart path.missed").count() == 1


def test_bounds_by_a_handle_and_by_a_field(page, asked, demand):
    handle = page.locator("path.handle[data-bound=upper]").bounding_box()
    page.mouse.move(handle["x"] + 5, handle["y"] + 3)
    page.mouse.down()
    page.mouse.move(handle["x"] + 5, handle["y"] + 60, steps=4)
    page.mouse.up()
    page.get_by_text("What may change?").click()
    page.get_by_label("channel 0: at least").fill("-9")
    page.get_by_label("largest step").fill("5")
    page.get_by_label("largest step").press("Tab")
    ask(page)
    limits = asked.last("explain")["limits"]
    assert limits["lower"] == [-9] and limits["max_step"] == [5]
    assert limits["upper"][0] > demand[2][0].mean()
    assert page.locator(".editor path.limit").count() >= 1


def test_the_answer_its_ways_and_why_it_is_not_smaller(page, asked, demand):
    _, model, _ = demand
    first = page.locator(".says strong").inner_text()
    other = "winter" if first == "summer" else "summer"
    ask(page)
    assert f"make the model decide for {other}" in page.locator(".answer > p").inner_text()
    cards = page.locator(".card")
    assert cards.count() >= 2 and cards.nth(0).get_attribute("aria-pressed") == "true"
    told = page.locator(".way .told").inner_text()
    cards.nth(1).click()
    assert cards.nth(1).get_attribute("aria-pressed") == "true"
    assert page.locator(".way .told").inner_text() != told
    assert page.locator(".way .chart path.after").count() == 1
    page.get_by_role("button", name="Why is it not smaller?").click()
    page.wait_for_selector(".parts li")
    needed = page.locator(".parts li.needed").first.inner_text()
    assert f"decides for {first}" in needed and needed.endswith("%")
    page.get_by_role("button", name="Take it into the editor").click()
    settled(page, lambda: page.locator(".says strong").inner_text() == other)
    page.get_by_role("button", name="next").click()
    page.wait_for_selector(".answer", state="hidden")
    assert page.locator(".editor path.guide").count() == 0
    page.get_by_role("button", name="previous").click()
    settled(page, lambda: page.locator(".says strong").inner_text() == other)
    assert shown(page, other) == model.percent(asked.last("predict")["values"], other)


def test_ways_from_the_smallest_to_the_most_believable(page, asked):
    ask(page)
    page.get_by_role("button", name="Show ways from the smallest").click()
    page.wait_for_selector(".front input", timeout=30_000)
    assert asked.last("explain")["front"] is True
    slider = page.locator(".front input")
    slider.focus()
    slider.press("End")
    last = page.locator(".card").last
    assert last.get_attribute("aria-pressed") == "true"


def test_a_search_shows_its_guide_at_once_and_can_be_cancelled(page, demand):
    _, model, _ = demand
    model.seconds = 0.4
    try:
        page.get_by_role("button", name="What would change the decision?").click()
        page.wait_for_selector(".editor path.guide")
        assert page.locator(".progress").is_visible()
        assert "a real series" in page.locator(".guide-key").inner_text()
        page.get_by_role("button", name="Cancel").click()
        settled(page, lambda: "Cancelled" in page.locator(".question [role=status]").inner_text())
        assert not page.locator(".progress").is_visible()
    finally:
        model.seconds = 0.0
    settled(page, lambda: not any(j.working for j in demand[0]._app.jobs._jobs.values()))
    ask(page)


def test_exports(page, demand, tmp_path, browser):
    ask(page)
    page.get_by_text("Take it with you").click()
    files = {}
    for words in ("Report (HTML)", "Arrays (NPZ)", "Picture (PNG)"):
        with page.expect_download() as download:
            page.get_by_role("link", name=words).click()
        files[words] = tmp_path / download.value.suggested_filename
        download.value.save_as(files[words])
    assert "<!doctype html>" in files["Report (HTML)"].read_text(encoding="utf-8").lower()
    loaded = cf.Counterfactuals.load(files["Arrays (NPZ)"])
    assert loaded.valid.any() and np.allclose(np.asarray(loaded.X)[0].ravel(), demand[2][0].ravel())
    assert files["Picture (PNG)"].read_bytes().startswith(b"\x89PNG")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    code = page.locator(".code").last
    code.get_by_role("button", name="Copy").click()
    code.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == code.locator("pre").inner_text() and "cf.explain(" in copied


def test_keys_alone_are_enough(page, asked, demand):
    _, _, days = demand
    page.get_by_role("listbox").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    settled(page, lambda: page.url.endswith("#series=2"))
    page.get_by_label("Read", exact=True).focus()
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('role')") == "application":
            break
    page.keyboard.press("e")
    page.keyboard.press("0")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    for _ in range(5):
        page.keyboard.press("Shift+ArrowUp")
    settled(page, lambda: len(asked.of("predict")) >= 1)
    rested(page, asked)
    moved = np.array(asked.last("predict")["values"])[0] - days[2, 0]
    assert moved.max() > 0.1
    before = moved.argmax()
    page.keyboard.press("Escape")
    for _ in range(4):
        page.keyboard.press("Shift+ArrowRight")
    assert page.locator(".which").inner_text() == f"t = {before} … {before + 4}:"
    page.keyboard.press("Control+z")
    button = page.get_by_role("button", name="What would change the decision?")
    button.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".way .told")
    # The answer is where the focus goes, so that it is read and tabs go on from it.
    assert page.evaluate("document.activeElement.textContent") == "What would change the decision"


def test_the_list_finds_and_sorts(page, demand):
    overview = page.request.get(demand[0].url + "api/overview").json()["instances"]
    wrong = [
        i
        for i, (p, t) in enumerate(zip(overview["label"], overview["truth"], strict=True))
        if p != t
    ]
    page.get_by_label("Which and in which order").select_option("wrong")
    assert page.locator(".list [role=status]").inner_text() == f"{len(wrong)} of 200 instances"
    page.get_by_label("Which and in which order").select_option("unsure")
    least = int(np.argmin(overview["p"]))
    assert page.locator(".line").first.get_attribute("id") == f"instance-{least}"
    page.get_by_label("Find by name or class").fill("series 17")
    # 17, 117 and 170 to 179
    assert page.locator(".line").count() == 12
    page.get_by_label("Decided for").select_option("0")
    assert all("summer" in text for text in page.locator(".line").all_inner_texts())


def test_edits_are_still_there_when_one_comes_back(page, asked):
    drag(page, (0.5, 0.5), (0.5, 0.2))
    settled(page, lambda: page.get_by_role("button", name="Undo").is_enabled())
    page.get_by_role("button", name="next").click()
    settled(page, lambda: page.url.endswith("#series=1"))
    assert not page.get_by_role("button", name="Undo").is_enabled()
    page.get_by_role("button", name="previous").click()
    settled(page, lambda: page.get_by_role("button", name="Undo").is_enabled())


def test_reading_zooms_and_reads(page):
    pick(page, "Read")
    page.mouse.move(*spot(page, 0.5, 0.5))
    assert page.locator(".editor output").inner_text().startswith("t = ")
    drag(page, (0.3, 0.5), (0.6, 0.5))
    times = page.locator(".editor .axis").last.locator("text").all_text_contents()
    assert "0" not in times
    page.get_by_role("button", name="whole").click()
    assert "0" in page.locator(".editor .axis").last.locator("text").all_text_contents()


def test_what_is_sent_is_what_the_server_takes(page, asked):
    """Every choice of the question reaches the server under its name."""
    page.get_by_text("How to search").click()
    page.get_by_label("Method").select_option("CELS")
    page.get_by_label("Ways to show").fill("2")
    page.get_by_label("At least this sure").fill("0.6")
    page.get_by_label("Take at most").fill("5")
    page.get_by_label("Ask the model at most").fill("3000")
    page.get_by_label("Ask the model at most").press("Tab")
    ask(page)
    sent = asked.last("explain")
    chosen = {key: sent[key] for key in ("method", "k", "confidence", "seconds", "calls")}
    assert json.dumps(chosen) == json.dumps(
        {"method": "CELS", "k": 2, "confidence": 0.6, "seconds": 5, "calls": 3000}
    )
