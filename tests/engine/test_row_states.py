"""One state and one reason per instance, whatever happens in which order."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from contrafact.engine.row_states import RowStates, State
from contrafact.models.verdict import Verdict

ROW = torch.tensor([0])
EVENTS = st.lists(st.sampled_from(["finish", "fail", "refuse", "exhaust"]), max_size=8)


def happen(states, event, number):
    if event in ("fail", "refuse", "exhaust"):
        getattr(states, event)(ROW, f"{event} {number}")
    else:
        getattr(states, event)(ROW)


@given(EVENTS)
def test_a_failure_is_final_and_tells_its_first_reason(events):
    states = RowStates(torch.zeros(1, 2))
    for number, event in enumerate(events):
        happen(states, event, number)
    if "fail" in events:
        assert states.state[0] == State.FAILED
        assert states.reason[0] == f"fail {events.index('fail')}"
        assert states.any_failed


@given(EVENTS)
def test_refusals_keep_their_first_reason_and_exhaustion_keeps_it(events):
    states = RowStates(torch.zeros(1, 2))
    for number, event in enumerate(events):
        happen(states, event, number)
    if "fail" in events:
        return
    done = bool(events) and events[0] == "finish"
    if done:
        assert states.state[0] == State.DONE and states.reason[0] == ""
        return
    refused = [n for n, event in enumerate(events) if event == "refuse"]
    assert states.reason[0] == (f"refuse {refused[0]}" if refused else "")
    if "exhaust" in events:
        assert states.state[0] == State.EXHAUSTED or "finish" in events


def test_events_of_one_instance_leave_the_others_alone():
    states = RowStates(torch.zeros(4, 2))
    error = ValueError("no")
    states.fail(torch.tensor([1]), "broke", error)
    states.refuse(torch.tensor([2]), "cannot")
    states.exhaust(torch.tensor([3, 3]), "the budget ran out")
    assert states.pending().tolist() == [True, False, False, False]
    assert states.reason == ["", "broke", "cannot", ""] and states.exceptions == {1: error}


def test_of_several_candidates_the_best_is_remembered():
    x = torch.zeros(2, 3)
    states = RowStates(x)
    x_cf = torch.tensor([[5.0, 0, 0], [1.0, 0, 0], [2.0, 0, 0], [0.5, 0, 0]])
    row = torch.tensor([0, 0, 1, 1])
    p = torch.tensor([0.9, 0.8, 0.4, 0.2])
    verdict = Verdict.of_proba(torch.stack([1 - p, p], 1))
    target = torch.ones(4, dtype=torch.long)
    states.remember(x_cf, row, x[row], verdict, target)
    # The smaller of two in the class; of two outside it, the one nearer to the class.
    assert states.best_x_cf[:, 0].tolist() == [1.0, 2.0]
