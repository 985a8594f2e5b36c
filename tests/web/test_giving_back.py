"""Why a change is not smaller: each part is given back and the model is asked."""

import numpy as np
import pytest
from explorer_client import Client, italy, wait_until_idle

import contrafact as cf
from contrafact.engine import Counterfactuals
from contrafact.web.giving_back import parts_of, tell, trials


def mean_model(X):
    """The second class from a mean of 0 upward."""
    p = 1 / (1 + np.exp(-4 * X.reshape(len(X), -1).mean(1)))
    return np.stack([1 - p, p], 1)


def given(X, X_cf, **options):
    return Counterfactuals.from_arrays(mean_model, X, X_cf, 1, **options)


def told(result):
    parts = parts_of(result, 0)
    proba = mean_model(trials(result, 0, parts))
    return tell(result, 0, parts, proba, proba.argmax(1))


def test_stretches_go_with_all_channels_that_change_there():
    X = np.full((1, 2, 100), -0.1)
    X_cf = X.copy()
    X_cf[0, :, 10:20] = 5.0
    X_cf[0, 1, 60:80] = 0.1
    first, second = told(given(X, X_cf))
    assert (first["start"], first["stop"], first["channels"]) == (10, 20, [0, 1])
    assert (second["start"], second["stop"], second["channels"]) == (60, 80, [1])
    without_second = X_cf.copy()
    without_second[0, 1, 60:80] = -0.1
    assert second["probability"] == pytest.approx(mean_model(without_second)[0, 1])
    assert not first["stays"] and "this part is needed" in first["sentence"]
    assert second["stays"] and "less certain" in second["sentence"]


def test_one_stretch_is_divided():
    X = np.full((1, 1, 100), -0.1)
    X_cf = X.copy()
    X_cf[0, 0, 20:60] = 1.0
    parts = told(given(X, X_cf))
    assert [(part["start"], part["stop"]) for part in parts] == [
        (20, 30),
        (30, 40),
        (40, 50),
        (50, 60),
    ]


def test_regions_of_an_image_cover_what_changed():
    X = np.full((1, 1, 9, 9), -0.1)
    X_cf = X.copy()
    X_cf[0, 0, :2, :2] = 3.0
    X_cf[0, 0, 7:, 6:] = 3.0
    parts = parts_of(given(X, X_cf), 0)
    covered = np.sum([part.mask for part in parts], axis=0)
    assert np.array_equal(covered, (X_cf != X)[0])
    assert {part.words for part in parts} == {"at the upper left", "at the lower right"}


def test_columns_are_given_back_one_by_one():
    X = np.full((1, 4), -1.0)
    X_cf = np.array([[9.0, -1.0, 0.5, -1.0]])
    parts = told(given(X, X_cf))
    assert [part["columns"] for part in parts] == [[0], [2]]
    assert [part["stays"] for part in parts] == [False, True]


def test_the_server_asks_the_model_about_all_parts():
    model, data = italy()
    with cf.explore(model, data) as explorer, Client(explorer.url) as client:
        wait_until_idle(explorer)
        job = client.start(instance=5, target=1)
        after = np.array(client.finished(job)["alternatives"][0]["values"])
        for part in client.ask(f"api/jobs/{job}/why", alternative=0)["parts"]:
            trial = after.copy()
            trial[:, part["start"] : part["stop"]] = data.X_test[5, :, part["start"] : part["stop"]]
            expected = model.predict_proba(trial)[0, 1]
            assert part["probability"] == pytest.approx(expected)
            assert part["stays"] == (expected > 0.5)
