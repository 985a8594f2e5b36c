"""Words for tables: what a person would say of a value, a change and a row."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import contrafact as cf
from contrafact.report.captions import change_text, headline
from contrafact.report.comparison import answer_lines, answers_for, question_text
from contrafact.report.constraint_table import kept_constraints
from contrafact.report.sentences import outcome, sentence
from contrafact.report.table_words import UNKNOWN, change_phrase, value_text, values_apart
from contrafact.tables import Table
from hospital import hospital_result


@pytest.fixture(scope="module")
def result():
    return hospital_result()


def test_a_sentence_as_people_say_it(result):
    assert sentence(result, 0) == (
        "To be called 'low risk' instead of 'high risk', this row would need "
        "bmi 27.1 instead of 31.4; smokes: no instead of yes."
    )
    assert "ward: A instead of C" in sentence(result, 1)
    assert "hba1c 6.1 instead of not known" in sentence(result, 2)
    assert "activity: daily instead of some" in sentence(result, 2)
    assert sentence(result, 3).startswith("No change that makes the model say 'low risk' was found")


def test_every_change_is_named(result):
    """Who leaves one of four changes away is not in the class."""
    assert sentence(result, 2).count(" instead of ") == 1 + 4


def test_values_by_kind(result):
    table, row = result.table, result.X[2]
    texts = {part: value_text(table, part, row) for part in table.schema.parts}
    assert texts["bmi"] == "38.0"
    assert texts["smokes"] == "yes"
    assert texts["hba1c"] == UNKNOWN
    assert texts["activity"] == "some"
    assert texts["ward"] in "ABC"
    assert texts["admitted"] == str(result.frame["admitted"].iloc[2].date())
    assert texts["age"] == str(result.frame["age"].iloc[2])


def test_booleans_of_zeros_and_ones_are_yes_and_no():
    table = Table.read(pd.DataFrame({"smokes": [0, 1, 1], "sex": ["f", "m", "f"]}))
    two_texts = table.schema.edit("sex", kind="boolean")
    table = replace(table, schema=two_texts)
    assert value_text(table, "smokes", table.codes[1]) == "yes"
    assert value_text(table, "sex", table.codes[1]) == "m"


def test_numbers_that_differ_read_differently():
    table = Table.read(pd.DataFrame({"dose": [0.5, 1.5]}))
    before, after = np.array([0.5]), np.array([0.5004])
    assert values_apart(table, "dose", before, after) == ("0.5", "0.5004")


def test_dates_that_may_change_are_dates():
    days = pd.to_datetime(["2026-03-01", "2026-03-14"])
    frame = pd.DataFrame({"visit": days, "n": [1, 2]})
    table = Table.read(frame, cf.Schema.infer(frame, kinds={"visit": "continuous"}))
    assert change_phrase(table, "visit", *table.codes) == ("visit 2026-03-14 instead of 2026-03-01")


def test_names_stay_on_one_line():
    table = Table.read(pd.DataFrame({"a\nb": ["x\ny", "z"]}))
    assert change_phrase(table, "a\nb", *table.codes) == "a b: z instead of x y"


def test_rows_are_called_by_their_label(result):
    assert headline(result, 0, probabilities=False) == (
        "row P-1000 (option 1 of 2): 'high risk' → 'low risk'"
    )
    assert change_text(result, 1) == "2 of 9 columns changed"


def test_the_outcome_counts_columns(result):
    told = " ".join(outcome(result))
    assert "3 of 4 options now get the class that was asked for." in told
    assert "Typical change: 2 of 9 columns (median of 3 options" in told
    assert "Changed most often: bmi (in 3 of 3), smokes (in 2 of 3)" in told


def test_methods_are_compared_by_columns(result):
    answers = answers_for({"A": result}, 1)
    assert question_text(answers).startswith("row P-1001: 'high risk'")
    told = answer_lines(answers[0])
    assert told[1] == "4 columns changed"
    assert "–" not in told[2]  # the distance is a number although a value was missing


def test_constraints_are_checked_in_words(result):
    limits = cf.Constraints(
        frozen=["sex", "ward"],
        increasing=["age"],
        bounds={"bmi": (20, 26)},
        max_changed=3,
        relations=["age >= bmi"],
    )
    kept = kept_constraints(result, limits)
    assert {words: rows.tolist() for words, rows in kept.items()} == {
        "sex and ward frozen": [True, False, True, True],
        "bmi within [20, 26], age not falling": [False, True, True, False],
        "at most 3 columns changed": [True, True, False, True],
        "age >= bmi": [True] * 4,
    }


def test_bounds_by_row_go_by_instance(result):
    limits = cf.Constraints(bounds={"bmi": (None, [28.0, 24.0])})
    (kept,) = kept_constraints(result, limits).values()
    assert kept.tolist() == [True, True, False, False]
