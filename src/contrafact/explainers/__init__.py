"""How to move: one file per published method, and `explain`, which picks one up by name."""

from .baselines import LineSearch, NearestUnlike, RandomMask, RandomTarget
from .cels import CELS
from .class_audit import ClassAudit, class_audit
from .comte import CoMTE
from .dice import DiCE
from .face import FACE
from .glacier import Glacier
from .graft import Graft
from .growing_spheres import GrowingSpheres
from .latentcf import LatentCF
from .model_audit import ModelAudit, audit_classes
from .nativeguide import NativeGuide
from .nice import NICE
from .norm_advice import NormAdvice, advise_norm
from .prototype_counterfactual import PrototypeCounterfactual
from .recommendation import Recommendation, recommend
from .registry import explain, list_explainers
from .sets import SETS
from .support.explainer import Explainer
from .support.guided import FallbackExplainer, GuidedExplainer
from .svce import SVCE
from .tsevo import TSEvo
from .tsnuc import TSNUC
from .wachter import Wachter

__all__ = [
    "CELS",
    "FACE",
    "NICE",
    "SETS",
    "SVCE",
    "TSNUC",
    "ClassAudit",
    "CoMTE",
    "DiCE",
    "Explainer",
    "FallbackExplainer",
    "Glacier",
    "Graft",
    "GrowingSpheres",
    "GuidedExplainer",
    "LatentCF",
    "LineSearch",
    "ModelAudit",
    "NativeGuide",
    "NearestUnlike",
    "NormAdvice",
    "PrototypeCounterfactual",
    "RandomMask",
    "RandomTarget",
    "Recommendation",
    "TSEvo",
    "Wachter",
    "advise_norm",
    "audit_classes",
    "class_audit",
    "explain",
    "list_explainers",
    "recommend",
]
