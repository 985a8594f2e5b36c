"""Prototypes: points that represent a class, models that learn them, and uses of them."""

from .deep import DeepLVQ
from .diversity import select_diverse
from .kohonen import LVQ1, LVQ21
from .lvq import GLVQ, GMLVQ, GRLVQ, LGMLVQ
from .mean import NearestMean
from .median import MedianLVQ
from .memory import PrototypeMemory
from .penalties import (
    elastic_net_proximal,
    orthogonality_loss,
    prototype_diversity_loss,
    sparse_relevance_proximal,
)
from .regularizers import Diversity, Orthogonality, RelevanceFloor, SparseRelevance
from .robustness import robustness_radius
from .soft import CELVQ, RSLVQ
from .soft_dtw import SoftDTW
from .unsupervised import unsupervised_relevance

__all__ = [
    "CELVQ",
    "GLVQ",
    "GMLVQ",
    "GRLVQ",
    "LGMLVQ",
    "LVQ1",
    "LVQ21",
    "RSLVQ",
    "DeepLVQ",
    "Diversity",
    "MedianLVQ",
    "NearestMean",
    "Orthogonality",
    "PrototypeMemory",
    "RelevanceFloor",
    "SoftDTW",
    "SparseRelevance",
    "elastic_net_proximal",
    "orthogonality_loss",
    "prototype_diversity_loss",
    "robustness_radius",
    "select_diverse",
    "sparse_relevance_proximal",
    "unsupervised_relevance",
]
