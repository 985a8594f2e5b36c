"""What the TAB key offers; the shell picks those that begin with what was typed."""

from __future__ import annotations


def methods() -> list[str]:
    # The public names are known without importing the methods themselves.
    from contrafact import _ROOMS

    return [name for name in _ROOMS["explainers"] if name[0].isupper()]


def datasets() -> list[str]:
    from contrafact.data.loaders import BY_NAME

    return [entry.name for entry in BY_NAME.values()]


def metrics() -> list[str]:
    from contrafact.metrics import list_metrics

    return list(list_metrics()["name"])


def networks() -> list[str]:
    from contrafact.nn.networks import NETWORKS

    return list(NETWORKS)


def modalities() -> list[str]:
    from contrafact.data.dataset import SHAPES

    return list(SHAPES)
