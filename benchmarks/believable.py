"""Study believable and lasting counterfactuals on UCR sets, with judges that no method saw.

    make bench-believable DATA=FOLDER

Every cell is a data set, a kind of model and a seed. Each method explains the same 20 test series
(the classes in turn) toward the runner-up class. The answers are shown to judges that no method
saw: models of the same kind trained with other seeds, or on bootstraps, and models of the other
kinds. A cell that was finished is not run again. Writes benchmarks/results/believable.parquet, one
row per answer, and the page believable.md with its figures.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import contrafact as cf
from _believable_models import (
    KINDS,
    N_BOOTSTRAP_JUDGES,
    N_COMMITTEE,
    N_EXPLAINED,
    Data,
    load_sets,
    model,
    model_exists,
    stratified,
)
from _believable_page import write_results
from _common import Array, make_parser, runner_up, timed
from contrafact.engine.survival import survival_probability
from contrafact.models import Classifier, Committee
from contrafact.numerics.differences import RealDifferences

CELLS = Path(__file__).parent / ".models" / "cells"
N_ROWS = 20
NOISE_DRAWS = 10

#: name, explainer, options
METHODS: dict[str, tuple[cf.Explainer, dict[str, Any]]] = {
    "Graft, smallest": (cf.Graft(level="smallest"), {}),
    "Graft": (cf.Graft(), {}),
    "Graft, lasting": (cf.Graft(level="lasting"), {"committee": "members"}),
    "Graft, judges known": (cf.Graft(level="smallest"), {"committee": "judges"}),
    "CELS": (cf.CELS(), {}),
    "NativeGuide": (cf.NativeGuide(), {}),
    "TSEvo": (cf.TSEvo(), {}),
    "NearestUnlike": (cf.NearestUnlike(), {}),
    "LineSearch": (cf.LineSearch(), {}),
}
#: refinements of answers: name, whose, how
REFINED = (
    ("CELS, minimal", "CELS", "minimal"),
    ("CELS, believable", "CELS", "believable"),
    ("NativeGuide, minimal", "NativeGuide", "minimal"),
    ("TSEvo, minimal", "TSEvo", "minimal"),
)
#: run on the first seed only, and on sets up to this length
COSTLY = "TSEvo"
COSTLY_LENGTH = 100
#: run on the first seed only
ONCE = ("NearestUnlike", "LineSearch", "CELS, believable")


class Judges:
    """The models of a set that judge the answers about one of them.

    Parameters
    ----------
    data : Data
        The set.
    kind : str
        Kind of the model that is explained.
    seed : int
        Its seed.
    """

    def __init__(self, data: Data, kind: str, seed: int) -> None:
        others = [other for other in KINDS if other != kind and model_exists(data, other)]
        seeds = [number for number in range(N_EXPLAINED) if number != seed]
        first_judge = N_COMMITTEE
        self.retrained = [wrap(data, kind, "seed", number) for number in seeds]
        self.bootstrap = [
            wrap(data, kind, "bootstrap", first_judge + number)
            for number in range(N_BOOTSTRAP_JUDGES)
        ]
        self.other_kinds = [wrap(data, other, "seed", seed) for other in others]

    def all(self) -> list[Classifier]:
        """Return all judges."""
        return self.retrained + self.bootstrap + self.other_kinds


def wrap(data: Data, kind: str, role: str, number: int) -> Classifier:
    """Return a model of the study as a classifier."""
    return cf.as_classifier(model(data, kind, role, number))


def committee(data: Data, kind: str) -> Committee:
    """Return what `cf.committee` makes: two models of the same kind and one of another."""
    other = "minirocket" if kind == "forest" else "forest"
    members = [wrap(data, kind, "bootstrap", number) for number in range(2)]
    return Committee([*members, wrap(data, other, "bootstrap", 0)])


def run_cell(data: Data, kind: str, seed: int) -> pd.DataFrame:
    """Explain the test rows of a cell with every method; one row per answer."""
    explained = wrap(data, kind, "seed", seed)
    judges = Judges(data, kind, seed)
    members = committee(data, kind)
    X = data.X_test[stratified(data.y_test, N_ROWS)].astype(np.float32)
    target = runner_up(explained.predict_proba(X), explained.classes)
    limits = RealDifferences.of(torch.from_numpy(data.X_train))
    given = {"members": members, "judges": judges.all()}
    results = {}
    cpu = {}
    for name, (explainer, options) in METHODS.items():
        if seed and (name in ONCE or name == COSTLY):
            continue
        if name == COSTLY and X.shape[-1] > COSTLY_LENGTH:
            continue
        request = {key: given[value] for key, value in options.items()}
        fitted = explainer.fit(explained, data.X_train, data.y_train)
        results[name], seconds = timed(lambda f=fitted, r=request: f.explain(X, target, **r))
        cpu[name] = seconds.cpu
        print(f"  {name}: {seconds.cpu:.1f} s", flush=True)
    for name, whose, how in REFINED:
        if whose not in results or (seed and name in ONCE):
            continue
        reference = {"reference": data.X_train} if how == "believable" else {}
        refined, seconds = timed(
            lambda b=results[whose], h=how, r=reference: cf.refine(b, explained, how=h, **r)
        )
        results[name] = refined
        cpu[name] = cpu[whose] + seconds.cpu
    frames = []
    for name, result in results.items():
        frame = measure(result, data, explained, judges, members, limits)
        frame["cpu"] = cpu[name] / len(X)
        frame.insert(0, "method", name)
        frames.append(frame)
    cell = pd.concat(frames, ignore_index=True)
    cell.insert(0, "seed", seed)
    cell.insert(0, "kind", kind)
    cell.insert(0, "set", data.name)
    return cell


def measure(
    result: cf.Counterfactuals,
    data: Data,
    explained: Classifier,
    judges: Judges,
    members: Committee,
    limits: RealDifferences,
) -> pd.DataFrame:
    """Measure every answer of a result."""
    X_cf = np.asarray(result.X_cf)
    X = np.asarray(result.X)
    x_cf = torch.from_numpy(X_cf)
    x = torch.from_numpy(X)
    changed = np.asarray(result.changed).reshape(X.shape)
    runs = np.diff(np.pad(changed.any(1).astype(int), ((0, 0), (1, 0))), axis=1).clip(0).sum(1)
    column = np.searchsorted(result.classes, result.target)
    votes = members.matched_to(explained, X_cf).votes(X_cf, torch.from_numpy(column)).sum(0)
    return pd.DataFrame(
        {
            "row": result.source,
            "already": result.status == "already_target",
            "valid": result.valid,
            "changed": changed.reshape(len(X), -1).mean(1),
            "stretches": runs,
            "seam": limits.seam(x_cf, x).numpy() > 1,
            "kink": limits.kink(x_cf, x).numpy() > 1,
            "noise_1": noise_survival(explained, result, data, 0.01),
            "noise_5": noise_survival(explained, result, data, 0.05),
            "retrained": agreement(judges.retrained, result),
            "bootstrap": agreement(judges.bootstrap, result),
            "other_kinds": agreement(judges.other_kinds, result),
            "p_target": result.cf_proba[np.arange(len(X)), column],
            "votes": votes.numpy(),
            "stated": survival_probability(votes.numpy(), len(members)),
            "calls": result.calls,
        }
    )


def agreement(models: list[Classifier], result: cf.Counterfactuals) -> Array:
    """Return the share of models that put each answer in its target class."""
    return np.mean([judge.predict(result.X_cf) == result.target for judge in models], axis=0)


def noise_survival(
    explained: Classifier,
    result: cf.Counterfactuals,
    data: Data,
    sigma: float,
) -> Array:
    """Return the share of noisy copies of each answer that stay in its class."""
    rng = np.random.default_rng(1)
    scale = sigma * data.X_train.std(axis=(0, 2), keepdims=True)
    shape = (NOISE_DRAWS, *result.X_cf.shape)
    noisy = result.X_cf + scale * rng.standard_normal(shape)
    labels = [explained.predict(copy.astype(np.float32)) for copy in noisy]
    return np.mean(labels == result.target, axis=0)


def main() -> None:
    """Run the cells that are missing, then write the results."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sets", default="", help="names, separated by commas; default: all")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--page", action="store_true", help="only write the page")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", category=FutureWarning)
    wanted = arguments.sets.split(",") if arguments.sets else None
    sets = [] if arguments.page else list(load_sets(arguments.data))
    for seed in map(int, arguments.seeds.split(",")):
        for data in sets:
            if wanted and data.name not in wanted:
                continue
            for kind in arguments.kinds.split(","):
                path = CELLS / f"{data.name}-{kind}-{seed}.parquet"
                if path.exists() or not model_exists(data, kind):
                    continue
                cell = run_cell(data, kind, seed)
                CELLS.mkdir(parents=True, exist_ok=True)
                cell.to_parquet(path)
                print(
                    path.stem,
                    cell.groupby("method")["changed"].mean().round(3).to_dict(),
                    flush=True,
                )
    answers = pd.concat([pd.read_parquet(path) for path in sorted(CELLS.glob("*.parquet"))])
    write_results(answers.reset_index(drop=True))


if __name__ == "__main__":
    main()
