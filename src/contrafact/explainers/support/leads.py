"""How much nearer than all others a prototype has to be for a confidence."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Leads:
    """By how much a prototype has to be nearer than those of other classes, in squared distances.

    Parameters
    ----------
    needed : float
        No confidence without this lead.
    enough : float
        With this lead the confidence is certain.
    """

    needed: float
    enough: float

    @property
    def differ(self) -> bool:
        """Whether what is needed may not be enough."""
        return self.enough > self.needed

    @classmethod
    def of(cls, confidence: float | None, temperature: float | None, n_classes: int) -> Leads:
        """Compute the leads for P(target) ≥ confidence.

        With P = 1 / (1 + Σ exp(−(d_c − d_j) / T)) over the other classes c, the sum is at least its
        largest term, and at most that times the number of other classes.

        Parameters
        ----------
        confidence : float or None
            Least P(target); None asks for the decision alone.
        temperature : float or None
            T; None where probabilities are computed otherwise, so that nothing can be said.
        n_classes : int
            Number of classes.

        Returns
        -------
        Leads
            Equal for two classes; both 0 where there is no confidence or temperature.

        Examples
        --------
        >>> leads = Leads.of(0.9, temperature=1.0, n_classes=3)
        >>> round(leads.needed, 3), round(leads.enough, 3)
        (2.197, 2.89)
        """
        if confidence is None or temperature is None:
            return cls(0.0, 0.0)
        odds = confidence / (1 - confidence)
        needed = temperature * math.log(odds)
        enough = temperature * math.log(odds * (n_classes - 1))
        return cls(max(needed, 0.0), max(enough, 0.0))
