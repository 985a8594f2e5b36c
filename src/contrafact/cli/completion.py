"""Candidates for shell completion; the shell keeps those that begin with what was typed."""

from __future__ import annotations


def methods() -> list[str]:
    """Return the names of the methods."""
    # Read from the list of public names, which does not import the methods themselves.
    from contrafact import _PACKAGES

    return [name for name in _PACKAGES["explainers"] if name[0].isupper()]


def datasets() -> list[str]:
    """Return the names of the bundled data sets."""
    from contrafact.data.loaders import BY_NAME

    return [entry.name for entry in BY_NAME.values()]


def metrics() -> list[str]:
    """Return the names of the metrics."""
    from contrafact.metrics import list_metrics

    return list(list_metrics()["name"])


def networks() -> list[str]:
    """Return the names of the networks that --network knows."""
    from contrafact.nn.networks import NETWORKS

    return list(NETWORKS)


def modalities() -> list[str]:
    """Return the kinds of data."""
    from contrafact.data.dataset import SHAPES

    return list(SHAPES)
