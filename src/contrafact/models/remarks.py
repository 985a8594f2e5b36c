"""What users should know about their model."""

from __future__ import annotations

import warnings

from torch import Tensor

#: Probabilities that differ by more were not computed in the same way.
REPEATABLE = 1e-5
#: the warning points to the caller of `fit`
_STACKLEVEL = 4


class ModelWarning(UserWarning):
    """Warn of a property of a model that limits what its counterfactuals mean.

    Examples
    --------
    >>> issubclass(ModelWarning, UserWarning)
    True
    """


class Remarks:
    """Collect remarks about a model; each is also a warning, once."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def add(self, text: str) -> None:
        """Keep a remark and warn of it, where it is new."""
        if text in self.texts:
            return
        self.texts.append(text)
        warnings.warn(text, ModelWarning, stacklevel=_STACKLEVEL)

    def compare(self, first: Tensor, again: Tensor) -> None:
        """Remark a difference between two answers to the same question, (rows, classes) each."""
        difference = float((first - again).abs().nan_to_num().max())
        if difference > REPEATABLE:
            self.add(
                "The model answers differently when asked twice about the same rows (probabilities "
                f"differ by {difference:.2g}): dropout or other random numbers are active when it "
                "predicts. `valid` is one of its answers; asked again, it may say otherwise."
            )
