"""Files of arrays: only what is named is read, and never more than was announced."""

import io
import zipfile

import numpy as np
import pytest

import contrafact as cf
from contrafact.data.archives import read_npz

X = np.arange(6.0).reshape(3, 2)


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def header(text, body=b""):
    """An array of version 1 whose header is any text."""
    text = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body


def write(path, members, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def read(path, names=("X",), **options):
    return read_npz(path, names.__contains__, **options)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize(
    "array",
    [X, X.T, X.astype(">f4"), np.array("text"), np.zeros((0, 3)), np.array(["a", "日本"]), X > 2],
    ids=str,
)
def test_arrays_come_back(tmp_path, array, compression):
    path = write(tmp_path / "a.npz", [("X.npy", npy(array)), ("Z.npy", b"junk")], compression)
    found = read(path)
    assert list(found) == ["X"]
    np.testing.assert_array_equal(found["X"], array)
    assert found["X"].dtype.isnative and found["X"].flags.writeable


def test_a_large_member_that_nobody_asked_for_is_not_unpacked(tmp_path):
    """Six megabytes that unpack to six gigabytes; here a thousandth of it, which is not read."""
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, X=X, unused=np.zeros(2**20))
    with pytest.raises(ValueError, match=r"bomb\.npz .* take 8,388,736 bytes, more than the 1,000"):
        read(path, ("unused",), max_bytes=1_000)
    opened = []
    original = zipfile.ZipFile.open

    def watched(self, member, *args, **kwargs):
        opened.append(member.filename)
        return original(self, member, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zipfile.ZipFile, "open", watched)
        np.testing.assert_array_equal(read(path, max_bytes=1_000)["X"], X)
    assert opened == ["X.npy"]


def test_the_limit_can_be_raised(tmp_path):
    path = tmp_path / "data.npz"
    np.savez_compressed(path, X=np.random.default_rng(0).normal(size=(40, 3)), y=np.arange(40) % 2)
    with pytest.raises(ValueError, match="max_bytes raises the limit"):
        cf.load_dataset(path, max_bytes=100)
    assert len(cf.load_dataset(path, max_bytes=10_000).X_train) == 28


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (npy(X)[:-3], "claims shape"),
        (npy(X) + b"more", "claims shape"),
        (b"", "EOF"),
        (b"no array at all", "magic string"),
        (header("{'descr': '<f8', 'fortran_order': False, 'shape': (-3,)}"), "has shape"),
        (header("{'descr': '<f8', 'fortran_order': False, 'shape': (10**9,)}"), "malformed"),
        (
            header("{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999,)}"),
            "claims shape",
        ),
        (header("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", b"x" * 8), "dtype obj"),
        (header("{'descr': '<U0', 'fortran_order': False, 'shape': (9,)}"), "has shape"),
        (header("{'descr': '<M8[s]', 'fortran_order': False, 'shape': ()}", b"x" * 8), "datetime"),
        (header("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': ()}"), "has dtype"),
        (header("(" * 100), "EOF"),
        (header("__import__('os').getcwd()"), "malformed"),
        (b"\x93NUMPY\x09\x00" + npy(X)[8:], "version"),
    ],
)
def test_damaged_arrays_are_refused_in_one_line(tmp_path, content, message):
    path = write(tmp_path / "bad.npz", [("X.npy", content)])
    with pytest.raises(ValueError, match=f"bad.npz cannot be read as .npz: .*{message}") as refusal:
        read(path)
    assert "\n" not in str(refusal.value)


def test_two_members_of_a_name(tmp_path):
    with pytest.warns(UserWarning, match="Duplicate name"):
        path = write(tmp_path / "two.npz", [("X.npy", npy(X)), ("X.npy", npy(X + 1))])
    with pytest.raises(ValueError, match="two entries 'X'"):
        read(path)


def patched(path, offset, value, marker=b"PK\x01\x02"):
    """Overwrite bytes of the only entry of the directory."""
    content = bytearray(path.read_bytes())
    start = content.index(marker) + offset
    content[start : start + len(value)] = value
    path.write_bytes(content)
    return path


def test_encrypted_members_are_named(tmp_path):
    path = patched(write(tmp_path / "a.npz", [("X.npy", npy(X))]), 8, b"\x01")
    with pytest.raises(ValueError, match="entry 'X' is encrypted"):
        read(path)


def test_sizes_that_cannot_be(tmp_path):
    path = patched(write(tmp_path / "a.npz", [("X.npy", npy(X))]), 24, b"\xff\xff\xff\x7f")
    with pytest.raises(ValueError, match="claims 2,147,483,647 bytes from"):
        read(path)
    path = patched(write(tmp_path / "b.npz", [("X.npy", npy(X))]), 20, b"\xff\xff\xff\x7f")
    with pytest.raises(ValueError, match="entry 'X' is longer than the file"):
        read(path)


def test_other_compressions_are_refused(tmp_path):
    path = write(tmp_path / "a.npz", [("X.npy", npy(X))], zipfile.ZIP_LZMA)
    with pytest.raises(ValueError, match="by another method than deflate"):
        read(path)


@pytest.mark.parametrize("kept", [0, 10, 60, -30, -10])
def test_truncated_files(tmp_path, kept):
    path = write(tmp_path / "cut.npz", [("X.npy", npy(X))])
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"cut\.npz cannot be read as \.npz"):
        read(path)


def test_missing_files_and_folders_are_errors_of_the_system(tmp_path):
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "absent.npz")
    with pytest.raises(IsADirectoryError):
        read(tmp_path)
