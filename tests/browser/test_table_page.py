"""The page of a table: the options of one row side by side, the rest folded."""

import pytest

import contrafact as cf
from contrafact.report import write_report
from hospital import hospital_result, patients

LIMITS = cf.Constraints(frozen=["sex"], increasing=["age"], bounds={"bmi": (20, 36)})


@pytest.fixture(scope="module")
def result():
    return hospital_result()


@pytest.fixture(scope="module")
def one(result, folder):
    """The page of one row."""
    return write_report(
        result[:2], folder / "one_row.html", reference=patients(), constraints=LIMITS
    )


@pytest.fixture(scope="module")
def two(result, folder):
    """The page of two rows by two methods."""
    results = {"first": result, "second": result[[1, 2]]}
    return write_report(results, folder / "two_rows.html", constraints=LIMITS)


def cells(page, row):
    return page.locator(f".sheet tbody tr:nth-child({row}) > *").all_inner_texts()


def test_the_options_stand_side_by_side(one, visit):
    page = visit(one)
    head = page.locator(".detail > .wide thead th").all_inner_texts()
    assert head == ["", "now", "option 1", "option 2"]
    table = page.locator(".detail > .wide .sheet")
    lines = [line.split("\t") for line in table.inner_text().splitlines()]
    assert ["bmi", "31.4", "↓\u00a027.1", "↓\u00a024.0"] in lines
    assert ["smokes", "yes", "no", "same"] in lines
    assert lines[1][0] == "the model says"


def test_one_row_has_no_list(one, visit):
    page = visit(one)
    assert page.locator(".instances").count() == 0
    assert page.get_by_text("next →").count() == 0
    assert page.locator(".detail h3").inner_text() == "row P-1000"


def test_the_first_screen_has_the_options_and_no_metrics(one, visit):
    page = visit(one, height=800)
    box = page.locator(".detail > .wide").bounding_box()
    assert box["y"] + box["height"] < 800
    assert not page.get_by_text("knn_distance").first.is_visible()
    for fold in ("Show the metrics", "Probabilities and metrics"):
        page.get_by_text(fold, exact=True).click()
    assert page.get_by_text("knn_distance").first.is_visible()


def test_what_stays_unfolds(one, result, visit):
    page = visit(one)
    assert page.get_by_text(f"Kept as asked: sex ({result.frame['sex'].iloc[0]}).").is_visible()
    admitted = page.get_by_role("row", name="admitted")
    assert not admitted.is_visible()
    page.get_by_text("6 columns stay the same").click()
    assert admitted.is_visible()


def test_folds_open_by_keyboard(one, visit):
    page = visit(one)
    fold = page.locator("summary", has_text="In words")
    fold.focus()
    page.keyboard.press("Enter")
    words = "Option 1: bmi 27.1 instead of 31.4; smokes: no instead of yes."
    assert page.get_by_text(words).is_visible()


def test_rows_and_methods_are_chosen(two, visit):
    page = visit(two)
    assert page.locator(".instances tbody tr").count() == 2
    page.get_by_role("button", name="row P-1001").click()
    assert page.locator(".detail h3").inner_text() == "row P-1001"
    head = page.locator(".detail > .wide thead th").all_inner_texts()
    assert head[-1] == "option 2 (not reached)"
    assert page.locator(".sheet td.bad").count() == 1
    page.get_by_label("second").check(force=True)
    head = page.locator(".detail > .wide thead th").all_inner_texts()
    assert head == ["", "now", "instead"]


@pytest.mark.parametrize("width", [320, 400, 700])
def test_a_narrow_screen_does_not_scroll_sideways(one, visit, width):
    page = visit(one, width=width)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_broken_limit_is_told(result, folder, visit):
    limits = cf.Constraints(frozen=["ward"])
    page = visit(write_report(result[:2], folder / "broken.html", constraints=limits))
    assert page.get_by_text("Constraint broken: ward frozen.").is_visible()
