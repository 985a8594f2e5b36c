"""Pictures and pages that show what changed and what the model says of it."""

from .audit_page import write_audit
from .benchmark_report import write_benchmark
from .class_audit_plots import plot_audit
from .correlation_plots import plot_correlations
from .latent_plots import plot_latent
from .method_plots import plot_methods
from .montage import montage
from .page import write_report
from .pareto_plots import plot_pareto
from .plots import plot, plot_many
from .prototype_plots import plot_projection, plot_prototypes, plot_relevances
from .rank_plots import plot_critical_difference
from .saliency_plots import plot_saliency
from .warping_plots import plot_warping

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
    "plot_warping",
    "write_audit",
    "write_benchmark",
    "write_report",
]
