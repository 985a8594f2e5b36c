"""l_p balls and boxes: exact linear maximisation with a certificate, exact projections."""

from .oracle import duality_gap, lmo
from .projection import project

__all__ = ["duality_gap", "lmo", "project"]
