"""Shell completion."""

import pytest
from typer.testing import CliRunner

import contrafact as cf
from contrafact.cli import app, completion


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("ex", ["explain", "explore"]),
        ("explain m.pt Gun", ["GunPoint"]),
        ("explain m.pt x.npz --method Near", ["NearestUnlike"]),
        ("explain m.pt x.npz --network f", ["fcn"]),
        ("evaluate r.npz --metric dtw_lof_i", ["dtw_lof_increase", "dtw_lof_inlier"]),
    ],
)
def test_completion(typed, offered):
    shell = {
        "_CONTRAFACT_COMPLETE": "complete_bash",
        "COMP_WORDS": f"contrafact {typed}",
        "COMP_CWORD": str(len(typed.split())),
    }
    told = CliRunner().invoke(app, [], prog_name="contrafact", env=shell)
    assert told.stdout.split() == offered


def test_completion_knows_every_method():
    assert sorted(completion.methods()) == sorted(cf.list_explainers().index)
