"""Write what contrafact installs at run time: build/sbom.json (CycloneDX) and build/licenses.md.

Made from the metadata of the packages that are installed, following dependencies from contrafact
with all its extras but "dev". No package is needed for it.
"""

import json
import re
import sys
from importlib import metadata
from pathlib import Path
from uuid import uuid4

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

NOT_AT_RUN_TIME = ("dev",)
#: Classifiers end in the name of the license; many packages have only these.
CLASSIFIER = "License :: OSI Approved :: "


def required(name: str, extras: set[str]) -> list[Requirement]:
    """Return what a package needs here, with these extras of its own."""
    found = []
    for text in metadata.requires(name) or []:
        requirement = Requirement(text)
        marker = requirement.marker
        environments = [{"extra": extra} for extra in ("", *extras)]
        if marker is None or any(marker.evaluate(each) for each in environments):
            found.append(requirement)
    return found


def dependencies(root: str) -> dict[str, list[str]]:
    """Return every package that the root needs, itself included, with what each needs."""
    names = metadata.metadata(root).get_all("Provides-Extra") or []
    waiting = [(root, {name for name in names if name not in NOT_AT_RUN_TIME})]
    graph: dict[str, list[str]] = {}
    while waiting:
        name, extras = waiting.pop()
        if name in graph:
            continue
        needed = [each for each in required(name, extras) if canonicalize_name(each.name) != root]
        graph[name] = sorted({canonicalize_name(each.name) for each in needed})
        waiting.extend((canonicalize_name(each.name), set(each.extras)) for each in needed)
    return dict(sorted(graph.items()))


def license_of(name: str) -> str:
    """Return the license that a package states: an expression, a classifier or the first line."""
    about = metadata.metadata(name)
    if about.get("License-Expression"):
        return str(about["License-Expression"])
    classified = [
        text.removeprefix(CLASSIFIER)
        for text in about.get_all("Classifier") or []
        if text.startswith(CLASSIFIER)
    ]
    if classified:
        return " AND ".join(classified)
    stated = str(about.get("License") or "").strip() or license_file_of(name)
    return stated.partition("\n")[0] or "not stated"


def license_file_of(name: str) -> str:
    """Return the license that comes with a package; "" where there is none."""
    for path in metadata.files(name) or []:
        if ".dist-info/" in str(path) and path.name.upper().startswith("LICENSE"):
            return path.read_text(encoding="utf-8").strip()
    return ""


def reference(name: str) -> str:
    """Return the package URL, which says what a package is and where it is from."""
    version = re.sub(r"\+.*", "", metadata.version(name))  # a local build is of the same source
    return f"pkg:pypi/{name}@{version}"


def component(name: str) -> dict[str, object]:
    """Describe a package as CycloneDX does."""
    return {
        "type": "library",
        "bom-ref": reference(name),
        "name": name,
        "version": metadata.version(name),
        "purl": reference(name),
        "licenses": [{"license": {"name": license_of(name)}}],
    }


def bill_of_materials(root: str, graph: dict[str, list[str]]) -> dict[str, object]:
    """Return the CycloneDX document."""
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid4()}",
        "version": 1,
        "metadata": {"component": component(root)},
        "components": [component(name) for name in graph if name != root],
        "dependencies": [
            {"ref": reference(name), "dependsOn": [reference(each) for each in needed]}
            for name, needed in graph.items()
        ],
    }


def license_table(graph: dict[str, list[str]]) -> str:
    """Return the list of licenses as Markdown."""
    lines = ["| package | version | license |", "|---|---|---|"]
    for name in graph:
        lines.append(f"| {name} | {metadata.version(name)} | {license_of(name)} |")
    return "# Licenses\n\n" + "\n".join(lines) + "\n"


def main(folder: str) -> None:
    """Write both files."""
    graph = dependencies("contrafact")
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    document = json.dumps(bill_of_materials("contrafact", graph), indent=2)
    (target / "sbom.json").write_text(document + "\n", encoding="utf-8")
    (target / "licenses.md").write_text(license_table(graph), encoding="utf-8")
    print(f"{len(graph)} packages: {target / 'sbom.json'}, {target / 'licenses.md'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
