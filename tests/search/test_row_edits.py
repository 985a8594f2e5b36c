"""Numbers of rows of tables go back toward the instance on their grid."""

import numpy as np
import pandas as pd

import contrafact as cf
from contrafact.search.row_edits import reduce_numbers
from contrafact.search.segments import as_rows, task_segments


class Reduced(cf.NearestUnlike):
    """Return the neighbor with its numbers reduced, and remember the tasks."""

    def _explain(self, tasks):
        self.seen = tasks
        return tasks.candidates(reduce_numbers(tasks, tasks.guide), guide_index=tasks.guide_index)


def make_rows(n, seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "visits": rng.integers(0, 60, n),
            "ward": rng.choice(["A", "B", "C"], n),
            "weight": rng.normal(70, 10, n).round(1),
        }
    )


def ask(frame):
    p = 1 / (1 + np.exp(-0.4 * (frame["visits"].to_numpy() - 29.5)))
    return np.stack([1 - p, p], axis=1)


def test_numbers_stop_at_the_last_value_of_the_class():
    X = make_rows(80, 0)
    method = Reduced().fit(ask, X, (X["visits"] > 29).astype(int))
    result = method.explain(X[:20])
    assert result.valid.all()
    rising = result.target == 1
    visits = result.frame_cf["visits"].to_numpy()
    assert rising.any() and not rising.all()
    # the first whole number of the class; a level of the way may step over one
    assert (np.abs(visits[rising] - 30) <= 1).all()
    assert (np.abs(visits[~rising] - 29) <= 1).all()
    # what the model does not look at goes back altogether, or to the next value on its grid
    weight = result.frame_cf["weight"].to_numpy() - result.frame["weight"].to_numpy()
    assert np.abs(weight).max() <= 0.7


def test_segments_of_tables_are_columns():
    X = make_rows(40, 1)
    method = Reduced().fit(ask, X, (X["visits"] > 29).astype(int))
    method.explain(X[:4])
    tasks = method.seen
    assert task_segments(tasks).tolist() == [0, 1, 1, 1, 2]
    assert task_segments(tasks, 2).tolist() == [0, 0, 0, 0, 1]
    between = tasks.x.clone()
    between[:, 0] += 1e-3
    assert bool((as_rows(tasks, between) == tasks.x).all())
