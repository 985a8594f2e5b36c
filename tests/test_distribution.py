"""What a stranger gets: wheel and sdist build, hold what they should, and install."""

import json
import re
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import contrafact as cf

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "contrafact"


def build(folder: Path, target: Path, *what: str) -> Path:
    """Build with what is installed; needs no network."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(target), *what]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=100)
    (built,) = target.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "--target", "wheel")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("sdist"), "--target", "sdist")


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    files = [
        path for path in SOURCE.rglob("*") if path.is_file() and "__pycache__" not in str(path)
    ]
    expected = {f"contrafact/{path.relative_to(SOURCE).as_posix()}" for path in files}
    assert {"contrafact/py.typed", "contrafact/report/assets/page.css"} <= expected
    about = f"contrafact-{cf.__version__}.dist-info/"
    names = names_in(wheel)
    assert {name for name in names if not name.startswith(about)} == expected
    assert f"{about}licenses/LICENSE" in names


def test_the_sdist_builds_the_same_wheel(sdist, wheel, tmp_path):
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    folder = tmp_path / f"contrafact-{cf.__version__}"
    beside_the_package = {path.name for path in folder.iterdir()}
    expected = {"src", "README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", "PKG-INFO"}
    assert beside_the_package - {".gitignore"} == expected
    again = build(folder, tmp_path / "wheel", "--target", "wheel")
    assert names_in(again) == names_in(wheel)


def test_the_wheel_works_in_a_new_environment(wheel, tmp_path):
    """The libraries are those of this environment; contrafact is the one from the wheel."""
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    here = sysconfig.get_path("purelib")
    packages = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    (Path(packages) / "libraries.pth").write_text(here)
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    subprocess.run(
        [*install, "--no-index", "--no-deps", "--ignore-installed", wheel],
        check=True,
        capture_output=True,
        timeout=100,
    )
    code = (
        "import contrafact, contrafact.report, importlib.metadata as m;"
        "print(contrafact.__file__, contrafact.__version__, m.version('contrafact'))"
    )
    told = subprocess.run(
        [python, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=100
    )
    file, *versions = told.stdout.split()
    assert Path(file).is_relative_to(tmp_path)
    assert versions == [cf.__version__, cf.__version__]
    script = tmp_path / "env" / "bin" / "contrafact"
    told = subprocess.run([script, "--version"], capture_output=True, text=True, timeout=100)
    assert told.stdout.strip() == f"contrafact {cf.__version__}"


def test_the_changes_of_this_version_are_told():
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## .*{re.escape(cf.__version__)}", changes, re.MULTILINE)


def requirements(file: str) -> list[str]:
    """Return the requirements of a file, without comments and hashes."""
    text = (ROOT / file).read_text(encoding="utf-8")
    lines = [line.removesuffix("\\").strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith(("#", "--hash"))]


def test_the_lock_is_the_constraints_with_hashes():
    locked = requirements("requirements.lock")
    assert locked == [line for line in requirements("constraints.txt") if "torch==" not in line]
    entries = re.split(r"^(?=\S)", (ROOT / "requirements.lock").read_text(), flags=re.MULTILINE)
    hashed = [entry for entry in entries if "==" in entry]
    assert len(hashed) == len(locked)
    for entry in hashed:
        assert re.search(r"\n +--hash=sha256:[0-9a-f]{64}", entry), entry


def test_the_bill_of_materials(tmp_path):
    subprocess.run([sys.executable, ROOT / "tools" / "sbom.py", tmp_path], check=True, timeout=100)
    document = json.loads((tmp_path / "sbom.json").read_text())
    assert document["bomFormat"] == "CycloneDX"
    names = {component["name"] for component in document["components"]}
    assert {"torch", "numpy", "pyarrow", "mpmath"} <= names  # mpmath: needed by what torch needs
    assert not names & {"pytest", "mypy", "contrafact"}
    references = {component["bom-ref"] for component in document["components"]}
    references.add(document["metadata"]["component"]["bom-ref"])
    for entry in document["dependencies"]:
        assert entry["ref"] in references and set(entry["dependsOn"]) <= references
    table = (tmp_path / "licenses.md").read_text()
    assert all(f"| {name} |" in table for name in names)
    assert "not stated" not in table
