"""Metrics: one number per counterfactual, failures included."""

from .base import Metric
from .evaluation import evaluate, list_metrics

__all__ = ["Metric", "evaluate", "list_metrics"]
