"""Files are complete or not there: a failure leaves what was there before, and no draft."""

import os
import shutil
import subprocess

import matplotlib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.data.writing import complete_file, is_draft


@pytest.fixture(scope="module")
def result():
    X = np.random.default_rng(0).normal(size=(30, 2_000))
    y = (X[:, 0] > 0).astype(int)
    model = LogisticRegression().fit(X, y)
    return cf.LineSearch().fit(model, X, y).explain(X[:8])


def outputs(result):
    """Every kind of file that a result can be written to."""
    return {
        "kept.npz": result.save,
        "kept.html": result.report,
        "kept.png": lambda path: result.plot(0, path),
    }


def test_the_draft_becomes_the_file(tmp_path):
    path = tmp_path / "table.csv"
    with complete_file(path) as draft:
        draft.write_text("whole")
        assert is_draft(draft) and not is_draft(path)
        assert draft.suffix == ".csv" and not path.exists()
    assert path.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_failure_keeps_the_file_that_was_there(tmp_path, error):
    path = tmp_path / "table.csv"
    path.write_text("good")
    with pytest.raises(type(error)), complete_file(path) as draft:
        draft.write_text("hal")
        raise error
    assert path.read_text() == "good"
    assert list(tmp_path.iterdir()) == [path]


def test_links_and_modes_stay(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("secret")
    path.chmod(0o600)
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    with complete_file(link) as draft:
        draft.write_text("new")
    assert link.is_symlink() and path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_missing_folder_is_named(tmp_path):
    path = tmp_path / "absent" / "table.csv"
    with pytest.raises(FileNotFoundError, match=r"no folder .*absent"), complete_file(path):
        pass


def test_a_device_is_written_to_as_it_is():
    with complete_file(os.devnull) as draft:
        assert str(draft) == os.devnull


def test_every_output_survives_a_failing_writer(tmp_path, result, monkeypatch):
    """The writer of each kind of file writes a part and fails."""

    def fails(target, /, *args, **kwargs):
        target.write_bytes(b"half")
        raise OSError("No space left on device")

    def fails_too(self, target, *args, **kwargs):
        fails(target)

    before = {}
    for name, write in outputs(result).items():
        write(tmp_path / name)
        before[name] = (tmp_path / name).read_bytes()
    monkeypatch.setattr(np, "savez_compressed", fails)
    monkeypatch.setattr("pathlib.Path.write_text", fails)
    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", fails_too)
    for name, write in outputs(result).items():
        with pytest.raises(OSError, match="No space left"):
            write(tmp_path / name)
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert after == before


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MB, where the user may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True).returncode == 0
    except OSError:
        mounted = False
    if not mounted:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_keeps_the_file_that_was_there(small_disk, result):
    for name, write in outputs(result[0]).items():
        write(small_disk / name)
        before = (small_disk / name).read_bytes()
        filler = small_disk / "filler"
        filler.write_bytes(bytes(shutil.disk_usage(small_disk).free - 8_192))
        with pytest.raises(OSError, match="No space left"):
            write(small_disk / name)
        assert (small_disk / name).read_bytes() == before
        filler.unlink()
        assert not any(is_draft(path) for path in small_disk.iterdir())
        (small_disk / name).unlink()
