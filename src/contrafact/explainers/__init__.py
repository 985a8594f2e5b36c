"""How to move: one file per published method, and `explain`, which picks one up by name."""

from .audit import ClassAudit, class_audit
from .cels import CELS
from .comte import CoMTE
from .floors import LineSearch, NearestUnlike, RandomMask, RandomTarget
from .glacier import Glacier
from .latentcf import LatentCF
from .nativeguide import NativeGuide
from .prototype import PrototypeCounterfactual
from .registry import explain, list_explainers
from .sets import SETS
from .svce import SVCE
from .tsevo import TSEvo
from .tsnuc import TSNUC

__all__ = [
    "CELS",
    "SETS",
    "SVCE",
    "TSNUC",
    "ClassAudit",
    "CoMTE",
    "Glacier",
    "LatentCF",
    "LineSearch",
    "NativeGuide",
    "NearestUnlike",
    "PrototypeCounterfactual",
    "RandomMask",
    "RandomTarget",
    "TSEvo",
    "class_audit",
    "explain",
    "list_explainers",
]
