"""Labeled data: bundled sets, your own files, and what makes them ready to explain."""

from __future__ import annotations

from .cleaning import fill_missing, pad
from .dataset import Dataset
from .label_noise import DisagreeingRows, disagreeing_rows
from .loaders import list_datasets, load_dataset
from .mask_files import read_mask
from .patients import make_patients

__all__ = [
    "Dataset",
    "DisagreeingRows",
    "disagreeing_rows",
    "fill_missing",
    "list_datasets",
    "load_dataset",
    "make_patients",
    "pad",
    "read_mask",
]
