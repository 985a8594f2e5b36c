"""Grids, their cells and their keys."""

import pytest
from sklearn.linear_model import LogisticRegression
from small_grid import small, toy

from contrafact.benchmark import Benchmark


def test_what_changes_a_cell_changes_its_key():
    def keys(grid):
        return {cell.key for cell in grid.cells()}

    base = keys(small())
    assert base == keys(small())
    for other in (
        small(seeds=[2, 3]),
        small(instances=7),
        small(selection="random"),
        small(metrics=["l1"]),
        small(time_limit=5.0),
        small(retrainings=2),
        Benchmark({"a": toy(2)}, {"LR": LogisticRegression()}, {"line": "LineSearch"}),
        Benchmark(
            {"a": toy(0)},
            {"LR": LogisticRegression(C=2)},
            {"line": {"method": "LineSearch", "steps": 4}},
        ),
    ):
        assert not base & keys(other)


def test_toml(tmp_path):
    path = tmp_path / "grid.toml"
    path.write_text(
        """
        datasets = ["ItalyPowerDemand"]
        seeds = [0, 1]
        instances = 4
        metrics = ["l2"]

        [classifiers]
        LR = { model = "sklearn.linear_model:LogisticRegression", max_iter = 500 }

        [explainers]
        nearest = "NearestUnlike"
        line = { method = "LineSearch", steps = 6, options = { confidence = 0.6 } }
        """
    )
    grid = Benchmark.from_toml(path)
    assert len(grid.cells()) == 4
    path.write_text(path.read_text() + "\n[classifier]\n")
    with pytest.raises(ValueError, match=r"'classifier' is unknown. Did you mean 'classifiers'\?"):
        Benchmark.from_toml(path)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"datasets": []}, "datasets is empty"),
        ({"explainers": {}}, "explainers is empty"),
        ({"retrainings": -1}, "retrainings .*-1"),
        ({"explainers": ["LineSearch"]}, "explainers must be a table"),
        ({"seeds": [0, -1]}, "seeds must be a whole number at least 0, got -1"),
        ({"seeds": [1, 1]}, "seeds must differ"),
        ({"instances": 0}, "instances must be a whole number at least 1 or None, got 0"),
        ({"selection": "worst"}, "selection must be 'stratified', 'random' or 'all', got 'worst'"),
        ({"metrics": "l2"}, "metrics must be a list of metrics or None, got 'l2'"),
        ({"time_limit": -1}, "time_limit must be a number above 0 or None, got -1"),
    ],
)
def test_bad_grids(parts, message):
    told = {
        "datasets": ["GunPoint"],
        "classifiers": {"m": "mlp"},
        "explainers": {"l": "LineSearch"},
        **parts,
    }
    with pytest.raises((ValueError, TypeError), match=message):
        Benchmark(**told)
