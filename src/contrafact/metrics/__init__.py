"""Metrics: one number per counterfactual, failures included."""

from ..deprecation import renamed_attributes
from .aggregation import aggregate
from .evaluation import evaluate, list_metrics
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
    "list_metrics",
]

__getattr__ = renamed_attributes(__name__, {"Given": "contrafact.metrics.MetricInputs"})
