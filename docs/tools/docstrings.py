"""Docstrings of the house as Markdown: sections get a heading, `name : meaning` lines become lists."""

from __future__ import annotations

import re
from typing import Any

import griffe

SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
ENTRY = re.compile(r"^(\*{0,2}\w[\w,.* /]*?) : (?=\S)")
BARE = re.compile(r"^(\*{0,2}[a-z]\w*)$")


def as_markdown(text: str) -> str:
    """Paragraph by paragraph; equations are indented already, and so code blocks."""
    text = SECTION.sub(r"**\1**\n", text)
    return "\n\n".join(_paragraph(part) for part in re.split(r"\n[ \t]*\n", text))


def _paragraph(part: str) -> str:
    if part.startswith(">>>"):
        return f"```pycon\n{part}\n```"
    if part.startswith("    "):
        return part
    part = re.sub(r"<(?=\w)", "&lt;", part)
    lines = part.split("\n")
    if not (
        ENTRY.match(lines[0])
        or (BARE.match(lines[0]) and lines[1:] and lines[1].startswith("    "))
    ):
        return part
    out = []
    for line in lines:
        if entry := ENTRY.match(line) or BARE.match(line):
            names = ", ".join(f"`{name.strip()}`" for name in entry[1].split(","))
            rest = line[entry.end() :]
            out.append(f"- {names}: {rest}" if rest else f"- {names}:")
        else:
            out.append("    " + line.strip())
    return "\n".join(out)


class Markdown(griffe.Extension):
    """Turn every docstring into Markdown as it is read."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
