"""Tables as people have them: what each column holds, and rows as numbers that can be searched."""

from .columns import Column
from .frames import is_frame, join_frames
from .relations import Relation
from .schema import Schema
from .space import TableSpace
from .table import Table, check_columns

__all__ = [
    "Column",
    "Relation",
    "Schema",
    "Table",
    "TableSpace",
    "check_columns",
    "is_frame",
    "join_frames",
]
