"""Counts, lists and lengths of text."""

from contrafact.report.grammar import counted, listed, one_line, shorten


def test_counting():
    assert [
        counted(n, noun)
        for n, noun in [(1, "stretch"), (2, "stretch"), (2, "class"), (2, "region")]
    ] == [
        "1 stretch",
        "2 stretches",
        "2 classes",
        "2 regions",
    ]


def test_lists():
    assert [listed(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]


def test_long_texts_are_cut_and_quotes_closed():
    assert shorten("a  b\nc", 10) == "a b c"
    assert shorten("x" * 11, 10) == "x" * 9 + "…"
    assert shorten("'" + "x" * 20 + "'", 10) == "'" + "x" * 7 + "…'"
    assert one_line("a\x00b\ud800", 10) == "a b"
