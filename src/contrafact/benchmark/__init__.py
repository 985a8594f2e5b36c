"""Benchmark: grids of data sets, classifiers and explainers; a runner that survives; a store; statistics."""

from .adapters import TscfEvalPeer, WildboarPeer
from .grid import Benchmark, Cell
from .planted import Planted, localisation, optimality_gap, planted_images, planted_series
from .runner import progress_of, run
from .statistics import (
    correlations,
    friedman,
    nemenyi,
    pareto_front,
    ranks,
    scalarise,
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
    "localisation",
    "nemenyi",
    "optimality_gap",
    "pareto_front",
    "planted_images",
    "planted_series",
    "progress_of",
    "ranks",
    "run",
    "scalarise",
    "sensitivity",
    "wilcoxon_holm",
]
