"""Add to the site what lives outside docs/: measurements, examples, project pages, options."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    import click
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
#: How pages link in the repository, where the site has these files elsewhere.
MOVED = {
    r"\]\(\.\./benchmarks/results/": "](results/",
    r"\]\(\.\./examples/(\w+)\.py\)": r"](examples/\1.md)",
    r"\]\(\.\./(CONTRIBUTING|CHANGELOG)\.md": r"](\1.md",
    r"\]\(docs/": "](",
}
OPTIONS_MARK = re.compile(r"^<!-- options of contrafact ([a-z ]+) -->$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the measurements, the project's own pages and the examples."""
    for path in sorted((ROOT / "benchmarks/results").glob("*.*")):
        files.append(File.generated(config, f"results/{path.name}", abs_src_path=str(path)))
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    for path in sorted((ROOT / "examples").glob("*.py")):
        files.append(File.generated(config, f"examples/{path.stem}.md", content=_example(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Correct links to what `on_files` moved and replace marks by the program's options."""
    for there, here in MOVED.items():
        markdown = re.sub(there, here, markdown)
    return OPTIONS_MARK.sub(_options, markdown)


def _example(path: Path) -> str:
    """Return a script as a page: its docstring, then its code."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    docstring = ast.get_docstring(tree) or path.stem
    title, _, about = docstring.partition("\n")
    after_docstring = text.splitlines()[tree.body[0].end_lineno :]
    code = "\n".join(after_docstring).strip()
    return f'# {title}\n{about}\n\n```python title="examples/{path.name}"\n{code}\n```\n'


def _options(mark: re.Match[str]) -> str:
    """Return the arguments and options of the marked command as a table."""
    parameters = command(mark[1]).params
    if not parameters:
        return "No arguments, no options."
    lines = ["| argument or option | meaning | default |", "|---|---|---|"]
    for parameter in parameters:
        cells = [cell.replace("|", "\\|") for cell in _describe(parameter)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def command(name: str) -> click.Command:
    """Return the command that words such as "bench run" name."""
    import typer

    from contrafact.cli import app

    found = typer.main.get_command(app)
    for word in name.split():
        found = found.commands[word]  # type: ignore[attr-defined]
    return found


def _describe(parameter: click.Parameter) -> tuple[str, str, str]:
    """Return name, meaning and default of an argument or option."""
    names = [(parameter.name or "").upper()]
    if parameter.param_type_name == "option":
        names = [*parameter.opts, *parameter.secondary_opts]
    name = f"`{' / '.join(names)}`"
    if getattr(parameter, "multiple", False):
        name += " (repeatable)"
    meaning = getattr(parameter, "help", None) or ""
    return name, meaning, _default(parameter)


def _default(parameter: click.Parameter) -> str:
    """Return the default as shown; flags and options without one show nothing."""
    if parameter.required:
        return "required"
    default = parameter.default
    if default is None or default is False or callable(default):
        return ""
    if isinstance(default, list | tuple):
        return ""
    return f"`{default}`"
