"""Several counterfactuals of a row of a table that differ in the columns they change."""

from __future__ import annotations

from dataclasses import replace

import torch

from ...engine import Candidates, Tasks
from ...numerics import occurrence
from .found_options import FoundOptions, Search, take_candidates

#: ways to leave out a column of every earlier option that are tried
ATTEMPTS = 3
#: how far columns may go where others have to help: the one that the first option changes most,
#: then those of all options
HALF_WAY, MOST_OF_THE_WAY = 0.5, 0.75
#: columns of an option that are tried with values farther away
FARTHER_COLUMNS = 2


def search_options(search: Search, tasks: Tasks, *, together: bool = False) -> Candidates:
    """Find k counterfactuals per row that change different sets of columns.

    Option by option: of every earlier option, one column that it changes has to stay as it is. So
    no option changes all that an earlier one does. Where no such option is found with any of a few
    choices of columns, the columns that earlier options change most may go a part of the way only,
    so that others have to help.

    Where that does not lead to another set of columns either, options change the columns of an
    earlier one to clearly other values, and their messages say so.

    Parameters
    ----------
    search : function of tasks
        Finds counterfactuals.
    tasks : Tasks
        Rows of a table, k tasks for each.
    together : bool, default=False
        Whether the first search is for all k, for methods that look for different ones themselves.

    Returns
    -------
    Candidates
        Up to k per row; the first of a row is the first that the first search found.
    """
    instances = replace(tasks.per_instance(), k=1)
    first = search(tasks if together else instances)
    if len(first) == 0:
        return first
    options = FoundOptions(instances, tasks.k)
    turn = occurrence(first.tasks.row)
    for number in turn.unique().tolist():
        options.add(take_candidates(first, turn == number))
    options.check_first()
    _find_other_columns(search, options)
    left = options.incomplete()
    left = left[instances.take(left).affords()]  # else the budget is the reason
    instances.refuse(left, "no other set of columns was found that changes the class")
    options.add_repeating()
    _find_other_values(search, options)
    return Candidates.concat(options.candidates)


def _find_other_columns(search: Search, options: FoundOptions) -> None:
    """Search for options that change other sets of columns, one of every row at a time."""
    rows = options.incomplete()
    for _ in range(1, options.k):
        left = rows
        for attempt in range(ATTEMPTS):
            left = options.search(search, left, options.leave_out(left, attempt))
        limits = options.go_part_way(left, HALF_WAY, only_first=True)
        left = options.search(search, left, limits)
        left = options.search(search, left, options.go_part_way(left, MOST_OF_THE_WAY))
        # A row for which nothing was found is not searched again: it would be the same search.
        rows = rows[~torch.isin(rows, left)]
        rows = rows[torch.isin(rows, options.incomplete())]


def _find_other_values(search: Search, options: FoundOptions) -> None:
    """Search for options that change columns of an earlier one farther."""
    for _ in range(1, options.k):
        left = options.incomplete()
        for nth_column in range(FARTHER_COLUMNS):
            for number in range(len(options.candidates)):
                limits = options.go_farther(left, number, nth_column)
                left = options.search(search, left, limits, repeating=True)
