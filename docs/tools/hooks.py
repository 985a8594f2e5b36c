"""What the site takes from outside docs/: measurements, examples, project pages, the program's options."""

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
#: How pages link in the repository, where the site has these things elsewhere.
MOVED = {
    r"\]\(\.\./benchmarks/results/": "](results/",
    r"\]\(\.\./examples/(\w+)\.py\)": r"](examples/\1.md)",
    r"\]\(\.\./(CONTRIBUTING|CHANGELOG)\.md": r"](\1.md",
    r"\]\(docs/": "](",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the measurements, the project's own pages, and the examples."""
    found = {
        f"results/{path.name}": path for path in sorted((ROOT / "benchmarks/results").glob("*.*"))
    }
    found |= {name: ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md")}
    for uri, path in found.items():
        files.append(File.generated(config, uri, abs_src_path=str(path)))
    for path in sorted((ROOT / "examples").glob("*.py")):
        files.append(File.generated(config, f"examples/{path.stem}.md", content=_example(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links follow what `on_files` moved; marks give way to the program's options."""
    for there, here in MOVED.items():
        markdown = re.sub(there, here, markdown)
    return re.sub(
        r"^<!-- options of contrafact ([a-z ]+) -->$", _options, markdown, flags=re.MULTILINE
    )


def _example(path: Path) -> str:
    """A script as a page: what it is about, then its code."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    title, _, about = (ast.get_docstring(tree) or path.stem).partition("\n")
    code = "\n".join(text.splitlines()[tree.body[0].end_lineno :]).strip()
    return f'# {title}\n{about}\n\n```python title="examples/{path.name}"\n{code}\n```\n'


def _options(marker: re.Match[str]) -> str:
    """The arguments and options of a command, as the program itself has them."""
    lines = ["| argument or option | meaning | default |", "|---|---|---|"]
    for parameter in command(marker[1]).params:
        lines.append(
            "| " + " | ".join(cell.replace("|", "\\|") for cell in _describe(parameter)) + " |"
        )
    return "\n".join(lines) if len(lines) > 2 else "No arguments, no options."


def command(name: str) -> click.Command:
    """The command that "bench run" names."""
    import typer

    from contrafact.cli import app

    found = typer.main.get_command(app)
    for word in name.split():
        found = found.commands[word]  # type: ignore[attr-defined]
    return found


def _describe(parameter: click.Parameter) -> tuple[str, str, str]:
    names = [(parameter.name or "").upper()]
    if parameter.param_type_name == "option":
        names = [*parameter.opts, *parameter.secondary_opts]
    repeatable = " (repeatable)" if getattr(parameter, "multiple", False) else ""
    default = parameter.default
    silent = (
        default is None
        or default is False
        or callable(default)
        or isinstance(default, list | tuple)
    )
    shown = "required" if parameter.required else "" if silent else f"`{default}`"
    return f"`{' / '.join(names)}`{repeatable}", getattr(parameter, "help", None) or "", shown
