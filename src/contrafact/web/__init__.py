"""The explorer and the service: a model and its explanations over HTTP."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .client import Client, ServiceError
    from .explorer import Explorer, explore
    from .service import ServiceLimits, make_service

_MODULES = {
    "Client": "client",
    "Explorer": "explorer",
    "ServiceError": "client",
    "ServiceLimits": "service",
    "explore": "explorer",
    "make_service": "service",
}

__all__ = ["Client", "Explorer", "ServiceError", "ServiceLimits", "explore", "make_service"]


def __getattr__(name: str) -> Any:
    # On first use, so that a client of the service does not wait for torch.
    if name not in _MODULES:
        raise AttributeError(f"module 'contrafact.web' has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
