"""Benchmark: grids of data sets, classifiers and explainers; a runner and store; statistics."""

from .blocks import ranks
from .cell_states import progress_of
from .effects import ParameterEffects, parameter_effects
from .grid import Benchmark, Cell
from .image_protocol import VisualProtocol, visual_protocol
from .pairwise import nemenyi, wilcoxon_holm
from .peers import TscfEvalPeer, WildboarPeer
from .planted import Planted, planted_images, planted_series
from .planted_scores import localization, optimality_gap
from .runner import run
from .significance import friedman
from .store import Store
from .tradeoffs import correlations, pareto_front, scalarize, sensitivity

__all__ = [
    "Benchmark",
    "Cell",
    "ParameterEffects",
    "Planted",
    "Store",
    "TscfEvalPeer",
    "VisualProtocol",
    "WildboarPeer",
    "correlations",
    "friedman",
    "localization",
    "nemenyi",
    "optimality_gap",
    "parameter_effects",
    "pareto_front",
    "planted_images",
    "planted_series",
    "progress_of",
    "ranks",
    "run",
    "scalarize",
    "sensitivity",
    "visual_protocol",
    "wilcoxon_holm",
]
