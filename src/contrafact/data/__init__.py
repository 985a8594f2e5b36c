"""Labeled data: bundled sets, your own files, and what makes them clean enough to explain."""

from __future__ import annotations

from contrafact.data.cleaning import fill_missing, pad
from contrafact.data.dataset import Dataset
from contrafact.data.loaders import list_datasets, load_dataset

__all__ = ["Dataset", "fill_missing", "list_datasets", "load_dataset", "pad"]
