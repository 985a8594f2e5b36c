"""Check that a method keeps the contract of explainers; for methods of anyone.

`check_explainer` runs named checks on small problems: every kind of model (a network, a linear
model, a forest, ROCKET, a plain function) with every kind of data (univariate and multivariate
series, images, rows, tables) that the tags of an explainer admit.

Which checks run with which kind of model is decided by what can make them fail. All of them run
with every kind of data. Tables (data frames with columns of every kind) have checks of their own.

- "every_model": what depends on the model, its gradients, its precision or its plateaus. Truth of
  the result, targets, constraints, k, refinement, confidence, counted calls, the call budget, a
  batch against a loop, seeds.
- "two_models": what depends on the method's code path, which differs between models with exact
  gradients (a network) and without (a forest, whose gradients are finite differences), but not
  between models of one of these groups. Pickling, constant instances, the order of rows, the
  time budget, the global random state.
- "one_model": what the base class decides before or after the method runs, or what replaces the
  model by a plain function anyway. Refused input, class names, kinds of arrays, empty requests,
  failing rows. The model is linear and computes in float64: tensors then share memory with the
  caller's arrays, so a method that writes to its input is noticed.
- "network": what only a network has: weights, gradients, a training mode, and rounding that depends
  on the size of internal batches.
"""

from .cases import Case, make_case
from .checks import Check
from .contract import CHECKS, PlannedCell, check_explainer, plan_checks

__all__ = [
    "CHECKS",
    "Case",
    "Check",
    "PlannedCell",
    "check_explainer",
    "make_case",
    "plan_checks",
]
