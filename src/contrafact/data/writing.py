"""Files that get their name when they are complete, and folders with one writer at a time."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

#: How the name of every draft begins; a killed process may leave one behind.
DRAFT_PREFIX = ".contrafact-draft-"


@contextmanager
def complete_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a draft to write to, which gets the name `path` when it is complete.

    Where the block raises, be it for a full disk, the draft is removed and a file that had the name
    before is left as it was.

    Parameters
    ----------
    path : str or path
        The file to write; a link is followed.

    Yields
    ------
    Path
        A new name in the same folder, with the same suffix.

    Raises
    ------
    FileNotFoundError
        If the folder does not exist.

    Examples
    --------
    >>> with complete_file("numbers.txt") as draft:
    ...     characters = draft.write_text("1 2 3")
    >>> Path("numbers.txt").read_text()
    '1 2 3'
    """
    path = Path(os.path.realpath(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {path.parent}.")
    if path.exists() and not path.is_file():
        yield path  # a device such as /dev/null; a folder, which the writer refuses
        return
    # Unique, for another run may be writing the same; the suffix stays, for writers look at it.
    draft = path.with_name(f"{DRAFT_PREFIX}{os.getpid()}-{uuid4().hex}{path.suffix}")
    try:
        yield draft
        with draft.open("rb") as written:
            os.fsync(written.fileno())
        if path.exists():
            shutil.copymode(path, draft)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


@contextmanager
def only_writer(folder: str | os.PathLike[str], doing: str) -> Iterator[None]:
    """Keep other writers out of a folder, which is made where it is missing.

    Drafts that killed writers left in it are removed.

    Parameters
    ----------
    folder : str or path
        The folder.
    doing : str
        What another process does that has it, for the message: "runs a benchmark".

    Yields
    ------
    None
        While no other process is a writer of the folder.

    Raises
    ------
    BlockingIOError
        Where another process writes to the folder.
    """
    import fcntl

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        try:
            # Ends with the process, however that ends.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BlockingIOError(
                f"Another process {doing} in {folder}. Wait for it, or end it."
            ) from error
        remove_drafts(folder)
        yield


def remove_drafts(folder: Path) -> None:
    """Remove what writers that were killed had begun to write."""
    for path in folder.glob(".*"):
        if is_draft(path):
            path.unlink(missing_ok=True)


def is_draft(path: Path) -> bool:
    """Return whether a file is the draft of a run, at work or killed."""
    return path.name.startswith(DRAFT_PREFIX)
