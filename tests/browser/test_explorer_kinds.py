"""The explorer on every kind of data: channels, images, rows of tables, prototype models."""

import numpy as np
import pytest
from explorer_driving import Asked, ask, drag, pick, rested, running, settled, shown
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.prototypes import GRLVQ
from hospital import patients, risk, risk_model

NAMES = ["acc x", "acc y", "acc z", "gyro x", "gyro y", "gyro z"]


@pytest.fixture(scope="module")
def motions():
    data = cf.load_dataset("BasicMotions")
    flat = data.X_train.reshape(len(data.X_train), -1)
    model = LogisticRegression(max_iter=200).fit(flat, data.y_train)
    with running(model, (data.X_test, data.y_test), (data.X_train, data.y_train), names=NAMES) as e:
        yield e


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    X = X.reshape(-1, 1, 8, 8) / 16
    model = LogisticRegression(max_iter=300).fit(X[:600].reshape(600, -1), y[:600])
    with running(model, (X[600:800], y[600:800]), (X[:600], y[:600])) as explorer:
        yield explorer


@pytest.fixture(scope="module")
def hospital():
    with running(risk_model(), patients(40), patients(150, seed=1)) as explorer:
        yield explorer


@pytest.fixture(scope="module")
def prototypes():
    data = cf.load_dataset("ItalyPowerDemand")
    model = GRLVQ(n_prototypes=2, random_state=0).fit(data.X_train[:, 0], data.y_train)
    known = (data.X_train, data.y_train)
    with running(model, (data.X_test[:50], data.y_test[:50]), known) as explorer:
        yield explorer


def percent(p):
    return "<1 %" if p < 0.005 else ">99 %" if p > 0.995 else f"{int(100 * p + 0.5)} %"


def test_a_channel_that_is_off_stays(motions, enter):
    page = enter(motions.url)
    asked = Asked(page)
    page.get_by_text("What may change?").click()
    for name in NAMES[:3]:
        page.get_by_label(f"{name}: may change").uncheck()
    page.get_by_label("gyro z: shown").uncheck()
    settled(page, lambda: page.locator(".editor .name").all_text_contents() == NAMES[:5])
    assert page.locator(".editor rect.frozen").count() == 3
    ask(page)
    assert (
        np.array(asked.last("explain")["limits"]["frozen"]).any(1).tolist()
        == [True] * 3 + [False] * 3
    )
    assert "acc x, acc y, acc z" in page.locator(".facts").inner_text()


def test_a_stretch_of_all_channels(motions, enter):
    page = enter(motions.url)
    asked = Asked(page)
    pick(page, "Select")
    drag(page, (0.4, 0.1), (0.6, 0.1))
    page.get_by_label("all channels").check()
    page.get_by_role("button", name="shift up").click()
    rested(page, asked)
    original = page.request.get(motions.url + "api/instances/0").json()["values"]
    moved = np.array(asked.last("predict")["values"]) != np.array(original)
    assert moved.any(1).all() and (moved == moved[0]).all()


def test_pixels_are_painted(digits, enter):
    page = enter(digits.url)
    asked = Asked(page)
    drag(page, (0.05, 0.05), (0.95, 0.05), what=".editor .stack canvas")
    settled(page, lambda: page.get_by_role("button", name="Undo").is_enabled())
    rested(page, asked)
    values = np.array(asked.last("predict")["values"])
    assert values.shape == (1, 8, 8) and (values[0, 0] == 1).all()
    original = np.array(page.request.get(digits.url + "api/instances/0").json()["values"])
    assert (values[0, 1:] == original[0, 1:]).all()
    verdict = page.request.post(
        digits.url + "api/predict", data={"values": values.tolist(), "tag": 0}
    )
    label = verdict.json()["label"]
    settled(page, lambda: page.locator(".says strong").inner_text() == str(label))
    assert page.get_by_role("img", name="What you changed").is_visible()


def test_a_mask_is_painted_and_the_answer_keeps_it(digits, enter):
    page = enter(digits.url, "#image=3")
    asked = Asked(page)
    pick(page, "Must stay")
    for row in (0.2, 0.3, 0.45):
        drag(page, (0.05, row), (0.95, row), what=".editor .stack canvas")
    pick(page, "May change")
    drag(page, (0.05, 0.45), (0.95, 0.45), what=".editor .stack canvas")
    ask(page)
    frozen = np.array(asked.last("explain")["limits"]["frozen"])
    assert (
        frozen.shape == (1, 8, 8)
        and frozen.any((0, 2)).tolist() == [False, True, True] + [False] * 5
    )
    assert page.locator(".way .pictures canvas").count() == 5
    slider = page.get_by_label("From before to after")
    slider.focus()
    slider.press("Home")
    assert (
        page.locator(".wipe canvas.after").evaluate("e => e.style.clipPath")
        == "inset(0px 0px 0px 100%)"
    )
    page.get_by_role("button", name="Take it into the editor").click()
    rested(page, asked)
    original = np.array(page.request.get(digits.url + "api/instances/3").json()["values"])
    assert (np.array(asked.last("predict")["values"]) == original)[frozen].all()


def test_an_image_is_painted_by_keys(digits, enter):
    page = enter(digits.url)
    asked = Asked(page)
    page.locator(".editor canvas[role=application]").focus()
    for key in ("ArrowDown", "ArrowRight", " "):
        page.keyboard.press(key)
    rested(page, asked)
    assert np.array(asked.last("predict")["values"])[0, 1, 1] == 1


def test_columns_have_controls_and_curves(hospital, enter):
    page = enter(hospital.url)
    asked = Asked(page)
    frame = patients(40).iloc[:1].copy()
    high = risk(frame)[0, 0]
    assert shown(page, "high risk") == percent(high)
    settled(page, lambda: page.locator('[data-column="1"] path.profile').get_attribute("d"))
    slider = page.get_by_label("bmi", exact=True)
    slider.fill("24")
    rested(page, asked)
    frame["bmi"] = 24.0
    settled(page, lambda: shown(page, "high risk") == percent(risk(frame)[0, 0]))
    page.get_by_label("smokes", exact=True).click()
    frame["smokes"] = ~frame["smokes"]
    settled(page, lambda: shown(page, "high risk") == percent(risk(frame)[0, 0]))
    page.get_by_label("activity", exact=True).select_option("daily")
    page.get_by_label("ward", exact=True).select_option("B")
    page.locator('[data-column="2"]').get_by_label("missing").check()
    settled(page, lambda: len(asked.of("predict")) >= 5)
    sent = asked.last("predict")["values"]
    names = [
        column["name"]
        for column in page.request.get(hospital.url + "api/overview").json()["columns"]
    ]
    row = dict(zip(names, sent, strict=True))
    assert row["hba1c"] is None and row["activity"] == 2
    assert [row[f"ward_{letter}"] for letter in "ABC"] == [0, 1, 0]
    # One step back takes the gap away, not more.
    page.keyboard.press("Control+z")
    settled(page, lambda: asked.last("predict")["values"][names.index("hba1c")] is not None)


def test_limits_of_columns_reach_the_search(hospital, enter):
    in_danger = int(risk(patients(40))[:, 0].argmax())
    page = enter(hospital.url, f"#row={in_danger}")
    asked = Asked(page)
    page.get_by_label("age must stay").check()
    page.get_by_label("ward must stay").check()
    page.get_by_label("bmi: which way").select_option("decreasing")
    page.get_by_label("bmi at least").fill("20")
    page.get_by_label("bmi at least").press("Tab")
    page.get_by_text("What may change?").click()
    page.get_by_label("most columns").fill("2")
    page.get_by_label("most columns").press("Tab")
    assert (
        "2 columns must stay, 1 bound, 1 direction, at most 2 columns"
        in page.locator(".limits summary").inner_text()
    )
    ask(page)
    limits = asked.last("explain")["limits"]
    assert limits["frozen"] == [True] + [False] * 6 + [True] * 3 + [False]
    assert (
        limits["lower"][1] == 20 and limits["decreasing"] == ["bmi"] and limits["max_changed"] == 2
    )
    assert "age" not in page.locator(".way .sheet").inner_text()
    assert page.locator(".way .told.bad").count() == 0
    page.get_by_role("button", name="Why is it not smaller?").click()
    page.wait_for_selector(".parts li.needed")


def test_prototypes_are_beside_the_instance(prototypes, enter):
    page = enter(prototypes.url)
    cards = page.locator(".prototypes .card")
    assert cards.count() == 4
    assert cards.first.locator("path.guide").count() == 1
    assert cards.first.locator("rect.weight").count() == 24
    distances = [
        float(text.split()[-1])
        for text in page.locator(".prototypes .caption > span").all_inner_texts()
    ]
    assert distances == sorted(distances)


@pytest.mark.parametrize("kind", ["motions", "digits", "hospital", "prototypes"])
def test_narrow_and_dark(kind, enter, request):
    page = enter(request.getfixturevalue(kind).url, width=390, height=800, color_scheme="dark")
    page.get_by_text("What may change?").click()
    page.get_by_text("How to search").click()
    ask(page)
    page.get_by_text("Take it with you").click()
    page.wait_for_selector(".code")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(21, 24, 27)"
    page.get_by_role("button", name="light page").click()
    assert page.evaluate(background) == "rgb(255, 255, 255)"
