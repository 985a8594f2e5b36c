"""Metrics: one number per counterfactual, failures included; the distance of two sets."""

from ..deprecation import renamed_attributes
from .aggregation import aggregate
from .evaluation import evaluate, list_metrics
from .frechet import frechet_distance
from .inputs import MetricInputs
from .metric import Metric
from .reference import Reference
from .scores import Scores
from .stability import NoiseSurvival

__all__ = [
    "Metric",
    "MetricInputs",
    "NoiseSurvival",
    "Reference",
    "Scores",
    "aggregate",
    "evaluate",
    "frechet_distance",
    "list_metrics",
]

__getattr__ = renamed_attributes(__name__, {"Given": "contrafact.metrics.MetricInputs"})
