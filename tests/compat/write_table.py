"""Write docs/compatibility.md from what `make compat` found: python write_table.py FOLDER."""

import json
import sys
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "compatibility.md"
HEAD = """# Models of other libraries

What `make compat` found: every library in an environment of its own, four instances explained
per model with `LineSearch`, and `valid` compared with what the model's own `predict` says of the
returned arrays, all at once and one by one. A model counts as explained where the two agree in
every row and no row ends in an error. Gradients are exact where contrafact recomputes the model in
torch; without them, methods that use gradients take finite differences.

| library | version | models tried | explained | with exact gradients | notes |
|---|---|---|---|---|---|
"""


def main(folder: str) -> None:
    found = [json.loads(path.read_text()) for path in sorted(Path(folder).glob("*.json"))]
    lines = [line_of(library) for library in found]
    details = [section_of(library) for library in found]
    DOCUMENT.write_text(HEAD + "\n".join(lines) + "\n\n" + "\n".join(details))


def line_of(library: dict) -> str:
    """One line of the table."""
    entries = library["entries"]
    explained = [entry for entry in entries if entry["outcome"] == "explained"]
    exact = [entry for entry in explained if entry["gradients"] == "exact"]
    notes = [
        f"{sum(entry['outcome'] == outcome for entry in entries)} {text}"
        for outcome, text in (
            ("refused", "refused by name (several outputs)"),
            ("not fitted", "not fitted (a package is missing, or too slow)"),
            ("failed", "failed"),
        )
        if any(entry["outcome"] == outcome for entry in entries)
    ]
    cells = [
        library["library"],
        library["version"],
        str(len(entries)),
        str(len(explained)),
        str(len(exact)),
        "; ".join(notes),
    ]
    return f"| {' | '.join(cells)} |"


def section_of(library: dict) -> str:
    """The models of a library, by what came of them."""
    by_outcome: dict[str, list[str]] = {}
    for entry in library["entries"]:
        text = entry["model"]
        if "reason" in entry:
            text += f" ({entry['reason']})"
        by_outcome.setdefault(entry["outcome"], []).append(text)
    lines = [f"## {library['library']} {library['version']}", ""]
    for outcome, models in by_outcome.items():
        lines += [f"{outcome.capitalize()}: {', '.join(models)}.", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main(sys.argv[1])
