"""The page of prototype_suite.py: what its records say."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import numpy as np

from _common import RESULTS, Array, SectionedPage
from _prototypes_common import PAGE_TITLES

Record = dict[str, Any]
PACKAGES = ("contrafact", "torch", "numba", "scikit-learn", "numpy")
COMMAND = "python benchmarks/prototype_suite.py --data folder"
TITLE, UNSEEN_TITLE = PAGE_TITLES[1:3]


class Records:
    """The answers, found by what was asked."""

    def __init__(self, records: list[Record]) -> None:
        self.records = records

    def find(self, **asked: Any) -> dict[str, list[Record]]:
        """Return the matching records of each data set."""
        found: dict[str, list[Record]] = {}
        for record in self.records:
            if all(record[name] == value for name, value in asked.items()):
                found.setdefault(record["data"], []).append(record)
        return {name: sorted(each, key=lambda r: r["seed"]) for name, each in found.items()}

    def scores(self, **asked: Any) -> dict[str, Array]:
        """Return the accuracies (seeds · folds,) of each data set."""
        return {
            name: np.concatenate([record["accuracy"] for record in each])
            for name, each in self.find(**asked).items()
        }

    def seconds(self, **asked: Any) -> dict[str, float]:
        """Return the median processor seconds of a fit, of each data set."""
        return {
            name: float(np.median(np.concatenate([record["seconds"] for record in each])))
            for name, each in self.find(**asked).items()
        }


def error(values: Array) -> float:
    """Return the standard error of a mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def verdict(ours: Array, other: Array) -> str:
    """Say whether ours is ahead, level or behind, by one standard error of the difference."""
    difference = ours - other
    margin = error(difference)
    if difference.mean() > margin + 1e-9:
        return "ahead"
    return "level" if difference.mean() >= -margin - 1e-9 else "**behind**"


def tally(verdicts: list[str]) -> str:
    """Count the verdicts, and say what chance alone would give."""
    count = Counter(each.strip("*") for each in verdicts)
    return (
        f"Of {len(verdicts)} comparisons {count['ahead']} are ahead, {count['level']} level and "
        f"{count['behind']} behind. Where two models are equally good, chance alone puts about one "
        "in six behind by more than a standard error."
    )


Options = dict[str, float | str]


def name_option(options: Options) -> str:
    """Return an option as the page calls it."""
    names = {
        "beta": "β = {}",
        "steepness": "β = {} / rms μ",
        "softness": "T = {} · mean d⁺",
        "metric_learning_rate": "step of the metric {}",
        "objective": "{}",
    }
    return ", ".join(names[key].format(value) for key, value in options.items())


def write_page(records: list[Record], choices: dict[str, list[Options]], names: list[str]) -> None:
    """Write the section of the sets that defaults are chosen by."""
    page = SectionedPage(RESULTS / "prototypes.md", PAGE_TITLES)
    page.begin(TITLE, COMMAND, PACKAGES, "one thread for all")
    page.add(
        "iris, wine, breast cancer and digits of scikit-learn; GunPoint, ItalyPowerDemand "
        "and ArrowHead of aeon; TwoLeadECG, MoteStrain, CBF, Coffee, ECG200 and Chinatown of the "
        "archive. Training and test parts are joined, "
        "series flattened, at most 400 rows (stratified); features are standardized by the "
        "training rows. 5 stratified folds, the same for all.",
        "",
    )
    found = Records([record for record in records if record["data"] in names])
    write_choice(page, found, choices)
    write_check(page, found, choices)
    write_comparison(page, found)


def write_unseen(
    records: list[Record], choices: dict[str, list[Options]], names: list[str]
) -> None:
    """Write the section of the sets that had no part in the choice."""
    page = SectionedPage(RESULTS / "prototypes.md", PAGE_TITLES)
    page.begin(UNSEEN_TITLE, f"{COMMAND} --part unseen", PACKAGES, "one thread for all")
    page.add(
        "OSULeaf and BasicMotions of aeon; Lightning7, Epilepsy and subsets of the training "
        "series of FordA and FordB of the archive, as above. One exception: that the step of "
        "GRLVQ's relevances falls with their number, as that of a matrix does, was decided after a "
        "look at rows held out of these sets; the 13 sets are level in it.",
        "",
    )
    found = Records([record for record in records if record["data"] in names])
    write_check(page, found, choices)


def write_choice(page: SectionedPage, found: Records, choices: dict[str, list[Options]]) -> None:
    """Write the mean accuracy of every option on rows held out of the training rows."""
    page.add(
        "**Choice.** A quarter of the training rows of each fold is held out to choose by; test "
        "rows are not seen. Mean accuracy over the sets on these rows, 15 folds; in brackets "
        "the largest loss on a set against the first line, which was the default of version 0.1. "
        "rms μ: root mean square of μ = (d⁺ − d⁻)/(d⁺ + d⁻) over the training rows where the "
        "prototypes start; mean d⁺ likewise.",
        "",
    )
    page.table("model", "option", "sets", "3 per class", "1 per class")
    for model, options in choices.items():
        asked = {"model": model, "inner": True}
        for option in options:
            cells = []
            sets = 0
            for per_class in (3, 1):
                scores = found.scores(**asked, per_class=per_class, options=option)
                before = found.scores(**asked, per_class=per_class, options=options[0])
                names = [name for name in before if name in scores]
                if not names:
                    cells.append("")
                    continue
                sets = len(names)
                means = np.array([scores[name].mean() for name in names])
                loss = max(before[name].mean() - scores[name].mean() for name in names)
                worst = "" if option == options[0] else f" ({max(loss, 0):.3f})"
                cells.append(f"{means.mean():.4f}{worst}")
            if sets:
                page.row(model, name_option(option), sets, *cells)
    page.add(
        "",
        "Chosen is what gains much where no set loses much: 5 / rms μ for GLVQ and GRLVQ; 1 / rms "
        "μ for GMLVQ, which loses less on single sets than 1.5 and 2 and is level with them "
        "otherwise; a step of the metric that falls with the number of its entries (the default "
        "where no step is named); 3.5 / rms μ for MedianLVQ, between 3, which loses least, and 5, "
        "which gains most. The temperature of RSLVQ and CELVQ stays as it was: the means of the "
        "others differ from its own by .004 at most.",
        "",
    )


def write_check(page: SectionedPage, found: Records, choices: dict[str, list[Options]]) -> None:
    """Write the test accuracy of the old and the new defaults."""
    page.add(
        "**Check.** Test accuracy of the defaults of version 0.1 and of today. ± is the standard "
        "error of the mean difference over the folds (5 per seed); *ahead* and *behind* are by "
        "more than that.",
        "",
    )
    page.table("model", "per class", "data", "0.1", "today", "difference", "folds", "")
    verdicts = []
    for model, options in choices.items():
        for per_class in (3, 1):
            asked = {"model": model, "inner": False, "library": "contrafact"}
            asked["per_class"] = per_class
            before = found.scores(**asked, options=options[0])
            today = found.scores(**asked, options={})
            for name in before:
                if name not in today:
                    continue
                n = min(len(today[name]), len(before[name]))
                a, b = today[name][:n], before[name][:n]
                verdicts.append(verdict(a, b))
                page.row(
                    model,
                    per_class,
                    name,
                    f"{b.mean():.3f}",
                    f"{a.mean():.3f}",
                    f"{(a - b).mean():+.3f} ± {error(a - b):.3f}",
                    n,
                    verdicts[-1],
                )
    page.add("", tally(verdicts), "")


def write_comparison(page: SectionedPage, found: Records) -> None:
    """Write accuracy and time beside the other libraries."""
    page.add(
        "**Other libraries.** prosemble 2.4.0 and sklvq 0.1.2 with their defaults, each in its own "
        "environment, on the same folds, 3 prototypes per class. *Difference*: ours minus theirs, "
        "± its standard error, over the folds that both were fitted on (5 per seed), whose number "
        "follows; *ahead* and *behind* are by more than a standard error. *Time*: median processor "
        "time of a fit of theirs over that of ours, on this machine with other work on it, not in "
        "turns.",
        "",
    )
    libraries = ("contrafact", "prosemble", "sklvq")
    page.table("model", "data", "peer", "ours", "theirs", "difference", "folds", "", "time")
    verdicts = []
    for model, peer in product(("GLVQ", "GRLVQ", "GMLVQ", "RSLVQ", "CELVQ"), libraries[1:]):
        asked = {"model": model, "inner": False, "per_class": 3, "options": {}}
        ours = found.scores(**asked, library="contrafact")
        theirs = found.scores(**asked, library=peer)
        seconds = {each: found.seconds(**asked, library=each) for each in libraries}
        for name in [each for each in ours if each in theirs]:
            n = min(len(ours[name]), len(theirs[name]))
            a, b = ours[name][:n], theirs[name][:n]
            verdicts.append(verdict(a, b))
            page.row(
                model,
                name,
                peer,
                f"{a.mean():.3f}",
                f"{b.mean():.3f}",
                f"{(a - b).mean():+.3f} ± {error(a - b):.3f}",
                n,
                verdicts[-1],
                f"{seconds[peer][name] / seconds['contrafact'][name]:.1f}",
            )
    page.add("", tally(verdicts))
