"""Checks of a grid before anything runs: names, parameters, and what a file may import."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator, ClassifierMixin

from ..consent import require_trust
from ..engine import Request
from ..explainers.registry import explainer_classes
from ..explainers.support.explainer import Explainer
from ..metrics import Metric
from ..metrics.evaluation import METRICS, RENAMED
from ..nn import fit_classifier
from ..nn.networks import NETWORKS
from .parts import imported

if TYPE_CHECKING:
    from .grid import Benchmark

#: where a file may name classifiers: packages that are installed with this one, and whose
#: classifiers neither import nor read anything that a parameter names
LIBRARIES = ("sklearn", "aeon.classification", "contrafact.prototypes")
#: its networks write files that their parameters name
EXCLUDED = "aeon.classification.deep_learning"
IMPORT_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
#: what the benchmark passes to `fit_classifier` and `explain` itself
TRAINING_OWN = {"module", "X", "y", "random_state", "progress"}
EXPLAIN_OWN = {"self", "X", "target", "random_state", "progress"}
#: what metrics can have in a benchmark
GIVEN = frozenset({"reference", "labels", "model", "explainer", "saliency"})


def check_imports(settings: Mapping[str, Any], path: Path, trust: bool) -> None:
    """Refuse what a file must not import unless it is trusted.

    Parameters
    ----------
    settings : mapping of str to object
        The grid, as the file has it.
    path : Path
        The file, for messages.
    trust : bool
        Whether it is trusted.

    Raises
    ------
    ValueError
        Without trust, where a method is not one of this package, or a classifier is neither a
        network of this package nor a classifier of a known library.
    """
    for name, part in _tables(settings, "explainers", "method"):
        kind = part.get("method")
        if isinstance(kind, str) and ":" in kind:
            _require_trust(f"{path}: explainers.{name}", kind, trust, "methods by their name")
    for name, part in _tables(settings, "classifiers", "model"):
        kind = part.get("model")
        if isinstance(kind, str) and ":" in kind:
            _check_classifier_path(f"{path}: classifiers.{name}", kind, trust)


def check_grid(grid: Benchmark) -> None:
    """Refuse a grid that names what does not exist, before anything runs.

    Parameters
    ----------
    grid : Benchmark
        The grid.

    Raises
    ------
    ValueError, TypeError
        Where a metric, method, classifier or parameter is unknown, or has a value that is not
        accepted; names the nearest.
    """
    _check_metrics(grid)
    for name, part in grid.classifiers.items():
        _check_classifier(f"classifiers.{name}", part)
    for name, part in grid.explainers.items():
        _check_explainer(f"explainers.{name}", part)
    for data in grid.named_datasets().values():
        _check_modality(grid, data.name, data.modality)


def unknown_name(place: str, noun: str, given: str, known: Iterable[str]) -> ValueError:
    """Return the error for a name that does not exist, with the nearest one.

    Parameters
    ----------
    place : str
        Where it stands; starts the message.
    noun : str
        What it should be.
    given : str
        The name.
    known : iterable of str
        The names that exist.

    Returns
    -------
    ValueError
        To be raised.
    """
    known = list(known)
    by_lower_case = {name.lower(): name for name in known}
    guess = ""
    for similar in difflib.get_close_matches(str(given).lower(), by_lower_case, n=1):
        guess = f" Did you mean {by_lower_case[similar]!r}?"
    return ValueError(
        f"{place}: {noun} {given!r} is unknown.{guess} Known: {', '.join(known) or 'none'}."
    )


def _tables(
    settings: Mapping[str, Any], key: str, kind: str
) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Return the parts of a grid as tables, whatever form they have."""
    parts = settings[key]
    if not isinstance(parts, Mapping):
        raise TypeError(f"{key} must be a table {{name: what}}, got {parts!r}.")
    for name, part in parts.items():
        yield name, part if isinstance(part, Mapping) else {kind: part}


def _check_classifier_path(place: str, path: str, trust: bool) -> None:
    """Refuse what is no classifier of a known library; without trust, import from these alone."""
    module = path.partition(":")[0]
    known = [library for library in LIBRARIES if f"{module}.".startswith(f"{library}.")]
    is_excluded = f"{module}.".startswith(f"{EXCLUDED}.")
    is_harmless = bool(known) and not is_excluded and bool(IMPORT_PATH.fullmatch(path))
    if not is_harmless or not _is_classifier(_import(place, path)):
        accepted = f"networks, and classifiers of {', '.join(LIBRARIES)}"
        _require_trust(place, path, trust, accepted)


def _require_trust(place: str, path: str, trust: bool, accepted: str) -> None:
    """Refuse to import what a file names, unless it is trusted."""
    require_trust(
        f"{place}: {path!r}",
        trust,
        "it would be imported, which can run code",
        f"Accepted without trust: {accepted}.",
    )


def _is_classifier(found: Any) -> bool:
    """Return whether something is a class of classifiers, of scikit-learn's or aeon's kind."""
    from aeon.classification.base import BaseClassifier

    return inspect.isclass(found) and issubclass(found, ClassifierMixin | BaseClassifier)


def _import(place: str, path: str) -> Any:
    """Import what a path names; an error says where the path stands."""
    module, _, name = path.partition(":")
    try:
        return imported(path)
    except AttributeError:
        members = imported(f"{module}:__dict__")
        classes = [known for known, member in members.items() if inspect.isclass(member)]
        raise unknown_name(place, f"class of {module}", name, classes) from None
    except ImportError as error:
        raise ImportError(f"{place}: {path!r} cannot be imported: {error}.") from error


def _check_metrics(grid: Benchmark) -> None:
    """Refuse metrics that do not exist, or lack what a benchmark does not have."""
    if grid.metrics is None:
        return
    names = [metric.name if isinstance(metric, Metric) else metric for metric in grid.metrics]
    for metric, name in zip(grid.metrics, names, strict=True):
        if names.count(name) > 1:
            raise ValueError(f"metrics: {name!r} is asked for twice.")
        kind = _metric_class(metric)
        if "other_models" in kind.needs and not grid.retrainings:
            raise ValueError(f"metrics: {name!r} needs retrainings of at least 1, got 0.")
        missing = kind.needs - GIVEN - {"other_models"}
        if missing:
            raise ValueError(
                f"metrics: {name!r} needs {', '.join(sorted(missing))}, which a benchmark does not "
                "have."
            )


def _metric_class(metric: str | Metric) -> type[Metric]:
    """Return the class of a metric."""
    if isinstance(metric, Metric):
        return type(metric)
    name = RENAMED.get(metric, metric)
    if name not in METRICS:
        raise unknown_name("metrics", "metric", metric, METRICS)
    return METRICS[name]


def _check_modality(grid: Benchmark, dataset: str, modality: str) -> None:
    """Refuse metrics that are not defined for a data set: every cell would fail."""
    for metric in grid.metrics or ():
        kind = _metric_class(metric)
        if modality not in kind.modalities:
            accepted = " and ".join(kind.modalities)
            raise ValueError(
                f"metrics: {kind.name!r} is for {accepted} data; {dataset} holds {modality} data."
            )


def _check_classifier(place: str, part: Any) -> None:
    """Refuse a classifier that does not exist, or parameters that it does not have."""
    parameters = _parameters(place, part, "model")
    kind = parameters.pop("model")
    if isinstance(kind, str) and kind in NETWORKS:
        _check_names(place, parameters, _argument_names(fit_classifier, TRAINING_OWN))
        return
    if isinstance(kind, str) and ":" not in kind:
        raise unknown_name(place, "classifier", kind, [*NETWORKS, "module:Class"])
    if isinstance(kind, str):
        kind = _import(place, kind)
    if inspect.isclass(kind) and issubclass(kind, BaseEstimator):
        _check_names(place, parameters, _argument_names(kind, set()))
    elif isinstance(kind, BaseEstimator):
        _check_names(place, parameters, kind.get_params())
    elif not callable(kind):
        raise TypeError(f"{place} must be a classifier or a function, got {kind!r}.")


def _check_explainer(place: str, part: Any) -> None:
    """Refuse a method that does not exist, and parameters or options that it does not take."""
    parameters = _parameters(place, part, "method")
    options = parameters.pop("options", {})
    kind = parameters.pop("method")
    if isinstance(kind, str):
        classes = explainer_classes()
        if kind not in classes and ":" not in kind:
            raise unknown_name(place, "method", kind, classes)
        kind = classes[kind] if kind in classes else _import(place, kind)
    if not inspect.isclass(kind) or not issubclass(kind, Explainer):
        return
    _check_names(place, parameters, _argument_names(kind, set()))
    kind(**parameters)._check_all_parameters()
    _check_names(place, options, _argument_names(Explainer.explain, EXPLAIN_OWN), "option")
    Request(**{name: value for name, value in options.items() if name != "committee"})


def _parameters(place: str, part: Any, kind: str) -> dict[str, Any]:
    """Return a part of a grid as a table, with its kind under that name."""
    if not isinstance(part, Mapping):
        return {kind: part}
    if kind not in part:
        raise ValueError(f"{place}: {kind} is missing.")
    return dict(part)


def _argument_names(function: Any, without: set[str]) -> list[str] | None:
    """Return the arguments that a function or class takes; None where it takes any."""
    arguments = inspect.signature(function).parameters
    if any(argument.kind is argument.VAR_KEYWORD for argument in arguments.values()):
        return None
    return [name for name in arguments if name not in without]


def _check_names(
    place: str, given: Mapping[str, Any], known: Iterable[str] | None, noun: str = "parameter"
) -> None:
    """Refuse a name that is not known."""
    if known is None:
        return
    for name in given:
        if name not in known:
            raise unknown_name(place, noun, name, known)
