"""Adapter for torch modules."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from .classifier import PROBE_ROWS, Classifier, Rows
from .eval_mode import EvalModule
from .layout_hints import layout_hint
from .output_kinds import are_probabilities, stays_within_unit_interval
from .verdict import Verdict, finite_log


class TorchClassifier(Classifier):
    """Wrap a torch module that returns one column per class.

    The columns may be logits, log-probabilities or probabilities. A single column is read as the
    probability of the second class if it stays within [0, 1] for any input, else as its logit.

    Parameters
    ----------
    module : torch.nn.Module
        The module; its weights, modes and device are never changed, so threads may share it.
    classes : array-like of labels or None
        Names of the output columns; None: those of the module's attribute `classes_`, if any.
    batch_size : int or None
        Rows handed to the module at once.
    device : str, torch.device or None
        Where a copy of the module runs; None: the module itself, where it is.

    Attributes
    ----------
    in_eval_mode : EvalModule
        Runs the module as in eval mode, whatever its mode is.
    history : dict of str to list of float
        One value per epoch of training, where contrafact trained the module.
    recipe : TrainingRecipe or None
        How `fit_classifier` trained the module; None where something else did.
    """

    differentiable = True
    checks_probabilities = False
    history: dict[str, list[float]]
    recipe: Any = None

    def __init__(
        self,
        module: torch.nn.Module,
        classes: Any,
        batch_size: int | None,
        device: Any,
    ) -> None:
        super().__init__(
            getattr(module, "classes_", None) if classes is None else classes,
            batch_size,
        )
        if any(parameter.is_meta for parameter in module.parameters()):
            raise ValueError(
                f"model {type(module).__name__} has weights on the device 'meta', which holds no "
                "values. Load the weights first."
            )
        parameter = _first_floating_point(module)
        dtype = torch.float32 if parameter is None else parameter.dtype
        # NumPy has no bfloat16: instances stay float32, and such a module sees them rounded.
        self.rounds = dtype == torch.bfloat16
        self.dtype = torch.float32 if self.rounds else dtype
        self.device = torch.device("cpu") if parameter is None else parameter.device
        if device is not None and torch.device(device) != self.device:
            self.device = torch.device(device)
            module = copy.deepcopy(module).to(self.device)
        self.module = module
        self.in_eval_mode = EvalModule(module)
        self.history = {}
        self._gives_probabilities: bool | None = None

    @override
    def _evaluate(self, x: Tensor) -> Verdict:
        with torch.no_grad():
            logits = self._forward(x).double()
        log_proba = logits.log_softmax(1)
        # A class masked out by a logit of -inf is a valid answer, but searches need finite scores.
        score = log_proba.clamp_min(-1e6)
        # Logits that differ by less than the softmax can tell still decide.
        return Verdict(log_proba.exp(), logits.argmax(1), score)

    @override
    def logits(self, x: Tensor) -> Tensor:
        self.rows_evaluated += len(x)
        return self._forward(x)

    @override
    def probe(self, x: Rows) -> None:
        try:
            super().probe(x)
        # torch has no narrower errors for shapes and dtypes.
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            hint = layout_hint(self._answer, self.as_input(x[:PROBE_ROWS]))
            if not hint:
                raise
            raise ValueError(
                f"The module does not answer for X of shape {tuple(x.shape)}: "
                f"{type(error).__name__}: {error}.{hint}"
            ) from error

    def _answer(self, x: Tensor) -> Any:
        """Ask the module as it is, without checks and without gradients."""
        with torch.no_grad():
            return self._ask(x)

    @override
    def _probe_gradients(self, x: Tensor) -> None:
        self.rows_evaluated += len(x)
        self.differentiable = self._has_gradients(x)
        if not self.differentiable:
            self.remarks.add(
                "No gradient passes through the module (it uses no_grad, detach, NumPy or whole "
                "numbers inside): finite differences stand in for gradients, which cost many more "
                "model rows."
            )

    def _has_gradients(self, x: Tensor) -> bool:
        """Tell whether the columns depend on the rows differentiably."""
        leaf = x.clone().requires_grad_()
        try:
            with torch.enable_grad():
                out = self._columns(leaf)
                if not out.requires_grad:
                    return False
                (gradient,) = torch.autograd.grad(out.sum(), leaf, allow_unused=True)
        except RuntimeError:  # such as numpy() of a tensor that requires a gradient
            return False
        return gradient is not None

    def _forward(self, x: Tensor) -> Tensor:
        """Return logits of shape (rows, classes)."""
        out = self._columns(x)
        if self._gives_probabilities is None and bool((finite := out.isfinite().all(1)).any()):
            self._gives_probabilities = self._looks_like_probabilities(out[finite], x[finite])
        if out.shape[1] == 1:
            first = 1 - out if self._gives_probabilities else torch.zeros_like(out)
            out = torch.cat([first, out], 1)
        if self._gives_probabilities:
            return finite_log(out)
        return out

    def _columns(self, x: Tensor) -> Tensor:
        """Ask the module, and check that its answer has shape (rows, columns)."""
        out = self._ask(x)
        if not isinstance(out, Tensor):
            raise TypeError(
                f"The module must give one tensor (rows, classes), got {type(out).__name__}."
            )
        if out.is_complex() or out.is_quantized or out.is_meta:
            kind = "a tensor without values (meta)" if out.is_meta else str(out.dtype)
            raise TypeError(f"The module must give real numbers (rows, classes), got {kind}.")
        if self.rounds or not out.is_floating_point():
            out = out.float()
        if out.ndim == 1:
            out = out[:, None]
        if out.ndim != 2 or len(out) != len(x) or out.shape[1] == 0:
            raise ValueError(
                f"The module must give (rows, classes), got {tuple(out.shape)} "
                f"for input {tuple(x.shape)}."
            )
        return out

    def _ask(self, x: Tensor) -> Any:
        """Run the module in eval mode, on a copy, since it may work in place."""
        copied = x.bfloat16() if self.rounds else x.clone()
        return self.in_eval_mode(copied)

    def _looks_like_probabilities(self, out: Tensor, x: Tensor) -> bool:
        """Judge by one answer whether the columns are probabilities."""
        if out.shape[1] == 1:
            return stays_within_unit_interval(out, x, self._ask)
        return are_probabilities(out)


def _first_floating_point(module: torch.nn.Module) -> Tensor | None:
    """Return the parameter that tells dtype and device of a module."""
    for parameter in module.parameters():
        if parameter.is_floating_point():
            return parameter
    return None
