"""One-hot groups are found by their names and values."""

import numpy as np
import pandas as pd

from contrafact import Schema


def one_hot(frame):
    return pd.get_dummies(frame, dtype=int)


def random_texts(levels, seed, n=60):
    return np.random.default_rng(seed).choice(levels, n)


def test_groups_are_called_by_all_that_their_columns_share():
    frame = one_hot(
        pd.DataFrame(
            {
                "marital_status": random_texts(["never_married", "married", "widowed"], 0),
                "other_debtors": random_texts(["none", "guarantor", "co_applicant"], 1),
                "property": random_texts(["car", "house", "none"], 2),
                "other_plans": random_texts(["bank", "none", "stores"], 3),
            }
        )
    )
    groups = Schema.infer(frame).groups
    assert list(groups) == ["marital_status", "other_debtors", "property", "other_plans"]
    assert all(len(members) == 3 for members in groups.values())


def test_neighbors_with_one_prefix_are_told_apart():
    frame = one_hot(
        pd.DataFrame(
            {
                "other_debtors": random_texts(list("abc"), 0),
                "other_plans": random_texts(list("xyz"), 1),
            }
        )
    )
    groups = Schema.infer(frame).groups
    assert {name: len(members) for name, members in groups.items()} == {
        "other_debtors": 3,
        "other_plans": 3,
    }


def test_a_dropped_level_leaves_the_group_open():
    texts = pd.DataFrame({"color": random_texts(list("rgbw"), 4)})
    schema = Schema.infer(pd.get_dummies(texts, dtype=int, drop_first=True))
    assert schema.open_groups == {"color"} and len(schema.groups["color"]) == 3


def test_flags_that_are_not_exclusive_are_booleans():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 2, (50, 3)), columns=["has_car", "has_dog", "has_flat"])
    assert not Schema.infer(frame).groups
    assert {column.kind for column in Schema.infer(frame)} == {"boolean"}
