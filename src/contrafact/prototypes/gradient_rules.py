"""Rules and former names of the options that every model learned by gradient descent has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import torch

from ..deprecation import renamed_parameters
from ..nn.option_rules import DEVICE_NAME
from ..validation import Boolean, Function, Integer, Nothing, OneOf, Real, Rule, Satisfies
from .descent import OPTIMIZERS
from .initial import INITS
from .option_rules import COUNTS, EPOCHS, SEED
from .regularizers import Regularizer

Model = TypeVar("Model", bound=type)
#: options that were renamed: the old name of each, and the new one
OLD_NAMES = {
    "lr": "learning_rate",
    "metric_lr": "metric_learning_rate",
    "regularisers": "regularizers",
}


def _is_optimizer(value: Any) -> bool:
    """Return whether the value is a torch optimizer or a class of them."""
    kind = value if isinstance(value, type) else type(value)
    return issubclass(kind, torch.optim.Optimizer)


def _is_weight_per_label(value: Any) -> bool:
    """Return whether the value maps labels to numbers above 0."""
    if not isinstance(value, Mapping):
        return False
    weight = Real(above=0)
    return all(weight.accepts(number) for number in value.values())


def _is_frozen(value: Any) -> bool:
    """Return whether the value is a collection of names."""
    is_collection = isinstance(value, (tuple, list, set, frozenset))
    return is_collection and all(isinstance(name, str) for name in value)


def _are_callbacks(value: Any) -> bool:
    """Return whether the value is a sequence of functions."""
    return isinstance(value, (tuple, list)) and all(callable(callback) for callback in value)


def _are_regularizers(value: Any) -> bool:
    """Return whether the value is a sequence of regularizers."""
    is_sequence = isinstance(value, (tuple, list))
    return is_sequence and all(isinstance(term, Regularizer) for term in value)


GRADIENT_RULES: dict[str, Rule] = {
    "n_prototypes": COUNTS,
    "init": OneOf(*INITS),
    "optimizer": OneOf(*OPTIMIZERS)
    | Satisfies(_is_optimizer, "a torch optimizer class or instance"),
    "learning_rate": Real(at_least=0) | Nothing(),
    "scheduler": OneOf("cosine", "plateau") | Function("the optimizer") | Nothing(),
    "max_iter": EPOCHS,
    "batch_size": Integer(at_least=1, at_most=10**12) | Nothing(),
    "class_weight": OneOf("balanced")
    | Satisfies(_is_weight_per_label, "a dictionary from label to a weight above 0")
    | Nothing(),
    "validation_fraction": Real(at_least=0, below=1),
    "patience": Integer(at_least=1) | Nothing(),
    "restore_best": Boolean(),
    "ema": Real(above=0, below=1) | Nothing(),
    "accumulate": Integer(at_least=1),
    "lookahead": Integer(at_least=1) | Nothing(),
    "frozen": Satisfies(_is_frozen, "a tuple of names of parameter groups"),
    "mixed_precision": Boolean(),
    "callbacks": Satisfies(_are_callbacks, "a tuple of functions"),
    "regularizers": Satisfies(_are_regularizers, "a tuple of Regularizer objects"),
    "temperature": Real(above=0) | Nothing(),
    "dtype": OneOf("float32", "float64"),
    "device": DEVICE_NAME,
    "random_state": SEED,
    "verbose": Boolean(),
}


def accept_old_names(kind: Model) -> Model:
    """Let the constructor of a model, which `dataclass` has written, take the old names as well."""
    kind.__init__ = renamed_parameters(**OLD_NAMES)(kind.__init__)  # type: ignore[misc]
    return kind
