"""What every explainer shares: the request, the way to the model, the tasks, the result."""

from .budget import Budget
from .candidates import Candidates
from .constraints import Constraints
from .oracle import Oracle
from .request import Request
from .result import Counterfactuals
from .tags import Tags
from .tasks import Tasks

__all__ = [
    "Budget",
    "Candidates",
    "Constraints",
    "Counterfactuals",
    "Oracle",
    "Request",
    "Tags",
    "Tasks",
]
