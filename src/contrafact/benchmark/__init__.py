"""Benchmark: grids of data sets, classifiers and explainers; a runner that survives; a store; statistics."""

from .grid import Benchmark, Cell
from .peers import TscfEvalPeer, WildboarPeer
from .planted import Planted, localization, optimality_gap, planted_images, planted_series
from .runner import progress_of, run
from .statistics import (
    correlations,
    friedman,
    nemenyi,
    pareto_front,
    ranks,
    scalarize,
    sensitivity,
    wilcoxon_holm,
)
from .store import Store

__all__ = [
    "Benchmark",
    "Cell",
    "Planted",
    "Store",
    "TscfEvalPeer",
    "WildboarPeer",
    "correlations",
    "friedman",
    "localization",
    "nemenyi",
    "optimality_gap",
    "pareto_front",
    "planted_images",
    "planted_series",
    "progress_of",
    "ranks",
    "run",
    "scalarize",
    "sensitivity",
    "wilcoxon_holm",
]
