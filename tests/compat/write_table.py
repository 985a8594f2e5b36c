"""Write docs/compatibility.md from what `make compat` found: python write_table.py FOLDER."""

import json
import sys
from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "compatibility.md"
HEAD = """# Models of other libraries

`make compat` installs each library in an environment of its own, trains its classifiers on a small
data set and explains four instances of each with `LineSearch`. A model counts as explained if

- `valid` of every row is what the model's own `predict` says of the returned array, both for the
  whole batch and for each row alone,
- no row ends in an error, and at least one is valid, unless the model gives all training data the
  same class, and
- the random numbers, threads and settings of the process are as before.

Versions: {versions}.

| library | version | cases tried | explained | with gradients | refused | not trained | failed |
|---|---|---|---|---|---|---|---|
"""
AFTER_TABLE = """
With gradients: contrafact computes the model anew in torch, for gradients only. All others are
explained by their predictions; see [models](models.md). Refused: `fit` raises an error that says
why. Not trained: the classifier itself could not be trained here, for the reason given below.

"""
TITLES = {
    "explained": "Explained",
    "constant": "Explained, but the model knows one class only, so that nothing is valid",
    "refused": "Refused",
    "not fitted": "Not trained",
    "failed": "Failed",
}


def main(folder: str) -> None:
    found = [json.loads(path.read_text()) for path in sorted(Path(folder).glob("*.json"))]
    versions = sorted({f"Python {library['python']}" for library in found})
    head = HEAD.format(versions=", ".join(versions))
    lines = [line_of(library) for library in found]
    details = [section_of(library) for library in found]
    DOCUMENT.write_text(head + "\n".join(lines) + "\n" + AFTER_TABLE + "\n".join(details))


def line_of(library: dict) -> str:
    """One line of the table."""
    entries = library["entries"]
    outcomes = [entry["outcome"] for entry in entries]
    gradients = [entry.get("gradients") for entry in entries if entry["outcome"] == "explained"]
    counts = [
        len(entries),
        outcomes.count("explained"),
        gradients.count("exact"),
        outcomes.count("refused"),
        outcomes.count("not fitted"),
        outcomes.count("failed"),
    ]
    cells = [library["library"], library["version"], *map(str, counts)]
    return f"| {' | '.join(cells)} |"


def section_of(library: dict) -> str:
    """The models of a library, by what came of them."""
    by_title: dict[str, list[str]] = {title: [] for title in TITLES.values()}
    for entry in library["entries"]:
        outcome = "constant" if entry.get("constant") else entry["outcome"]
        reason = f" ({entry['reason']})" if "reason" in entry else ""
        by_title[TITLES[outcome]].append(f"{entry['model']}{reason}")
    paragraphs = [f"{title}: {'; '.join(models)}." for title, models in by_title.items() if models]
    return "\n\n".join([f"## {library['library']} {library['version']}", *paragraphs]) + "\n"


if __name__ == "__main__":
    main(sys.argv[1])
