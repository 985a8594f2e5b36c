"""How to move: what every explainer shares. Base class, batch, budget, constraints, search, refinement."""

from .batch import Batch, Candidates
from .budget import Budget
from .constraints import Constraints
from .explainer import Explainer, Tags
from .refine import refine
from .result import Counterfactuals
from .search import segment_ids, smallest_level

__all__ = [
    "Batch",
    "Budget",
    "Candidates",
    "Constraints",
    "Counterfactuals",
    "Explainer",
    "Tags",
    "refine",
    "segment_ids",
    "smallest_level",
]
