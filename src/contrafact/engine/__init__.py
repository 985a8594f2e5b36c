"""What every explainer shares: the request, the way to the model, the tasks, the result."""

from .batch import Batch, Candidates
from .budget import Budget
from .constraints import Constraints
from .result import Counterfactuals
from .tags import Tags

__all__ = ["Batch", "Budget", "Candidates", "Constraints", "Counterfactuals", "Tags"]
