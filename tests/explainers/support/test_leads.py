"""The lead in squared distances that a confidence needs, and the one that is enough for it."""

from __future__ import annotations

import numpy as np
import pytest

from contrafact.explainers.support.leads import Leads


def probability(leads_of_others, temperature):
    return 1 / (1 + np.exp(-np.asarray(leads_of_others) / temperature).sum())


@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("confidence", [0.55, 0.9, 0.999])
def test_leads_enclose_the_confidence(confidence, n_classes):
    """With all other classes equally near, `enough` gives it exactly; with one, `needed` does."""
    temperature = 0.7
    leads = Leads.of(confidence, temperature, n_classes)
    all_near = [leads.enough] * (n_classes - 1)
    assert probability(all_near, temperature) == pytest.approx(confidence)
    one_near = [leads.needed] + [1e9] * (n_classes - 2)
    assert probability(one_near, temperature) == pytest.approx(confidence)
    assert leads.differ == (n_classes > 2)


def test_the_decision_alone_takes_no_lead():
    assert Leads.of(None, 1.0, 3) == Leads.of(0.9, None, 3) == Leads(0.0, 0.0)
    assert Leads.of(0.2, 1.0, 2) == Leads(0.0, 0.0)  # below one half the decision is enough
