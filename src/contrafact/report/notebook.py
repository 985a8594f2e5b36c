"""What a notebook shows of a result: sentences, the picture of one row, a table of the first rows.

A piece of HTML without scripts, style sheets or references to anything outside. Text has the color
of the notebook, so that it can be read on any background; the picture brings its own.
"""

from __future__ import annotations

from base64 import b64encode
from html import escape
from io import BytesIO

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

from ..engine.result import Counterfactuals
from .canvas import any_character
from .captions import change_text, headline
from .change_words import changes_of
from .grammar import counted, one_line
from .plots import plot
from .sentences import MOST_NAMED, outcome, sentence
from .words import class_probability, column_of, label_text, note, row_name

#: how many rows the table has
MOST_ROWS = 5
#: dots per inch
RESOLUTION = 90
#: bytes; larger pictures, such as those of photographs, are compressed as photographs are
MOST_BYTES = 120_000
#: letters of a cell, and of a sentence
MOST_LETTERS = 160
MOST_IN_SENTENCE = 1000
#: what older and newer notebooks leave alone when they look for formulas between dollars
NO_FORMULAS = "tex2jax_ignore mathjax_ignore"
HEAD = ("", "instance", "class before", "class after", "P(wanted class)", "change", "status")
LEFT = "text-align:left;vertical-align:top"
RULE = "border-bottom:1px solid rgba(128,128,128,0.5)"


def fragment(result: Counterfactuals) -> str:
    """Write what a notebook shows of a result.

    Parameters
    ----------
    result : Counterfactuals
        The result.

    Returns
    -------
    str
        HTML that stands on its own, below 200 KB.
    """
    method = one_line(result.provenance.get("method", "unknown method"), 40)
    lead = f"<b>{escape(method)}</b>: {escape(' '.join(outcome(result)))}"
    parts = [_paragraph(lead)]
    if len(result):
        i = _typical_row(result)
        words = one_line(f"{row_name(result, i)}: {sentence(result, i)}", MOST_IN_SENTENCE)
        parts += [_paragraph(escape(words)), _picture(result, i), _table(result)]
        parts.append(_paragraph(_more(result)))
    return f'<div class="{NO_FORMULAS}" style="max-width:64em">{"".join(parts)}</div>'


def _paragraph(html: str) -> str:
    return f'<p style="margin:0.5em 0">{html}</p>'


def _typical_row(result: Counterfactuals) -> int:
    """Return the first row that reached its class by a change, else the first that did not."""
    had_to_change = result.status != "already_target"
    for chosen in (result.valid & had_to_change, had_to_change):
        if chosen.any():
            return int(np.flatnonzero(chosen)[0])
    return 0


def _picture(result: Counterfactuals, i: int) -> str:
    """Draw a row in the user's font, but not in a style that suits another background."""
    fonts = {name: matplotlib.rcParams[name] for name in ("font.family", "font.sans-serif")}
    with matplotlib.style.context(["default", fonts]):
        figure = plot(result, i)
        kind, data = _compressed(figure)
    source = f"data:image/{kind};base64,{b64encode(data).decode()}"
    look = "max-width:100%;background:white;border-radius:4px"
    return f'<img alt="{escape(headline(result, i))}" src="{source}" style="{look}">'


def _compressed(figure: Figure) -> tuple[str, bytes]:
    """Return a picture and its format: PNG, or JPEG where that would be large."""
    data = b""
    for kind in ("png", "jpeg"):
        file = BytesIO()
        with any_character():
            figure.savefig(file, format=kind, dpi=RESOLUTION)
        data = file.getvalue()
        if len(data) <= MOST_BYTES:
            break
    return kind, data


def _table(result: Counterfactuals) -> str:
    """Make a table of the first rows."""
    head = "".join(f'<th style="{LEFT};{RULE}">{escape(name)}</th>' for name in HEAD)
    lines = [_line(result, i) for i in range(min(len(result), MOST_ROWS))]
    look = "border-collapse:collapse;table-layout:auto;margin:0.5em 0"
    return (
        f'<table style="{look}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def _line(result: Counterfactuals, i: int) -> str:
    """Make the line of row i."""
    column = column_of(result, result.target[i])
    before = class_probability(result.proba[i], column)
    after = class_probability(result.cf_proba[i], column)
    texts = [
        str(i),
        row_name(result, i),
        label_text(result.labels[i]),
        label_text(result.cf_labels[i]),
        f"{label_text(result.target[i])}: {before} → {after}",
        _change(result, i),
        _status(result, i),
    ]
    cells = (
        f'<td style="{LEFT};{RULE}">{escape(one_line(text, MOST_LETTERS))}</td>' for text in texts
    )
    return f"<tr>{''.join(cells)}</tr>"


def _change(result: Counterfactuals, i: int) -> str:
    """Say how much changed, or of a row what."""
    if result.modality != "row":
        return change_text(result, i)
    changes = sorted(changes_of(result, i), key=lambda change: -change.size)
    words = [change.words for change in changes[:MOST_NAMED]]
    if len(changes) > MOST_NAMED:
        words.append(f"{len(changes) - MOST_NAMED} more")
    return "; ".join(words) or "nothing changed"


def _status(result: Counterfactuals, i: int) -> str:
    """Say how a row ended, and why."""
    if not result.valid[i]:
        return note(result, i)
    return ": ".join(filter(None, [str(result.status[i]), str(result.message[i])]))


def _more(result: Counterfactuals) -> str:
    """Say how many rows are not shown, and how to see them."""
    left = len(result) - MOST_ROWS
    hidden = f"… and {counted(left, 'more row')}. " if left > 0 else ""
    return (
        f"{hidden}<code>.to_frame()</code> lists all rows, <code>.plot(i)</code> draws one, "
        "<code>.report(path)</code> writes a page."
    )
