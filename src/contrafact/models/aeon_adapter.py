"""Adapter for aeon's time-series classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from .adapters import EstimatorClassifier, one_hot_verdict
from .classifier import Verdict


class AeonClassifier(EstimatorClassifier):
    """An aeon classifier on series (n, channels, length).

    The ROCKET family ends in a ridge classifier whose probabilities are 0 and 1. Where the model's public
    `pipeline_` has a decision function, searches climb on that; `proba` stays what the model itself says.
    """

    def __init__(self, model: Any, classes: Any, batch_size: int | None) -> None:
        super().__init__(model, classes, batch_size)
        self.n_features = None
        self._predict_apart, self.rows_per_evaluation = False, 1
        pipeline = getattr(model, "pipeline_", None)
        steps = not hasattr(pipeline, "predict_proba") and hasattr(pipeline, "decision_function")
        self._scorer = pipeline.decision_function if pipeline is not None and steps else None

    def _read(self, x: Tensor) -> Verdict:
        if self._scorer is None:
            return super()._read(x)
        score = torch.from_numpy(
            np.asarray(self._scorer(self._as_model_input(x)), dtype=np.float64)
        )
        if score.ndim == 1:
            score = torch.stack([torch.zeros_like(score), score], 1)
        decided = one_hot_verdict(score.argmax(1), len(self.classes))
        return Verdict(decided.proba, decided.label, score)

    def _decide(self, x: Tensor) -> Verdict:
        """Label and probabilities from aeon's own methods, the score from the search's reading."""
        searched, label = self._read(x), self._predict(x)
        proba = (
            searched.proba
            if self._scorer is None
            else one_hot_verdict(label, len(self.classes)).proba
        )
        return Verdict(proba, label, searched.score)
