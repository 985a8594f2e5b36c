"""Prototypes: points that stand for a class, and choosing diverse ones."""

from .diversity import select_diverse

__all__ = ["select_diverse"]
