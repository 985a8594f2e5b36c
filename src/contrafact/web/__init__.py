"""The explorer and the service: a model and its explanations over HTTP."""

from __future__ import annotations

from typing import Any

__all__ = ["Explorer", "explore"]


def __getattr__(name: str) -> Any:
    # On first use, so that a client of the service does not wait for torch.
    if name not in __all__:
        raise AttributeError(f"module 'contrafact.web' has no attribute {name!r}")
    from . import explorer

    return getattr(explorer, name)
