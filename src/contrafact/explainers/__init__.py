"""How to move: one file per published method, and `explain`, which picks one up by name."""

from .floors import LineSearch, NearestUnlike, RandomMask, RandomTarget
from .registry import explain, list_explainers

__all__ = [
    "LineSearch",
    "NearestUnlike",
    "RandomMask",
    "RandomTarget",
    "explain",
    "list_explainers",
]
