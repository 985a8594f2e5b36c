"""Where the swap search starts. This module imports numba, so import it only to fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .swap_columns import Columns, in_blocks
from .swap_kernels import Floats, Ints


@dataclass
class ClassStart:
    """The samples of a class, and what is chosen of them so far.

    Parameters
    ----------
    columns : Columns
        Dissimilarities of all samples.
    a, b : int
        The samples of the class are a, ..., b − 1.
    weights : array of shape (b − a,)
        Their weights.
    """

    columns: Columns
    a: int
    b: int
    weights: Floats

    def __post_init__(self) -> None:
        """Start with nothing chosen."""
        size = self.b - self.a
        self.pool = np.full(size, np.inf)  # dissimilarity to the nearest sample chosen
        self.unused = np.ones(size, bool)

    def free(self) -> NDArray[np.bool_]:
        """Return the samples that are not at the place of one chosen."""
        return self.unused & (self.pool > 0)

    def greedy(self) -> int:
        """Find the free sample that makes Σ_i w_i min_k d_ik least."""
        pool = (self.pool / self.columns.unit).astype(np.float32)
        weights = self.weights.astype(np.float32)

        def spread(rows: Ints) -> Floats:
            block = self.columns.block(rows)[:, self.a : self.b]
            sums: Floats = np.minimum(block, pool) @ weights
            return sums

        parts = in_blocks(self.b, spread, start=self.a)
        sums = np.concatenate(parts)
        available = np.where(self.free(), sums, np.inf)
        return int(available.argmin())

    def draw(
        self,
        init: str,
        rng: np.random.RandomState,
    ) -> int:
        """Draw a free sample; with "kmeans++" the probability is ∝ w_i min_k d_ik²."""
        free = self.free()
        if init == "kmeans++" and self.pool.max() < np.inf:
            chance = free * self.weights * self.pool**2
        else:
            chance = free * 1.0
        probability = chance / chance.sum()
        return int(rng.choice(self.b - self.a, p=probability))

    def choose(self, j: int) -> int:
        """Mark sample j of the class as chosen; returns its position among all samples."""
        position = self.a + j
        self.unused[j] = False
        d = self.columns.exact(np.array([position]))[0]  # (n,)
        self.pool = np.minimum(self.pool, d[self.a : self.b])
        return position


def starting_points(
    columns: Columns,
    labels: Ints,
    counts: Ints,
    weights: Floats,
    init: str,
    rng: np.random.RandomState,
) -> Ints:
    """Choose the samples where the prototypes of every class start.

    Parameters
    ----------
    columns : Columns
        Dissimilarities of the samples, which are sorted by class.
    labels : int array of shape (n,)
        Class of each sample, 0, 1, ..., ascending.
    counts : int array of shape (classes,)
        How many samples of each class. They are at different places, so fewer are chosen where a
        class has fewer places.
    weights : array of shape (n,)
        Weight of each sample.
    init : {"greedy", "kmeans++", "random"}
        Each in turn where Σ_i w_i min_k d_ik within the class is least, drawn with probability
        ∝ w_i min_k d_ik², or drawn evenly.
    rng : numpy.random.RandomState
        Draws the samples.

    Returns
    -------
    int array of shape (K,)
        Positions of the samples, class by class.
    """
    chosen: list[int] = []
    for c, count in enumerate(counts):
        a, b = np.searchsorted(labels, [c, c + 1])
        start = ClassStart(
            columns,
            int(a),
            int(b),
            weights[a:b],
        )
        for _ in range(count):
            if not start.free().any():
                break
            j = start.greedy() if init == "greedy" else start.draw(init, rng)
            chosen.append(start.choose(j))
    return np.array(chosen)


def several_starts(
    columns: Columns,
    labels: Ints,
    counts: Ints,
    weights: Floats,
    init: str,
    n: int,
    rng: np.random.RandomState,
) -> list[Ints]:
    """Choose samples to start from n times; after the first, "greedy" is drawn as "kmeans++" does.

    Parameters
    ----------
    columns, labels, counts, weights, init, rng
        As for `starting_points`.
    n : int
        Number of starts.

    Returns
    -------
    list of int arrays of shape (K,)
        The starts.
    """
    again = "kmeans++" if init == "greedy" else init
    inits = [init] + [again] * (n - 1)
    return [starting_points(columns, labels, counts, weights, each, rng) for each in inits]


def nearest_starts(columns: Columns, labels: Ints, start: Ints) -> tuple[Floats, Floats]:
    """Compute the dissimilarities of samples to the nearest starts of their class and of others.

    Parameters
    ----------
    columns, labels
        As for `starting_points`.
    start : int array of shape (K,)
        Positions of the prototypes.

    Returns
    -------
    own, other : array of shape (n,)
        d⁺ and d⁻.
    """
    same = labels[start][:, None] == labels  # (K, n)
    d = columns.exact(start)
    own = np.where(same, d, np.inf).min(0)
    other = np.where(same, np.inf, d).min(0)
    return own, other
