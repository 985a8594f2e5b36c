"""Strange arguments at every door: a clear error, or a result that an independent check confirms.

CONTRAFACT_FUZZ sets the number of cases; `make fuzz` runs many more and writes a table.
"""

import importlib
import os

import numpy as np
import pytest
import torch
from cases import choose, counts
from doors import DOORS, NOT_DOORS, Door
from judging import Case, judge

N_CASES = int(os.environ.get("CONTRAFACT_FUZZ", "3000"))
PACKAGES = (
    "benchmark",
    "data",
    "engine",
    "explainers",
    "geometry",
    "guides",
    "metrics",
    "models",
    "nn",
    "numerics",
    "prototypes",
    "report",
    "scale",
    "search",
    "tables",
    "testing",
)
SHARES = counts(N_CASES)

pytestmark = pytest.mark.usefixtures("own_random_numbers")


@pytest.mark.parametrize("name", DOORS)
def test_right_arguments_are_accepted(name):
    outcome = judge(Case(name, ()))
    missing = name == "nn.load_model"  # its file is not there
    assert outcome.kind == ("clear" if missing else "confirmed"), outcome


@pytest.mark.parametrize("name", [name for name in DOORS if SHARES[name]])
def test_strange_arguments(name):
    findings = []
    for case in choose(DOORS[name], SHARES[name]):
        outcome = judge(case)
        if outcome is not None and outcome.finding:
            findings.append(f"{outcome.kind}: {case}: {outcome.detail} ({outcome.where})")
    assert not findings, "\n".join(findings)


def test_every_public_name_is_a_door_or_known_not_to_be_one():
    walked = {name.partition(".")[2].partition(",")[0].partition(".")[0] for name in DOORS}
    for package in ("", *PACKAGES):
        module = importlib.import_module(f"contrafact.{package}".rstrip("."))
        unknown = set(module.__all__) - walked - NOT_DOORS
        assert not unknown, f"contrafact.{package}: {sorted(unknown)}"


def outcome_of(call, value="'3'", **known):
    """Judge a door of our own making."""
    DOORS["test.door"] = Door("test.door", call, lambda: {"count": 2}, **known)
    try:
        return judge(Case("test.door", (("count", value),)))
    finally:
        del DOORS["test.door"]


def accepts_all(count: "int") -> None:
    """Take anything."""


def fails_inside(count):
    return np.zeros(3) + count


def turns_the_switch(count):
    torch.set_default_dtype(torch.float64)


def draws(count):
    return torch.rand(3)


def writes(count):
    count += 1


def test_the_judge_sees_what_it_is_there_for(monkeypatch):
    assert outcome_of(accepts_all).kind == "silent"
    assert outcome_of(accepts_all, "2").kind == "confirmed"
    assert outcome_of(accepts_all, "-3").kind == "silent"
    assert outcome_of(fails_inside).kind == "unclear"
    assert outcome_of(turns_the_switch).kind == "state"
    assert outcome_of(draws).kind == "state"
    assert outcome_of(writes, "np.array([1, 2])").kind == "state"
    assert outcome_of(lambda count: 1, check=lambda given, result: ["wrong"]).kind == "silent"
    assert torch.get_default_dtype() == torch.float32


def test_a_call_that_does_not_end_is_ended(monkeypatch):
    monkeypatch.setattr("judging.LIMIT", 0.2)

    def spins(count):
        while True:
            pass

    assert outcome_of(spins).kind == "hang"
