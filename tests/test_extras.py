"""The core works without what extras bring, and says which extra is missing."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import skops.io
import torch
from safetensors.torch import save_file
from sklearn.linear_model import LogisticRegression

from contrafact.benchmark import Store
from contrafact.extras import EXTRAS, require_extra
from contrafact.nn import load_model

ROOT = Path(__file__).parents[1]
#: What the libraries of the extras bring along; the core must not lean on these either.
BROUGHT_ALONG = ("locket", "msgpack", "partd", "psutil", "sortedcontainers", "tblib", "toolz")
BROUGHT_ALONG += ("tornado", "urllib3", "yaml", "zict")

#: Part of Python since 3.11; faster parts of a server that works without them.
NOT_NEEDED = {"tomli", "httptools", "uvloop"}

CORE_ALONE = '''
import sys
from importlib.machinery import PathFinder


class WithoutExtras(PathFinder):
    """Find what is on the path, but for some packages."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        package, _, _ = name.partition(".")
        return None if package in {missing!r} else super().find_spec(name, path, target)


sys.meta_path = [WithoutExtras if each is PathFinder else each for each in sys.meta_path]

import contrafact as cf
from contrafact.benchmark import friedman, planted_series
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from contrafact.cli import app

data = cf.load_dataset("ItalyPowerDemand")
model = LogisticRegression(max_iter=1000).fit(data.X_train[:, 0], data.y_train)
result = cf.explain(model, data.X_test[:2], reference=data)
assert result.valid.all()
result.evaluate(reference=data, metrics=["sparsity", "dtw"])
result.report("why.html")
result.plot(path="why.png")
result.save("why.npz")
assert cf.Counterfactuals.load("why.npz").valid.all()
told = CliRunner().invoke(app, ["bench", "status", "folder"])
assert not set(sys.modules) & set({missing!r})
print(told.exit_code, told.stderr)
'''


def test_the_core_works_without_extras(tmp_path):
    missing = [name for names in EXTRAS.values() for name in names]
    code = CORE_ALONE.format(missing=[*missing, *BROUGHT_ALONG])
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=200
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("2 Error: A benchmark needs dask, distributed, pyarrow,")
    assert 'pip install "contrafact[benchmark]"' in told.stdout


@pytest.mark.parametrize("library", EXTRAS["benchmark"])
def test_a_missing_library_is_named(tmp_path, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    message = rf'A benchmark needs {library}, .*pip install "contrafact\[benchmark\]"'
    with pytest.raises(ImportError, match=message):
        Store(tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("library", EXTRAS["files"])
def test_a_model_file_names_the_missing_library(tmp_path, monkeypatch, library):
    path = tmp_path / "model"
    if library == "skops":
        skops.io.dump(LogisticRegression().fit([[0.0], [1.0]], [0, 1]), path)
    elif library == "safetensors":
        save_file({"weight": torch.ones(2)}, path)
    else:
        path.write_bytes(b"\x08\x09\x3a\x00")  # the version of the format and an empty graph
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf'needs {library}, .*"contrafact\[files\]"'):
        load_model(path)


def test_what_is_installed_passes():
    for extra in EXTRAS:
        require_extra(extra, "This test")


def test_extras_are_those_of_the_project():
    """The list of libraries agrees with pyproject.toml."""
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extra, libraries in EXTRAS.items():
        (listed,) = re.findall(rf"^{extra} = \[\n(.*?)^\]", settings, re.MULTILINE | re.DOTALL)
        names = re.findall(r'^  "([\w-]+)', listed, re.MULTILINE)
        imported = {name.replace("-", "_") for name in names}
        assert set(libraries) == imported - NOT_NEEDED
