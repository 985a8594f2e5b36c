"""How to move: what every explainer shares. Base class, batch, budget, constraints, search, refinement."""

from .batch import Batch, Candidates
from .budget import Budget
from .constraints import Constraints
from .evolution import crowding_distance, front_ranks, survivors
from .explainer import Explainer, Tags
from .optimise import Adam, Optimum, Point, SteepestDescent, Stop, minimise
from .refine import refine
from .result import Counterfactuals
from .search import accepted_from, best_known, first_on_line, grow_mask, segment_ids, smallest_level

__all__ = [
    "Adam",
    "Batch",
    "Budget",
    "Candidates",
    "Constraints",
    "Counterfactuals",
    "Explainer",
    "Optimum",
    "Point",
    "SteepestDescent",
    "Stop",
    "Tags",
    "accepted_from",
    "best_known",
    "crowding_distance",
    "first_on_line",
    "front_ranks",
    "grow_mask",
    "minimise",
    "refine",
    "segment_ids",
    "smallest_level",
    "survivors",
]
