"""The time left follows the pace of the last chunks."""

from contrafact.scale.pace import LAST, Pace


def paced(seconds, rows=10, left=10_000):
    """Finish chunks that take these seconds each."""
    clock = [0.0]
    pace = Pace(left, lambda: clock[0])
    assert pace.seconds_left() is None and pace.text() == ""
    for step in seconds:
        clock[0] += step
        pace.add(rows)
    return pace, clock


def test_a_steady_pace_goes_on():
    pace, _ = paced([2.0] * 100)
    assert pace.seconds_left() == (10_000 - 1000) / 10 * 2.0
    assert pace.text() == "30:00 left"


def test_old_chunks_are_forgotten():
    pace, _ = paced([100.0] * 30 + [1.0] * LAST)
    assert pace.seconds_left() == (10_000 - 500) / 10


def test_waiting_for_a_chunk_brings_the_end_nearer_and_never_past_it():
    pace, clock = paced([2.0] * 4, left=60)
    assert pace.seconds_left() == 4.0
    clock[0] += 3
    assert pace.seconds_left() == 1.0
    clock[0] += 30
    assert pace.seconds_left() == 0.0


def test_long_times_have_hours():
    pace, _ = paced([60.0], rows=1, left=181)
    assert pace.text() == "3:00:00 left"
