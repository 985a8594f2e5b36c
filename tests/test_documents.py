"""The pages are correct: their code runs, their links resolve, the names they use exist."""

import contextlib
import functools
import io
import re
import shlex
import sys
import types
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import contrafact as cf
from contrafact.benchmark import Benchmark
from contrafact.cli import app
from contrafact.engine.result import STATUSES
from contrafact.explainers.registry import explainer_classes

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "contrafact"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
NOT_RUN = "<!-- not run -->"
RUN = "<!-- run -->"
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


def by_path(path: Path) -> str:
    return str(path.relative_to(ROOT))


each_page = pytest.mark.parametrize("page", PAGES, ids=by_path)


# --- code in the pages --------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """A fenced block of Python or shell commands; `prints` is the text block right after it."""

    code: str
    line: int
    skipped: bool
    prints: str | None
    language: str = "python"


def blocks_of(text: str) -> list[Block]:
    """Find the blocks. Python runs unless marked; shell commands, which mostly name files of the
    reader, run only if marked."""
    fences = list(FENCE.finditer(text))
    blocks = []
    for i, fence in enumerate(fences):
        after = fences[i + 1] if i + 1 < len(fences) else None
        if fence[1] not in ("python", "sh"):
            continue
        before = text[: fence.start()].rstrip("\n")
        skipped = before.endswith(NOT_RUN) if fence[1] == "python" else not before.endswith(RUN)
        follows = (
            after is not None
            and after[1] == "text"
            and not text[fence.end() : after.start()].strip()
        )
        prints = after[2] if follows else None
        blocks.append(
            Block(fence[2], text.count("\n", 0, fence.start(2)), skipped, prints, fence[1])
        )
    return blocks


def shell_lines(code: str) -> list[list[str]]:
    """The words of every line that calls contrafact."""
    lines = [shlex.split(line, comments=True) for line in code.replace("\\\n", " ").splitlines()]
    return [words[1:] for words in lines if words[:1] == ["contrafact"]]


def run_in_shell(code: str) -> None:
    for words in shell_lines(code):
        outcome = CliRunner().invoke(app, words)
        assert outcome.exit_code == 0, f"contrafact {shlex.join(words)} prints\n{outcome.output}"


def same_output(want: str, got: str) -> bool:
    """Whether texts are equal but for white space; percentages may be off by 3 points, since
    processors round differently."""
    percent = re.compile(r"(\d+)%")
    want, got = (" ".join(text.split()) for text in (want, got))
    apart = [
        abs(int(a) - int(b))
        for a, b in zip(percent.findall(want), percent.findall(got), strict=False)
    ]
    return percent.sub("%", want) == percent.sub("%", got) and max(apart, default=0) <= 3


@pytest.mark.usefixtures("own_random_numbers")
@each_page
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # A real module, so that classes defined on the page can be pickled.
    module = types.ModuleType(f"page_{page.stem.lower()}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in blocks_of(page.read_text(encoding="utf-8")):
        if block.skipped:
            continue
        if block.language == "sh":
            run_in_shell(block.code)
            continue
        # Blank lines in front: a traceback then names the line of the page.
        code = compile("\n" * block.line + block.code, str(page), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, module.__dict__)
        if block.prints is not None:
            got = printed.getvalue()
            assert same_output(block.prints, got), f"{by_path(page)}:{block.line} prints\n{got}"


def test_hardly_any_code_is_not_run():
    blocks = [block for page in PAGES for block in blocks_of(page.read_text(encoding="utf-8"))]
    python = [block for block in blocks if block.language == "python"]
    assert sum(block.skipped for block in python) <= 2
    assert sum(not block.skipped for block in python) >= 50
    assert any(not block.skipped for block in blocks if block.language == "sh")


def test_blocks_are_parsed():
    page = "a\n```python\nx = 1\n```\n\n```text\n1\n```\n"
    page += f"{NOT_RUN}\n```python\nx = 2\n```\nb\n```text\n2\n```\n"
    page += f"```sh\na\n```\n{RUN}\n```sh\ncontrafact b --c  # d\n```\n"
    first, second, third, fourth = blocks_of(page)
    assert first == Block("x = 1\n", 2, False, "1\n")
    assert second == Block("x = 2\n", 10, True, None)
    assert third.skipped and not fourth.skipped and shell_lines(fourth.code) == [["b", "--c"]]
    assert same_output("8 valid, 14% changed", "8 valid,  16% changed\n")
    assert not same_output("8 valid, 14% changed", "8 valid, 20% changed")
    assert not same_output("8 valid, 14% changed", "7 valid, 14% changed")


# --- links and names ----------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """Headings as GitHub links to them."""
    headings = re.findall(
        r"^#+ +(.+?) *$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each_page
def test_every_link_resolves(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|href)="([^"]+)"', text)
    for target in targets:
        if re.match(r"(https?|mailto):", target):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), f"{by_path(page)} links to {target}, which does not exist"
        assert not anchor or anchor in anchors(file), (
            f"{by_path(page)} links to {target}: no such heading"
        )


@functools.cache
def identifiers_in_code() -> frozenset[str]:
    """Every identifier in the code, the tests, the Makefile and the settings."""
    files = [
        *ROOT.glob("src/**/*.py"),
        *ROOT.glob("tests/**/*.py"),
        ROOT / "Makefile",
        ROOT / "pyproject.toml",
    ]
    found: set[str] = set()
    for file in files:
        if file != Path(__file__):
            found.update(re.findall(r"\w+", file.read_text(encoding="utf-8")))
    return frozenset(found)


@each_page
def test_names_in_code_spans_exist(page):
    """What a page names, such as `Tasks.ask`, `engine/tasks.py`, `guides/`, exists in the code."""
    spans = re.findall(r"`([^`\n]+)`", FENCE.sub("", page.read_text(encoding="utf-8")))
    for span in spans:
        if re.fullmatch(r"[\w./-]+(\.py|\.md|\.txt|\.toml|/)", span):
            places = (ROOT / span, SOURCE / span, SOURCE.parent / span)
            assert any(place.exists() for place in places), (
                f"{by_path(page)} names `{span}`: no such file"
            )
        elif re.fullmatch(r"[A-Za-z_]\w*(\.\w+)*(\(\))?", span):
            words = re.findall(r"\w+", span)
            missing = [word for word in words if word not in identifiers_in_code()]
            assert not missing, f"{by_path(page)} names `{span}`, which the code does not have"


def test_readme_names_make_demo_and_make_test():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = set(
        re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    named = set(
        re.findall(r"\bmake ([a-z]+)", "\n".join(fence[2] for fence in FENCE.finditer(text)))
    )
    assert {"demo", "test"} <= named <= targets


@each_page
def test_make_targets_exist(page):
    text = page.read_text(encoding="utf-8")
    targets = set(
        re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert set(re.findall(r"`make ([a-z]+)[ `]", text)) <= targets


@functools.cache
def commands() -> dict[tuple[str, ...], Any]:
    """Every command of the program by its words, groups included."""
    found: dict[tuple[str, ...], Any] = {(): typer.main.get_command(app)}
    for path in (todo := [()]):
        for name, command in getattr(found[path], "commands", {}).items():
            found[(*path, name)] = command
            todo.append((*path, name))
    return {path: command for path, command in found.items() if path}


def command_in(words: list[str]) -> tuple[str, ...]:
    """The command that a line begins with: its longest known words."""
    return max(
        (path for path in commands() if tuple(words[: len(path)]) == path), key=len, default=()
    )


@each_page
def test_shell_commands_exist(page):
    named = set(re.findall(r"`contrafact ([a-z]+)", page.read_text(encoding="utf-8")))
    assert named <= {path[0] for path in commands()}


@each_page
def test_shell_options_exist(page):
    lines = [
        words
        for block in blocks_of(page.read_text(encoding="utf-8"))
        for words in shell_lines(block.code)
    ]
    for words in lines:
        path = command_in(words)
        assert path, f"{by_path(page)}: contrafact {' '.join(words)}: no such command"
        known = {
            name
            for option in commands()[path].params
            for name in (*option.opts, *option.secondary_opts)
        }
        given = {
            word.partition("=")[0]
            for word in words
            if word.startswith("-") and not word[1:2].isdigit()
        }
        assert given <= known, (
            f"{by_path(page)}: contrafact {' '.join(path)} has no {given - known}"
        )


def test_options_of_every_command_are_documented():
    """The site fills these marks from the program itself."""
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    marked = set(re.findall(r"^<!-- options of contrafact ([a-z ]+) -->$", text, re.MULTILINE))
    assert marked == {
        " ".join(path) for path, command in commands().items() if not hasattr(command, "commands")
    }


@each_page
def test_grids_can_be_read(page, tmp_path):
    for fence in FENCE.finditer(page.read_text(encoding="utf-8")):
        if fence[1] == "toml":
            (tmp_path / "grid.toml").write_text(fence[2], encoding="utf-8")
            assert Benchmark.from_toml(tmp_path / "grid.toml").cells()


@pytest.mark.parametrize("page", ["choosing", "papers"])
def test_every_method_is_described(page):
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert not [name for name in explainer_classes() if f"`{name}`" not in text]


def figures(text: str, heading: str) -> dict[str, list[str]]:
    """The first table after a heading, by its first column without marks."""
    lines = text.partition(heading)[2].partition("|---")[2].splitlines()[1:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    table = {
        re.sub(r"\*(?:floor|baseline)\* | \(.*\)|`", "", row[0]): row[1:]
        for row in rows[: rows.index([""])]
    }
    assert len(table) > 5
    return table


def test_figures_equal_the_measured_ones():
    """The table of methods on the site, beside the page that the benchmark wrote."""
    shown_on_page = figures(
        (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8"), "## Measured"
    )
    results = (ROOT / "benchmarks" / "results" / "tscfeval.md").read_text(encoding="utf-8")
    measured = figures(results, "Mean over all requests")
    assert set(shown_on_page) == set(measured)
    # valid, sparsity, segments, dtw_lof_inlier, calls, seconds; there with intervals
    for method, cells in shown_on_page.items():
        for shown, column in zip(cells, (0, 1, 3, 4, 7, 8), strict=True):
            decimals = len(shown.partition(".")[2])
            exact = float(measured[method][column].split()[0])
            assert abs(float(shown) - exact) <= 0.51 * 10**-decimals, (
                f"{method}: {shown}, measured {exact}"
            )


def test_readme_lists_the_methods_that_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.partition("## Methods")[2].partition("\n## ")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == sorted(explainer_classes())


@pytest.mark.parametrize("page", ["README.md", "docs/architecture.md"])
def test_every_status_is_explained(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) >= set(STATUSES)


def test_changelog_has_this_version():
    assert cf.__version__ in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
