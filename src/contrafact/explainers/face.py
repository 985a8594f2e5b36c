"""FACE: the end of the shortest path through dense regions to a row of the target class."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra
from sklearn.neighbors import NearestNeighbors
from torch import Tensor
from typing_extensions import override

from ..engine import Candidates, Tasks
from ..models.classifier import Array
from ..validation import Boolean, Real
from .support.option_rules import COUNT
from .support.row_explainer import RowExplainer

#: rows of a path that are reported; of a longer one the last
PATH_ROWS = 32
#: numbers of the shortest paths held at once; more instances take turns
MAX_ELEMENTS = 2**24
#: ends tried for each counterfactual wanted
N_ENDS = 10


class FACE(RowExplainer):
    """Walk along reference rows, through dense regions, to a row of the target class.

        w_ij = d(i, j) · (r_i + r_j) / 2r̄    for each of the `n_neighbors` nearest j of i

        x' = the end of the shortest path from x over reference rows to a row with
        P(c) ≥ `threshold` that is not among the sparsest

    with d the distance in scaled coordinates, r_i the distance of row i to its `n_neighbors`-th
    nearest and r̄ the median of these: −log of an exponential density, so that steps through sparse
    regions cost more. Every step of the path is between rows that really occur and are alike; it is
    told in `info["path"]`, by the numbers of the reference rows.

    Within constraints the end is the nearest row that keeps them, and ends are tried in the order
    of their paths until the model accepts one. Instances without a path take the straight line to
    their nearest unlike neighbor, reported in `info["fallback"]`. With k > 1 paths to further ends
    are given.

    Parameters
    ----------
    n_neighbors : int, default=10
        Neighbors of each row in the graph, and rows that a path can start with.
    threshold : float, default=0.5
        Least P(c) of an end, where there are such rows; a confidence asked for counts if higher.
    sparsest : float, default=0.1
        Share of the reference rows in the sparsest regions that no path ends at.
    weighted : bool, default=True
        Whether steps through sparse regions cost more; else w_ij = d(i, j).

    References
    ----------
    Poyiadzi, Sokol, Santos-Rodriguez, De Bie, Flach: FACE: feasible and actionable counterfactual
    explanations. AIES 2020. https://doi.org/10.1145/3375627.3375850

    Examples
    --------
    >>> result = FACE().fit(model, X_train[:, 0], y_train).explain(X_test[:8, 0])
    >>> result.valid.mean()
    1.0
    """

    rules = {
        "n_neighbors": COUNT,
        "threshold": Real(at_least=0, at_most=1),
        "sparsest": Real(at_least=0, below=1),
        "weighted": Boolean(),
    }
    info_keys = {
        "guide_index": "reference row at the end of the path; -1 without a path",
        "path": "reference rows of the path, from the first to the end, filled up with -1",
        "path_length": "number of rows of the path",
        "path_cost": "sum of w over its steps; NaN without a path",
        "fallback": "whether the line to the nearest unlike neighbor was taken",
    }

    def __init__(
        self,
        n_neighbors: int = 10,
        threshold: float = 0.5,
        sparsest: float = 0.1,
        weighted: bool = True,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.threshold = threshold
        self.sparsest = sparsest
        self.weighted = weighted

    @override
    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [{}, {"n_neighbors": 3, "weighted": False}]

    @override
    def _fit(self, X: Tensor, y: Array | None) -> None:
        super()._fit(X, y)
        rows = self._scaled(X)
        if len(rows) < 2:
            raise ValueError("FACE needs at least two reference rows; X holds one.")
        count = min(self.n_neighbors, len(rows) - 1)
        distance, neighbor = self._neighbors(count).kneighbors()  # a row is none of its own
        self._radius = distance[:, -1]
        self._unit = np.median(self._radius) or 1.0
        self._edges = (np.arange(len(rows)).repeat(count), neighbor.ravel(), distance.ravel())

    def _neighbors(self, count: int) -> Any:
        """Return a search for the nearest reference rows."""
        rows = self._scaled(self._reference[0])
        return NearestNeighbors(n_neighbors=count, algorithm="brute").fit(rows)

    def _scaled(self, x: Tensor) -> Array:
        """Return rows as an array in coordinates without units."""
        weight = torch.ones_like(x[0]) if self.space_ is not None else self.parts_.weight
        return np.asarray((x * weight).cpu().numpy(), dtype=np.float64)

    def _cost(self, distance: Array, radius: Array, other: Array) -> Array:
        """Compute w of steps between rows of given radii."""
        # Equal rows are a step of no length, which a sparse graph would take for no step.
        distance = np.maximum(distance, 1e-9 * self._unit)
        if not self.weighted:
            return distance
        crowding = (radius + other) / (2 * self._unit)
        return np.asarray(distance * np.maximum(crowding, 1e-9))

    @override
    def _explain(self, tasks: Tasks) -> Candidates:
        instances = tasks.per_instance()
        at_once = max(1, MAX_ELEMENTS // (2 * (len(self._radius) + 1)))
        return Candidates.concat([self._walk(part) for part in instances.split(at_once)])

    def _walk(self, tasks: Tasks) -> Candidates:
        """Find paths of some instances and take the first ends that the model accepts."""
        cost, before = self._shortest_paths(tasks)
        ends, reachable = self._order_ends(tasks, cost)
        m = ends.shape[1]
        row = torch.from_numpy(ends).to(tasks.x.device)
        trial = self._project_all(tasks, self.guide_.candidates_[row])
        asked = torch.from_numpy(reachable).to(tasks.x.device).flatten()
        accepted = torch.zeros_like(asked)
        trying = tasks.repeat(m).take(asked)
        accepted[asked] = trying.accepted(trial.flatten(0, 1)[asked])
        accepted = accepted.reshape(-1, m)
        accepted &= accepted.cumsum(1) <= tasks.k
        tasks.finished(len(tasks))

        position, place = accepted.nonzero(as_tuple=True)
        lost = (~accepted.any(1)).nonzero().flatten()
        line, on_line = self._fall_back(tasks.take(lost), trial[lost, 0])
        instance = torch.cat([position, lost]).cpu().numpy()
        end = np.full(len(instance), -1)
        end[: len(position)] = ends[position.cpu().numpy(), place.cpu().numpy()]
        path, length = _trace(before, instance, end)
        whole = np.where(end >= 0, cost[instance, end], np.nan)
        return tasks.take(torch.cat([position, lost])).candidates(
            torch.cat([trial[position, place], line]),
            guide_index=torch.from_numpy(end),
            path=torch.from_numpy(path),
            path_length=torch.from_numpy(length),
            path_cost=torch.from_numpy(whole),
            fallback=torch.cat([torch.zeros_like(position, dtype=torch.bool), on_line]),
        )

    def _shortest_paths(self, tasks: Tasks) -> tuple[Array, Array]:
        """Return cost and last step of the shortest path to every reference row, (n, rows)."""
        n_rows = len(self._radius)
        x = self._scaled(tasks.x)
        if len(x) == 0:
            return np.zeros((0, n_rows)), np.zeros((0, n_rows), dtype=np.int64)
        count = len(self._edges[0]) // n_rows
        distance, neighbor = self._neighbors(count).kneighbors(x)
        start = (n_rows + np.arange(len(x))).repeat(neighbor.shape[1])
        own = distance[:, -1:].repeat(neighbor.shape[1], 1)
        first = self._cost(distance, own, self._radius[neighbor])
        i, j, step = self._edges
        between = self._cost(step, self._radius[i], self._radius[j])
        # Neighbors in one direction are connected in both; no path leads through an instance.
        source = np.concatenate([i, j, start])
        end = np.concatenate([j, i, neighbor.ravel()])
        weight = np.concatenate([between, between, first.ravel()])
        once = np.unique(source * (n_rows + len(x)) + end, return_index=True)[1]
        shape = (n_rows + len(x), n_rows + len(x))
        graph = csr_matrix((weight[once], (source[once], end[once])), shape)
        instances = n_rows + np.arange(len(x))
        cost, before = dijkstra(graph, indices=instances, return_predecessors=True)
        return cost[:, :n_rows], before[:, :n_rows]

    def _order_ends(self, tasks: Tasks, cost: Array) -> tuple[Array, Array]:
        """Return the first ends by the cost of their paths, and which of them there are, (n, m)."""
        target = tasks.target.cpu().numpy()
        p_target = self.guide_.candidate_proba_.cpu().numpy().T[target]
        is_member = self.guide_.candidate_class_.cpu().numpy() == target[:, None]
        least = max(self.threshold, tasks.confidence or 0.0)
        is_dense = self._radius <= np.quantile(self._radius, 1 - self.sparsest)
        is_good = is_member & (p_target >= least) & is_dense & np.isfinite(cost)
        usable = is_member & np.isfinite(cost)
        # Other rows of the class are ends only behind all good ones.
        key = np.where(usable, cost + np.where(is_good, 0.0, 1e12), np.inf)
        ends = key.argsort(axis=1, kind="stable")[:, : N_ENDS * tasks.k]
        return ends, np.isfinite(np.take_along_axis(key, ends, 1))


def _trace(before: Array, instance: Array, end: Array) -> tuple[Array, Array]:
    """Follow paths back from their ends: rows in the order of the path, and how many they are."""
    n_rows = before.shape[1]
    backward = []
    now = end
    while bool((now >= 0).any()):
        backward.append(now)
        step = before[instance, np.maximum(now, 0)]
        now = np.where((now >= 0) & (step < n_rows), step, -1)
    steps = np.stack(backward, 1) if backward else np.zeros((len(end), 0), dtype=np.int64)
    length = (steps >= 0).sum(1)
    path = np.full((len(end), PATH_ROWS), -1)
    for i, count in enumerate(np.minimum(length, PATH_ROWS)):
        path[i, :count] = steps[i, :count][::-1]
    return path, length
