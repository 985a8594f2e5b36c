"""What the page shows of one row of a table."""

import json
from dataclasses import replace

import numpy as np
import pytest

import contrafact as cf
from contrafact.report import write_report
from contrafact.report.table_sheets import SAME, sheet
from hospital import hospital_result, patients


@pytest.fixture(scope="module")
def result():
    return hospital_result()


LIMITS = cf.Constraints(frozen=["sex"], increasing=["age"], bounds={"bmi": (20, 36)})


def test_options_stand_side_by_side(result):
    told = sheet(result, [0, 1], LIMITS, [("l1", ["1", "2"])])
    assert told["options"] == ["option 1", "option 2"]
    lines = {line["name"]: line for line in told["lines"]}
    assert set(lines) == {"bmi", "smokes", "ward"}
    assert lines["bmi"]["now"] == "31.4"
    assert [cell["text"] for cell in lines["bmi"]["cells"]] == ["↓\u00a027.1", "↓\u00a024.0"]
    assert [cell["text"] for cell in lines["smokes"]["cells"]] == ["no", SAME]
    assert [cell["changed"] for cell in lines["ward"]["cells"]] == [False, True]
    assert told["words"][0] == "Option 1: bmi 27.1 instead of 31.4; smokes: no instead of yes."


def test_it_says_what_the_model_says(result):
    told = sheet(result, [0, 1], None, [])
    assert told["lead"].startswith("The model says 'high risk' of this row, with a probability of")
    assert told["lead"].endswith("Each of these 2 options alone would make it say 'low risk'.")
    assert told["verdict"]["now"].startswith("'high risk' (0.")
    assert all(cell["good"] for cell in told["verdict"]["cells"])
    named = [line["name"] for line in told["figures"]]
    assert named == ["P('high risk')", "P('low risk')"]


def test_an_option_that_failed_is_told(result):
    told = sheet(result, [2, 3], None, [])
    assert told["options"] == ["option 1", "option 2 (not reached)"]
    assert "1 of these 2 options makes it say 'low risk'" in told["lead"]
    assert [cell["good"] for cell in told["verdict"]["cells"]] == [True, False]
    (note,) = told["notes"]
    assert note["bad"]
    assert note["text"].startswith("Option 2 (not reached): not reached")


def test_one_option_needs_no_number(result):
    assert sheet(result, [0], None, [])["options"] == ["instead"]


def test_what_stays_is_told_with_its_reason(result):
    told = sheet(result, [0, 1], LIMITS, [])
    sex = result.frame["sex"].iloc[0]
    assert told["frozen"] == f"Kept as asked: sex ({sex})."
    assert told["limits"] == "Limits asked for: bmi within [20, 36], age not falling."
    assert told["stays"] == (
        "6 columns stay the same: age, hba1c, creatinine, activity, sex, admitted"
    )
    why = {line["name"]: line["why"] for line in told["unchanged"]}
    assert why == {
        "age": "",
        "hba1c": "",
        "creatinine": "",
        "activity": "",
        "sex": "kept as asked",
        "admitted": "never changed",
    }


def test_a_row_that_needs_no_change(result):
    already = replace(
        result[[0]],
        X_cf=result.X[:1],
        labels=np.array(["low risk"]),
        cf_labels=np.array(["low risk"]),
        status=np.array(["already_target"]),
        proba=result.cf_proba[:1],
    )
    told = sheet(already, [0], None, [])
    assert told["lead"].endswith("That is the class asked for, so nothing was changed.")
    assert told["lines"] == []


def page_of(result, tmp_path, **options):
    return write_report(result, tmp_path / "why.html", **options).read_text(encoding="utf-8")


def test_the_page_folds_the_metrics(result, tmp_path):
    page = page_of(result, tmp_path, reference=patients(), constraints=LIMITS)
    metrics = page.index("<h2>Metrics</h2>")
    assert page.index("<h2>What would have to be different</h2>") < metrics
    assert page[metrics:].startswith("<h2>Metrics</h2>\n<details><summary>Show the metrics")
    assert "columns changed" in page
    assert "2 rows of a table of 9 columns" in page


def test_one_row_has_no_summary(result, tmp_path):
    assert "<h2>Summary</h2>" not in page_of(result[:2], tmp_path)
    assert "<h2>Summary</h2>" in page_of(result, tmp_path)


def test_the_page_of_a_table_holds_its_sheets(result, tmp_path):
    page = page_of(result, tmp_path)
    start = page.index('id="payload">') + len('id="payload">')
    content = json.loads(page[start : page.index("</script>", start)])
    assert content["modality"] == "table"
    first, second = content["instances"]
    assert (first["name"], second["name"]) == ("row P-1000", "row P-1001")
    assert first["sheets"][0]["options"] == ["option 1", "option 2"]
    assert [answer["changed_text"] for answer in second["answers"][0]] == ["4 of 9", "2 of 9"]


def test_names_and_levels_are_never_markup(tmp_path):
    frame = patients(20).rename(columns={"sex": "<b>sex"})
    frame["<b>sex"] = ["<script>alert(1)</script>", "</script>"] * 10
    frame.index = ["<i>x"] * 20
    after = frame.copy()
    after["<b>sex"] = frame["<b>sex"].to_numpy()[::-1]
    model = lambda X: np.tile([0.0, 1.0], (len(X), 1))  # noqa: E731
    result = cf.Counterfactuals.from_arrays(model, frame, after)
    page = page_of(result, tmp_path, constraints=cf.Constraints(frozen=["<b>sex"]))
    for raw in ("<b>sex", "<script>alert", "<i>x"):
        assert raw not in page
