"""The presets of TS-NUC: ours, and the choices of the paper."""

from __future__ import annotations

from typing import Any

#: values of the parameters that are left at None
PRESETS: dict[str, dict[str, Any]] = {
    "library": {
        "autoencoder": "cnn",
        "centroids": "predictions",
        "n_centroids": 3,
        "max_iter": 500,
        "noise_mean": 0.0,
        "noise_std": 0.0,
        "feedback": False,
        "residual": True,
        "nearer": 100,
        "shorten": True,
        "doubling": 50,
        "denoise": True,
        "fallback": True,
    },
    "paper": {
        "autoencoder": "lstm",
        "centroids": "labels",
        "n_centroids": 1,
        "max_iter": 10_000,
        "noise_mean": -1.0,
        "noise_std": 1.0,
        "feedback": True,
        "residual": False,
        "nearer": 0,
        "shorten": False,
        "doubling": 0,
        "denoise": False,
        "fallback": False,
    },
}
