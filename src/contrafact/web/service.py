"""The service: a model and its explanations for other programs, over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.dataset import as_labels
from ..engine import Counterfactuals
from ..engine.instances import read_instances, wrap_model
from ..explainers import Graft, recommend
from ..explainers.registry import check_support, explainer_classes, find_explainer
from ..explainers.support.explainer import Explainer
from ..extras import require_extra
from ..models import as_classifier
from ..models.classifier import Array
from ..models.labels import find_class
from ..models.verdict import Verdict
from ..models.wrapper import Wrapper
from ..tables import Schema
from ..validation import Instance, Integer, ListOf, Nothing, Real, check_parameters
from .explanation_merging import Asked, ExplanationMerger
from .merging import Busy, ModelFailure, NoAnswer, describe
from .model_gate import ModelGate
from .service_data import ArrayData, TableData
from .service_messages import ExplainSettings, targets_of

LIMIT_RULES = {
    "max_bytes": Integer(at_least=1024),
    "max_instances": Integer(at_least=1),
    "max_waiting": Integer(at_least=1),
    "max_calls": Integer(at_least=1),
    "max_seconds": Real(above=0),
    "patience": Real(above=0),
}


class Unusable(ValueError):
    """A request that cannot be answered as it is."""


class TooLarge(ValueError):
    """A request with too many instances."""


@dataclass(frozen=True)
class ServiceLimits:
    """Limit what requests may cost.

    Parameters
    ----------
    max_bytes : int, default=8 MiB
        Largest body of a request.
    max_instances : int, default=256
        Instances of one request; as many are explained in one call of a method.
    max_waiting : int, default=256
        Requests that may wait for the model, and as many for each method. One more is answered by
        429.
    max_calls : int, default=200,000
        Model rows that one request may ask for.
    max_seconds : float, default=30.0
        Time of one search.
    patience : float, default=30.0
        Seconds after which a request is answered by 503 where the model does not answer; for
        explanations `max_seconds` more.

    Examples
    --------
    >>> ServiceLimits(max_seconds=5.0).max_instances
    256
    """

    max_bytes: int = 8 * 2**20
    max_instances: int = 256
    max_waiting: int = 256
    max_calls: int = 200_000
    max_seconds: float = 30.0
    patience: float = 30.0

    def __post_init__(self) -> None:
        check_parameters("ServiceLimits", LIMIT_RULES, vars(self))


RULES = {
    "name": Instance(str, "a text"),
    "host": Instance(str, "a text"),
    "hosts": ListOf(Instance(str, "a text"), "host names"),
    "token": Nothing() | Instance(str, "a text"),
    "limits": Nothing() | Instance(ServiceLimits),
}


class Service:
    """Answer for one model; an ASGI application, made by `make_service`.

    Attributes
    ----------
    gate : ModelGate
        The door to the model.
    name : str
        What the model is called.
    limits : ServiceLimits
        What requests may cost.
    data : ArrayData or TableData
        How instances travel.
    """

    def __init__(
        self,
        model: Any,
        reference: tuple[Any, Array | None],
        *,
        modality: Any,
        schema: Schema | None,
        name: str,
        limits: ServiceLimits,
    ) -> None:
        from .service_metrics import ServiceMetrics

        self.name = name
        self.limits = limits
        self._X, self._y = reference
        self._schema = schema
        instances = read_instances(self._X, "reference", modality, schema=schema)
        self._modality = instances.modality
        classifier = as_classifier(model)
        wrapped = wrap_model(classifier, instances)
        wrapped.infer_classes(instances.values, self._y)
        self.data: ArrayData | TableData
        if instances.space is None:
            self.data = ArrayData(np.asarray(self._X), instances.modality)
        else:
            self.data = TableData(self._X, instances)
            classifier = wrapped
        self.metrics = ServiceMetrics(
            {
                "predict": lambda: self.gate.waiting,
                "explain": lambda: sum(each.waiting for each in self._mergers.values()),
            },
            self._model_rows,
        )
        self.gate = ModelGate(
            classifier,
            max_waiting=limits.max_waiting,
            patience=limits.patience,
            on_batch=lambda requests, rows: self.metrics.count_batch("predict", requests),
        )
        self._mergers: dict[str, ExplanationMerger] = {}
        self.methods = [
            name
            for name, cls in explainer_classes().items()
            if self._modality in cls.tags.modalities
        ]
        # The recommended method is fitted now: what does not fit together is told at the start.
        first = recommend(self.gate.classifier, self._modality).method
        self.default_method = type(first).__name__
        self._mergers[repr(first)] = self._make_merger(first, self._fit(first))

    @property
    def classes(self) -> Array:
        """The classes of the model."""
        return self.gate.classifier.classes

    @property
    def ready(self) -> bool:
        """Whether the model answers, as far as is known."""
        return self.gate.busy_seconds < self.limits.patience

    def close(self) -> None:
        """End the threads; requests that wait are refused."""
        self.gate.close()
        for merger in self._mergers.values():
            merger.close()

    def read(self, instances: Sequence[Any]) -> Array:
        """Read instances as they travel.

        Raises
        ------
        TooLarge, Unusable
            If there are too many, or they are not what the model takes.
        """
        if len(instances) > self.limits.max_instances:
            raise TooLarge(f"A request may hold {self.limits.max_instances} instances at most.")
        try:
            return self.data.read(instances)
        except (ValueError, TypeError, OverflowError) as error:
            raise Unusable(str(error)) from error

    async def predict(self, x: Array) -> Verdict:
        """Ask the model about instances that were read."""
        return await self.gate.predict(x)

    async def explain(self, x: Array, settings: ExplainSettings) -> Counterfactuals:
        """Explain instances that were read, together with other requests that wait.

        Raises
        ------
        Unusable
            If the options do not fit the model, the data or the method.
        ModelFailure
            If the model failed for all instances.
        Busy, NoAnswer
            As of `ModelGate.predict`.
        """
        if settings.calls is not None and settings.calls > self.limits.max_calls:
            raise Unusable(f"calls may be {self.limits.max_calls} at most.")
        if settings.seconds is not None and settings.seconds > self.limits.max_seconds:
            raise Unusable(f"seconds may be {self.limits.max_seconds:g} at most.")
        try:
            options = settings.options(self.limits.max_seconds)
            target = targets_of(settings.target, len(x))
            if target is not None:
                target = tuple(find_class(str(label), self.classes) for label in target)
            explainer = self._choose(settings, options.constraints)
        except (ValueError, TypeError, OverflowError) as error:
            raise Unusable(str(error)) from error
        try:
            result = await self._merger(explainer).explain(Asked(x, target, options))
        except (Busy, NoAnswer):
            raise
        # `explain` and `fit` refuse what does not fit together by these.
        except (ValueError, TypeError) as error:
            raise Unusable(str(error)) from error
        # Whatever the model raised while a method was fitted.
        except Exception as error:
            raise ModelFailure(f"The search failed: {describe(error)}") from error
        if len(result) and (result.status == "error").all():
            raise ModelFailure(f"The model failed: {result.message[0]}")
        return result

    def _choose(self, settings: ExplainSettings, constraints: Any) -> Explainer:
        """Make the method that was asked for, not fitted."""
        if settings.method is None:
            explainer = recommend(self.gate.classifier, self._modality, constraints).method
        else:
            explainer = find_explainer(settings.method)()
        check_support(explainer, self._modality, constraints)
        if settings.level is not None:
            if not isinstance(explainer, Graft):
                raise ValueError(f"level is for Graft; the method is {type(explainer).__name__}.")
            explainer.set_params(level=settings.level)
        return explainer

    def _merger(self, explainer: Explainer) -> ExplanationMerger:
        """Return the merger of a method with these parameters."""
        key = repr(explainer)
        if key not in self._mergers:
            self._mergers[key] = self._make_merger(explainer)
        return self._mergers[key]

    def _make_merger(
        self, explainer: Explainer, fitted: Explainer | None = None
    ) -> ExplanationMerger:
        return ExplanationMerger(
            lambda: fitted or self._fit(explainer),
            self.data.as_input,
            max_rows=self.limits.max_instances,
            max_waiting=self.limits.max_waiting,
            patience=self.limits.patience + self.limits.max_seconds,
            on_batch=lambda requests, rows: self.metrics.count_batch("explain", requests),
        )

    def _fit(self, explainer: Explainer) -> Explainer:
        return explainer.fit(
            self.gate.classifier,
            self._X,
            self._y,
            modality=self._modality,
            schema=self._schema,
        )

    def _model_rows(self) -> int:
        classifier = self.gate.classifier
        while isinstance(classifier, Wrapper):
            classifier = classifier.inner
        return classifier.rows_evaluated


def make_service(
    model: Any,
    reference: Any,
    *,
    modality: Any = None,
    schema: Schema | None = None,
    name: str = "model",
    host: str = "127.0.0.1",
    hosts: Sequence[str] = (),
    token: str | None = None,
    limits: ServiceLimits | None = None,
) -> Any:
    """Make an ASGI application that answers for a model: predictions and explanations.

    `contrafact serve` runs it. Requests that wait are merged; `app.service.close()` ends its
    threads.

    Parameters
    ----------
    model : Classifier or model
        The trained model; anything `as_classifier` takes.
    reference : array, (X_train, y_train) or Dataset
        Data that methods may learn from, in the shape that the model takes.
    modality : {"series", "image", "row"}, optional
        The kind of data; default: as for `explain`.
    schema : Schema, optional
        What the columns of data frames hold; default: inferred from the reference.
    name : str, default="model"
        What the model is called in the addresses of the V2 inference protocol.
    host : str, default="127.0.0.1"
        The address that will be listened on; requests for other hosts are refused.
    hosts : sequence of str, optional
        Further names under which the service is reached.
    token : str, optional
        Asked for in the header Authorization; None: everyone who reaches the service may ask.
    limits : ServiceLimits, optional
        What requests may cost.

    Returns
    -------
    ASGI application
        For uvicorn or any other server; one process each, since waiting requests meet there.

    Raises
    ------
    ValueError
        If model and reference do not fit together.
    ImportError
        If fastapi or another part of the extra "web" is missing.

    Examples
    --------
    >>> app = make_service(model, (X_train, y_train), name="gunpoint")
    >>> app.service.default_method
    'Graft'
    >>> app.service.close()
    """
    require_extra("web", "The service")
    from .service_routes import make_app

    values = {"name": name, "host": host, "hosts": hosts, "token": token, "limits": limits}
    check_parameters("make_service", RULES, values)
    if hasattr(reference, "X_train"):
        modality = modality or reference.modality
        reference = (reference.X_train, reference.y_train)
    if isinstance(reference, tuple) and len(reference) != 2:
        raise ValueError(
            "reference must be an array, (X_train, y_train) or a Dataset, got a tuple of "
            f"{len(reference)}."
        )
    X, y = reference if isinstance(reference, tuple) else (reference, None)
    service = Service(
        model,
        (X, None if y is None else as_labels(y, "y", len(X))),
        modality=modality,
        schema=schema,
        name=name,
        limits=limits or ServiceLimits(),
    )
    return make_app(service, host=host, hosts=hosts, token=token)
