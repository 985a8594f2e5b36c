"""contrafact: the smallest believable change that makes a classifier decide otherwise."""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"

# Public names and the room each lives in; imported on first use, so that `import contrafact` stays quick.
_ROOMS = {
    "data": ("Dataset", "list_datasets", "load_dataset"),
    "models": (
        "Classifier",
        "RobustTrainer",
        "as_classifier",
        "fit_autoencoder",
        "fit_classifier",
        "load_model",
        "reconstruction_report",
        "robust_accuracy",
        "spectral_report",
    ),
    "engine": ("Budget", "Constraints", "Counterfactuals", "Explainer", "refine"),
    "engine.checks": ("check_explainer",),
    "explainers": (
        "CELS",
        "SETS",
        "SVCE",
        "TSNUC",
        "CoMTE",
        "Glacier",
        "LatentCF",
        "LineSearch",
        "NativeGuide",
        "NearestUnlike",
        "PrototypeCounterfactual",
        "RandomMask",
        "RandomTarget",
        "TSEvo",
        "class_audit",
        "explain",
        "list_explainers",
    ),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = ["__version__", *_ROOM_OF]


def __getattr__(name: str) -> Any:
    if name not in _ROOM_OF:
        raise AttributeError(f"module 'contrafact' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"contrafact.{_ROOM_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
