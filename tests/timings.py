"""Times of two pieces of work beside each other, on a machine that may do other work as well."""

import time


def time_ratio(work, other, enough):
    """Return how often the time of `other` goes into that of `work`, the least of several attempts.

    The first attempt at or below `enough` ends them.
    """
    ratios = []
    while len(ratios) < 5 and min(ratios, default=float("inf")) > enough:
        ratios.append(_best_of_three(work) / _best_of_three(other))
    return min(ratios)


def _best_of_three(work):
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)
