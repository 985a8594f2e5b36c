"""The page of an audit: one row for each class, the most suspicious first."""

from __future__ import annotations

from base64 import b64encode
from html import escape
from io import BytesIO
from pathlib import Path

import matplotlib
import numpy as np

from ..explainers.class_audit import ClassAudit, Region
from ..explainers.model_audit import ModelAudit
from ..models.classifier import Array
from ..validation import FilePath, Instance, Integer, Nothing, check_parameters
from .grammar import counted, listed, shorten
from .page import section, write_document
from .pairs import pair
from .words import label_text, number_text, percent_text

SCRIPTS = ("elements.js", "theme.js", "audit.js")
QUESTION = "What does the model take for each class?"
#: width of a picture on the page
PIXELS = 96
#: height of a drawing of a series
SERIES_PIXELS = 56
_RULES = {
    "audit": Instance(ModelAudit),
    "path": FilePath(),
    "title": Instance(str, "a text") | Nothing(),
    "command": Instance(str, "a text") | Nothing(),
    "examples": Integer(at_least=0, at_most=20),
}


def write_audit(
    audit: ModelAudit,
    path: str | Path,
    *,
    title: str | None = None,
    command: str | None = None,
    examples: int = 3,
) -> Path:
    """Write a self-contained HTML page: for each class the mean change, where it is, and examples.

    Parameters
    ----------
    audit : ModelAudit
        From `audit_classes`.
    path : str or Path
        The file to write.
    title : str, optional
        The heading; by default a question.
    command : str, optional
        The command that makes the page again, to be shown on it.
    examples : int, default=3
        Counterfactuals to show for each class, of different classes before.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import contrafact as cf
    >>> audit = cf.audit_classes(model, X_train, n_starts=5)
    >>> write_audit(audit, "audit.html").name
    'audit.html'
    """
    given = {"path": path, "title": title, "command": command, "examples": examples}
    check_parameters("write_audit", _RULES, {"audit": audit, **given})
    heading = shorten(title or QUESTION, 200)
    rows = "\n".join(
        _row(entry, examples, is_alarm=any(entry is alarm for alarm in audit.alarms))
        for entry in audit
    )
    columns = ("class", "suspicion", "where", "mean change", "how often changed", "examples")
    head = "".join(f"<th>{name}</th>" for name in columns)
    table = (
        f'<div class="wide"><table class="audit"><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )
    body = [
        f"<header><h1>{escape(heading)}</h1>{_scope(audit)}</header>\n<main>",
        section("Summary", _summary(audit)),
        section("Classes, the most suspicious first", table + _legend()),
        section("Provenance", "" if command is None else f"<pre>{escape(command)}</pre>"),
        "</main>",
    ]
    return write_document(Path(path), heading, body, SCRIPTS, {})


def _scope(audit: ModelAudit) -> str:
    """Say how many classes, and from how many instances each."""
    if not len(audit):
        return "<p>no class was reached</p>"
    most = max(entry.n for entry in audit)
    method = escape(str(audit[0].result.provenance.get("method", "unknown method")))
    number = counted(len(audit), "class")
    return (
        f"<p>{number} · up to {counted(most, 'instance')} of others turned into each · {method}</p>"
    )


def _summary(audit: ModelAudit) -> str:
    """Say which classes deserve a look."""
    suspects = audit.alarms
    sentences = [
        f"<p><strong>{escape(label_text(entry.target))} deserves a look</strong>: suspicion "
        f"{entry.suspicion:.2f} at {entry.place}, where most of the class look alike and others "
        f"do not, and where changes into it agree.</p>"
        for entry in suspects
    ]
    if not suspects:
        sentences = ["<p>No class stands out from the others.</p>"]
    if audit.unreached:
        names = listed([label_text(label) for label in audit.unreached])
        sentences.append(f"<p>Not reached from any instance: {escape(names)}.</p>")
    return "\n".join(sentences)


def _legend() -> str:
    """Explain the columns."""
    return (
        '<p class="small">Suspicion, from 0 to 1, is the largest product over all windows of two '
        "shares: what lies in the window of the change that all starts have in common, and how far "
        "the images that are copies of the class's median there are the class. It is marked where "
        "it is nine times the median of the other classes: a reason to look, not a proof. Mean "
        "change: red is brighter, blue darker, each class on its own scale. How often: the share "
        "of counterfactuals in which a place is among the most changed 5 %; black is always. The "
        "box is the suspect window. Examples: before and after.</p>"
    )


def _row(audit: ClassAudit, examples: int, *, is_alarm: bool) -> str:
    """Make the row of one class."""
    limit = float(np.abs(audit.mean_change).max()) or 1.0
    if len(audit.frequency) == 1:
        mean = _curves([audit.mean_change], audit.suspect)
        often = _curves([audit.frequency], audit.suspect)
    else:
        mean = _picture(_colored(audit.mean_change / limit / 2 + 0.5, "RdBu_r"), audit.suspect)
        often = _picture(_colored(audit.frequency, "Grays"), audit.suspect)
    place = f"{audit.place}<br>mean change {number_text(audit.suspect.mean_change, 2)}"
    reached = f"{percent_text(audit.valid)} of {audit.n} reached"
    cells = [
        f"<td><strong>{escape(label_text(audit.target))}</strong>"
        f'<br><span class="small">{reached}</span></td>',
        f'<td class="number">{audit.suspicion:.2f}</td>',
        f'<td class="place">{place}</td>',
        f"<td>{mean}</td>",
        f"<td>{often}</td>",
        f'<td><div class="examples">{_examples(audit, examples)}</div></td>',
    ]
    kind = ' class="alarm"' if is_alarm else ""
    return f"<tr{kind}>{''.join(cells)}</tr>"


def _examples(audit: ClassAudit, n: int) -> str:
    """Show some counterfactuals, of as many classes before as there are."""
    result = audit.result
    reached = np.flatnonzero(result.status == "valid")
    _, first = np.unique(result.labels[reached], return_index=True)
    order = [*reached[first].tolist(), *np.delete(reached, first).tolist()]
    shown = []
    for i in order[:n]:
        x, x_cf = pair(result, i)
        before = escape(label_text(result.labels[i], 12))
        if x.ndim == 2:
            pictures = _curves([x, x_cf], audit.suspect)
        else:
            low, high = min(x.min(), x_cf.min()), max(x.max(), x_cf.max())
            scale = (high - low) or 1.0
            pictures = " → ".join(
                _picture(_photograph((values - low) / scale), audit.suspect) for values in (x, x_cf)
            )
        shown.append(f'<div class="pair" title="was {before}">{pictures}</div>')
    return "".join(shown)


def _colored(values: Array, colors: str) -> Array:
    """Color values from 0 to 1; returns bytes (height, width, 3)."""
    colored: Array = matplotlib.colormaps[colors](values, bytes=True)
    return colored[..., :3]


def _photograph(x: Array) -> Array:
    """Return an image (channels, height, width) from 0 to 1 as bytes; three channels are colors."""
    shown = x if len(x) == 3 else np.repeat(x.mean(0, keepdims=True), 3, axis=0)
    return np.asarray(np.round(shown.transpose(1, 2, 0) * 255), dtype=np.uint8)


def _picture(pixels: Array, suspect: Region) -> str:
    """Make a picture with a box around the suspect window."""
    from PIL import Image

    file = BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(file, format="PNG")
    data = b64encode(file.getvalue()).decode("ascii")
    height, width = pixels.shape[:2]
    size = f'width="{PIXELS}" height="{max(1, round(PIXELS * height / width))}"'
    return (
        f'<svg {size} viewBox="0 0 {width} {height}">'
        f'<image width="{width}" height="{height}" image-rendering="pixelated" '
        f'href="data:image/png;base64,{data}"/>'
        f'<rect class="suspect" x="{suspect.left}" y="{suspect.top}" '
        f'width="{suspect.width}" height="{suspect.height}"/></svg>'
    )


def _curves(curves: list[Array], suspect: Region) -> str:
    """Draw series, the first in gray where there are two, with the suspect window shaded."""
    low = min(float(curve.min()) for curve in curves)
    high = max(float(curve.max()) for curve in curves)
    scale = (high - low) or 1.0
    length = curves[0].shape[-1]
    kinds = ("before", "after")[-len(curves) :]
    paths = []
    for kind, curve in zip(kinds, curves, strict=True):
        for channel in curve:
            points = " ".join(
                f"{t},{1 - (value - low) / scale:.4g}" for t, value in enumerate(channel.tolist())
            )
            paths.append(f'<path class="{kind}" d="M {points}"/>')
    return (
        f'<svg class="series" width="{2 * PIXELS}" height="{SERIES_PIXELS}" '
        f'viewBox="0 -0.05 {length - 1} 1.1" preserveAspectRatio="none">'
        f'<rect class="suspect" x="{suspect.left}" y="-0.05" '
        f'width="{suspect.width - 1}" height="1.1"/>{"".join(paths)}</svg>'
    )
