"""The files of the explorer's page."""

import re

import pytest

from contrafact.web.page_files import CHART_NAMES, MEDIA_TYPES, page_file


def test_the_page_and_all_that_it_loads_are_there():
    asked, seen = ["index.html"], set()
    while asked:
        name = asked.pop()
        seen.add(name)
        file = page_file(name)
        assert file.media_type == f"{MEDIA_TYPES[name.rsplit('.')[-1]]}; charset=utf-8"
        loaded = re.findall(r'(?:from "\./|(?:src|href)="assets/)([^"]+)"', file.content.decode())
        asked += [each for each in loaded if each not in seen]
    assert {"main.js", "charts.js", "explore.css", "state.js"} <= seen


def test_the_charts_are_those_of_the_report():
    code = page_file("charts.js").content.decode()
    for name in CHART_NAMES:
        assert re.search(rf"^(?:function|class|const) {name}\b", code, re.MULTILINE)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../page_files.py", "/etc/passwd", "page.css", "x.js"]
)
def test_nothing_else_is_a_file(name):
    assert page_file(name) is None
