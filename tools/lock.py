"""Write constraints.txt and requirements.lock: the versions that `make` installs, and their hashes.

Versions in constraints.txt are kept where they still fit pyproject.toml; delete a line there to get
the newest. One resolution covers Python 3.10 and later on all platforms, and the hashes are those
of every file that the index has for a version. torch is in constraints.txt only: it is built for
CPUs and for several kinds of GPU, and which build is installed is a choice of the machine.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
LOCK = ROOT / "requirements.lock"
DRAFT = ROOT / "build" / "lock.txt"

CONSTRAINTS_HEADER = "# The versions that the Makefile installs; written by `make lock`.\n"
LOCK_HEADER = (
    "# constraints.txt with the hashes of all files, without torch; written by `make lock`.\n"
)
#: What torch's builds for GPUs bring along.
FOR_GPUS = re.compile(r"nvidia-|cuda-|triton==")
#: A requirement and, indented, its hashes.
ENTRY = re.compile(r"^\S.*\n(?: +\S.*\n?)*", re.MULTILINE)


def resolve(uv: str) -> str:
    """Return all requirements with their hashes, as uv finds them."""
    DRAFT.parent.mkdir(exist_ok=True)
    shutil.copy(CONSTRAINTS, DRAFT)  # uv keeps the versions that its output file already has
    command = [uv, "pip", "compile", "--quiet", "--universal", "--python-version", "3.10"]
    command += ["--extra", "dev", "--generate-hashes", "--no-annotate", "--no-header"]
    command += ["--no-emit-index-url", "--no-emit-find-links"]
    command += ["--output-file", str(DRAFT), "pyproject.toml"]
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    return DRAFT.read_text(encoding="utf-8")


def without_hashes(entry: str) -> str:
    """Return the first line of an entry."""
    line, _, _ = entry.partition("\n")
    return line.removesuffix("\\").rstrip() + "\n"


def main(uv: str) -> None:
    """Write both files."""
    entries = [entry for entry in ENTRY.findall(resolve(uv)) if not FOR_GPUS.match(entry)]
    versions = [without_hashes(entry) for entry in entries]
    hashed = [entry for entry in entries if not entry.startswith("torch==")]
    CONSTRAINTS.write_text(CONSTRAINTS_HEADER + "".join(versions), encoding="utf-8")
    LOCK.write_text(LOCK_HEADER + "".join(hashed), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
