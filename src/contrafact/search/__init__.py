"""Batched searches that explainers share: gradient loop, bisection, evolution, refinement."""

from .bisection import (
    accepted_from,
    best_known,
    first_on_line,
    grow_mask,
    segment_ids,
    smallest_level,
)
from .evolution import crowding_distance, front_ranks, survivors
from .gradient_loop import Adam, Optimum, Point, SteepestDescent, Stop, minimize
from .refinement import refine

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
