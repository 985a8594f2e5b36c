"""What a notebook shows of a result, on light and dark pages."""

import numpy as np
import pytest

from hospital import hospital_result

#: text and background of JupyterLab, and a page where neither is set
THEMES = {
    "light": "background:white;color:rgba(0,0,0,0.87)",
    "dark": "background:#111;color:white",
    "none": "",
}
#: the least contrast of the text of any element with what is behind it, as WCAG defines it
LEAST_CONTRAST = """() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const over = (color, behind) => {
    for (const paint of [behind, color]) {
      canvas.fillStyle = paint;
      canvas.fillRect(0, 0, 1, 1);
    }
    const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
    return `rgb(${r},${g},${b})`;
  };
  const luminance = (color) => {
    const [r, g, b] = color.match(/\\d+/g).map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => element
    ? over(getComputedStyle(element).backgroundColor, behind(element.parentElement)) : 'white';
  const contrasts = [...document.querySelectorAll('p, b, th, td, code')].map((element) => {
    const ground = behind(element);
    const [low, high] = [ground, over(getComputedStyle(element).color, ground)]
      .map(luminance).sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  });
  return Math.min(...contrasts);
}"""


@pytest.fixture
def show(visit, folder):
    def shown(result, theme="light", **options):
        path = folder / "notebook.html"
        page = f"<!doctype html><meta charset=utf-8><body style='{THEMES[theme]}'>"
        path.write_text(page + result._repr_html_(), encoding="utf-8")
        return visit(path, ready="div", **options)

    return shown


@pytest.mark.parametrize("theme", THEMES)
def test_it_can_be_read(show, theme):
    page = show(hospital_result(), theme)
    assert page.evaluate(LEAST_CONTRAST) > 7
    picture = page.locator("img")
    assert picture.evaluate("image => image.naturalWidth") == 900
    assert picture.evaluate("image => getComputedStyle(image).backgroundColor") == (
        "rgb(255, 255, 255)"
    )


def test_it_fits_a_narrow_page(show):
    page = show(hospital_result(), width=600)
    assert page.evaluate("document.documentElement.scrollWidth") <= 600


def test_hostile_text_is_shown_and_does_nothing(show, hand):
    made, changed = hand
    X = np.random.default_rng(0).normal(size=(6, 2))
    evil = ("<script>alert(1)</script>", "</td></table><img src=x onerror=alert(2)>")
    page = show(made(X, changed(X, 0.9), "row", classes=evil, names=np.array(evil)))
    assert page.locator("td", has_text=evil[0]).count() > 0
    assert page.locator("script, img[onerror]").count() == 0
    assert page.locator("img").count() == 1
