"""Benchmark: grids of data sets, classifiers and explainers; a runner that survives; a store; statistics."""

from .grid import Benchmark, Cell
from .runner import progress_of, run
from .store import Store

__all__ = ["Benchmark", "Cell", "Store", "progress_of", "run"]
