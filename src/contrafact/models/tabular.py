"""Tabular: a classifier of frames, asked in coordinates without units."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from ..tables import TableSpace
from .classifier import Array, Classifier, Rows
from .tabular_twins import make_tabular_twin
from .torch_adapter import TorchClassifier
from .verdict import Verdict
from .wrapper import Wrapper

#: reference rows on which a twin is compared with its model
COMPARED_ROWS = 16
#: attributes by which models say that they were trained on a frame
NAMES = ("feature_names_in_", "feature_names_")


class Tabular(Wrapper):
    """Ask a model of tables about points of a `TableSpace`.

    A point is brought to the nearest row of the table's schema, and the model is asked about the
    frame of such rows. A model that was not trained on a frame, and does not take one, is asked
    with an array of the numbers.

    Parameters
    ----------
    inner : Classifier
        The model; its classes are shared.
    space : TableSpace
        The coordinates.
    """

    def __init__(self, inner: Classifier, space: TableSpace) -> None:
        super().__init__(inner)
        self.space = space
        self.takes_frames: bool | None = None
        self._twin: Callable[[Tensor], Tensor] | None = None

    @override
    def _evaluate(self, x: Tensor) -> Verdict:
        return self._ask(self.inner._evaluate, self.space.codes(x))

    @override
    def _decide(self, x: Tensor) -> Verdict:
        return self._ask(self.inner._decide, self.space.codes(x))

    def _ask(self, ask: Callable[[Any], Verdict], codes: Tensor) -> Verdict:
        """Ask about rows, in the form that the model takes."""
        self.inner.rows_evaluated += len(codes)
        if self.takes_frames is None:
            self.takes_frames = self._must_be_frame(codes)
        if self.takes_frames is False:
            return ask(self._array(codes))
        frame = self.space.table.with_codes(codes.numpy()).frame_without_index()
        if self.takes_frames:
            return ask(frame)
        return self._ask_either(ask, frame, codes)

    def as_model_input(self, x: Tensor) -> Any:
        """Convert points to what the model takes: a frame, or an array of numbers."""
        codes = self.space.codes(x)
        if self.takes_frames:
            return self.space.table.with_codes(codes.numpy()).frame_without_index()
        return self._array(codes).cpu().numpy()

    def _must_be_frame(self, codes: Tensor) -> bool | None:
        """Return whether the model takes frames; None where nothing tells."""
        model = getattr(self.inner, "model", None)
        if isinstance(self.inner, TorchClassifier):
            return False
        if any(hasattr(model, name) for name in NAMES) or self.space.numbers(codes) is None:
            return True
        # An estimator without names was trained on an array.
        return False if hasattr(model, "n_features_in_") else None

    def _ask_either(self, ask: Callable[[Any], Verdict], frame: Any, codes: Tensor) -> Verdict:
        """Ask with a frame, and with an array where that fails; remember which was answered."""
        try:
            verdict = ask(frame)
        # What a function of an array raises when it is given a frame, nothing narrower tells.
        except Exception as error:
            try:
                verdict = ask(self._array(codes))
            except Exception:
                raise error from None
            self.takes_frames = False
            return verdict
        self.takes_frames = True
        return verdict

    def _array(self, codes: Tensor) -> Tensor:
        """Return rows as numbers, in the precision of the model."""
        numbers = self.space.numbers(codes)
        if numbers is None:
            named = [column.name for column in self.space.schema if column.levels]
            raise ValueError(
                f"The model takes arrays of numbers, and the column {named[0]!r} of X holds "
                "categories. Pass a function of a frame that encodes them and asks the model."
            )
        return self.inner.as_input(numbers)

    @override
    def final_verdict(self, x: Array) -> Verdict:
        rows = torch.from_numpy(x)
        if len(rows) == 0:
            return self.verdict(rows.new_zeros(0, self.space.n_coordinates))
        return self._in_batches(
            rows,
            lambda batch: self._ask(self.inner._decide, batch),
            self.rows_per_verdict,
        )

    @override
    def probe(self, x: Rows) -> None:
        if self._probed:
            return
        self._probe_missing(self.as_input(x))
        super().probe(x)
        few = self.as_input(x[:COMPARED_ROWS])
        twin = self._make_twin(self.as_input(x))
        if twin is not None and _agrees(twin(few), self._evaluate(few)):
            self.rows_evaluated += self.rows_per_evaluation * len(few)
            self._twin = twin
            self.differentiable = True

    def _probe_missing(self, x: Tensor) -> None:
        """Ask about a row with a missing value in each column that has some."""
        codes = self.space.codes(x)
        is_missing = codes.isnan()
        is_missing[:, self.space.fixed_columns] = False
        for column in is_missing.any(0).nonzero().flatten().tolist():
            row = int(is_missing[:, column].float().argmax())
            try:
                self._evaluate(x[row : row + 1])
            # What a model raises for values that it does not take, nothing narrower tells.
            except Exception as error:
                reason, _, _ = str(error).partition("\n")
                raise ValueError(
                    f"column {self.space.schema.names[column]!r} of X has no value in row {row}, "
                    f"and the model does not take missing values: {reason} Fill them first "
                    "(--fill on the command line), or put an imputer into the model's pipeline."
                ) from error

    def _make_twin(self, x: Tensor) -> Callable[[Tensor], Tensor] | None:
        """Return logits as a differentiable function of the coordinates, where there is one."""
        if isinstance(self.inner, TorchClassifier):
            return make_tabular_twin(self.space, x, self._numbers, self._inner_logits)
        return make_tabular_twin(self.space, x, model=getattr(self.inner, "model", None))

    def _numbers(self, codes: Tensor) -> Array:
        numbers = self.space.numbers(codes)
        assert numbers is not None
        return numbers

    def _inner_logits(self, numbers: Tensor) -> Tensor:
        return self.inner.logits(numbers.to(self.inner.device, self.inner.dtype)).double()

    @override
    def infer_classes(self, x: Rows, y: Array | None) -> None:
        super().infer_classes(x, y)
        self.inner.order_in_doubt = self.order_in_doubt

    @override
    def logits(self, x: Tensor) -> Tensor:
        if self._twin is None:
            return super().logits(x)
        self.rows_evaluated += len(x)
        return self._twin(x)


def _agrees(logits: Tensor, verdict: Verdict) -> bool:
    """Return whether the logits of a twin give the probabilities of its model."""
    with torch.no_grad():
        return torch.allclose(logits.softmax(1).cpu(), verdict.proba.cpu(), rtol=1e-4, atol=1e-6)
