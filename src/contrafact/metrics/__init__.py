"""Metrics: one number per counterfactual, failures included."""

from .aggregation import aggregate
from .base import Metric
from .evaluation import evaluate, list_metrics
from .given import Given, Reference

__all__ = ["Given", "Metric", "Reference", "aggregate", "evaluate", "list_metrics"]
