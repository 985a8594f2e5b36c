"""What is unlike? Guides give each instance a point of the target class to move toward."""

from .base import Guide
from .cluster import NearestUnlikeCluster
from .neighbour import NearestUnlikeNeighbour
from .prototype import NearestUnlikePrototype

__all__ = ["Guide", "NearestUnlikeCluster", "NearestUnlikeNeighbour", "NearestUnlikePrototype"]
