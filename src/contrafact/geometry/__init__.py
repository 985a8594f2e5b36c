"""Exact geometry of l_p balls, boxes and polyhedra: maximizers, projections, nearest points."""

from .linear_maximization import duality_gap, lmo
from .polyhedron import Nearest, nearest_point
from .projection import project

__all__ = ["Nearest", "duality_gap", "lmo", "nearest_point", "project"]
