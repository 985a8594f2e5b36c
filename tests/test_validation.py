import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrafact.validation import (
    Boolean,
    Function,
    Instance,
    Integer,
    ListOf,
    Nothing,
    OneOf,
    Real,
    Satisfies,
    brief,
    check_parameters,
)

BOOLEANS = [True, False, np.True_, np.False_]
bounds = st.none() | st.floats(-1e6, 1e6)


@given(st.floats(), bounds, bounds, bounds, bounds, st.booleans())
def test_real_accepts_exactly_its_interval(value, above, at_least, below, at_most, finite):
    rule = Real(above=above, at_least=at_least, below=below, at_most=at_most, finite=finite)
    expected = not math.isnan(value) and not (finite and math.isinf(value))
    for holds, limit in [
        (value.__gt__, above),
        (value.__ge__, at_least),
        (value.__lt__, below),
        (value.__le__, at_most),
    ]:
        expected = expected and (limit is None or holds(limit))
    assert rule.accepts(value) == expected
    assert rule.accepts(np.float64(value)) == expected


@pytest.mark.parametrize("value", [1, 1.0, np.int8(1), np.float32(1), 2**63 - 1])
def test_real_accepts_numbers_of_every_kind(value):
    assert Real(above=0).accepts(value)


@pytest.mark.parametrize("value", [*BOOLEANS, "1", None, 1j, [1.0], np.ones(1), math.nan])
def test_real_refuses_what_is_no_number(value):
    assert not Real().accepts(value)
    assert not Integer().accepts(value)


@given(st.integers())
def test_integer_accepts_whole_numbers_of_any_size(value):
    assert Integer().accepts(value)
    assert Integer(at_least=value, at_most=value).accepts(value)
    assert not Integer(above=value).accepts(value)


def test_fractions_are_no_numbers_since_torch_takes_none():
    assert not Real(above=0).accepts(Fraction(1))


@pytest.mark.parametrize("value", [1.0, np.float64(1), Fraction(1), math.inf])
def test_integer_refuses_other_numbers(value):
    assert not Integer().accepts(value)


def test_infinity_is_accepted_only_if_asked_for():
    assert not Real(at_least=0).accepts(math.inf)
    assert Real(at_least=0, finite=False).accepts(math.inf)
    assert not Real(at_least=0, finite=False).accepts(-math.inf)


def test_one_of_compares_type_and_value():
    rule = OneOf("a", 1, True)
    assert all(rule.accepts(value) for value in ("a", 1, True))
    assert not any(rule.accepts(value) for value in ("A", 1.0, False, None, ["a"], np.ones(3)))


def test_other_rules():
    assert all(Boolean().accepts(value) for value in BOOLEANS)
    assert not any(Boolean().accepts(value) for value in (0, 1, "True", None))
    assert Nothing().accepts(None)
    assert not any(Nothing().accepts(value) for value in (0, False, "", ()))
    assert Instance(dict).accepts({}) and not Instance(dict).accepts([])
    assert Function().accepts(len) and Function().accepts(lambda: 0)
    assert not Function().accepts(dict) and not Function().accepts("len")


def test_function_counts_arguments_where_it_can():
    rule = Function("x", "y")
    assert rule.accepts(lambda x, y, z=0: 0) and rule.accepts(max)  # max has no signature
    assert not any(rule.accepts(function) for function in (len, lambda x: 0, lambda x, y, z: 0))
    even = Satisfies(lambda value: value % 2 == 0, "even")
    assert even.accepts(2) and not even.accepts(3)


@given(st.integers(-5, 5) | st.none() | st.sampled_from("abc"))
def test_either_rule_is_enough(value):
    first, second, third = Integer(above=0), Nothing(), OneOf("a", "b")
    expected = first.accepts(value) or second.accepts(value) or third.accepts(value)
    assert (first | second | third).accepts(value) == expected


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Real(), "a number"),
        (Real(above=0), "a number above 0"),
        (Real(at_least=0, at_most=0.5), "a number at least 0 and at most 0.5"),
        (Integer(at_least=1), "a whole number at least 1"),
        (Integer(at_most=1234567), "a whole number at most 1234567"),
        (Real(above=1e-6, below=1e6), "a number above 1e-06 and below 1e+06"),
        (OneOf("a"), "'a'"),
        (OneOf("a", "b", 3), "'a', 'b' or 3"),
        (Integer(at_least=1) | Nothing(), "a whole number at least 1 or None"),
        (Boolean(), "True or False"),
        (Instance(dict), "a dict object"),
        (Instance(dict, "a mapping"), "a mapping"),
        (Function(), "a function"),
        (Function("x", "y"), "a function of x and y"),
        (Satisfies(bool, "not empty"), "not empty"),
    ],
)
def test_rules_say_what_they_accept(rule, words):
    assert str(rule) == words


def test_the_first_wrong_value_is_named():
    rules = {"rate": Real(above=0), "steps": Integer(at_least=1), "kind": OneOf("a", "b")}
    check_parameters("Method", rules, {"rate": 0.1, "steps": 3, "kind": "a", "other": object()})
    check_parameters("Method", rules, {})
    with pytest.raises(ValueError, match=r"^Method: rate must be a number above 0, got -1\.$"):
        check_parameters("Method", rules, {"kind": "c", "rate": -1})
    with pytest.raises(ValueError, match=r"^Method: kind must be 'a' or 'b', got 'c'\.$"):
        check_parameters("Method", rules, {"kind": "c", "rate": 1})


@pytest.mark.parametrize("value", [10**400, Fraction(10**400), -(10**400), 2**63, np.uint64(2**63)])
def test_real_refuses_whole_numbers_that_torch_cannot_hold(value):
    assert not Real().accepts(value)
    assert not Real(finite=False).accepts(value)


def test_a_whole_number_that_is_too_long_is_told_as_such():
    message = "a number above 0, got 1180591620717411303424, more than an integer of 64"
    with pytest.raises(ValueError, match=message):
        check_parameters("Method", {"rate": Real(above=0)}, {"rate": 2**70})


def test_list_of_checks_every_entry():
    rule = ListOf(OneOf("a", "b"), "'a' and 'b'")
    assert rule.accepts(["a", "b"]) and rule.accepts(()) and str(rule) == "a list of 'a' and 'b'"
    assert not any(rule.accepts(value) for value in ("a", ["c"], {"a"}, None, np.array(["a"])))


class Unprintable:
    def __repr__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.25, "0.25"),
        ("text", "'text'"),
        (True, "True"),
        (np.float32(0.5), "np.float32(0.5)"),
        (np.arange(3), "array([0, 1, 2])"),
        (np.zeros((1000, 1000)), "ndarray of shape (1000, 1000)"),
        pytest.param(10**5000, "a whole number of 16610 bits", id="huge"),
    ],
)
def test_values_are_told_briefly(value, words):
    assert brief(value) == words


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("x" * 10**6, id="text"),
        list(range(10**6)),
        dict.fromkeys(range(1000), "x" * 1000),
        [[["x" * 1000] * 100] * 100] * 100,
        Unprintable(),
        [Unprintable()],
        np.array([Unprintable()] * 3),
        np.array([["x" * 1000]]),
        np.zeros((3, 0, 10**6)),
    ],
)
def test_no_value_breaks_or_floods_a_message(value):
    told = brief(value)
    assert len(told) <= 203 and "\n" not in told
    with pytest.raises(ValueError, match=r"^Method: rate must be a number, got "):
        check_parameters("Method", {"rate": Real()}, {"rate": value})
