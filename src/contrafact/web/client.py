"""Client: ask a service of `contrafact serve` from Python."""

from __future__ import annotations

import json
import math
import urllib.error
import urllib.request
from typing import Any

import numpy as np

from ..validation import Instance, Nothing, Real, Satisfies, check_parameters

RULES = {
    "url": Satisfies(
        lambda url: isinstance(url, str) and url.startswith(("http://", "https://")),
        "a text that begins with http:// or https://",
    ),
    "token": Nothing() | Instance(str, "a text"),
    "timeout": Real(above=0),
}


class ServiceError(RuntimeError):
    """Say why a service gave no answer.

    Parameters
    ----------
    status : int
        The status of HTTP, such as 429 where too many requests wait.
    reason : str
        What the service said.

    Examples
    --------
    >>> ServiceError(429, "256 questions wait already; ask again later.").status
    429
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(f"{status}: {reason}")
        self.status = status


class Client:
    """Ask a service about its model.

    Parameters
    ----------
    url : str
        Where the service listens.
    token : str, optional
        The token that it asks for.
    timeout : float, default=120.0
        Seconds to wait for an answer.

    Examples
    --------
    >>> from contrafact.web.service import make_service
    >>> from contrafact.web.serving import ThreadedServer, listen
    >>> app = make_service(model, (X_train, y_train))
    >>> socket = listen("127.0.0.1", 0)
    >>> server = ThreadedServer(app, socket, app.service.close)
    >>> client = Client(f"http://127.0.0.1:{socket.getsockname()[1]}")
    >>> client.explain(X_test[:2], k=2)["source"].tolist()
    [0, 0, 1, 1]
    >>> server.stop()
    """

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 120.0) -> None:
        check_parameters("Client", RULES, {"url": url, "token": token, "timeout": timeout})
        self.url = url.rstrip("/")
        self.timeout = timeout
        self._headers = {"content-type": "application/json"}
        if token is not None:
            self._headers["authorization"] = f"Bearer {token}"

    def metadata(self) -> dict[str, Any]:
        """Ask what the service answers for: classes, shape, methods and limits.

        Returns
        -------
        dict
            What `/v1/metadata` says.
        """
        found: dict[str, Any] = self._ask("/v1/metadata")
        return found

    def predict(self, X: Any) -> dict[str, Any]:
        """Ask what the model decides.

        Parameters
        ----------
        X : array, list or data frame
            Instances.

        Returns
        -------
        dict of str to array
            "labels" (n,), "probabilities" (n, classes) and "classes".
        """
        answer = self._ask("/v1/predict", {"instances": _instances(X)})
        return {name: np.array(values) for name, values in answer.items()}

    def explain(self, X: Any, target: Any = None, **options: Any) -> dict[str, Any]:
        """Ask for counterfactuals.

        Parameters
        ----------
        X : array, list or data frame
            Instances.
        target : label, or one per instance, optional
            The class wanted; None: the method's choice.
        **options
            As `/v1/explain` takes them: method, level, k, confidence, refine, limits, calls,
            seconds, seed.

        Returns
        -------
        dict of str to array
            One entry per counterfactual: "X_cf" (a list of objects for a table), "source", "valid",
            "status", "message", "labels", "target", "cf_labels", "proba", "cf_proba" and more.

        Raises
        ------
        ServiceError
            If the service refuses; `status` and the message say why.
        """
        body = {"instances": _instances(X), "target": _plain(target), **options}
        rows = self._ask("/v1/explain", {name: _plain(value) for name, value in body.items()})
        return _as_columns(rows["counterfactuals"])

    def _ask(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, self._headers)
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise ServiceError(error.code, _reason(error)) from None


#: what `Counterfactuals` calls the fields of an answer
_NAMES = {
    "values": "X_cf",
    "label": "labels",
    "cf_label": "cf_labels",
    "probabilities": "proba",
    "cf_probabilities": "cf_proba",
}


def _as_columns(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Turn a list of rows into arrays; rows of a table stay objects."""
    columns: dict[str, Any] = {}
    for name in rows[0] if rows else ():
        values = [row[name] for row in rows]
        is_table = name == "values" and isinstance(values[0], dict)
        columns[_NAMES.get(name, name)] = values if is_table else np.array(values)
    return columns


def _instances(X: Any) -> Any:
    """Convert instances to lists, rows of a data frame to objects."""
    if not hasattr(X, "columns"):
        return _plain(X)
    records = X.to_dicts() if hasattr(X, "to_dicts") else X.to_dict("records")
    return [{str(name): _cell(value) for name, value in row.items()} for row in records]


def _cell(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        return None if value != value else value.isoformat()
    value = _plain(value)
    is_missing = type(value).__name__ == "NAType" or (
        isinstance(value, float) and math.isnan(value)
    )
    return None if is_missing else value


def _plain(value: Any) -> Any:
    """Convert arrays and tensors to lists."""
    return value.tolist() if hasattr(value, "tolist") else value


def _reason(error: urllib.error.HTTPError) -> str:
    """Return what a service says of a refusal."""
    try:
        return str(json.load(error)["error"])
    except (ValueError, KeyError, TypeError):
        return str(error.reason)
