"""The V2 inference protocol: named tensors in, named tensors out.

Explanations are a second model, whose name ends in "-explain"; its options are the request's
parameters.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from fastapi import FastAPI, Response
from pydantic import ValidationError
from starlette.exceptions import HTTPException

from .. import __version__
from ..engine import Counterfactuals
from ..engine.result import as_numpy
from ..models.classifier import Array
from ..validation import brief
from .service import Service, TooLarge, Unusable
from .service_data import TableData, finite_lists
from .service_messages import ExplainSettings, InferAnswer, InferBody, TensorMessage

if TYPE_CHECKING:
    from ..models.verdict import Verdict

EXPLAIN = "-explain"
#: name of the input where instances are arrays
INSTANCES = "instances"


def add_tensor_routes(api: FastAPI, service: Service) -> None:
    """Add the addresses of the protocol."""
    from .service_routes import ERRORS, respond

    missing: dict[int | str, dict[str, Any]] = {404: ERRORS[422]}
    names = (service.name, service.name + EXPLAIN)

    def check(name: str) -> None:
        if name not in names:
            raise HTTPException(404, f"There is no model {name!r:.80}; there are {names}.")

    @api.get("/v2")
    async def server() -> Response:
        """Name the server."""
        return respond({"name": "contrafact", "version": __version__, "extensions": []})

    @api.get("/v2/health/live")
    async def live() -> Response:
        """Say that the server lives."""
        return respond({"live": True})

    @api.get("/v2/health/ready", responses={503: ERRORS[503]})
    async def ready() -> Response:
        """Say whether the model answers."""
        return respond({"ready": service.ready}, 200 if service.ready else 503)

    @api.get("/v2/models/{name}", responses=missing)
    async def model(name: str) -> Response:
        """Describe the tensors of a model."""
        check(name)
        outputs = _explain_outputs(service) if name.endswith(EXPLAIN) else _predict_outputs(service)
        return respond(
            {
                "name": name,
                "versions": [__version__],
                "platform": "contrafact",
                "inputs": _inputs(service),
                "outputs": outputs,
            }
        )

    @api.get("/v2/models/{name}/ready", responses={**missing, 503: ERRORS[503]})
    async def model_ready(name: str) -> Response:
        """Say whether a model answers."""
        check(name)
        return respond({"name": name, "ready": service.ready}, 200 if service.ready else 503)

    @api.post(
        "/v2/models/{name}/infer", response_model=InferAnswer, responses={**ERRORS, **missing}
    )
    async def infer(name: str, body: InferBody) -> Response:
        """Predict, or explain."""
        check(name)
        x = _read(service, body.inputs)
        if name == service.name:
            outputs = _of_verdict(service, await service.predict(x))
        else:
            settings = _settings(body.parameters or {})
            outputs = _of_result(service, await service.explain(x, settings))
        answer = {"model_name": name, "model_version": __version__}
        if body.id is not None:
            answer["id"] = body.id
        return respond({**answer, "outputs": _chosen(body, outputs)})


def _settings(parameters: dict[str, Any]) -> ExplainSettings:
    """Read the options of an explanation; unknown ones are the protocol's business."""
    known = {name: parameters[name] for name in ExplainSettings.model_fields if name in parameters}
    try:
        return ExplainSettings.model_validate(known)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise Unusable(f"parameters.{place}: {first['msg']}.") from error


def _read(service: Service, inputs: list[TensorMessage]) -> Array:
    """Read instances from one tensor, or rows of a table from one tensor per column."""
    try:
        if isinstance(service.data, TableData):
            columns = _columns(service.data.names, inputs)
            most = len(columns[0])
            _check_count(service, most)
            return service.data.read_columns(columns)
        if len(inputs) != 1:
            raise ValueError(f"inputs holds {len(inputs)} tensors; one is taken: {INSTANCES!r}.")
        _check_count(service, inputs[0].shape[0])
        return service.data.read_array(_array(inputs[0]))
    except TooLarge:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise Unusable(str(error)) from error


def _check_count(service: Service, n: int) -> None:
    if n > service.limits.max_instances:
        raise TooLarge(f"A request may hold {service.limits.max_instances} instances at most.")


def _array(tensor: TensorMessage) -> Array:
    """Return a tensor of numbers in its shape."""
    values = np.asarray(tensor.data)
    if values.dtype.kind not in "fiu" or tensor.datatype == "BYTES":
        raise ValueError(f"tensor {tensor.name!r:.80} must hold numbers, got {brief(tensor.data)}.")
    _check_size(tensor, values.size)
    return values.reshape(tensor.shape)


def _columns(names: list[str], inputs: list[TensorMessage]) -> list[list[Any]]:
    """Return the values of every column, in the order of the table."""
    given = {tensor.name: tensor for tensor in inputs}
    if sorted(given) != sorted(names) or len(inputs) != len(names):
        raise ValueError(f"inputs must hold one tensor for each of the columns {names}.")
    columns = []
    for name in names:
        flat = np.asarray(given[name].data, dtype=object).ravel().tolist()
        _check_size(given[name], len(flat))
        columns.append(flat)
    if len({len(column) for column in columns}) > 1:
        raise ValueError("The tensors of the columns must have equal lengths.")
    return columns


def _check_size(tensor: TensorMessage, size: int) -> None:
    if min(tensor.shape) < 1 or size != math.prod(tensor.shape):
        raise ValueError(
            f"tensor {tensor.name!r:.80} has {size} values for the shape {brief(tensor.shape)}."
        )


def _inputs(service: Service) -> list[dict[str, Any]]:
    if isinstance(service.data, TableData):
        return [
            {
                "name": column["name"],
                "datatype": "BYTES" if column["levels"] else "FP64",
                "shape": [-1],
            }
            for column in service.data.describe()["columns"]
        ]
    return [{"name": INSTANCES, "datatype": "FP64", "shape": [-1, *service.data.shape]}]


def _predict_outputs(service: Service) -> list[dict[str, Any]]:
    n_classes = len(service.classes)
    return [
        {"name": "probabilities", "datatype": "FP64", "shape": [-1, n_classes]},
        {"name": "label", "datatype": "BYTES", "shape": [-1]},
    ]


def _explain_outputs(service: Service) -> list[dict[str, Any]]:
    values = _inputs(service)
    if not isinstance(service.data, TableData):
        values = [{**values[0], "name": "counterfactuals"}]
    kinds = {"source": "INT64", "valid": "BOOL", "status": "BYTES", "target": "BYTES"}
    more = [{"name": name, "datatype": kind, "shape": [-1]} for name, kind in kinds.items()]
    return [*values, *more, *_predict_outputs(service)]


def _tensor(name: str, datatype: str, values: Any, shape: list[int] | None = None) -> Any:
    """Return a tensor with its values row by row; null stands for what is no number."""
    array = np.asarray(values)
    flat = finite_lists(array.ravel()) if array.dtype.kind == "f" else array.ravel().tolist()
    return {
        "name": name,
        "datatype": datatype,
        "shape": list(array.shape) if shape is None else shape,
        "data": flat,
    }


def _texts(name: str, labels: Any) -> Any:
    return _tensor(name, "BYTES", np.array([str(label) for label in labels.tolist()], dtype=object))


def _of_verdict(service: Service, verdict: Verdict) -> list[Any]:
    labels = service.classes[verdict.label.cpu().numpy()]
    return [
        _tensor("probabilities", "FP64", verdict.proba.cpu().numpy()),
        _texts("label", labels),
    ]


def _of_result(service: Service, result: Counterfactuals) -> list[Any]:
    if isinstance(service.data, TableData):
        columns = service.data.write_columns(result)
        values = [
            {
                "name": each["name"],
                "datatype": each["datatype"],
                "shape": [len(result)],
                "data": column,
            }
            for each, column in zip(_inputs(service), columns, strict=True)
        ]
    else:
        values = [_tensor("counterfactuals", "FP64", as_numpy(result.X_cf).astype(np.float64))]
    return [
        *values,
        _tensor("source", "INT64", result.source),
        _tensor("valid", "BOOL", result.valid),
        _texts("status", result.status),
        _texts("target", result.target),
        _tensor("probabilities", "FP64", result.cf_proba),
        _texts("label", result.cf_labels),
    ]


def _chosen(body: InferBody, outputs: list[Any]) -> list[Any]:
    """Return the outputs that were asked for."""
    if not body.outputs:
        return outputs
    by_name = {tensor["name"]: tensor for tensor in outputs}
    wanted = [output.name for output in body.outputs]
    unknown = [name for name in wanted if name not in by_name]
    if unknown:
        raise Unusable(f"outputs: there is no {unknown[0]!r:.80}. Outputs: {list(by_name)}.")
    return [by_name[name] for name in wanted]
