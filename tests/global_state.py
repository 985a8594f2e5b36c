"""The global state of a process that no call of contrafact may change."""

import logging
import os
import random
import signal
import sys
import warnings

import numpy as np
import torch


def snapshot():
    """Return the state of everything that is global, by name."""
    kind, keys, *position = np.random.get_state()
    state = {
        "random numbers of Python": random.getstate(),
        "random numbers of NumPy": (kind, keys.tobytes(), position),
        "random numbers of torch": torch.get_rng_state().numpy().tobytes(),
        "threads of torch": torch.get_num_threads(),
        "default dtype of torch": torch.get_default_dtype(),
        "default device of torch": torch.get_default_device(),
        "gradient mode": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "anomaly detection": torch.is_anomaly_enabled(),
        "deterministic algorithms": (
            torch.are_deterministic_algorithms_enabled(),
            torch.backends.cudnn.deterministic,
            torch.backends.cudnn.benchmark,
        ),
        "floating-point errors of NumPy": np.geterr(),
        "print options of NumPy": np.get_printoptions(),
        "warning filters": list(warnings.filters),
        "showing of warnings": warnings.showwarning,
        "current folder": os.getcwd(),
        "environment": _environment(),
        "sys.path": list(sys.path),
        "levels of loggers": _levels(),
        "signal handlers": (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)),
        "recursion limit": sys.getrecursionlimit(),
        "hooks of exceptions": sys.excepthook,
    }
    if "matplotlib" in sys.modules:
        settings = sys.modules["matplotlib"].rcParams
        state["settings of matplotlib"] = dict(dict.items(settings))  # its own copy() takes long
    if "sklearn" in sys.modules:
        state["settings of scikit-learn"] = sys.modules["sklearn"].get_config()
    state["modules"] = len(sys.modules)
    return state


def changes(before, after):
    """Say what differs between two snapshots, as a list of lines."""
    imported = after["modules"] != before["modules"]
    found = []
    for name, old in before.items():
        new = after[name]
        if name == "modules" or old == new:
            continue
        if name == "warning filters" and imported and all(entry in new for entry in old):
            continue  # libraries bring filters of their own
        if name == "environment" and imported and old.items() <= new.items():
            continue  # and set variables
        shown = "" if len(repr(new)) > 200 else f": {old!r} -> {new!r}"
        found.append(name + shown)
    return found


def _environment():
    """Return the environment, without what pytest sets."""
    environment = dict(os.environ._data)  # without decoding, which takes long
    environment.pop(os.fsencode("PYTEST_CURRENT_TEST"), None)
    return environment


def _levels():
    """Return the levels of the loggers that a call might touch."""
    loggers = [logging.getLogger(name) for name in (None, "contrafact", "py.warnings")]
    return [(logger.level, logger.disabled, logger.propagate) for logger in loggers]
