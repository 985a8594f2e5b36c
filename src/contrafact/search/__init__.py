"""Batched searches that explainers share: gradient loop, bisection, evolution, refinement."""

from .bisection import accepted_from, best_known, first_on_line, smallest_level
from .evolution import crowding_distance, front_ranks, survivors
from .gradient_loop import Optimum, Stop, minimize
from .gradients import Point
from .greedy import grow_mask
from .refinement import refine
from .segments import segment_ids
from .steps import Adam, SteepestDescent

__all__ = [
    "Adam",
    "Optimum",
    "Point",
    "SteepestDescent",
    "Stop",
    "accepted_from",
    "best_known",
    "crowding_distance",
    "first_on_line",
    "front_ranks",
    "grow_mask",
    "minimize",
    "refine",
    "segment_ids",
    "smallest_level",
    "survivors",
]
