"""Signatures of trained models: a pickle is read again only where this user wrote it.

Reading a pickle can run code, so a folder that came from elsewhere must not bring its own. The
secret of the signatures is made once for each user and kept outside of any folder of results.
"""

from __future__ import annotations

import hmac
import os
import secrets
from functools import cache
from pathlib import Path
from uuid import uuid4

SIZE = 32


def signed(name: str, content: bytes) -> bytes:
    """Append this user's signature to a content.

    Parameters
    ----------
    name : str
        What the content is for; it is not accepted for anything else.
    content : bytes
        The content.

    Returns
    -------
    bytes
        The content and 32 bytes more.
    """
    return content + _signature(name, content)


def content_of(name: str, file: bytes) -> bytes | None:
    """Return the content that `signed` got; None where this user did not sign it for that name.

    Parameters
    ----------
    name : str
        What the content is for.
    file : bytes
        What `signed` returned, perhaps altered, or anything else.

    Returns
    -------
    bytes or None
        The content without its signature.
    """
    content = file[:-SIZE]
    if not hmac.compare_digest(file[-SIZE:], _signature(name, content)):
        return None
    return content


def _signature(name: str, content: bytes) -> bytes:
    """Compute the signature of a content for a name."""
    message = b"contrafact model " + name.encode() + b"\n" + content
    return hmac.digest(_secret(_secret_path()), message, "sha256")


def _secret_path() -> Path:
    """Return where this user's secret is kept."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "contrafact" / "secret"


@cache
def _secret(path: Path) -> bytes:
    """Read the secret, or make it; one that can't be kept holds for this process."""
    new = secrets.token_bytes(SIZE)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _keep(path, new)
        kept = path.read_bytes()
    except OSError:
        return new
    return kept if len(kept) == SIZE else new


def _keep(path: Path, secret: bytes) -> None:
    """Write the secret whole, for this user alone; one that another process wrote first stays."""
    draft = path.with_name(f".{uuid4().hex}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:  # noqa: PTH123
        file.write(secret)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
