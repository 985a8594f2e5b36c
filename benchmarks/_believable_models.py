"""Data sets and models of the study of believable counterfactuals, trained once and kept.

    python benchmarks/_believable_models.py --data FOLDER [--kinds fcn,forest]

trains every model of the study into benchmarks/.models; a model that is there already is skipped,
so that the training can be interrupted at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import torch

import contrafact as cf
from _common import Array, flatten_rows, make_parser

MODELS = Path(__file__).parent / ".models"

#: sets that come with aeon, and sets of the data folder
BUNDLED = ("GunPoint", "ItalyPowerDemand", "BasicMotions")
IN_FOLDER = (
    "Chinatown",
    "MoteStrain",
    "TwoLeadECG",
    "ECG200",
    "CBF",
    "Coffee",
    "Lightning7",
    "Epilepsy",
    "FordA_subset",
)
#: training rows used at most; more would only make 200 networks slow to train
MAX_TRAINING_ROWS = 150
EPOCHS = 60

N_EXPLAINED = 3
N_COMMITTEE = 3
N_BOOTSTRAP_JUDGES = 2


class Data(NamedTuple):
    """Training and test rows of one set."""

    name: str
    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array


def load_sets(folder: Path | None) -> Iterator[Data]:
    """Yield the bundled sets and, where a folder is given, those of the folder."""
    for name in BUNDLED:
        data = cf.load_dataset(name)
        yield limited(name, data.X_train, data.y_train, data.X_test, data.y_test)
    for name in IN_FOLDER if folder else ():
        with np.load(folder / f"{name}.npz") as arrays:
            yield limited(name, *(arrays[key] for key in Data._fields[1:]))


def limited(
    name: str,
    X_train: Array,
    y_train: Array,
    X_test: Array,
    y_test: Array,
) -> Data:
    """Return the set with at most MAX_TRAINING_ROWS training rows, as many of every class."""
    rows = stratified(y_train, MAX_TRAINING_ROWS)
    return Data(name, X_train[rows], y_train[rows], X_test, y_test)


def stratified(y: Array, n: int, seed: int = 0) -> Array:
    """Return n row numbers in random order, the classes in turn as long as they last."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    place = np.empty(len(y), dtype=int)
    for label in np.unique(y):
        own = order[y[order] == label]
        place[own] = np.arange(len(own))
    return order[np.argsort(place[order], kind="stable")][:n]


# --- models --------------------------------------------------------------------------------------


def fit_network(name: str, X: Array, y: Array, seed: int) -> Any:
    """Train one of the reference networks."""
    return cf.fit_classifier(name, X, y, max_epochs=EPOCHS, random_state=seed)


def fit_minirocket(X: Array, y: Array, seed: int) -> Any:
    """Train MiniRocket features with a ridge classifier."""
    from aeon.transformations.collection.convolution_based import MiniRocket
    from sklearn.linear_model import RidgeClassifierCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    ridge = RidgeClassifierCV(np.logspace(-3, 3, 10))
    features = MiniRocket(n_kernels=1000, random_state=seed)
    return make_pipeline(features, StandardScaler(with_mean=False), ridge).fit(X, y)


def fit_forest(X: Array, y: Array, seed: int) -> Any:
    """Train a forest of 100 trees on flattened rows."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(100, random_state=seed).fit(flatten_rows(X), y)


KINDS: dict[str, Callable[[Array, Array, int], Any]] = {
    "fcn": lambda X, y, seed: fit_network("fcn", X, y, seed),
    "forest": fit_forest,
    "minirocket": fit_minirocket,
    "inceptiontime": lambda X, y, seed: fit_network("inceptiontime", X, y, seed),
}


def bootstrap(y: Array, seed: int) -> Array:
    """Draw as many rows as there are, with replacement, within every class."""
    rng = np.random.default_rng(seed)
    drawn = [rng.choice(np.flatnonzero(y == c), (y == c).sum()) for c in np.unique(y)]
    return np.sort(np.concatenate(drawn))


def model_exists(data: Data, kind: str) -> bool:
    """Return whether all models of a kind were trained on a set."""
    plan = [("seed", number) for number in range(N_EXPLAINED)]
    plan += [("bootstrap", number) for number in range(N_COMMITTEE + N_BOOTSTRAP_JUDGES)]
    return all(model_path(data, kind, role, number).exists() for role, number in plan)


def model_path(data: Data, kind: str, role: str, number: int) -> Path:
    """Return the file of a model."""
    return MODELS / data.name / f"{kind}-{role}-{number}.joblib"


def model(data: Data, kind: str, role: str, number: int) -> Any:
    """Load a model, or train and keep it.

    Parameters
    ----------
    data : Data
        The set.
    kind : str
        One of KINDS.
    role : {"seed", "bootstrap"}
        Trained on all rows with another seed, or on a bootstrap of them.
    number : int
        Which of them.
    """
    path = model_path(data, kind, role, number)
    if path.exists():
        return joblib.load(path)
    seed = number if role == "seed" else 100 + number
    rows = bootstrap(data.y_train, seed) if role == "bootstrap" else slice(None)
    fitted = KINDS[kind](data.X_train[rows], data.y_train[rows], seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    joblib.dump(fitted, unfinished)
    unfinished.rename(path)
    return fitted


def main() -> None:
    """Train all models, those that are needed first for every set before the others."""
    parser = make_parser(__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--sets", default="", help="names, separated by commas; default: all")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    wanted = arguments.sets.split(",") if arguments.sets else [*BUNDLED, *IN_FOLDER]
    sets = [data for data in load_sets(arguments.data) if data.name in wanted]
    plan = [("seed", number) for number in range(N_EXPLAINED)]
    plan += [("bootstrap", number) for number in range(N_COMMITTEE + N_BOOTSTRAP_JUDGES)]
    for role, number in plan:
        for kind in arguments.kinds.split(","):
            for data in sets:
                fitted = model(data, kind, role, number)
                classifier = cf.as_classifier(fitted)
                test = stratified(data.y_test, 200)
                hits = classifier.predict(data.X_test[test]) == data.y_test[test]
                print(data.name, kind, role, number, round(float(hits.mean()), 3), flush=True)


if __name__ == "__main__":
    main()
