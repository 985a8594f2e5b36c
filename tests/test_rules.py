"""Every option of a prototype model, network, trainer or metric has a rule, and keeps to it."""

import inspect

import numpy as np
import pytest

from bad_inputs import NOT_NUMBERS, refuses
from contrafact import nn, prototypes
from contrafact.metrics.evaluation import METRICS
from contrafact.nn.autoencoder_training import _RULES as AUTOENCODER_RULES
from contrafact.nn.training import RULES as CLASSIFIER_RULES
from contrafact.prototypes.estimator import PrototypeClassifier
from contrafact.prototypes.regularizers import Regularizer
from contrafact.validation import Integer, Real

#: networks that a test makes, and libraries that it calls itself, draw from the global generators
pytestmark = pytest.mark.usefixtures("own_random_numbers")

X = np.random.default_rng(0).normal(size=(12, 3))
Y = np.array([0, 1]).repeat(6)

MODELS = [
    kind
    for kind in map(prototypes.__dict__.get, prototypes.__all__)
    if isinstance(kind, type) and issubclass(kind, PrototypeClassifier | Regularizer)
]
NETWORKS = [
    nn.FCN,
    nn.MLP,
    nn.BiLSTM,
    nn.SmallCNN,
    nn.ResNet8,
    nn.InceptionTime,
    nn.LSTMAutoencoder,
    nn.ConvAutoencoder,
    nn.RobustTrainer,
]
#: arguments that hold data, checked as data
DATA = {"module", "X", "y"}


def rules_of(kind):
    """Collect the rules of a class and of its bases."""
    rules = {}
    for base in reversed(kind.__mro__):
        rules.update(vars(base).get("rules", {}))
    return rules


@pytest.mark.parametrize("kind", [*MODELS, *NETWORKS, *METRICS.values()], ids=lambda k: k.__name__)
def test_every_parameter_of_a_constructor_has_a_rule(kind):
    parameters = {
        name
        for name, parameter in inspect.signature(kind).parameters.items()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }
    assert parameters <= set(rules_of(kind))


@pytest.mark.parametrize(
    ("function", "rules"),
    [(nn.fit_classifier, CLASSIFIER_RULES), (nn.fit_autoencoder, AUTOENCODER_RULES)],
)
def test_every_option_of_training_has_a_rule(function, rules):
    assert set(inspect.signature(function).parameters) - DATA <= set(rules)


def numeric_options(kinds):
    """List the options of classes that are numbers, each once."""
    seen = set()
    for kind in kinds:
        for name in inspect.signature(kind).parameters:
            rule = rules_of(kind)[name]
            first = getattr(rule, "first", rule)
            if isinstance(first, Real) and (name, str(rule)) not in seen:
                seen.add((name, str(rule)))
                yield kind, name, rule


MODEL_OPTIONS = list(numeric_options(k for k in MODELS if issubclass(k, PrototypeClassifier)))


@pytest.mark.parametrize(("kind", "name", "rule"), MODEL_OPTIONS)
def test_numeric_options_of_prototype_models_take_numbers_only(kind, name, rule):
    for label, value in NOT_NUMBERS.items():
        if label == "dictionary" and name == "n_prototypes":
            value = {0: 0.5}
        refuses(name, kind(**{name: value}).fit, X, Y)
    if isinstance(getattr(rule, "first", rule), Integer):
        refuses(name, kind(**{name: 1.5}).fit, X, Y)


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize("kind", NETWORKS[:-1], ids=lambda kind: kind.__name__)
def test_sizes_of_networks_are_whole_numbers_above_0(kind):
    good = {"shape": (1, 12)} if "shape" in rules_of(kind) else {"n_classes": 2}
    first = next(iter(inspect.signature(kind).parameters))
    good.setdefault(first, 1)
    kind(**good)
    for name in inspect.signature(kind).parameters:
        sizes = [0, -1, 1.5, *NOT_NUMBERS.values(), (0, 1), (2.5, 1), ("a",)]
        for value in sizes:
            if isinstance(value, list) and not isinstance(rules_of(kind)[name], Integer):
                continue  # a sequence of one size
            refuses(name, kind, **good | {name: value})


@pytest.mark.parametrize("name", inspect.signature(nn.RobustTrainer).parameters)
def test_options_of_the_robust_trainer_are_checked(name):
    for value in (["a"], {"a": 1}, object()):
        refuses(name, nn.RobustTrainer(**{name: value}).fit, "mlp", X, Y)


@pytest.mark.parametrize("name", [*CLASSIFIER_RULES])
def test_options_of_fit_classifier_are_checked(name):
    for value in (["a"], {"a": 1}, object()):
        refuses(name, nn.fit_classifier, **{"module": "mlp", "X": X, "y": Y} | {name: value})
