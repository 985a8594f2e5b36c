"""Rules and former names of the options that every model learned by gradient descent has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import torch

from ..deprecation import renamed_parameters
from ..nn.option_rules import DEVICE_NAME
from ..validation import Boolean, Function, Instance, Integer, Nothing, OneOf, Real, Rule, Satisfies
from .descent import OPTIMIZERS, check_lookahead
from .initial import INITS, check_init
from .option_rules import CALLBACKS, CLASS_WEIGHT, COUNTS, EPOCHS, NAMED, SEED, is_named
from .regularizers import Regularizer
from .schedules import SCHEDULES, check_schedule
from .soft_dtw import SoftDTW

if TYPE_CHECKING:
    from .gradient import GradientLVQ

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


def _is_frozen(value: Any) -> bool:
    """Return whether the value is a collection of names."""
    is_collection = isinstance(value, (tuple, list, set, frozenset))
    return is_collection and all(isinstance(name, str) for name in value)


def _are_regularizers(value: Any) -> bool:
    """Return whether the value is a sequence of regularizers."""
    is_sequence = isinstance(value, (tuple, list))
    return is_sequence and all(isinstance(term, Regularizer) for term in value)


GRADIENT_RULES: dict[str, Rule] = {
    "n_prototypes": COUNTS,
    "init": OneOf(*INITS) | Function("rows", "labels", "counts", "a generator"),
    "init_options": NAMED,
    "optimizer": OneOf(*OPTIMIZERS)
    | Satisfies(_is_optimizer, "a torch optimizer class or instance"),
    "learning_rate": Real(at_least=0) | Nothing(),
    "scheduler": OneOf(*SCHEDULES) | Function("the optimizer") | Nothing(),
    "scheduler_options": NAMED,
    "max_iter": EPOCHS,
    "batch_size": Integer(at_least=1, at_most=10**12) | Nothing(),
    "class_weight": CLASS_WEIGHT,
    "validation_fraction": Real(at_least=0, below=1),
    "patience": Integer(at_least=1) | Nothing(),
    "restore_best": Boolean(),
    "ema": Real(above=0, below=1) | Nothing(),
    "accumulate": Integer(at_least=1),
    "lookahead": Integer(at_least=1) | Satisfies(is_named, "a dictionary") | Nothing(),
    "frozen": Satisfies(_is_frozen, "a tuple of names of parameter groups"),
    "mixed_precision": Boolean() | OneOf("bfloat16", "float16"),
    "callbacks": CALLBACKS,
    "regularizers": Satisfies(_are_regularizers, "a tuple of Regularizer objects"),
    "distance_fn": Function("rows", "prototypes") | Instance(SoftDTW, "a SoftDTW") | Nothing(),
    "tol": Real(at_least=0) | Nothing(),
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


def check_combinations(model: GradientLVQ, validated: bool) -> None:
    """Refuse options that cannot be used together.

    Parameters
    ----------
    model : GradientLVQ
        The model, whose options satisfy their own rules.
    validated : bool
        Whether validation data are given.
    """
    check_schedule(model.scheduler, model.scheduler_options)
    check_init(model.init, model.init_options)
    check_lookahead(model.lookahead)
    if validated and model.validation_fraction:
        raise ValueError("validation_fraction must be 0 where validation_data are given.")
    stops_early = model.patience is not None or not model.restore_best
    if stops_early and not (validated or model.validation_fraction):
        raise ValueError(
            "patience and restore_best need something held out: give validation_fraction, or "
            "validation_data to fit."
        )
    if model.accumulate > 1 and model.batch_size is None:
        raise ValueError(f"accumulate={model.accumulate} needs a batch_size.")
    if model.mixed_precision and model.dtype != "float32":
        raise ValueError(f"mixed_precision={model.mixed_precision!r} needs dtype='float32'.")
    if model.mixed_precision and isinstance(model.distance_fn, SoftDTW):
        raise ValueError(
            f"mixed_precision={model.mixed_precision!r} has no effect on distance_fn=SoftDTW(...), "
            "which is computed in double precision."
        )
    for term in model.regularizers:
        changes_metric = type(term).after_step is not Regularizer.after_step
        if changes_metric and ("metric" in model.frozen or model.ema is not None):
            raise ValueError(
                f"{type(term).__name__} changes the metric after every step: not with a frozen "
                "metric, nor with ema, whose average would undo it."
            )
