"""Large data: sources that are read in chunks, results in folders, workers here or elsewhere."""

from .dataset import CounterfactualsDataset
from .explaining import explain_dataset

__all__ = ["CounterfactualsDataset", "explain_dataset"]
