"""contrafact: the smallest believable change that makes a classifier decide otherwise."""

from __future__ import annotations

from typing import Any

__version__ = "0.2.0"

# Public names and the package each lives in; imported on first use, so that `import contrafact`
# stays quick.
_PACKAGES = {
    "data": ("Dataset", "list_datasets", "load_dataset"),
    "models": ("Classifier", "Committee", "Ensemble", "as_classifier"),
    "nn": (
        "RobustTrainer",
        "committee",
        "fit_autoencoder",
        "fit_classifier",
        "load_model",
        "reconstruction_report",
        "robust_accuracy",
        "robust_report",
        "spectral_report",
    ),
    "tables": ("Schema",),
    "engine": ("Budget", "Constraints", "Counterfactuals"),
    "search": ("refine",),
    "testing": ("check_explainer",),
    "scale": ("explain_dataset",),
    "explainers.support.explainer": ("Explainer",),
    "explainers": (
        "CELS",
        "FACE",
        "NICE",
        "SETS",
        "SVCE",
        "TSNUC",
        "CoMTE",
        "DiCE",
        "Glacier",
        "Graft",
        "GrowingSpheres",
        "LatentCF",
        "LineSearch",
        "NativeGuide",
        "NearestUnlike",
        "PrototypeCounterfactual",
        "RandomMask",
        "RandomTarget",
        "TSEvo",
        "Wachter",
        "advise_norm",
        "audit_classes",
        "class_audit",
        "explain",
        "list_explainers",
        "recommend",
    ),
    "web": ("explore",),
}
_PACKAGE_OF = {name: package for package, names in _PACKAGES.items() for name in names}

__all__ = ["__version__", *_PACKAGE_OF]


def __getattr__(name: str) -> Any:
    if name not in _PACKAGE_OF:
        raise AttributeError(f"module 'contrafact' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"contrafact.{_PACKAGE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
