"""The examples run and what they print is correct; smaller here than when run by hand."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch

import contrafact as cf

FOLDER = Path(__file__).parent.parent / "examples"
PICTURES = {
    "digits": "digits.png",
    "ecg": "beat.png",
    "machine_sensor": "sensors.png",
    "own_torch_model": "movement.png",
    "tabular": "row.png",
}


def load(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run(tmp_path, capsys):
    """Run an example; its module, its result and what it printed."""

    def runner(name, **small):
        module = load(name)
        state = torch.random.get_rng_state()
        result = module.main(tmp_path / "new" / name, **small)
        torch.random.set_rng_state(state)
        report = (tmp_path / "new" / name / "report.html").read_text(encoding="utf-8")
        assert report.startswith("<!doctype html>") and "</html>" in report
        assert (tmp_path / "new" / name / PICTURES[name]).read_bytes().startswith(b"\x89PNG")
        return module, result, capsys.readouterr().out

    return runner


def test_every_example_is_run_here_and_short():
    scripts = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.py")}
    assert scripts.keys() == PICTURES.keys()
    for name, script in scripts.items():
        assert 30 <= script.count("\n") <= 80, name
        assert f'else "build/examples/{name}"' in script


def test_ecg(run):
    module, result, printed = run("ecg", epochs=8)
    assert result.valid.all()
    assert "10 of 10 now read 'normal'" in printed
    assert not result.changed[..., module.P_WAVE].any() and "touched: 0." in printed
    # What the two kinds of beat differ in is known here, and it is what was found.
    change = np.abs(result.delta)
    assert change[..., module.ST_AND_T].sum() > 0.8 * change.sum()


def test_machine_sensor(run):
    module, result, printed = run("machine_sensor")
    assert f"{result.valid.sum()} of {len(result)} alarms" in printed
    assert result.valid.all()
    blamed = module.SENSORS[result.changed.any((0, 2))].tolist()
    assert set(blamed) <= {"vibration", "bearing temperature"}
    assert all(f"  {name}: in " in printed for name in blamed)
    assert "flow" not in printed


def test_digits(run):
    _, result, printed = run("digits", epochs=3)
    assert result.valid.sum() >= 6
    assert f"{result.valid.sum()} of 8 digits became another one" in printed
    assert printed.count(" → ") == result.valid.sum()


@pytest.mark.usefixtures("own_random_numbers")  # libraries draw some when they are imported
def test_tabular(run):
    _, result, printed = run("tabular", n=400)
    patients = np.unique(result.source[result.valid])
    assert f"{len(patients)} of 6 patients have a way to low risk" in printed
    assert len(patients) >= 5
    before, after = result.frame, result.frame_cf
    assert (after["sex"].astype(str) == before["sex"].astype(str)).all()
    assert (after["age"] >= before["age"]).all()
    assert (after["admitted"] == before["admitted"]).all()
    assert result.changed.sum(1).max() <= 3
    first = result[(result.source == 0) & result.valid]
    assert len({tuple(row) for row in first.changed}) == len(first) >= 2
    for name in first.changes()["column"].unique():
        assert name in printed


def test_own_torch_model(run, tmp_path):
    _, result, printed = run("own_torch_model", epochs=60)
    assert (
        f"{result.valid.sum()} of 20 now read as the other movement" in printed
        and result.valid.sum() >= 18
    )
    assert f"refined {result.changed_fraction.mean():.0%}" in printed
    stored = cf.Counterfactuals.load(tmp_path / "new" / "own_torch_model" / "refined.npz")
    assert torch.equal(stored.X_cf, result.X_cf)
