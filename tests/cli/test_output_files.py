"""Paths are checked before the work starts."""

from pathlib import Path

import pytest

from contrafact.cli.output_files import check_output, paths_by_method


def test_one_path_per_method():
    path = Path("folder/out.npz")
    assert paths_by_method(None, []) == [None]
    assert paths_by_method(None, ["CELS", "SETS"]) == [None, None]
    assert paths_by_method(path, []) == paths_by_method(path, ["CELS"]) == [path]
    assert paths_by_method(path, ["CELS", "SETS"]) == [
        Path("folder/out-CELS.npz"),
        Path("folder/out-SETS.npz"),
    ]


def test_what_cannot_be_written_is_refused(tmp_path):
    check_output("--save", None, (".npz",), [])
    check_output("--save", tmp_path / "out.NPZ", (".npz",), ["out.npz"])
    read = tmp_path / "in.npz"
    read.touch()
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(ValueError, match=r"in\.npz would overwrite an input"):
        check_output("--save", read, (".npz",), [str(read)])
    with pytest.raises(ValueError, match=r"suffix '\.txt'\. Accepted: \.htm, \.html"):
        check_output("--report", tmp_path / "a.txt", (".htm", ".html"), [])
    with pytest.raises(ValueError, match=r"folder\.npz cannot be written"):
        check_output("--save", tmp_path / "folder.npz", (".npz",), [])
    with pytest.raises(FileNotFoundError, match=r"the folder .*nowhere does not exist"):
        check_output("--save", tmp_path / "nowhere" / "a.npz", (".npz",), [])
