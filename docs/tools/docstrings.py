"""Turn numpydoc docstrings into Markdown for the site."""

from __future__ import annotations

import re
from typing import Any

import griffe

SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
#: Sections whose unindented lines are `name : type`.
NAMED_SECTIONS = frozenset({"Parameters", "Other Parameters", "Attributes"})
#: Sections whose unindented lines are `name : type` or a type alone.
TYPED_SECTIONS = frozenset({"Returns", "Yields", "Raises", "Warns"})


def as_markdown(text: str) -> str:
    """Convert a docstring.

    Parameters
    ----------
    text : str
        The docstring, without common indentation.

    Returns
    -------
    str
        Markdown: sections get a heading, parameters become a list, examples a code block.
    """
    before, *sections = SECTION.split(text)
    parts = [_prose(before)]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        parts.append(f"**{title}**")
        if title in NAMED_SECTIONS | TYPED_SECTIONS:
            parts.append(_entries(body, named=title in NAMED_SECTIONS))
        else:
            parts.append(_prose(body))
    return "\n\n".join(part for part in parts if part)


def _prose(text: str) -> str:
    """Convert paragraphs; equations are indented, and so are code blocks already."""
    paragraphs = re.split(r"\n[ \t]*\n", text.strip("\n"))
    return "\n\n".join(_paragraph(paragraph) for paragraph in paragraphs)


def _paragraph(text: str) -> str:
    if text.startswith(">>>"):
        return f"```pycon\n{text}\n```"
    if text.startswith("    "):
        return text
    return _escape(text)


def _entries(text: str, *, named: bool) -> str:
    """Convert lines of names and types, with indented descriptions, to a list."""
    lines = []
    for line in text.strip("\n").split("\n"):
        indented = line.startswith("    ") or not line.strip()
        lines.append(_escape(line) if indented else _entry(_escape(line), named=named))
    return "\n".join(lines)


def _entry(line: str, *, named: bool) -> str:
    names, separator, kind = line.partition(" : ")
    if not separator and not named:
        return f"- {line}"
    quoted = ", ".join(f"`{name.strip()}`" for name in names.split(","))
    return f"- {quoted}: {kind}".rstrip()


def _escape(text: str) -> str:
    """Keep "<name>" from being read as HTML."""
    return re.sub(r"<(?=\w)", "&lt;", text)


class Markdown(griffe.Extension):
    """Convert every docstring as it is read."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Convert the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
