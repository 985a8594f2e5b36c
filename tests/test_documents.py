"""The documents are true: their code runs, their links lead somewhere, the names they use exist."""

import contextlib
import doctest
import functools
import importlib
import io
import re
import sys
import types
from dataclasses import dataclass
from pathlib import Path

import pytest
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.cli import app
from contrafact.engine.result import STATUSES
from contrafact.explainers.registry import explainer_classes

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "contrafact"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
MODULES = [
    ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(SOURCE.rglob("*.py"))
]
NOT_RUN = "<!-- not run -->"
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


def by_path(path: Path) -> str:
    return str(path.relative_to(ROOT))


each_page = pytest.mark.parametrize("page", PAGES, ids=by_path)


# --- code in the pages --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    """A fenced python block; `prints` is the text block right after it, if there is one."""

    code: str
    line: int
    skipped: bool
    prints: str | None


def python_blocks(text: str) -> list[Block]:
    fences = list(FENCE.finditer(text))
    blocks = []
    for i, fence in enumerate(fences):
        after = fences[i + 1] if i + 1 < len(fences) else None
        if fence[1] != "python":
            continue
        skipped = text[: fence.start()].rstrip("\n").endswith(NOT_RUN)
        follows = after is not None and after[1] == "text" and not text[fence.end() : after.start()].strip()
        blocks.append(
            Block(fence[2], text.count("\n", 0, fence.start(2)), skipped, after[2] if follows else None)
        )
    return blocks


def same_output(want: str, got: str) -> bool:
    """Equal but for white space; a percentage may be off by 3 points, since processors round differently."""
    percent = re.compile(r"(\d+)%")
    want, got = (" ".join(text.split()) for text in (want, got))
    apart = [abs(int(a) - int(b)) for a, b in zip(percent.findall(want), percent.findall(got), strict=False)]
    return percent.sub("%", want) == percent.sub("%", got) and max(apart, default=0) <= 3


@each_page
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # A real module, so that classes defined on the page can be pickled.
    module = types.ModuleType(f"page_{page.stem.lower()}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in python_blocks(page.read_text(encoding="utf-8")):
        if block.skipped:
            continue
        # Blank lines in front: a traceback then names the line of the page.
        code = compile("\n" * block.line + block.code, str(page), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, module.__dict__)
        if block.prints is not None:
            got = printed.getvalue()
            assert same_output(block.prints, got), f"{by_path(page)}:{block.line} prints\n{got}"


def test_hardly_any_code_is_not_run():
    blocks = [block for page in PAGES for block in python_blocks(page.read_text(encoding="utf-8"))]
    assert sum(block.skipped for block in blocks) <= 2
    assert sum(not block.skipped for block in blocks) >= 5


def test_blocks_are_read_as_meant():
    page = "a\n```python\nx = 1\n```\n\n```text\n1\n```\n"
    page += f"{NOT_RUN}\n```python\nx = 2\n```\nb\n```text\n2\n```\n"
    first, second = python_blocks(page)
    assert first == Block("x = 1\n", 2, False, "1\n")
    assert second == Block("x = 2\n", 10, True, None)
    assert same_output("8 valid, 14% changed", "8 valid,  16% changed\n")
    assert not same_output("8 valid, 14% changed", "8 valid, 20% changed")
    assert not same_output("8 valid, 14% changed", "7 valid, 14% changed")


# --- links and names ----------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """Headings as GitHub links to them."""
    headings = re.findall(r"^#+ +(.+?) *$", FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each_page
def test_every_link_leads_somewhere(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|href)="([^"]+)"', text)
    for target in targets:
        if re.match(r"(https?|mailto):", target):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), f"{by_path(page)} links to {target}, which does not exist"
        assert not anchor or anchor in anchors(file), f"{by_path(page)} links to {target}: no such heading"


@functools.cache
def words_of_the_house() -> frozenset[str]:
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
    """`Batch.ask`, `engine/search.py`, `guides/`: what a page names, the code has."""
    spans = re.findall(r"`([^`\n]+)`", FENCE.sub("", page.read_text(encoding="utf-8")))
    for span in spans:
        if re.fullmatch(r"[\w./-]+(\.py|\.md|\.txt|\.toml|/)", span):
            places = (ROOT / span, SOURCE / span, SOURCE.parent / span)
            assert any(place.exists() for place in places), f"{by_path(page)} names `{span}`: no such file"
        elif re.fullmatch(r"[A-Za-z_]\w*(\.\w+)*(\(\))?", span):
            words = re.findall(r"\w+", span)
            missing = [word for word in words if word not in words_of_the_house()]
            assert not missing, f"{by_path(page)} names `{span}`, which the code does not have"


def test_readme_names_the_two_commands():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z]+)", "\n".join(fence[2] for fence in FENCE.finditer(text))))
    assert {"demo", "test"} <= named <= targets


@each_page
def test_make_targets_exist(page):
    text = page.read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z]+)[ `]", text)) <= targets


@each_page
def test_shell_commands_exist(page):
    known = {command.callback.__name__ for command in app.registered_commands}
    known |= {group.name for group in app.registered_groups}
    assert set(re.findall(r"`contrafact ([a-z]+)", page.read_text(encoding="utf-8"))) <= known


def test_readme_lists_the_methods_that_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.partition("## Methods")[2].partition("\n## ")[0]
    assert sorted(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == sorted(explainer_classes())


@pytest.mark.parametrize("page", ["README.md", "docs/architecture.md"])
def test_every_status_is_explained(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) >= set(STATUSES)


def test_changelog_knows_this_version():
    assert cf.__version__ in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


# --- examples in docstrings ---------------------------------------------------------------------------------


class PlainNumbers(doctest.OutputChecker):
    """1.0 is np.float64(1.0): NumPy 2 shows its scalars with their type, NumPy 1 does not."""

    scalar = re.compile(r"np\.(?:float|int|uint|str|bool)\w*\(([^()]*)\)")

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        want, got = (self.scalar.sub(r"\1", text) for text in (want, got))
        return super().check_output(want, got, optionflags)


@pytest.fixture(scope="module")
def stage():
    """What examples may take for granted: a trained model and series."""
    data = cf.load_dataset("ItalyPowerDemand")
    model = LogisticRegression(max_iter=1000).fit(data.X_train[:, 0], data.y_train)
    return {
        "model": model,
        "X_train": data.X_train,
        "y_train": data.y_train,
        "X_test": data.X_test,
        "y_test": data.y_test,
    }


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name, stage, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(PlainNumbers(), verbose=False, optionflags=doctest.ELLIPSIS)
    report = io.StringIO()
    for test in doctest.DocTestFinder().find(importlib.import_module(name), name, extraglobs=stage):
        runner.run(test, out=report.write)
    assert runner.failures == 0, report.getvalue()


def test_there_are_examples_to_run():
    finder = doctest.DocTestFinder()
    without = [
        name
        for name, cls in explainer_classes().items()
        if not any(t.examples for t in finder.find(cls, name))
    ]
    assert not without, f"explainers without an example: {without}"


def test_a_wrong_example_is_noticed(stage):
    wrong = ">>> import numpy as np\n>>> np.float64(0.5)\n1.0\n"
    test = doctest.DocTestParser().get_doctest(wrong, dict(stage), "wrong", None, 0)
    runner = doctest.DocTestRunner(PlainNumbers(), verbose=False)
    runner.run(test, out=lambda text: None)
    assert runner.failures == 1
