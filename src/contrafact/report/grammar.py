"""Counts, lists and lengths of text."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, noun: str) -> str:
    """Put a number before a noun: 1 class, 2 classes, 3 regions.

    Parameters
    ----------
    number : int
        How many.
    noun : str
        The noun in singular.

    Returns
    -------
    str
        As in "2 classes".
    """
    if number == 1:
        return f"1 {noun}"
    return f"{number} {plural(noun)}"


def plural(noun: str) -> str:
    """Return the plural of a noun: classes, stretches, regions."""
    return noun + ("es" if noun.endswith(("ch", "s")) else "s")


def listed(words: Sequence[str]) -> str:
    """Join words to a list: a, b and c."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def shorten(text: str, limit: int) -> str:
    """Put a text on one line of at most `limit` characters.

    Parameters
    ----------
    text : str
        The text; line breaks and repeated spaces become one space.
    limit : int
        The largest number of characters; a closing quotation mark is kept.

    Returns
    -------
    str
        The text; what was cut off is replaced by "…".
    """
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    quoted = text[0] == text[-1] and text[0] in "'\""
    closing = text[-1] if quoted else ""
    return text[: limit - 1 - len(closing)] + "…" + closing


def one_line(name: object, limit: int) -> str:
    """Put a name on one line of at most `limit` characters, without unprintable ones.

    Parameters
    ----------
    name : object
        The name; its `str` is used.
    limit : int
        The largest number of characters.

    Returns
    -------
    str
        The name, maybe empty.
    """
    printable = "".join(sign if sign.isprintable() else " " for sign in str(name))
    return shorten(printable, limit)
