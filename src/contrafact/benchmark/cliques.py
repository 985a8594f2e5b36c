"""Groups of methods that cannot be told apart."""

from __future__ import annotations

import pandas as pd


def find_cliques(methods: list[str], pairs: pd.DataFrame) -> list[tuple[str, ...]]:
    """Find the largest sets of methods without a pair that differs.

    Bron and Kerbosch's algorithm, https://doi.org/10.1145/362342.362367.

    Parameters
    ----------
    methods : list of str
        The methods, best first.
    pairs : DataFrame
        One row per pair: `a`, `b`, `different`.

    Returns
    -------
    list of tuple of str
        Sets of two or more, best first.
    """
    alike: dict[str, set[str]] = {method: set() for method in methods}
    same = pairs[~pairs["different"]]
    for a, b in zip(same["a"], same["b"], strict=True):
        alike[a].add(b)
        alike[b].add(a)
    found: list[tuple[str, ...]] = []

    def grow(
        clique: set[str],
        candidates: set[str],
        excluded: set[str],
    ) -> None:
        if not candidates and not excluded and len(clique) > 1:
            found.append(tuple(sorted(clique, key=methods.index)))
        for method in sorted(candidates, key=methods.index):
            neighbors = alike[method]
            grow(clique | {method}, candidates & neighbors, excluded & neighbors)
            candidates = candidates - {method}
            excluded = excluded | {method}

    grow(set(), set(methods), set())
    return sorted(found, key=lambda clique: [methods.index(method) for method in clique])
