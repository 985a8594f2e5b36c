"""Compare the four kinds of guide of CELS on three data sets and two kinds of model.

    make bench-guides

Everything runs on one thread; times are processor times. Writes benchmarks/results/guides.md and
guides.png.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import LocalOutlierFactor, NearestNeighbors

import contrafact as cf
from _common import (
    RESULTS,
    Array,
    accuracy,
    conditions,
    flatten_rows,
    make_parser,
    random_rows,
    runner_up,
    timed,
    write_page,
)
from _guides_page import KINDS, WIDTHS, draw_figure, means, page
from contrafact.engine import Candidates, Tasks
from contrafact.explainers import GuidedExplainer
from contrafact.explainers.support.guided import GuideKind, make_guide
from contrafact.guides import Guide
from contrafact.models import Classifier
from contrafact.nn import FCN
from contrafact.nn.networks import seeded

DATASETS = ("GunPoint", "ItalyPowerDemand", "ArrowHead")


class GuideItself(GuidedExplainer):
    """Return the guide unchanged, x' = n: the baseline of every kind of guide."""

    info_keys = {"guide_index": "number of the guide"}

    def __init__(self, guide: GuideKind = "neighbor") -> None:
        self.guide = guide

    def _make_guide(self) -> Guide:
        return make_guide(self.guide, "euclidean")

    def _explain(self, tasks: Tasks) -> Candidates:
        return tasks.candidates(tasks.project(tasks.guide), guide_index=tasks.guide_index)


def train_models(data: cf.Dataset, seed: int) -> dict[str, Classifier]:
    """Train a network and a forest."""
    with seeded(seed):
        module = FCN(data.X_train.shape[1], len(np.unique(data.y_train)), WIDTHS)
    fcn = cf.fit_classifier(
        module, data.X_train, data.y_train, learning_rate=1e-2, random_state=seed
    )
    forest = RandomForestClassifier(random_state=seed)
    forest.fit(flatten_rows(data.X_train), data.y_train)
    return {"FCN": fcn, "forest": cf.as_classifier(forest)}


class PlausibilityScorer:
    """Score how plausible a series is for class c, by the test series that the model puts in c.

    No guide has seen these series, and no series that is explained toward c is among them.
    """

    N_NEIGHBORS = 5

    def __init__(self, model: Classifier, X: Array) -> None:
        predicted = model.predict(X)
        self.lof = {}
        self.neighbors = {}
        self.own_distance = {}
        for label in np.unique(predicted):
            own = flatten_rows(X[predicted == label])
            lof = LocalOutlierFactor(min(20, len(own) - 1), novelty=True)
            neighbors = NearestNeighbors(n_neighbors=self.N_NEIGHBORS).fit(own)
            self.lof[label] = lof.fit(own)
            self.neighbors[label] = neighbors
            self.own_distance[label] = neighbors.kneighbors()[0].mean()

    def scores(self, result: cf.Counterfactuals) -> pd.DataFrame:
        """Return, for every row, LOF inlier, LOF and kNN distance.

        The distance to the nearest neighbors is a multiple of that of the class's own series.
        """
        scores = np.empty((len(result), 3))
        for label in np.unique(result.target):
            rows = result.target == label
            x_cf = flatten_rows(result.X_cf[rows])
            lof = self.lof[label]
            distance = self.neighbors[label].kneighbors(x_cf)[0].mean(1)
            scores[rows, 0] = lof.predict(x_cf) == 1
            scores[rows, 1] = -lof.score_samples(x_cf)
            scores[rows, 2] = distance / self.own_distance[label]
        return pd.DataFrame(scores, columns=["inlier", "lof", "knn"])


def share_of_real_points(guide: Guide) -> float:
    """Return the share of a guide's points that are series of the reference data."""
    pairs_equal = guide.candidates_[:, None] == guide.reference_
    is_real = pairs_equal.flatten(2).all(2).any(1)
    return float(is_real.double().mean())


def explain_and_refine(
    name: str,
    explainer: cf.Explainer,
    model: Classifier,
    X: Array,
    target: Array,
) -> Iterator[tuple[str, cf.Counterfactuals, float]]:
    """Yield label, result and processor seconds, first as it is and then refined."""
    plain, seconds = timed(lambda: explainer.explain(X, target))
    yield name, plain, seconds.cpu
    refined, refining = timed(lambda: cf.refine(plain, model))
    yield f"{name.split()[0]}, refined", refined, seconds.cpu + refining.cpu


def study(name: str, seed: int, n: int) -> pd.DataFrame:
    """Return one line per model, kind of guide, method and series."""
    data = cf.load_dataset(name)
    X = random_rows(data.X_test, n)
    metrics = ["valid", "sparsity", "segments", "rmse"]
    frames = []
    for model_name, model in train_models(data, seed).items():
        scorer = PlausibilityScorer(model, data.X_test)
        target = runner_up(model.predict_proba(X), model.classes)
        test_accuracy = accuracy(model, data.X_test, data.y_test)
        for kind in KINDS:
            guide, fitting = timed(
                lambda kind=kind, model=model: make_guide(kind, "euclidean").fit(
                    model, data.X_train
                )
            )
            real = share_of_real_points(guide)
            explainers = {"guide itself": GuideItself(kind), "CELS": cf.CELS(guide=kind)}
            for method, explainer in explainers.items():
                explainer.fit(model, data.X_train, data.y_train)
                for label, result, seconds in explain_and_refine(
                    method, explainer, model, X, target
                ):
                    scores = result.evaluate(metrics)[metrics]
                    frame = pd.concat([scores, scorer.scores(result)], axis=1)
                    frame.insert(0, "row", np.arange(len(frame)))
                    frames.append(
                        frame.assign(
                            data=name,
                            model=model_name,
                            seed=seed,
                            guide=kind,
                            method=label,
                            seconds=seconds / len(X),
                            fit=fitting.cpu,
                            real=real,
                            accuracy=test_accuracy,
                        )
                    )
            print(name, seed, model_name, kind, flush=True)
    return pd.concat(frames, ignore_index=True)


def main() -> None:
    """Run the study; page and figure are written after each data set."""
    parser = make_parser(__doc__)
    parser.add_argument("--rows", type=int, default=100, help="test series of each data set")
    parser.add_argument("--seeds", type=int, default=2, help="number of seeds of the models")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    head = conditions(f"python benchmarks/guides.py --rows {args.rows} --seeds {args.seeds}")
    study("ItalyPowerDemand", 0, 2)  # the first run pays for compiling
    frame = pd.DataFrame()
    for seed in range(args.seeds):
        for name in DATASETS:
            frame = pd.concat([frame, study(name, seed, args.rows)], ignore_index=True)
            write_page("guides.md", head, "", *page(frame, args.rows))
            draw_figure(means(frame), RESULTS / "guides.png")


if __name__ == "__main__":
    main()
