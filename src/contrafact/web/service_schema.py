"""What only a running service knows of its OpenAPI schema: shapes, classes and limits."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from .service import Service
from .service_data import ArrayData, plain


def complete_schema(api: FastAPI, service: Service) -> None:
    """Write what a service accepts into the schema of its application."""

    def openapi() -> dict[str, Any]:
        if api.openapi_schema is None:
            schema = get_openapi(title=api.title, version=api.version, routes=api.routes)
            _complete(schema["components"]["schemas"], service)
            api.openapi_schema = schema
        return api.openapi_schema

    api.openapi = openapi  # type: ignore[method-assign]


def _complete(schemas: dict[str, Any], service: Service) -> None:
    limits = service.limits
    for name in ("PredictBody", "ExplainBody"):
        properties = schemas[name]["properties"]
        properties["instances"] |= {
            "minItems": 1,
            "maxItems": limits.max_instances,
            "items": _instance_schema(service),
        }
        schemas[name]["examples"] = [{"instances": [service.data.example]}]
    properties = schemas["ExplainBody"]["properties"]
    classes = [plain(label) for label in service.classes.tolist()]
    label = {"enum": classes}
    several = {"type": "array", "items": label}
    properties["target"]["anyOf"] = [label, several, {"type": "null"}]
    properties["method"]["anyOf"] = [{"enum": service.methods}, {"type": "null"}]
    for bound, most in (("calls", limits.max_calls), ("seconds", limits.max_seconds)):
        properties[bound]["anyOf"][0]["maximum"] = most


def _instance_schema(service: Service) -> dict[str, Any]:
    """Describe one instance."""
    if isinstance(service.data, ArrayData):
        schema: dict[str, Any] = {"type": "number"}
        for size in reversed(service.data.shape):
            schema = {"type": "array", "items": schema, "minItems": size, "maxItems": size}
        return schema
    columns = service.data.describe()["columns"]
    properties = {column["name"]: _cell_schema(column) for column in columns}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _cell_schema(column: dict[str, Any]) -> dict[str, Any]:
    """Describe a cell of a table."""
    if column["levels"]:
        return {"enum": [*column["levels"], *([None] if column["missing"] else [])]}
    if column["kind"] == "fixed":
        return {}
    return {"type": ["number", "null"] if column["missing"] else "number"}
