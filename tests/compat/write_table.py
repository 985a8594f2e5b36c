"""Write docs/compatibility.md from what `make compat` found: python write_table.py FOLDER."""

import json
import sys
from pathlib import Path
from textwrap import fill

DOCUMENT = Path(__file__).parents[2] / "docs" / "compatibility.md"
HEAD = """# Models of other libraries

`make compat` installs each library in an environment of its own, trains its classifiers on 60 rows
of Iris or on 24 made-up series, and explains four of these with `LineSearch`. A model counts as
explained if

- `valid` of every row is what the model's own `predict` says of the returned array, both for the
  whole batch and for each row alone,
- no row ends in an error, and at least one is valid, unless the model gives all training data the
  same class, and
- the random numbers, threads and settings of the process are as before.

The versions of other packages are those in `constraints.txt`, where no others are named; {pythons}.

| library | version | tried | explained | gradients | one class | refused | not trained | failed |
|---|---|---|---|---|---|---|---|---|
"""
AFTER_TABLE = """
- Gradients, of those explained: contrafact computes the model anew in torch, for gradients
  only. The others are explained by their predictions. See [models](models.md).
- One class: the model gives all training data the same class, so that no counterfactual exists; no
  row is valid.
- Refused: `fit` raises an error that says why.
- Not trained: the library could not train the model here, for the reason given below.

"""
TITLES = {
    "explained": "Explained",
    "constant": "One class",
    "refused": "Refused",
    "not fitted": "Not trained",
    "failed": "Failed",
}


def main(folder: str) -> None:
    found = [json.loads(path.read_text()) for path in sorted(Path(folder).glob("*.json"))]
    pythons = sorted({f"Python {library['python']}" for library in found})
    head = HEAD.format(pythons=", ".join(pythons))
    lines = [line_of(library) for library in found]
    details = [section_of(library) for library in found]
    DOCUMENT.write_text(head + "\n".join(lines) + "\n" + AFTER_TABLE + "\n".join(details))


def outcome_of(entry: dict) -> str:
    """Tell what came of a model, as a key of TITLES."""
    if entry["outcome"] == "explained" and entry["constant"]:
        return "constant"
    return entry["outcome"]


def line_of(library: dict) -> str:
    """One line of the table."""
    entries = library["entries"]
    outcomes = [outcome_of(entry) for entry in entries]
    explained = [entry for entry in entries if outcome_of(entry) == "explained"]
    counts = [
        len(entries),
        len(explained),
        sum(entry["gradients"] == "exact" for entry in explained),
        *(outcomes.count(outcome) for outcome in ("constant", "refused", "not fitted", "failed")),
    ]
    cells = [library["library"], library["version"], *map(str, counts)]
    return f"| {' | '.join(cells)} |"


def section_of(library: dict) -> str:
    """The models of a library, by what came of them."""
    by_outcome: dict[str, list[str]] = {outcome: [] for outcome in TITLES}
    for entry in library["entries"]:
        reason = f" ({entry['reason']})" if "reason" in entry else ""
        by_outcome[outcome_of(entry)].append(f"{entry['model']}{reason}")
    paragraphs = [
        f"{TITLES[outcome]}: {'; '.join(models)}."
        for outcome, models in by_outcome.items()
        if models
    ]
    if library["beside"]:
        beside = [f"{package} {version}" for package, version in library["beside"].items()]
        paragraphs.insert(0, f"With {', '.join(beside)}.")
    title = f"## {library['library']} {library['version']}"
    return "\n\n".join([title, *(fill(text, 120) for text in paragraphs)]) + "\n"


if __name__ == "__main__":
    main(sys.argv[1])
