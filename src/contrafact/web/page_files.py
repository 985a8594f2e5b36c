"""The files of the explorer's page: its own, and the report's charts and colors."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple

# The report's scripts share one scope and export nothing, since the report joins them into one.
CHART_SCRIPTS = (
    "number_text.js",
    "elements.js",
    "unpacking.js",
    "series_chart.js",
    "pictures.js",
    "theme.js",
)
CHART_NAMES = (
    "MARGIN",
    "SeriesChart",
    "axisTicks",
    "changeColors",
    "clamp",
    "drawPicture",
    "findRuns",
    "imageColors",
    "make",
    "makeThemeButton",
    "numberText",
    "plainKey",
    "valueRange",
)
MEDIA_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}


class PageFile(NamedTuple):
    """What the server sends."""

    content: bytes
    media_type: str


def page_file(name: str) -> PageFile | None:
    """Return a file of the page by its name; None if the page has no such file."""
    return _page_files().get(name)


@cache
def _page_files() -> dict[str, PageFile]:
    """Return all files by name: what a client asks for is looked up here and never in a folder."""
    own = files("contrafact.web") / "assets"
    texts = {path.name: path.read_text(encoding="utf-8") for path in own.iterdir()}
    charts = [_report_asset(name) for name in CHART_SCRIPTS]
    texts["charts.js"] = "\n".join([*charts, f"export {{ {', '.join(CHART_NAMES)} }};\n"])
    texts["explore.css"] = _report_asset("page.css") + texts["explore.css"]
    return {
        name: PageFile(text.encode(), f"{MEDIA_TYPES[name.rsplit('.')[-1]]}; charset=utf-8")
        for name, text in texts.items()
    }


def _report_asset(name: str) -> str:
    return (files("contrafact.report") / "assets" / name).read_text(encoding="utf-8")
