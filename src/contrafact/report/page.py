"""A page that explains a result to someone who was not there: one HTML file, no network, no scripts."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import defaultdict
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from ..engine.result import Counterfactuals
from ..metrics.base import as_array
from ..metrics.regions import count_regions
from .plots import plot
from .words import PLACES, counted, detail, headline, note, percent, row_name, shorten

MOST_PLOTS = 50
MOST_LINES = 1000
MOST_REASONS = 20

STYLE = """
:root { color-scheme: light dark; --ink: #222; --page: #fff; --line: #ddd; --soft: #f5f5f5; --bad: #b34700; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --page: #17191c; --line: #3a3d42; --soft: #212429; --bad: #ff9a5c; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
       max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
.wide { overflow-x: auto; max-height: 28rem; border: 1px solid var(--line); }
table { border-collapse: collapse; font-size: .85rem; width: 100%; }
th { position: sticky; top: 0; background: var(--soft); }
th, td { padding: .3rem .6rem; text-align: left; border-bottom: 1px solid var(--line); white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
tr.bad td, .bad { color: var(--bad); }
figure { margin: 1.5rem 0; } img { width: 100%; background: #fff; border-radius: 6px; }
pre { background: var(--soft); padding: 1rem; overflow-x: auto; font-size: .85rem; }
"""


def write_report(result: Counterfactuals, path: str | Path) -> Path:
    """Write a self-contained HTML page: a summary, a table of all rows, pictures, and how it was made.

    Pictures are drawn for up to 50 rows, those that reached their target first.
    """
    path = Path(path)
    method = str(result.provenance.get("method", "unknown method"))
    title = f"{len(result)} counterfactuals by {shorten(method, 60)}"
    body = [f"<h1>{escape(title)}</h1>", *_summary(result), *_table(result), *_pictures(result)]
    provenance = json.dumps(result.provenance, indent=2, ensure_ascii=False, default=str)
    body += ["<h2>How it was made</h2>", f"<pre>{escape(provenance)}</pre>"]
    # The policy lets the browser load nothing but what is in this file.
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    head = (
        f'<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{escape(title)}</title><style>{STYLE}</style>"
    )
    content = "\n".join(body)
    page = f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{content}\n</body></html>\n'
    path.write_text(page, encoding="utf-8", errors="xmlcharrefreplace")
    return path


def _summary(result: Counterfactuals) -> list[str]:
    """What was asked and what came of it, in sentences; failures with their reasons."""
    already = result.status == "already_target"
    reached, asked = result.valid & ~already, int((~already).sum())
    sentences = [f"{int(reached.sum())} of {asked} now get the class that was asked for."]
    if already.any():
        sentences.append(f"{int(already.sum())} had it already and were left as they are.")
    if reached.any():
        typical = percent(float(np.median(result.changed_fraction[reached])))
        places = np.median(count_regions(as_array(result.changed), result.modality)[reached])
        where = f", in {counted(round(places), PLACES[result.modality])}" if result.modality in PLACES else ""
        sentences.append(f"Typical change: {typical} of the values{where} (median of those that got there).")
    lines = [f"<p>{escape(' '.join(sentences))}</p>"]
    reasons: dict[str, list[str]] = defaultdict(list)
    for i in np.flatnonzero(~result.valid).tolist():
        reasons[note(result, i)].append(row_name(result, i))
    if reasons:
        lines += [f'<p class="bad">{int((~result.valid).sum())} did not get there:</p>', "<ul>"]
        frequent = sorted(reasons.items(), key=lambda item: -len(item[1]))
        for reason, rows in frequent[:MOST_REASONS]:
            lines.append(f"<li>{escape(shorten(', '.join(rows), 200))}: {escape(reason)}</li>")
        rest = sum(len(rows) for _, rows in frequent[MOST_REASONS:])
        lines += [f"<li>and {rest} more, see the table</li>"] * (rest > 0) + ["</ul>"]
    return lines


def _table(result: Counterfactuals) -> list[str]:
    frame = result.to_frame()
    numeric = [kind.kind in "iuf" for kind in (np.asarray(frame[name]).dtype for name in frame)]
    head = "".join(_cell("th", name, right) for name, right in zip(frame, numeric, strict=True))
    lines = ["<h2>Every row</h2>", f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>']
    for values, valid in zip(frame[:MOST_LINES].itertuples(index=False), result.valid, strict=False):
        cells = "".join(_cell("td", value, right) for value, right in zip(values, numeric, strict=True))
        mark = "" if valid else ' class="bad"'
        lines.append(f"<tr{mark}>{cells}</tr>")
    lines.append("</tbody></table></div>")
    if len(result) > MOST_LINES:
        lines.append(f"<p>The first {MOST_LINES} rows; {len(result) - MOST_LINES} more are left out.</p>")
    return lines


def _cell(tag: str, value: Any, right: bool) -> str:
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    side = ' class="number"' if right else ""
    return f"<{tag}{side}>{escape(text)}</{tag}>"


def _pictures(result: Counterfactuals) -> list[str]:
    order = np.argsort(~result.valid, kind="stable").tolist()
    lines = ["<h2>Pictures</h2>"] if order else []
    for i in order[:MOST_PLOTS]:
        words = escape(". ".join(filter(None, [headline(result, i), detail(result, i), note(result, i)])))
        file = BytesIO()
        plot(result, i).savefig(file, format="svg")
        source = b64encode(file.getvalue()).decode("ascii")
        lines.append(f'<figure><img alt="{words}" src="data:image/svg+xml;base64,{source}"></figure>')
    if len(order) > MOST_PLOTS:
        lines.append(
            f"<p>{len(order) - MOST_PLOTS} more rows are not drawn; those that got there come first.</p>"
        )
    return lines
