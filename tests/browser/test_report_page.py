"""The page in a real browser shows what the arrays say: by mouse, keyboard, phone, printer."""

from __future__ import annotations

import re
import time
from dataclasses import replace

import numpy as np
import pytest

from contrafact import Constraints
from contrafact.metrics import Reference
from contrafact.report import payload, write_report
from contrafact.report.captions import headline
from contrafact.report.sentences import sentence
from contrafact.report.words import class_probability, number_text, percent_text

KINDS = ("univariate", "multivariate", "gray", "color", "rows")
FRAGMENTS = (
    "<script>window.hit = 1</script>",
    "</script><script>window.hit = 1</script>",
    "<!--",
    "\\",
    "\u2028",
)
EVIL = "".join(FRAGMENTS) + "\"'><img src=x onerror=window.hit=1>🙂שלום\u202e\x07"


def line(page, name):
    """The points of a drawn line, in pixels."""
    d = page.locator(f"path.{name}").first.get_attribute("d")
    return np.array([[float(v) for v in point.split()] for point in d.removeprefix("M").split("L")])


def readout(page):
    return page.locator("output").inner_text()


def heading(page):
    return page.locator(".detail h3").inner_text()


def told(page):
    return page.locator(".told").inner_text().replace("\u00a0", " ")


def in_view(page):
    """How many time steps the chart shows."""
    return len(line(page, "before"))


def focused(page):
    return page.evaluate(
        "(e => e.getAttribute('aria-label') || e.name || e.id || e.textContent)"
        "(document.activeElement)"
    )


def wait_until(page, expression, seconds=10.0):
    """Wait until an expression holds.

    Playwright's own `wait_for_function` evaluates strings inside the page, which the page's policy
    forbids, unless the expression holds at once.
    """
    deadline = time.monotonic() + seconds
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, f"{expression} does not hold after {seconds} s"
        time.sleep(0.02)


def overflow(page):
    return page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_opens_offline_and_everything_has_a_name(visit, every, kind):
    page = visit(every[kind])
    assert heading(page).startswith("row ")
    assert page.locator(".instances tbody tr").count() > 3
    assert page.locator("svg path.before, canvas, .detail thead").count() > 0
    nameless = page.evaluate("""
      [...document.querySelectorAll('button, input, select, canvas, [tabindex]')]
        .filter(e => !(e.getAttribute('aria-label') || e.textContent.trim()))
        .filter(e => !e.closest('label')?.textContent.trim()).map(e => e.outerHTML)""")
    assert nameless == []
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert max(np.diff(levels)) <= 1
    assert page.locator("html").get_attribute("lang") == "en"
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


def test_what_is_drawn_is_what_the_arrays_say(visit, univariate):
    path, results, known = univariate
    page = visit(path)
    for m, (name, result) in enumerate(results.items()):
        page.get_by_label("LineSearch" if m else "CELS").check(force=True)
        for at in (0, 3):
            page.locator(f'tr[data-at="{at}"]').click()
            i = int(np.flatnonzero(result.source == at)[0])
            assert heading(page) == headline(result, i, probabilities=False)
            which = " (1 of 2)" if name == "CELS" else ""
            assert heading(page).startswith(f"row {at}{which}: '{result.labels[i]}' → ")
            assert told(page) == sentence(result, i, Reference(known)), name
            x, x_cf = result.X[i].ravel(), result.X_cf[i].ravel()
            scale = np.polyfit(x, line(page, "before")[:, 1], 1)
            assert np.abs(np.polyval(scale, x) - line(page, "before")[:, 1]).max() < 0.2
            drawn = line(page, "after" if result.valid[i] else "missed")
            assert np.abs(np.polyval(scale, x_cf) - drawn[:, 1]).max() < 0.2
            first = int(np.flatnonzero(result.classes == result.labels[i])[0])
            shown = page.locator(".class").first.locator(".bars span").all_inner_texts()
            assert shown == [
                class_probability(proba[i], first) for proba in (result.proba, result.cf_proba)
            ]
            changed = np.ravel(result[i].changed)
            stretches = np.diff(changed.astype(int), prepend=0) == 1
            assert page.locator("rect.changed").count() == stretches.sum()


def test_next_previous_and_alternatives(visit, univariate):
    path, results, known = univariate
    page = visit(path)
    page.get_by_role("button", name="next").press("Enter")
    assert heading(page).startswith("row 1 (1 of 2):")
    assert focused(page) == "next →"
    assert page.url.endswith("#row=1&method=0")
    page.get_by_role("button", name="previous").press("Enter")
    page.get_by_role("button", name="previous").press("Enter")
    assert heading(page).startswith("row 0 (1 of 2):")
    page.get_by_label("2", exact=True).check(force=True)
    second = int(np.flatnonzero(results["CELS"].source == 0)[1])
    assert told(page) == sentence(results["CELS"], second, Reference(known))
    assert heading(page).startswith("row 0 (2 of 2):")
    assert focused(page) == "alternative"


def test_the_list_by_keyboard_sorting_and_filter(visit, multivariate):
    path, results = multivariate
    page = visit(path)
    page.locator(".instances tbody button").first.focus()
    page.keyboard.press("ArrowDown")
    assert heading(page).startswith("row 101:")
    assert focused(page) == "row 101"
    page.keyboard.press("End")
    assert heading(page).startswith("row 104:")
    page.keyboard.press("Control+Home")
    assert heading(page).startswith("row 104:")
    listed = page.locator(".instances tbody button")
    page.get_by_role("button", name="changed").click()
    order = np.argsort(results["good"].changed_fraction, kind="stable") + 100
    assert listed.all_inner_texts() == [f"row {source}" for source in order]
    assert page.locator('th[aria-sort="ascending"]').inner_text().startswith("changed")
    page.get_by_role("button", name="changed").click()
    assert listed.first.inner_text() == f"row {order[-1]}"
    page.get_by_label("Find instances").fill("103")
    assert listed.all_inner_texts() == ["row 103"]
    assert page.get_by_role("status").first.inner_text() == "1 of 5 instances"
    page.get_by_label("Find instances").fill("")
    page.get_by_label("bad").check(force=True)
    page.get_by_label("Which instances").select_option("already")
    assert listed.all_inner_texts() == ["row 102"]
    page.get_by_label("Which instances").select_option("not reached")
    assert page.locator(".instances tbody tr.bad").count() == 4
    assert page.evaluate(
        "(e => e.scrollWidth <= e.clientWidth)(document.querySelector('.instances'))"
    ), "no column of the list is cut off"


def test_links_name_row_and_method(visit, multivariate):
    page = visit(multivariate[0], "#row=103&method=1")
    assert heading(page).startswith("row 103:")
    assert page.get_by_label("bad").is_checked()
    page.evaluate("location.hash = 'row=100&method=0'")
    wait_until(page, "document.querySelector('.detail h3').textContent.startsWith('row 100')")
    assert page.get_by_label("good").is_checked()
    page.evaluate("location.hash = 'row=nothing&method=77'")
    assert heading(page).startswith("row 100")


def test_failures_are_told(visit, multivariate):
    page = visit(multivariate[0], "#row=100&method=1")
    assert heading(page) == "row 100: 'gun' → still 'gun', wanted 'point'"
    assert told(page).startswith("No change that makes the model say 'point' was found")
    assert page.locator("path.missed").count() == 4
    assert "best attempt" in page.locator(".tools").first.inner_text()
    page.get_by_role("button", name="next").click()
    assert heading(page) == "row 101: 'point' → no answer, wanted 'gun'"
    assert page.locator(".class").first.locator("span").all_inner_texts()[1] == "unknown"
    page.get_by_role("button", name="next").click()
    assert heading(page) == "row 102: already 'gun'"


def test_readout_by_mouse_and_keyboard(visit, univariate):
    path, results, _ = univariate
    page = visit(path, "#row=2&method=1")
    i = int(np.flatnonzero(results["LineSearch"].source == 2)[0])
    x, x_cf = (
        values[i].ravel() for values in (results["LineSearch"].X, results["LineSearch"].X_cf)
    )

    def check(t):
        at, before, after = re.fullmatch(r"t = (\d+): (\S+) → (\S+)", readout(page)).groups()
        assert int(at) == t
        # Four digits are shown, of values that travelled in 65535 steps.
        assert float(before) == pytest.approx(x[t], rel=5.1e-4, abs=np.ptp(x) / 65535)
        after = before if after == "same" else after
        assert float(after) == pytest.approx(x_cf[t], rel=5.1e-4, abs=np.ptp(x_cf) / 65535)
        assert ("same" in readout(page)) == (x[t] == x_cf[t])

    page.locator(".chart svg").scroll_into_view_if_needed()
    box = page.locator(".chart svg").bounding_box()
    points = line(page, "before")
    for t in (0, 30, 90, 149):
        page.mouse.move(box["x"] + points[t, 0], box["y"] + 50)
        check(t)
    page.mouse.move(0, 0)
    assert "Point at the chart" in readout(page)
    page.locator(".chart svg").focus()
    page.keyboard.press("ArrowRight")
    start = int(re.match(r"t = (\d+)", readout(page))[1])
    page.keyboard.press("PageDown")
    check(start + 10)
    page.keyboard.press("Alt+ArrowDown")
    check(start + 10)


def test_zoom_by_button_keyboard_and_drag(visit, univariate):
    page = visit(univariate[0])
    assert in_view(page) == 150
    page.get_by_role("button", name="zoom in").press("Enter")
    assert 85 < in_view(page) < 97
    assert focused(page) == "zoom in"
    page.get_by_role("button", name="next").click()
    assert in_view(page) < 97, "the stretch in view stays"
    page.get_by_role("button", name="whole").click()
    assert in_view(page) == 150
    page.locator(".chart svg").scroll_into_view_if_needed()
    page.locator(".chart svg").focus()
    page.keyboard.press("+")
    page.keyboard.press("+")
    assert in_view(page) < 60
    page.keyboard.press("Control+0")
    assert in_view(page) < 60
    page.keyboard.press("0")
    assert in_view(page) == 150
    assert focused(page).startswith("Values over time")
    box = page.locator(".chart svg").bounding_box()
    points = line(page, "before")
    page.mouse.move(box["x"] + points[40, 0], box["y"] + 80)
    page.mouse.down()
    page.mouse.move(box["x"] + points[60, 0], box["y"] + 90, steps=3)
    assert page.locator("rect.zoom").get_attribute("visibility") == "visible"
    page.mouse.up()
    assert 20 <= in_view(page) <= 24
    assert page.locator("circle.before").count() > 0
    page.locator(".chart svg").dblclick()
    assert in_view(page) == 150


def test_overlays(visit, univariate):
    path, results, known = univariate
    page = visit(path)
    for name, drawn in (
        ("changed stretches", "rect.changed"),
        ("saliency", "rect.weight"),
        ("constraints", "rect.frozen"),
    ):
        assert page.locator(drawn).count() > 0
        page.get_by_role("checkbox", name=name).uncheck()
        assert page.locator(drawn).count() == 0
        assert page.evaluate("document.activeElement.type") == "checkbox"
    page.get_by_label("guide it followed").check()
    guide = known[int(results["CELS"].info["guide_index"][0])].ravel()
    scale = np.polyfit(results["CELS"].X[0].ravel(), line(page, "before")[:, 1], 1)
    assert np.abs(np.polyval(scale, guide) - line(page, "guide")[:, 1]).max() < 0.2
    page.get_by_role("button", name="next").click()
    assert page.get_by_label("guide it followed").is_checked()


def test_frozen_values_and_bounds_lie_where_they_should(visit, univariate):
    page = visit(univariate[0])
    points = line(page, "before")
    step = points[1, 0] - points[0, 0]
    frozen = page.locator("rect.frozen")
    assert float(frozen.get_attribute("x")) == pytest.approx(points[0, 0] - step / 2, abs=0.2)
    assert float(frozen.get_attribute("width")) == pytest.approx(20 * step, abs=2)


def test_channels(visit, multivariate):
    page = visit(multivariate[0])
    assert page.locator("path.before").count() == 1
    page.get_by_label("all 4 channels").check()
    assert page.locator(".chart .name").all_text_contents() == ["acc x", "acc y", "acc z", "gyro"]
    assert page.locator("path.before").count() == 4
    assert (
        page.locator("g.axis").evaluate_all(
            "all => Math.min(...all.map(g => g.querySelectorAll('text').length))"
        )
        > 1
    )
    assert page.evaluate("document.activeElement.type") == "checkbox"
    page.locator(".chart svg").focus()
    page.keyboard.press("ArrowRight")
    assert readout(page).count("same") >= 3
    assert "acc x" in readout(page)


@pytest.mark.parametrize("channels", [1, 3])
def test_pictures(visit, images, channels):
    path, result = images[channels]
    page = visit(path)
    assert page.locator("figcaption").all_inner_texts()[:2] == ["before", "after"]
    assert page.locator("canvas").count() == 4
    page.get_by_label("guide it followed").check()
    assert page.locator("canvas").count() == 5
    look = "c => [...c.getContext('2d').getImageData(0, 0, 8, 8).data]"
    values = np.stack([result.X[0], result.X_cf[0]])
    low, high = values.min(), values.max()
    for which in (0, 1):
        shown = np.reshape(page.locator("canvas").nth(which).evaluate(look), (8, 8, 4))[..., :3]
        true = 255 * (values[which] - low) / (high - low)
        assert np.abs(shown - np.moveaxis(true, 0, 2)).max() <= 0.51
    page.locator("canvas").first.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    assert readout(page).startswith("row 2, column 1: ")
    shown = [float(v) for v in re.split(r", | → ", readout(page).split(": ")[1])]
    assert np.allclose(shown, values[:, :, 2, 1].ravel(), atol=2e-4)
    width = page.locator("canvas").first.bounding_box()["width"]
    page.get_by_role("button", name="larger").press("Enter")
    assert page.locator("canvas").first.bounding_box()["width"] > 1.3 * width
    assert focused(page) == "larger"


def test_a_large_picture(visit, hand, tmp_path):
    made, _ = hand
    X = np.random.default_rng(0).random((1, 1, 400, 400))
    page = visit(
        write_report(made(X, 1 - X, "image", info={"saliency": X}), tmp_path / "large.html")
    )
    assert page.locator("canvas").count() == 4


def test_the_script_formats_numbers_as_python_does(visit, rows):
    rng = np.random.default_rng(0)
    values = np.concatenate(
        [
            rng.normal(size=4000) * 10.0 ** rng.integers(-12, 13, size=4000),
            rng.normal(size=1000).astype(np.float32),
            # Ties, where rounding rules differ, and the ends of the notations.
            (rng.integers(-(10**6), 10**6, size=1000) + 0.5) / 2.0 ** rng.integers(0, 8, size=1000),
            rng.integers(-(10**10), 10**10, size=500),
            [0.0, -0.0, 1e-4, 9.9995e-5, 9.9994e-5, 1e9, 999999999.5, 999999999.4, 0.5, 2.5],
            [1e-300, 1e300, 2.3e-308, 99999.5, -99999.5, 0.1 + 0.2],
        ]
    )
    page = visit(rows[0])
    for digits in (2, 4, 9):
        shown = page.evaluate(
            "([values, digits]) => values.map((value) => numberText(value, digits))",
            [values.tolist(), digits],
        )
        told = [number_text(value, digits) for value in values]
        different = [each for each in zip(values, told, shown, strict=True) if each[1] != each[2]]
        assert different == []
    missing = "[NaN, Infinity, null, undefined].map((value) => numberText(value))"
    assert page.evaluate(missing) == ["–"] * 4


@pytest.mark.parametrize("kind", KINDS)
def test_the_script_rounds_nothing_else(visit, every, kind):
    """Every number on the page is in the payload as text, but for the readout and the axes."""
    page = visit(every[kind])
    payload_text = page.evaluate("JSON.stringify(Object.values(data))")
    cells = page.locator(
        ".instances td, .facts td, .facts span, .detail h3, .told, .detail .wide td, figcaption"
    ).all_text_contents()
    for text in cells:
        for number in re.findall(r"[-−]?\d+\.\d+(?:e[-+]\d+)?", text):
            assert f"{number}" in payload_text, text


def test_one_value_reads_the_same_everywhere(visit, univariate):
    path, results, _ = univariate
    page = visit(path, "#row=2&method=1")
    result = results["LineSearch"]
    i = int(np.flatnonzero(result.source == 2)[0])
    text = percent_text(result.changed_fraction[i])
    assert page.locator("tr[aria-current] td").last.inner_text() == text
    line = page.locator(".facts tr").filter(has_text="changed").first
    assert line.locator("td").inner_text() == text
    assert line.get_attribute("title").startswith("sparsity: ")
    assert page.locator(".facts").get_by_text("sparsity").count() == 0


def test_features(visit, rows):
    path, result = rows
    page = visit(path)
    changed = np.flatnonzero(result.X[0] != result.X_cf[0])
    lines = page.locator(".detail .wide tbody tr")
    assert sorted(lines.locator("th").all_inner_texts()) == sorted(result.names[changed])
    page.get_by_label("all 5 features").check()
    assert lines.count() == 5
    cells = lines.filter(has_text="weight").locator("td").all_inner_texts()
    assert cells[:2] == [number_text(result.X[0, 1]), number_text(result.X_cf[0, 1])]
    assert lines.filter(has_text="kept (frozen)").locator("td").nth(2).inner_text() == "same"


def test_everything_is_reached_by_tab_and_seen(visit, univariate):
    page = visit(univariate[0])
    seen, outlined = [], []
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.append(focused(page))
        outlined.append(
            page.evaluate(
                "[document.activeElement, document.activeElement.nextElementSibling].some("
                "e => e && getComputedStyle(e).outlineStyle !== 'none')"
            )
        )
        if seen[-1].startswith("Values over time"):
            break
    wanted = [
        "theme",
        "Metrics by method",
        "Find instances",
        "Which instances",
        "row 0",
        "← previous",
    ]
    wanted += ["next →", "method", "alternative", "zoom in", "zoom out", "whole"]
    assert [name for name in wanted if name not in seen] == []
    assert seen[-1].startswith("Values over time")
    assert all(outlined)
    assert sorted(map(seen.index, wanted)) == list(map(seen.index, wanted))


def test_switching_the_method_by_arrows_keeps_the_focus(visit, univariate):
    path, results, known = univariate
    page = visit(path)
    page.get_by_label("CELS").focus()
    page.keyboard.press("ArrowRight")
    assert page.get_by_label("LineSearch").evaluate("e => e === document.activeElement")
    assert told(page) == sentence(results["LineSearch"], 0, Reference(known))
    page.keyboard.press("ArrowLeft")
    assert page.get_by_label("CELS").evaluate("e => e === document.activeElement")


CONTRAST = """() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const srgb = (text) => rgb(text.slice(10)).map((v, i) => i < 3 ? 255 * v : v);
  const fixed = (text) => text.startsWith('color(') ? srgb(text) : rgb(text);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const color = fixed(getComputedStyle(e).backgroundColor);
      if ((color[3] ?? 1) > 0.99) return color;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const e of document.querySelectorAll('body *')) {
    const direct = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!direct || !e.getClientRects().length || e.closest('script')) continue;
    const style = getComputedStyle(e);
    const [a, b] = [light(fixed(e.closest('svg') ? style.fill : style.color)), light(behind(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push(`${e.tagName} ${ratio.toFixed(2)} ${e.textContent.slice(0, 30)}`);
  }
  return poor;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_and_the_theme_can_be_turned(visit, multivariate, scheme):
    page = visit(multivariate[0], "#row=100&method=1", color_scheme=scheme, reduced_motion="reduce")
    backs = []
    for _ in range(2):
        assert page.evaluate(CONTRAST) == []
        backs.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.locator("#theme").click()
    assert len(set(backs)) == 2
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == backs[0]


@pytest.mark.parametrize("turned", [False, True])
def test_print_is_black_on_white(visit, univariate, turned):
    page = visit(univariate[0], color_scheme="light" if turned else "dark")
    if turned:
        page.locator("#theme").click()
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(34, 38, 42)"
    assert not page.locator("#theme").is_visible()
    assert page.locator(".chart svg").is_visible()


@pytest.mark.parametrize("kind", KINDS)
def test_narrow_screens(visit, every, kind):
    page = visit(every[kind], width=360, height=740, has_touch=True)
    for width in (360, 420):
        page.set_viewport_size({"width": width, "height": 740})
        page.wait_for_timeout(50)
        assert overflow(page) == 0
    before = heading(page)
    page.get_by_role("button", name="next").tap()
    assert heading(page) != before
    beyond = page.evaluate("""[...document.querySelectorAll('.detail *, .choices *')]
        .filter(e => !e.closest('.wide, svg *') && e.getBoundingClientRect().right > innerWidth + 1)
        .map(e => e.outerHTML.slice(0, 80))""")
    assert beyond == []


def test_the_chart_follows_the_window(visit, univariate):
    page = visit(univariate[0])
    page.set_viewport_size({"width": 700, "height": 800})
    wait_until(page, "document.querySelector('.chart svg').viewBox.baseVal.width < 690")
    assert in_view(page) == 150
    assert overflow(page) == 0


@pytest.mark.parametrize("modality", ["series", "image", "row"])
def test_hostile_names(visit, hand, tmp_path, modality):
    made, changed = hand
    X = np.random.default_rng(0).normal(
        size={"series": (3, 3, 12), "image": (3, 3, 4, 4), "row": (3, 3)}[modality]
    )
    long = EVIL + "w" * 10_000
    poison = {
        "classes": (EVIL, long),
        "names": np.array([EVIL, long, "\ud800\x00"], dtype=object),
        "message": np.array([EVIL, long, "\ud800"]),
        "provenance": {"method": EVIL, EVIL: [long]},
    }
    names = (long + "1", long + "2", EVIL)
    harmless = {
        "classes": ("a", "b"),
        "message": np.array(["x", "y", "z"]),
        "names": np.array(["c", "d", "e"]),
    }
    pages = []
    for given, titles in ((poison, names), (harmless, ("m1", "m2", "m3"))):
        results = {
            title: made(X, changed(X, 0.5, seed=s), modality, valid=s < 2, **given)
            for s, title in enumerate(titles)
        }
        words = EVIL if given is poison else "fine"
        path = write_report(
            results,
            tmp_path / f"{titles[0][-1]}{len(pages)}.html",
            title=words + "\x00\ud800",
            command=words,
        )
        pages.append(visit(path, width=390))
    evil, fine = pages
    count = """[...document.querySelectorAll('*')].map(e => e.tagName)
        .filter(t => !['P', 'LI'].includes(t)).sort()"""
    for m in range(3):
        for page in pages:
            page.locator('input[name="method"]').nth(m).check(force=True)
        assert evil.evaluate(count) == fine.evaluate(count)
        assert overflow(evil) == 0
    evil.get_by_role("button", name="next").click()
    evil.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert "wwww" in evil.locator(".detail").inner_text()
    assert overflow(evil) == 0
    assert evil.evaluate("window.hit === undefined")
    assert evil.evaluate("document.querySelectorAll('script').length") == 2
    assert EVIL[:60] in evil.locator("h1").inner_text().replace("\n", " ")
    assert "<script>window.hit" in heading(evil)
    # Numbers tell apart names that begin alike, and are not cut off.
    pills = evil.locator("fieldset").first.locator(".pick").all_inner_texts()
    assert [pill[-3:] for pill in pills[1:]] == ["(2)", "(3)"]
    assert evil.evaluate(
        "[...document.querySelectorAll('.pick span')].every(e => e.scrollWidth <= e.offsetWidth)"
    )


def test_constraints_of_every_shape_and_a_method_that_was_not_asked(
    visit, hand, tmp_path, monkeypatch
):
    made, changed = hand
    X = np.random.default_rng(0).normal(size=(2, 2, 9))
    result = made(X, changed(X), "series")
    limits = Constraints(
        lower=[-np.inf, -1.0], upper=np.full((2, 9), 1.5), frozen=[[True], [False]], max_step=0.5
    )
    path = write_report({"a": result, "b": result}, tmp_path / "shapes.html", constraints=limits)
    page = visit(path)
    assert page.locator(".detail p.bad").all_inner_texts() != []
    assert page.locator("path.limit").count() > 0
    page.evaluate("data.instances[0].answers[1] = []; fillList(); show()")
    page.get_by_label("b, not asked").check(force=True)
    assert told(page) == "This method was not asked about this instance."
    page.get_by_role("button", name="next").click()
    assert told(page) == sentence(result, 1)


def test_nothing_to_show(visit, hand, tmp_path):
    made, _ = hand
    X = np.zeros((0, 5))
    page = visit(write_report(made(X, X, "series"), tmp_path / "nothing.html"))
    assert page.locator(".detail").inner_text() == "There is nothing to show."
    assert page.locator(".instances tbody tr").count() == 0


def test_a_single_step_and_a_single_pixel(visit, hand, tmp_path):
    made, _ = hand
    for modality, shape in (("series", (2, 1)), ("image", (2, 1, 1, 1)), ("row", (2, 1))):
        X = np.zeros(shape)
        page = visit(write_report(made(X, X + 1, modality), tmp_path / f"{modality}.html"))
        page.get_by_role("button", name="next").click()
        assert heading(page).startswith("row 101")


def test_instances_without_a_picture(visit, hand, tmp_path, monkeypatch):
    made, changed = hand
    monkeypatch.setattr(payload, "MOST_CHARACTERS", 1)
    X = np.random.default_rng(0).normal(size=(3, 1, 9))
    page = visit(write_report(made(X, changed(X), "series"), tmp_path / "small.html"))
    assert page.locator(".missing").count() == 0
    page.get_by_role("button", name="next").click()
    assert page.locator(".missing").inner_text() == "Not drawn, to keep this file small."
    assert page.locator(".class").count() == 2
    assert "2 instances are listed without a picture" in page.locator("main").inner_text()


@pytest.mark.parametrize(
    ("modality", "shape", "methods"), [("series", (1, 500), 5), ("image", (3, 32, 32), 3)]
)
def test_large_reports_are_small_and_quick(
    visit, hand, tmp_path, modality, shape, methods, record_property
):
    made, changed = hand
    X = np.random.default_rng(0).normal(size=(200, *shape))
    results = {f"m{s}": made(X, changed(X, 1.0, seed=s), modality) for s in range(methods)}
    start = time.perf_counter()
    path = write_report(results, tmp_path / "large.html")
    record_property("writing", time.perf_counter() - start)
    assert path.stat().st_size < 8e6
    page = visit(path)
    # The script runs to its end, drawing included, before the document counts as loaded.
    opened = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    record_property("opened", opened)
    record_property("size", path.stat().st_size)
    assert opened < 4000
    assert page.locator(".instances tbody tr").count() == 200
    assert "without a picture" not in page.locator("main").inner_text()
    page.locator(".instances tbody button").first.focus()
    page.keyboard.press("End")
    assert heading(page).startswith("row 299:")
    assert page.locator(".detail .missing").count() == 0


def test_a_model_of_its_own_is_quoted(visit, hand, tmp_path):
    made, changed = hand
    X = np.random.default_rng(0).normal(size=(2, 1, 9))
    one = made(X, changed(X), "series")
    other = replace(one, proba=one.proba[:, ::-1], labels=one.cf_labels)
    page = visit(write_report({"one": one, "other": other}, tmp_path / "two.html"))
    assert heading(page).startswith("row 100: 'gun'")
    page.get_by_label("other").check(force=True)
    assert heading(page).startswith("row 100: 'point'")


def test_opens_where_there_is_something_to_see(visit, folder, hand):
    made, changed = hand
    X = np.random.default_rng(8).normal(size=(4, 1, 20))
    result = made(X, changed(X), "series")
    result.X_cf[0] = X[0]
    result = replace(
        result,
        labels=np.where(np.arange(4) == 0, result.target, result.labels),
        cf_labels=np.where(np.arange(4) == 1, result.labels, result.cf_labels),
        valid=np.arange(4) != 1,
        status=np.array(["already_target", "invalid", "valid", "valid"]),
    )
    page = visit(write_report(result, folder / "first.html"))
    assert heading(page).startswith("row 102:")
    assert heading(visit(folder / "first.html", "#row=100")).startswith("row 100:")
