"""Report: pictures and a page that say at a glance what changed and what the model made of it."""

from .latent import plot_latent
from .montage import montage, plot_audit
from .page import write_report
from .plots import plot, plot_many
from .prototypes import plot_projection, plot_prototypes, plot_relevances

__all__ = [
    "montage",
    "plot",
    "plot_audit",
    "plot_latent",
    "plot_many",
    "plot_projection",
    "plot_prototypes",
    "plot_relevances",
    "write_report",
]
