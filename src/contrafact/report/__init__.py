"""Report: pictures and a page that say at a glance what changed and what the model made of it."""

from .page import write_report
from .plots import plot, plot_many

__all__ = ["plot", "plot_many", "write_report"]
