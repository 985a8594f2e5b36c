"""The site is complete: every public name is in the reference, and pages need no network."""

import importlib
import os
import pkgutil
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

import contrafact as cf

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "contrafact"


def public_packages():
    """Packages of contrafact that list public names."""
    for module in pkgutil.iter_modules(cf.__path__):
        if hasattr(importlib.import_module(f"contrafact.{module.name}"), "__all__"):
            yield module.name


@pytest.mark.parametrize("package", list(public_packages()))
def test_every_public_name_is_in_the_reference(package):
    page = (ROOT / "docs" / "api" / f"{package}.md").read_text(encoding="utf-8")
    for name in importlib.import_module(f"contrafact.{package}").__all__:
        # Where a file has the name of its function, the tool takes the shorter path for the file.
        path = f"{name}.{name}" if (SOURCE / package / f"{name}.py").exists() else name
        assert f"::: contrafact.{package}.{path}" in page.splitlines()


def test_every_package_has_its_page():
    """New packages are found by themselves; these are the ones that must be there."""
    expected = {"engine", "explainers", "models", "nn", "numerics", "search", "testing"}
    assert expected <= set(public_packages())
    index = (ROOT / "docs" / "api" / "index.md").read_text(encoding="utf-8")
    missing = [name for name in public_packages() if f"[`contrafact.{name}`]" not in index]
    assert not missing


def test_names_of_the_package_are_in_the_reference():
    text = (ROOT / "docs" / "api" / "index.md").read_text(encoding="utf-8")
    missing = [name for name in cf.__all__ if f"[`{name}`]" not in text]
    assert missing == ["__version__"]


def test_docstrings_become_markdown():
    path = ROOT / "docs" / "tools" / "docstrings.py"
    tool = types.ModuleType("docstrings")
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), tool.__dict__)
    docstring = """What it does.

    x' = <n>

Parameters
----------
a, b : two things, one of them
    <long>.
path : str
    Where.

Returns
-------
array of shape (n,)
    One number each.

Examples
--------
>>> 1 + 1
2"""
    assert (
        tool.as_markdown(docstring)
        == """What it does.

    x' = <n>

**Parameters**

- `a`, `b`: two things, one of them
    &lt;long>.
- `path`: str
    Where.

**Returns**

- array of shape (n,)
    One number each.

**Examples**

```pycon
>>> 1 + 1
2
```"""
    )


def test_site_builds_and_needs_no_network(tmp_path):
    """Every warning is an error; nothing is fetched from elsewhere when a page opens."""
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    pages = {
        path.relative_to(tmp_path).as_posix(): path.read_text("utf-8")
        for path in tmp_path.rglob("*.html")
    }
    assert {"index.html", "api/explainers.html", "results/tscfeval.html", "CHANGELOG.html"} <= set(
        pages
    )
    assert (
        "<code>--report</code>" in pages["cli.html"]
        and "options of contrafact" not in pages["cli.html"]
    )
    for name, text in pages.items():
        assert not re.findall(r'(?:src="|<link[^>]*href=")(?:https?:)?//[^"]+', text), name
    for sheet in tmp_path.rglob("*.css"):
        assert not re.findall(r"url\([\"']?https?:", sheet.read_text(encoding="utf-8")), sheet
