"""Options that cannot be honored are refused, by name; old names still work."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from gradient_models import MODELS
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from contrafact import prototypes
from contrafact.prototypes import (
    GLVQ,
    GMLVQ,
    GRLVQ,
    LVQ1,
    LVQ21,
    RSLVQ,
    DeepLVQ,
    Diversity,
    MedianLVQ,
    NearestMean,
    Orthogonality,
    RelevanceFloor,
    SparseRelevance,
    elastic_net_proximal,
    sparse_relevance_proximal,
)
from contrafact.prototypes.estimator import PrototypeClassifier
from contrafact.prototypes.gradient_rules import OLD_NAMES
from contrafact.validation import Real

START = "initial_prototypes"
REFUSED = {
    "init": (GLVQ(init="middle"), {}, "GLVQ: init must be 'kmeans', 'kmeans"),
    "no prototypes": (GLVQ(0), {}, "n_prototypes must be a whole number at least 1 .*, got 0"),
    "half a prototype": (
        GLVQ(1.5),
        {},
        "n_prototypes must be a whole number at least 1 .*, got 1.5",
    ),
    "unnamed class": (GLVQ({0: 1, 1: 1}), {}, "n_prototypes must name every class once"),
    "unknown class": (
        GLVQ({0: 1, 1: 1, 2: 1, 7: 1}),
        {},
        "n_prototypes must name every class once",
    ),
    "optimizer": (GLVQ(optimizer="newton"), {}, "optimizer must be 'adam'.* got 'newton'"),
    "learning_rate twice": (
        GLVQ(optimizer=torch.optim.SGD([torch.zeros(1)], lr=0.1), learning_rate=0.1),
        {},
        "learning_rate must be None",
    ),
    "scheduler": (GLVQ(scheduler="never"), {}, "scheduler must be 'cosine'"),
    "scheduler_options without a name": (
        GLVQ(scheduler=None, scheduler_options={"gamma": 0.5}),
        {},
        "scheduler_options needs a scheduler by name.*got None",
    ),
    "another argument": (
        GLVQ(scheduler="linear", scheduler_options={"gamma": 0.5}),
        {},
        "scheduler_options holds 'gamma'; scheduler='linear' takes 'total_iters', 'end_factor'",
    ),
    "value of an argument": (
        GLVQ(scheduler="exponential", scheduler_options={"gamma": 2}),
        {},
        "scheduler_options: gamma must be a number above 0 and at most 1, got 2",
    ),
    "milestones": (
        GLVQ(scheduler="piecewise", scheduler_options={"milestones": 3}),
        {},
        "milestones must be a list of whole numbers at least 1, got 3",
    ),
    "init_options": (
        GLVQ(init="zeros", init_options={"value": 1}),
        {},
        "init_options holds 'value'; init='zeros' takes no arguments",
    ),
    "value of init_options": (
        GLVQ(init="normal", init_options={"std": -1}),
        {},
        "init_options: std must be a number at least 0",
    ),
    "init_options of a function": (
        GLVQ(init=lambda X, y, counts, rng: None, init_options={"std": 1}),
        {},
        "init_options needs an init by name",
    ),
    "what a function returns": (
        GLVQ(init=lambda X, y, counts, rng: X[:3]),
        {},
        "what init returns must be a pair",
    ),
    "classes of a function": (
        GLVQ(init=lambda X, y, counts, rng: (X[y == 0], y[y == 0])),
        {},
        "what init returns must hold one of every class",
    ),
    "several class means": (GLVQ(2, init="class_mean"), {}, "one prototype per class"),
    "entry of lookahead": (
        GLVQ(lookahead={"period": 3}),
        {},
        "lookahead holds 'period'; a dictionary for it takes 'sync_period', 'slow_step_size'",
    ),
    "value of lookahead": (
        GLVQ(lookahead={"slow_step_size": 0}),
        {},
        "lookahead: slow_step_size must be a number above 0 and at most 1, got 0",
    ),
    "distance of a learned metric": (
        GMLVQ(distance_fn=torch.cdist),
        {},
        "distance_fn needs a model without a learned metric",
    ),
    "beta of a function": (GLVQ(transfer=torch.tanh, beta=2.0), {}, "beta=2.0 needs transfer"),
    "tol": (GLVQ(tol=-1), {}, "tol must be a number at least 0 or None, got -1"),
    "margin of rslvq": (
        MedianLVQ(objective="rslvq", margin=0.1),
        {},
        "margin=0.1 needs objective='sigmoid' or 'glvq'",
    ),
    "rows that are not there": (
        MedianLVQ(),
        {START: [0, 1, 99]},
        "initial_prototypes must be rows of X from 0 to 44",
    ),
    "rows of too few classes": (MedianLVQ(), {START: [0]}, "at least one of every class"),
    "rows as texts": (MedianLVQ(), {START: ["a", "b", "c"]}, "initial_prototypes must be rows"),
    "no epochs": (GLVQ(max_iter=0), {}, "max_iter must be a whole number at least 1.*, got 0"),
    "negative batch": (
        GLVQ(batch_size=-1),
        {},
        "batch_size must be a whole number at least 1 and at most 1e",
    ),
    "patience": (GLVQ(patience=3), {}, "need something held out"),
    "restore_best": (GLVQ(restore_best=False), {}, "need something held out"),
    "ema": (GLVQ(ema=1.0), {}, "ema must be a number above 0 and below 1 or None, got 1.0"),
    "accumulate": (GLVQ(accumulate=2), {}, "accumulate=2 needs a batch_size"),
    "accumulate 0": (
        GLVQ(accumulate=0, batch_size=5),
        {},
        "accumulate must be a whole number at least 1.*, got 0",
    ),
    "lookahead": (
        GLVQ(lookahead=0),
        {},
        "lookahead must be a whole number at least 1, a dictionary or None, got 0",
    ),
    "frozen, all": (LVQ1(frozen=("prototypes",)), {}, "frozen must name some, not all"),
    "frozen, unknown": (GLVQ(frozen=("metric",)), {}, r"of the groups \['prototypes'\]"),
    "frozen and changed": (
        GRLVQ(frozen=("metric",), regularizers=(SparseRelevance(0.1),)),
        {},
        "frozen metric",
    ),
    "mixed_precision": (GLVQ(mixed_precision=True), {}, "needs dtype='float32'"),
    "dtype": (GLVQ(dtype="float16"), {}, "dtype must be 'float32' or 'float64'"),
    "temperature": (
        GLVQ(temperature=0.0),
        {},
        "temperature must be a number above 0 or None, got 0.0",
    ),
    "no relevances": (
        GLVQ(regularizers=(SparseRelevance(0.1),)),
        {},
        "SparseRelevance needs a model with relev",
    ),
    "no floor": (
        GLVQ(regularizers=(RelevanceFloor(0.1),)),
        {},
        "RelevanceFloor needs a model with relevances",
    ),
    "floor too high": (
        GRLVQ(regularizers=(RelevanceFloor(0.3),)),
        {},
        r"minimum must lie in \[0, 1/4\]",
    ),
    "all sparse": (GRLVQ(regularizers=(SparseRelevance(1e4),)), {}, "smaller l1_weight"),
    "transfer": (
        GLVQ(transfer="cubic"),
        {},
        "transfer must be 'identity', 'sigmoid', 'swish' or a function of μ, got 'cubic'",
    ),
    "beta": (GLVQ(transfer="identity", beta=2.0), {}, "beta=2.0 needs transfer"),
    "window": (
        LVQ21(window=1.0),
        {},
        "LVQ21: window must be a number above 0 and below 1, got 1.0",
    ),
    "metric": (RSLVQ(metric="cosine"), {}, "metric must be 'euclidean'"),
    "rank": (GMLVQ(rank=0), {}, "rank must be a whole number at least 1 or None, got 0"),
    "rank without matrix": (RSLVQ(rank=2), {}, "rank=2 needs metric='matrix' or 'local'"),
    "start of another class": (
        GLVQ(),
        {START: (np.zeros((3, 4)), [0, 1, 9])},
        r"initial_prototypes holds labels \[9\]",
    ),
    "start of another size": (GLVQ(), {START: (np.zeros((3, 5)), [0, 1, 2])}, "features"),
    "held out of another class": (
        GLVQ(),
        {"validation_data": (np.zeros((1, 4)), [9])},
        "validation_data holds labels",
    ),
    "negative weight": (GLVQ(), {"sample_weight": np.linspace(-1, 1, 45)}, "at least 0 per row"),
    "no weight": (GLVQ(), {"sample_weight": np.zeros(45)}, "not all zero"),
    "weights of another length": (
        GLVQ(),
        {"sample_weight": np.ones(44)},
        "sample_weight has shape .*one number per row",
    ),
    "means metric": (NearestMean("cosine"), {}, "NearestMean: metric must be 'euclidean'"),
    "shrinkage": (
        NearestMean("mahalanobis", shrinkage=2),
        {},
        "shrinkage must be a number at least 0 and at most 1 or None, got 2",
    ),
    "embedding": (DeepLVQ(backbone="transformer"), {}, "transformer"),
}


@pytest.mark.parametrize(("model", "given", "said"), REFUSED.values(), ids=REFUSED)
def test_what_can_not_be_honored_is_refused(model, given, said, blobs):
    with pytest.raises(ValueError, match=said):
        model.fit(*blobs, **given)


@pytest.mark.parametrize(
    ("model", "given", "said"),
    [
        (GLVQ(), {START: (np.zeros((2, 4)), [0, 1])}, START),
        (GLVQ(), {START: (np.zeros((3, 4)), [0, 1])}, START),
        (
            GLVQ(patience=2),
            {"validation_data": (np.zeros((3, 4)), [0, 1])},
            "validation_data|inconsistent",
        ),
        (
            GLVQ(validation_fraction=0.3, max_iter=2),
            {"validation_data": (np.zeros((1, 4)), [0])},
            "validation_fraction",
        ),
        (GLVQ(batch_size=0, max_iter=2), {}, "batch_size"),
        (GLVQ(max_iter=0), {}, "max_iter"),
        (GLVQ(patience=0, validation_fraction=0.3, max_iter=2), {}, "patience"),
        (GMLVQ(rank=5, max_iter=2), {}, "rank"),
        (GLVQ(beta=-1.0, max_iter=2), {}, "beta"),
        (GLVQ(class_weight={0: 0, 1: 1, 2: 1}), {}, "class_weight"),
        (GLVQ(optimizer=torch.optim.LBFGS), {}, "optimizer"),
        (LVQ1(2, optimizer="sgd", learning_rate=1e200, max_iter=1), {}, "smaller learning_rate"),
        (NearestMean(window=0.1), {}, "window"),
        (NearestMean(shrinkage=0.5), {}, "shrinkage"),
        (RSLVQ(metric_learning_rate=0.5, max_iter=2), {}, "metric_learning_rate"),
    ],
)
def test_what_should_be_refused(model, given, said, blobs):
    with pytest.raises(ValueError, match=said):
        model.fit(*blobs, **given)


# --- every rule -----------------------------------------------------------------------------------

EVERY_MODEL = [
    getattr(prototypes, name)
    for name in prototypes.__all__
    if isinstance(getattr(prototypes, name), type)
    and issubclass(getattr(prototypes, name), PrototypeClassifier)
]
NUMBERS = {
    "n_prototypes",
    "learning_rate",
    "max_iter",
    "batch_size",
    "validation_fraction",
    "patience",
    "ema",
    "accumulate",
    "lookahead",
    "temperature",
    "window",
    "beta",
    "margin",
    "metric_learning_rate",
    "rank",
    "embedding",
    "shrinkage",
    "max_sweeps",
    "tol",
    "n_init",
}
#: numbers for which None stands for a default
OPTIONAL = NUMBERS - {
    "n_prototypes",
    "max_iter",
    "validation_fraction",
    "accumulate",
    "embedding",
    "max_sweeps",
    "n_init",
}


@pytest.mark.parametrize("kind", EVERY_MODEL, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("value", ["3", [1], {"a": "b"}, np.nan, True, None], ids=repr)
def test_numbers_are_numbers(kind, value, blobs):
    """Whatever else is given is refused by name, before any work."""
    optional = OPTIONAL - {LVQ21: {"window"}, MedianLVQ: {"tol"}}.get(kind, set())
    optional = optional if value is None else set()
    if isinstance(value, dict):
        optional = {"lookahead"}  # its entries are checked by name
    for option in NUMBERS & set(kind().get_params()) - optional:
        with pytest.raises(ValueError, match=f"^{kind.__name__}: {option} must be a .*number.*got"):
            kind(**{option: value}).fit(*blobs)


@pytest.mark.parametrize("kind", EVERY_MODEL, ids=lambda kind: kind.__name__)
def test_every_option_has_a_rule(kind, blobs):
    """No option accepts an object that is nothing it could be."""
    for option in kind().get_params():
        said = f"^{kind.__name__}: {option} must be .*, got <object"
        with pytest.raises((TypeError, ValueError), match=said):
            kind(**{option: object()}).fit(*blobs)


@pytest.mark.parametrize(
    ("term", "said"),
    [
        (lambda: Diversity("0.1"), "Diversity: weight must be a number at least 0, got '0.1'"),
        (lambda: Diversity(0.1, sigma="mean"), "sigma must be a number above 0 or 'median'"),
        (
            lambda: Orthogonality(None),
            "Orthogonality: weight must be a number at least 0, got None",
        ),
        (lambda: SparseRelevance(-1.0), "l1_weight must be a number at least 0, got -1.0"),
        (lambda: RelevanceFloor([0.1]), "RelevanceFloor: minimum must be a number"),
    ],
)
def test_regularizers_check_their_numbers(term, said):
    with pytest.raises(ValueError, match=said):
        term()


# --- old names ------------------------------------------------------------------------------------


OLD_VALUES = {"lr": 0.3, "metric_lr": 0.5, "regularisers": (Diversity(0.1),)}


@pytest.mark.parametrize("kind", MODELS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("old", OLD_VALUES)
def test_old_names_are_accepted_with_a_warning(kind, old):
    new, value = OLD_NAMES[old], OLD_VALUES[old]
    if new not in kind().get_params():
        with pytest.warns(DeprecationWarning), pytest.raises(TypeError, match=new):
            kind(**{old: value})
        return
    with pytest.warns(DeprecationWarning, match=rf"{kind.__name__}\({old}=...\) is now {new}"):
        model = kind(2, **{old: value})
    assert getattr(model, new) == value and model.n_prototypes == 2
    assert old not in model.get_params() and getattr(clone(model), new) == value
    with pytest.warns(DeprecationWarning, match=new):
        assert getattr(kind().set_params(**{old: value}), new) == value
    with pytest.raises(TypeError, match=f"both {new} and its old name {old}"):
        kind(**{old: value, new: value})


def test_grid_search_over_an_old_name(blobs):
    with pytest.warns(DeprecationWarning, match="learning_rate"):
        search = GridSearchCV(GLVQ(max_iter=2, random_state=0), {"lr": [0.01, 0.1]}, cv=2)
        search.fit(*blobs)
    assert search.best_estimator_.learning_rate == search.best_params_["lr"]


@dataclass(eq=False, repr=False, kw_only=True)
class Shifted(GLVQ):
    """A model of a user, with an option of its own."""

    shift: float = 0.0
    rules: ClassVar = {"shift": Real(at_least=0)}


def test_subclasses_add_options_and_rules(blobs):
    model = clone(Shifted(2, shift=1.0, learning_rate=0.1, max_iter=2))
    assert model.fit(*blobs).get_params()["shift"] == 1.0
    with pytest.raises(ValueError, match="Shifted: shift must be a number at least 0, got -1"):
        Shifted(shift=-1).fit(*blobs)
    with pytest.raises(ValueError, match="Shifted: beta must be a number above 0 or None, got 0"):
        Shifted(beta=0).fit(*blobs)


def test_proximal_steps_take_the_old_name():
    x = torch.tensor([0.5])
    with pytest.warns(DeprecationWarning, match="learning_rate"):
        found = sparse_relevance_proximal(x, 0.1, lr=2.0)
    torch.testing.assert_close(found, sparse_relevance_proximal(x, 0.1, learning_rate=2.0))
    with pytest.warns(DeprecationWarning, match="learning_rate"):
        elastic_net_proximal(x, 0.1, 0.2, lr=2.0)


def test_functions_of_users_must_return_what_is_needed(blobs):
    with pytest.raises(TypeError, match=r"distance_fn must return a Tensor of shape \(45, 3\)"):
        GLVQ(distance_fn=lambda x, w: (x @ w.T).sum(1)).fit(*blobs)
    with pytest.raises(TypeError, match="transfer must return a Tensor of the shape of μ"):
        GLVQ(transfer=lambda mu: mu.sum()).fit(*blobs)
