"""Failures that were found once, each by its name."""

import pytest
from judging import Case, judge

pytestmark = pytest.mark.usefixtures("own_random_numbers")

REFUSED = [
    ("models.as_classifier, module", "batch_size", "2.5"),
    ("models.as_classifier, module", "batch_size", "'3'"),
    ("models.as_classifier, module", "batch_size", "True"),
    ("models.as_classifier, module", "device", "'no'"),
    ("models.as_classifier, module", "classes", "5"),
    ("models.as_classifier", "model", "gives None"),
    ("models.as_classifier", "model", "gives 1"),
    ("models.as_classifier", "model", "gives P(1) alone"),
    ("models.as_classifier", "model", "module None"),
    ("models.as_classifier", "model", "estimator 7 p"),
    ("models.as_classifier", "model", "gives 7 p"),
    *[
        (f"prototypes.{name}", option, value)
        for name in ("GLVQ", "GMLVQ", "RSLVQ", "DeepLVQ")
        for option in ("learning_rate", "max_iter", "beta" if name != "RSLVQ" else "temperature")
        for value in ("'3'", "[1]", "{}")
    ],
    ("prototypes.GLVQ", "max_iter", "None"),
    ("engine.Constraints, rows", "lower", "'no'"),
    ("engine.Constraints, rows", "upper", "{'a': 1}"),
    ("engine.Constraints, rows", "lower", "ragged"),
    ("engine.Constraints, rows", "upper", "complex"),
    ("explainers.LineSearch.explain", "X", "tensor meta"),
    ("explainers.LineSearch.explain", "X", "ragged"),
    ("explainers.LineSearch.explain", "X", "Raising"),
    ("explainers.LineSearch.explain", "X", "masked"),
    ("explainers.CELS", "learning_rate", "'0.1'"),
    ("explainers.CELS", "max_iter", "-3"),
    ("explainers.CELS", "tau", "5"),
    ("explainers.LineSearch.explain", "refine", "'no'"),
    ("benchmark.Benchmark", "classifiers", "torch.tensor([1, 2])"),
    ("benchmark.Benchmark", "datasets", "DataFrame"),
    ("benchmark.Benchmark", "seeds", "pd.NA"),
    ("benchmark.Store", "folder", "2"),
    ("benchmark.Store", "trust", "{'a': 1}"),
    ("benchmark.TscfEvalPeer", "parameters", "np.array([])"),
    ("benchmark.TscfEvalPeer", "peer", "1.0"),
    ("benchmark.WildboarPeer", "peer", "lambda"),
    ("benchmark.Planted.region", "X", "no rows"),
    ("benchmark.planted_series", "channels", "2**70"),
    ("benchmark.progress_of", "store", "[]"),
    ("benchmark.sensitivity", "draws", "2**70"),
    ("data.pad", "X", "np.array(2)"),
    ("engine.Budget", "calls", "2**70"),
    ("engine.Constraints.check", "X", "one nan"),
    ("engine.Counterfactuals", "classes", "labels masked"),
    ("engine.Counterfactuals", "cf_proba", "matrix"),
    ("engine.Counterfactuals", "names", "[[1, 2], [3]]"),
    ("engine.Counterfactuals.__getitem__", "rows", "None"),
    ("engine.Counterfactuals.__getitem__", "rows", "2**63"),
    ("engine.Counterfactuals.load", "max_bytes", "inf"),
    ("engine.Counterfactuals.load", "path", "''"),
    ("engine.Counterfactuals.load", "path", "Path"),
    ("engine.Counterfactuals.save", "path", "'a\\0b'"),
    ("engine.Request", "seed", "None"),
    ("explainers.LineSearch.fit", "model", "gives a ragged list"),
    ("explainers.LineSearch.fit", "model", "module on meta"),
    ("geometry.project", "x", "six dimensions"),
    ("geometry.project", "center", "trailing dimension"),
    ("models.Verdict.of_label", "n_classes", "-1"),
    ("models.Verdict.of_proba", "proba", "tensor meta"),
    ("models.as_classifier", "batch_size", "2**70"),
    ("models.as_classifier, module", "model", "gives a list of None"),
    ("nn.RobustTrainer", "activation_noise", "2**70"),
    ("nn.RobustTrainer", "noise_accuracy", "2"),
    ("nn.RobustTrainer", "validation", "(1, 0)"),
    ("nn.fit_autoencoder", "X", "one huge"),
    ("nn.fit_autoencoder", "learning_rate", "1e300"),
    ("nn.fit_classifier", "weight_decay", "1e300"),
    ("nn.robust_accuracy", "model", "module detached"),
    ("nn.spectral_report", "X", "all huge"),
    ("numerics.RealDifferences.kink", "x_cf", "tensor complex"),
    ("numerics.channel_correlations", "series", "complex"),
    ("numerics.channel_correlations", "series", "tensor meta"),
    ("numerics.quantile_near", "values", "one inf"),
    ("prototypes.CELVQ", "device", "None"),
    ("prototypes.CELVQ", "scheduler", "print"),
    ("prototypes.Diversity", "weight", "-3"),
    ("prototypes.MedianLVQ", "metric", "print"),
    ("prototypes.MedianLVQ.fit", "X", "all huge"),
    ("prototypes.NearestMean.partial_fit", "classes", "labels as enum"),
    ("prototypes.PrototypeMemory", "beta", "2**70"),
    ("prototypes.PrototypeMemory", "prototypes", "all huge"),
    ("report.plot_latent", "i", "2"),
    ("report.write_benchmark", "frame", "DataFrame"),
    ("search.accepted_from", "candidate", "lambda"),
    ("search.first_on_line", "steps", "2**70"),
    ("search.front_ranks", "F", "one nan"),
    ("search.grow_mask", "segment", "labels negative"),
    ("search.minimize", "loss", "torch.nn.Identity"),
    ("search.minimize", "step", "lambda"),
    ("search.segment_ids", "width", "2**70"),
    ("search.survivors", "elite", "1.0"),
]
ACCEPTED = [
    ("geometry.nearest_point", "x", "reversed"),
    ("geometry.nearest_point", "A", "Fortran"),
    ("engine.Constraints, series", "max_step", "np.array([1, 2])"),
    ("engine.Constraints.check", "X_cf", "reversed"),
    ("nn.normalized", "std", "reversed"),
    ("prototypes.PrototypeMemory.energy", "x", "one nan"),
    ("prototypes.PrototypeMemory.energy", "x", "tensor bfloat16"),
    ("prototypes.prototype_diversity_loss", "prototypes", "tensor bfloat16"),
]
EITHER = [
    ("explainers.LineSearch.explain", "X", "sparse"),
    ("explainers.LineSearch.explain", "X", "tensor sparse"),
    ("explainers.LineSearch.fit", "model", "module tiny"),
]


@pytest.mark.parametrize(("door", "name", "value"), REFUSED)
def test_refused_in_clear_words(door, name, value):
    assert judge(Case(door, ((name, value),))).kind == "clear"


@pytest.mark.parametrize(("door", "name", "value"), ACCEPTED + EITHER)
def test_nothing_unclear(door, name, value):
    outcome = judge(Case(door, ((name, value),)))
    assert not outcome.finding, outcome
