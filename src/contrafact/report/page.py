"""The page: one HTML file that explains results and needs no network and no other file."""

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

from ..data.writing import complete_file
from ..engine.constraints import Constraints
from ..engine.result import Counterfactuals
from ..metrics import Reference
from ..validation import FilePath, Instance, Nothing, check_parameters
from . import sections
from .comparison import check_same_instances
from .firmness import with_radius
from .grammar import shorten
from .page_metrics import page_scores
from .payload import payload

SCRIPTS = (
    "number_text.js",
    "elements.js",
    "unpacking.js",
    "series_chart.js",
    "pictures.js",
    "table_sheet.js",
    "theme.js",
    "page.js",
)
_RULES = {
    "path": FilePath(),
    "title": Instance(str, "a text") | Nothing(),
    "constraints": Instance(Constraints) | Nothing(),
    "command": Instance(str, "a text") | Nothing(),
}
QUESTION = "What would change the model's decision?"


def write_report(
    results: Counterfactuals | Mapping[str, Counterfactuals],
    path: str | Path,
    *,
    title: str | None = None,
    reference: Any = None,
    model: Any = None,
    constraints: Constraints | None = None,
    command: str | None = None,
) -> Path:
    """Write a self-contained HTML page: a summary in sentences, then every instance to look at.

    Parameters
    ----------
    results : Counterfactuals or mapping of str to Counterfactuals
        One result, or several by name, of the same instances, which the page compares.
    path : str or Path
        The file to write.
    title : str, optional
        The heading; by default a question.
    reference : array or (array, array), optional
        `X` or `(X, y)`, the rows the explainer was fitted to: adds metrics that compare with data,
        and draws the guides that methods followed.
    model : model, optional
        The model that was explained. Of a prototype model with a linear metric, alone or behind
        scalers, the page says for every instance that is not a row of a table how short no change
        of the decision can be, which is proved, and how long the change shown is.
    constraints : Constraints, optional
        The constraints that were asked for; the page checks every row against them.
    command : str, optional
        The command that makes the page again, to be shown on it.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ValueError
        If the results are not of the same instances, or of models with different classes.

    Examples
    --------
    >>> import contrafact as cf
    >>> result = cf.LineSearch().fit(model, X_train, y_train).explain(X_test[:5])
    >>> write_report({"line": result}, "why.html", reference=(X_train, y_train)).name
    'why.html'
    """
    given = {"path": path, "title": title, "constraints": constraints, "command": command}
    check_parameters("write_report", _RULES, given)
    path = Path(path)
    if isinstance(results, Counterfactuals):
        results = {str(results.provenance.get("method", "given")): results}
    check_same_instances(results)
    results = dict(
        zip(
            _short_names(results),
            results.values(),
            strict=True,
        )
    )
    if model is not None:
        results = {name: with_radius(result, model) for name, result in results.items()}
    known = None if reference is None else Reference.read(reference, next(iter(results.values())))
    scores = {name: page_scores(result, known) for name, result in results.items()}
    means = sections.means_by_method(results, scores)
    content = payload(results, scores, known, constraints)
    without_picture = sum(entry["x"] is None for entry in content["instances"])
    heading = shorten(title or QUESTION, 200)
    remarks = sections.remarks(results)
    summary = sections.summary(results, means, without_picture)
    metrics_heading = "Methods side by side" if len(results) > 1 else "Metrics"
    metrics = sections.means_table(results, scores, means)
    is_table = content["modality"] == "table"
    instances = section(
        "What would have to be different" if is_table else "Instances",
        "<noscript><p>Pictures need JavaScript.</p></noscript>",
        identifier="explorer",
    )
    limits = section("Constraints", sections.constraints_table(results, constraints))
    if is_table:
        # Whoever asks about a person reads the person's options first, and metrics maybe never.
        if len(results) == len(content["instances"]) == 1:
            summary = ""  # the row says it all
        folded = f"<details><summary>Show the metrics</summary>{metrics}</details>"
        metrics_section = section(metrics_heading, folded)
        shown = [remarks, instances, section("Summary", summary), limits, metrics_section]
    else:
        metrics_section = section(metrics_heading, metrics)
        shown = [section("Summary", remarks + summary), metrics_section, instances, limits]
    body = [
        f"<header><h1>{escape(heading)}</h1>{sections.scope(results)}</header>\n<main>",
        *shown,
        section("Provenance", sections.provenance(results, command)),
        "</main>",
    ]
    return write_document(path, heading, body, SCRIPTS, content)


def _short_names(names: Iterable[str]) -> list[str]:
    """Shorten names to fit a heading; those that then read the same are numbered."""
    chosen: list[str] = []
    for name in names:
        short = shorten(name, 60) or "unnamed"
        numbered = (f"{short} ({n})" for n in count(2))
        candidates = chain([short], numbered)
        chosen.append(next(each for each in candidates if each not in chosen))
    return chosen


def section(heading: str, content: str, identifier: str = "") -> str:
    """Make a section of the page, or nothing where it would be empty."""
    if not content:
        return ""
    attribute = f' id="{identifier}"' if identifier else ""
    return f"<section{attribute}><h2>{heading}</h2>\n{content}\n</section>"


def write_document(
    path: Path,
    heading: str,
    body: Sequence[str],
    scripts: Sequence[str],
    content: Mapping[str, Any],
) -> Path:
    """Write a file that needs no other; its policy runs these scripts alone and loads nothing.

    Parameters
    ----------
    path : Path
        The file to write.
    heading : str
        The title of the window.
    body : sequence of str
        HTML, with a header and a main part.
    scripts : sequence of str
        Files in `assets`, in the order in which they run.
    content : mapping of str
        What the scripts read, as JSON.

    Returns
    -------
    Path
        The file.
    """
    document = _document(heading, body, scripts, content)
    with complete_file(path) as draft:
        draft.write_text(
            document,
            encoding="utf-8",
            errors="xmlcharrefreplace",
        )
    return path


def _document(
    heading: str, body: Sequence[str], names: Sequence[str], content: Mapping[str, Any]
) -> str:
    """Make the file; its policy lets the browser run these scripts and load nothing at all."""
    assets = files(__package__) / "assets"
    style = (assets / "page.css").read_text(encoding="utf-8")
    scripts = [(assets / name).read_text(encoding="utf-8") for name in names]
    script = '"use strict";\n' + "\n".join(scripts)
    policy = "; ".join(
        [
            "default-src 'none'",
            f"style-src {_policy_hash(style)}",
            f"script-src {_policy_hash(script)}",
            "img-src data:",
        ]
    )
    data = json.dumps(
        content,
        separators=(",", ":"),
        allow_nan=False,
    )
    # Only "<" could end the element or open a comment in it; written as \u003c it is the same JSON.
    data = data.replace("<", "\\u003c")
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<link rel="icon" href="data:,">',
            f"<title>{escape(heading)}</title><style>{style}</style></head>\n<body>",
            *body,
            f'<script type="application/json" id="payload">{data}</script>',
            f"<script>{script}</script>\n</body></html>\n",
        ]
    )


def _policy_hash(text: str) -> str:
    """Return the hash by which the policy allows a script or style."""
    digest = sha256(text.encode()).digest()
    return f"'sha256-{b64encode(digest).decode('ascii')}'"
