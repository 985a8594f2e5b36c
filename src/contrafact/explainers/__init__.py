"""How to move: one file per published method, and `explain`, which picks one up by name."""

from .audit import ClassAudit, class_audit
from .cels import CELS
from .floors import LineSearch, NearestUnlike, RandomMask, RandomTarget
from .glacier import Glacier
from .latentcf import LatentCF
from .registry import explain, list_explainers
from .svce import SVCE
from .tsnuc import TSNUC

__all__ = [
    "CELS",
    "SVCE",
    "TSNUC",
    "ClassAudit",
    "Glacier",
    "LatentCF",
    "LineSearch",
    "NearestUnlike",
    "RandomMask",
    "RandomTarget",
    "class_audit",
    "explain",
    "list_explainers",
]
