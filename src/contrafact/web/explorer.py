"""`explore`: a local page on which a model is asked live."""

from __future__ import annotations

import os
import secrets
import webbrowser
from html import escape
from typing import Any, cast

from typing_extensions import Self

from ..data import Dataset
from ..engine.instances import PLURALS, Modality
from ..explainers.recommendation import MODALITIES
from ..extras import require_extra
from ..models import Classifier
from ..report.grammar import one_line
from ..tables import Schema
from ..validation import Instance, Integer, ListOf, Nothing, OneOf, check_parameters
from .guard import Guard
from .recipes import Source
from .serving import ThreadedServer, listen
from .workspace import Workspace

#: environment variable that fixes the token, so that a page finds the server again
TOKEN_VARIABLE = "CONTRAFACT_TOKEN"
#: characters that a token has at least
SHORTEST_TOKEN = 16
#: height of the page in a notebook
FRAME_HEIGHT = 820

RULES = {
    "modality": Nothing() | OneOf(*MODALITIES),
    "schema": Nothing() | Instance(Schema),
    "names": Nothing() | ListOf(Instance(str), "texts"),
    "host": Instance(str, "a text"),
    "port": Integer(at_least=0, at_most=65535),
}


class Explorer:
    """Hold a running explorer; made by `explore`.

    In a notebook it shows the page. `with` stops it at the end of the block.

    Parameters
    ----------
    workspace : Workspace
        Model, instances and reference.
    source : Source
        Where they come from.
    host : str
        Address to listen on.
    port : int
        Port to listen on; 0: any that is free.

    Attributes
    ----------
    url : str
        The address of the page. Whoever knows it can ask the model.
    running : bool
        Whether it answers.

    Examples
    --------
    >>> import contrafact as cf
    >>> with cf.explore(model, X_test, reference=(X_train, y_train)) as explorer:
    ...     print(explorer.url.startswith("http://127.0.0.1:"))
    True
    """

    def __init__(self, workspace: Workspace, source: Source, host: str, port: int) -> None:
        from .explorer_app import ExplorerApp

        try:
            token = _read_token()
            bound = listen(host, port)
        except BaseException:
            workspace.close()
            raise
        self._app = ExplorerApp(workspace, source)
        guard = Guard(self._app.app, host=host, token=token)
        self._server = ThreadedServer(guard, bound, before_stop=self._app.jobs.close)
        shown = f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{bound.getsockname()[1]}/{token}/"

    @property
    def running(self) -> bool:
        """Whether it answers."""
        return self._server.running

    def open(self) -> None:
        """Open the page in the user's browser."""
        webbrowser.open(self.url)

    def stop(self) -> None:
        """Stop it and free its port; nothing happens where it is stopped already."""
        self._server.stop()
        self._app.close()

    def wait(self) -> None:
        """Wait until it is stopped, as the end of a script; Ctrl-C raises KeyboardInterrupt."""
        self._server.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Explorer: {self.url if self.running else 'stopped'}>"

    def _repr_html_(self) -> str:
        if not self.running:
            return "<p>The explorer was stopped.</p>"
        address = escape(self.url, quote=True)
        return (
            f'<iframe src="{address}" title="contrafact explorer" '
            f'style="width:100%;height:{FRAME_HEIGHT}px;border:0"></iframe>'
        )


def explore(
    model: Any,
    data: Any,
    *,
    reference: Any = None,
    modality: Modality | None = None,
    schema: Schema | None = None,
    names: Any = None,
    host: str = "127.0.0.1",
    port: int = 0,
) -> Explorer:
    """Start a local page on which instances are edited and explained while the model answers.

    It needs the extra `web`. The page loads nothing from elsewhere. The server answers this machine
    alone, and only who knows the random token in the address; it ends with the process.

    Parameters
    ----------
    model : Classifier or model
        The trained model; anything `as_classifier` takes.
    data : array of shape (n, ...), data frame, (X, y) or Dataset
        Instances to look at, with their labels if there are any; of a Dataset its test part.
    reference : array, data frame, (X, y) or Dataset, optional
        Data that methods may learn from; default: the training part of `data` if it is a Dataset,
        else `data` itself.
    modality : {"series", "image", "row"}, optional
        The kind of data; default: that of a Dataset, else by the number of dimensions (2: rows,
        3: series, 4: images).
    schema : Schema, optional
        What the columns of data frames hold; default: inferred from the reference.
    names : sequence of str, optional
        Names of the channels or columns; default: those of the data.
    host : str, default="127.0.0.1"
        Address to listen on. Any other than this machine's own lets others ask the model.
    port : int, default=0
        Port to listen on; 0: any that is free.

    Returns
    -------
    Explorer
        With the address as `url`; it shows itself in notebooks. `stop` ends it.

    Raises
    ------
    ImportError
        If the extra is not installed.
    ValueError, TypeError
        If model and data do not fit together, or the address cannot be used.

    Examples
    --------
    >>> explorer = explore(model, X_test, reference=(X_train, y_train))
    >>> explorer.running
    True
    >>> explorer.stop()
    """
    require_extra("web", "The explorer")
    given = {"modality": modality, "schema": schema, "names": names, "host": host, "port": port}
    check_parameters("explore", RULES, given)
    X, y = _read_pair(data, "data", "test")
    if isinstance(data, Dataset):
        reference = data if reference is None else reference
        names = names or data.names
    for given_data in (data, reference):
        if isinstance(given_data, Dataset):
            modality = modality or cast(Modality, given_data.modality)
    X_reference, y_reference = (None, None)
    if reference is not None:
        X_reference, y_reference = _read_pair(reference, "reference", "train")
    workspace = Workspace(
        model,
        X,
        y,
        X_reference=X_reference,
        y_reference=y_reference,
        modality=modality,
        schema=schema,
        names=names,
    )
    words = f"{data.name}, " if isinstance(data, Dataset) else ""
    source = Source(
        _model_words(model),
        f"{words}{len(workspace)} {PLURALS[workspace.modality]}",
    )
    return Explorer(workspace, source, host, port)


def _model_words(model: Any) -> str:
    """Return what a model is called: its class, or the name of a function."""
    if isinstance(model, Classifier):
        inner = [getattr(model, name, None) for name in ("model", "module", "function")]
        model = next((each for each in inner if each is not None), model)
    return one_line(getattr(model, "__name__", type(model).__name__), 60)


def _read_pair(given: Any, argument: str, part: str) -> tuple[Any, Any]:
    """Return instances and labels; None where there are no labels."""
    if isinstance(given, Dataset):
        return getattr(given, f"X_{part}"), getattr(given, f"y_{part}")
    if isinstance(given, tuple):
        if len(given) != 2:
            raise ValueError(
                f"{argument} must be an array, a data frame, (X, y) or a Dataset, got a tuple of "
                f"{len(given)}."
            )
        return given
    return given, None


def _read_token() -> str:
    """Return a random token, or the one that the environment fixes."""
    token = os.environ.get(TOKEN_VARIABLE)
    if token is None:
        return secrets.token_urlsafe(24)
    plain = token.replace("-", "").replace("_", "")
    if len(token) < SHORTEST_TOKEN or not plain.isalnum() or not plain.isascii():
        raise ValueError(
            f"{TOKEN_VARIABLE} must have at least {SHORTEST_TOKEN} letters, digits, - or _."
        )
    return token
