"""Report: pictures and a page that say at a glance what changed and what the model made of it."""

from .benchmark_report import write_benchmark
from .comparison import plot_methods
from .latent_plots import plot_latent
from .montage import montage, plot_audit
from .page import write_report
from .plots import plot, plot_many
from .prototype_plots import plot_projection, plot_prototypes, plot_relevances
from .saliency import plot_saliency
from .statistics_plots import plot_correlations, plot_critical_difference, plot_pareto

__all__ = [
    "montage",
    "plot",
    "plot_audit",
    "plot_correlations",
    "plot_critical_difference",
    "plot_latent",
    "plot_many",
    "plot_methods",
    "plot_pareto",
    "plot_projection",
    "plot_prototypes",
    "plot_relevances",
    "plot_saliency",
    "write_benchmark",
    "write_report",
]
