"""Descriptions tell objects apart by their content, and agree where it does."""

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.data import load_dataset
from contrafact.data.fingerprints import describe, digest


def test_descriptions_tell_objects_apart():
    assert describe(LogisticRegression(C=2)) != describe(LogisticRegression())
    assert describe(np.zeros(3)) != describe(np.zeros((3, 1)))
    assert describe(torch.zeros(3)) == describe(torch.zeros(3)) != describe(torch.ones(3))
    assert describe(load_dataset("iris")) == describe(load_dataset("iris"))
    assert describe(load_dataset("iris")) != describe(load_dataset("wine"))


def test_constraints_are_described_by_their_arrays():
    first, second = np.arange(24) < 5, np.arange(24) < 6
    one = digest(describe(cf.Constraints(frozen=first, lower=0)))
    assert one == digest(describe(cf.Constraints(frozen=first.copy(), lower=0)))
    assert one != digest(describe(cf.Constraints(frozen=second, lower=0)))
