"""Numerical helpers that need no model: random numbers per row, differences, shapes."""

from .correlations import channel_correlations
from .differences import RealDifferences, quantile_near
from .finite_differences import zeroth_order_gradient
from .grouping import occurrence
from .randomness import fold_in, row_normal, row_seeds, row_uniform
from .shapes import broadcast_rows, ceil_div

__all__ = [
    "RealDifferences",
    "broadcast_rows",
    "ceil_div",
    "channel_correlations",
    "fold_in",
    "occurrence",
    "quantile_near",
    "row_normal",
    "row_seeds",
    "row_uniform",
    "zeroth_order_gradient",
]
