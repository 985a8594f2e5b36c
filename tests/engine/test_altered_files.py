"""Altered copies of a saved result: refused in clear words, or as usable as any result.

CONTRAFACT_FUZZ_FILES=all tries every copy, not a seeded sample.
"""

import os
import random
import warnings

import altered_files
import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.engine.statuses import STATUSES

SAMPLE = 30
X = np.random.default_rng(0).normal(size=(60, 4))
Y = np.where(X[:, 0] + X[:, 1] > 0, "up", "down")
NUMBERS = ("X", "X_cf", "proba", "cf_proba")


def saved_series():
    """A result of series, with saliency maps."""
    series = np.random.default_rng(1).normal(size=(20, 2, 16)).cumsum(2)

    def model(X):
        p = 1 / (1 + np.exp(-X.reshape(len(X), -1).mean(1)))
        return np.stack([1 - p, p], 1)

    explainer = cf.CELS(max_iter=5).fit(model, series)
    return explainer.explain(torch.from_numpy(series[:4]), target=1)


def saved_rows():
    """A result of rows that are valid, already in the target class, and infeasible."""
    model = LogisticRegression().fit(X, Y)
    explainer = cf.LineSearch().fit(model, X, Y)
    limits = cf.Constraints(frozen=np.arange(4) == 0, upper=1.0)
    result = explainer.explain(np.minimum(X, 1.0), target="up", constraints=limits)
    statuses = ("valid", "valid", "already_target", "infeasible")
    rows = [np.flatnonzero(result.status == status)[i] for i, status in enumerate(statuses)]
    result = result[rows]
    assert tuple(result.status.tolist()) == statuses and result.info
    return result


@pytest.fixture(scope="module", params=[saved_rows, saved_series])
def content(request, tmp_path_factory):
    """The bytes of a saved result."""
    path = tmp_path_factory.mktemp("saved") / "result.npz"
    return request.param().save(path).read_bytes()


def copies(content):
    """Return all altered copies by name."""
    rng = np.random.default_rng(0)
    return {
        **dict(altered_files.altered_arrays(content)),
        **dict(altered_files.altered_rows(content, STATUSES)),
        **dict(altered_files.damaged_files(content, rng)),
    }


def use(result, folder):
    """Use a result in every way that needs no model, and check that it says what it holds."""
    assert "Counterfactuals" in repr(result)
    frame = result.to_frame()
    scores = result.evaluate()
    assert len(frame) == len(scores) == len(result)
    decided = result.cf_labels == result.target
    answered = result.status != "error"
    assert (frame["valid"].to_numpy() == decided)[answered].all()
    page = result.report(folder / "page.html").read_text(encoding="utf-8")
    assert "</html>" in page
    again = cf.Counterfactuals.load(result.save(folder / "again.npz"))
    for name in NUMBERS:
        np.testing.assert_array_equal(getattr(again, name), getattr(result, name))


def test_altered_copies(content, tmp_path):
    found = copies(content)
    names = list(found)
    if os.environ.get("CONTRAFACT_FUZZ_FILES") != "all":
        names = random.Random(0).sample(names, SAMPLE)
    path = tmp_path / "altered.npz"
    refused = []
    for name in names:
        path.write_bytes(found[name])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = cf.Counterfactuals.load(path)
        except ValueError as error:
            assert str(path) in str(error), name
            assert len(str(error)) < 1000, name
            refused.append(name)
            continue
        try:
            use(result, tmp_path)
        except Exception as error:
            raise AssertionError(f"{name}: loaded, and then failed") from error
    assert len(refused) > len(names) / 2


def test_the_file_as_it_was_can_be_used(content, tmp_path):
    path = tmp_path / "result.npz"
    path.write_bytes(content)
    use(cf.Counterfactuals.load(path), tmp_path)
