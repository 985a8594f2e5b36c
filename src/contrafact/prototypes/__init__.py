"""Prototypes: points that stand for a class. Models that learn them, and what else they are good for."""

from .deep import DeepLVQ
from .diversity import select_diverse
from .lvq import CELVQ, GLVQ, GMLVQ, GRLVQ, LGMLVQ, LVQ1, LVQ21, RSLVQ
from .mean import NearestMean
from .median import MedianLVQ
from .memory import PrototypeMemory
from .regularizers import (
    Diversity,
    Orthogonality,
    RelevanceFloor,
    SparseRelevance,
    elastic_net_proximal,
    orthogonality_loss,
    prototype_diversity_loss,
    sparse_relevance_proximal,
)

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
    "SparseRelevance",
    "elastic_net_proximal",
    "orthogonality_loss",
    "prototype_diversity_loss",
    "select_diverse",
    "sparse_relevance_proximal",
]
