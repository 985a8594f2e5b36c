"""Adapter for aeon's time-series classifiers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from ..process_state import keeping_threads
from .answers import read_columns
from .estimator_adapter import EstimatorClassifier, score_columns
from .input_forms import InputForm
from .verdict import Verdict


class AeonClassifier(EstimatorClassifier):
    """Wrap an aeon classifier on series (n, channels, length).

    The ROCKET family ends in a ridge classifier whose probabilities are 0 and 1. Where the model's
    public `pipeline_` has a decision function, searches use it as score; `proba` stays what the
    model itself returns.

    Parameters
    ----------
    model : aeon classifier
        A fitted classifier.
    classes : array-like of labels or None
        Must agree with the model's own, if given.
    batch_size : int or None
        Series handed to the model at once.
    """

    def __init__(self, model: Any, classes: Any, batch_size: int | None) -> None:
        super().__init__(model, classes, batch_size)
        self.n_features = None
        self._predict_apart = False
        self.rows_per_evaluation = 1
        pipeline = getattr(model, "pipeline_", None)
        self._scorer = None
        if not hasattr(pipeline, "predict_proba"):
            self._scorer = getattr(pipeline, "decision_function", None)

    @override
    def _possible_forms(self, row: tuple[int, ...]) -> list[InputForm]:
        """Take series as they are: flattened, several channels would pass for one long series."""
        return [InputForm("given", self.dtype)]

    @override
    @keeping_threads()
    def _read(self, x: Tensor) -> Verdict:
        if self._scorer is None:
            return super()._read(x)
        values = read_columns(self._scorer(self.as_model_input(x)), len(x), "decision_function")
        score = score_columns(torch.from_numpy(values))
        label = score.argmax(1)
        decided = Verdict.of_label(label, len(self.classes))
        return Verdict(decided.proba, label, score)

    @override
    def _decide(self, x: Tensor) -> Verdict:
        """Take label and probabilities from aeon's own methods, the score from the search's."""
        searched = self._read(x)
        label = self._predict(x)
        if self._scorer is None:
            return Verdict(searched.proba, label, searched.score)
        proba = Verdict.of_label(label, len(self.classes)).proba
        return Verdict(proba, label, searched.score)
