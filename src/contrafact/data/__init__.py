"""Labeled data: bundled sets, your own files, and what makes them ready to explain."""

from __future__ import annotations

from .cleaning import fill_missing, pad
from .dataset import Dataset
from .loaders import list_datasets, load_dataset

__all__ = ["Dataset", "fill_missing", "list_datasets", "load_dataset", "pad"]
