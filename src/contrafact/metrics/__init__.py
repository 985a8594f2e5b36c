"""Metrics: one number per counterfactual, failures included."""

from .aggregation import aggregate
from .evaluation import evaluate, list_metrics
from .inputs import MetricInputs, Reference
from .metric import Metric

__all__ = ["Metric", "MetricInputs", "Reference", "aggregate", "evaluate", "list_metrics"]
