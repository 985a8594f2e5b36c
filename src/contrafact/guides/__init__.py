"""Guides: give each instance a point of the target class to move toward."""

from ..deprecation import renamed_attributes
from .cluster import NearestUnlikeCluster
from .guide import Guide
from .neighbor import NearestUnlikeNeighbor
from .prototype_guide import NearestUnlikePrototype

__all__ = ["Guide", "NearestUnlikeCluster", "NearestUnlikeNeighbor", "NearestUnlikePrototype"]

__getattr__ = renamed_attributes(
    __name__,
    {"NearestUnlikeNeighbour": "contrafact.guides.NearestUnlikeNeighbor"},
)
