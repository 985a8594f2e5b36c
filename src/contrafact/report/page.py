"""A page that explains results to someone who was not there: one HTML file that never asks the network."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from itertools import chain, count
from pathlib import Path
from typing import Any

from ..engine.constraints import Constraints
from ..engine.result import Counterfactuals
from ..metrics import Reference
from . import sections
from .comparison import same_instances
from .payload import payload
from .words import shorten


def write_report(
    results: Counterfactuals | Mapping[str, Counterfactuals],
    path: str | Path,
    *,
    title: str | None = None,
    reference: Any = None,
    constraints: Constraints | None = None,
    command: str | None = None,
) -> Path:
    """Write a self-contained HTML page: what came out in sentences, then every instance to look at.

    Parameters
    ----------
    results : one result, or several by name, of the same instances: the page compares them.
    path : the file to write.
    title : the heading; default: a question.
    reference : `X` or `(X, y)`, the rows the explainer was fitted to: adds what is measured against data, and
        draws the guides that methods followed.
    constraints : the limits that were asked for; the page checks every row against them.
    command : the line that makes the page again, to be shown on it.

    Examples
    --------
    >>> import contrafact as cf
    >>> result = cf.LineSearch().fit(model, X_train, y_train).explain(X_test[:5])
    >>> write_report({"line": result}, "why.html", reference=(X_train, y_train)).name
    'why.html'
    """
    path = Path(path)
    if isinstance(results, Counterfactuals):
        results = {str(results.provenance.get("method", "given")): results}
    same_instances(results)
    results = dict(zip(_titles(results), results.values(), strict=True))
    known = None if reference is None else Reference.read(reference, next(iter(results.values())))
    scores = {name: sections.scores(result, known) for name, result in results.items()}
    content = payload(results, scores, None if known is None else known.rows, constraints)
    without_picture = sum(entry["x"] is None for entry in content["instances"])
    heading = shorten(title or "What would change the model's mind?", 200)
    body = [
        f"<header><h1>{escape(heading)}</h1>{sections.scope(results)}</header>\n<main>",
        _section("In short", sections.summary(results, without_picture)),
        _section(
            "Methods side by side" if len(results) > 1 else "In figures", sections.figures(scores)
        ),
        _section(
            "Every instance", "<noscript><p>Pictures need JavaScript.</p></noscript>", "explorer"
        ),
        _section("Limits", sections.limits(results, constraints)),
        _section("How it was made", sections.made(results, command)),
        "</main>",
    ]
    path.write_text(_document(heading, body, content), encoding="utf-8", errors="xmlcharrefreplace")
    return path


def _titles(names: Iterable[str]) -> list[str]:
    """Names short enough for a heading; those that then read the same are numbered."""
    titles: list[str] = []
    for name in names:
        short = shorten(name, 60) or "unnamed"
        again = (f"{short} ({n})" for n in count(2))
        titles.append(next(title for title in chain([short], again) if title not in titles))
    return titles


def _section(heading: str, content: str, name: str = "") -> str:
    """A part of the page, or nothing where there is nothing to say."""
    place = f' id="{name}"' if name else ""
    return f"<section{place}><h2>{heading}</h2>\n{content}\n</section>" if content else ""


def _document(heading: str, body: Sequence[str], content: Mapping[str, Any]) -> str:
    """The file. Its policy lets the browser run these scripts and styles, and load nothing at all."""
    assets = files(__package__) / "assets"
    style = (assets / "page.css").read_text(encoding="utf-8")
    script = "\n".join(
        (assets / name).read_text(encoding="utf-8") for name in ("charts.js", "page.js")
    )
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:"
    )
    data = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<link rel="icon" href="data:,">',
            f"<title>{escape(heading)}</title><style>{style}</style></head>\n<body>",
            *body,
            # Only "<" could end the element or open a comment in it; written as \u003c it is the same JSON.
            '<script type="application/json" id="payload">'
            + data.replace("<", "\\u003c")
            + "</script>",
            f"<script>{script}</script>\n</body></html>\n",
        ]
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode('ascii')}'"
