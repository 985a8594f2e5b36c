"""What is done in a cell: train a classifier, or explain with one method and score what comes out."""

from __future__ import annotations

import pickle
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data import Dataset
from ..engine.result import Counterfactuals
from ..metrics import evaluate
from ..models import Classifier
from ..models.classifier import Array
from .parts import as_model, make_explainer, select_instances, train_classifier

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Train:
    """Train a classifier; gives the pickled model."""

    data: Dataset
    classifier: Any
    seed: int

    def do(self) -> bytes:
        start = time.perf_counter()
        model = train_classifier(self.classifier, self.data, self.seed)
        accuracy = float(
            np.mean(as_model(model, self.data).predict(self.data.X_test) == self.data.y_test)
        )
        return pickle.dumps(
            {"model": model, "accuracy": accuracy, "seconds": time.perf_counter() - start}
        )


@dataclass(frozen=True)
class Explain:
    """Explain some test rows with one method; gives a table and the arrays."""

    data: Dataset
    trained: bytes
    explainer: Any
    seed: int
    instances: int | None
    selection: Any
    metrics: Any

    def do(self) -> tuple[pd.DataFrame, dict[str, Array]]:
        trained = pickle.loads(self.trained)
        classifier = as_model(trained["model"], self.data)
        rows, target = select_instances(
            classifier, self.data.X_test, self.instances, self.selection, self.seed
        )
        X = self.data.X_test[rows]
        told = (
            dict(self.explainer) if isinstance(self.explainer, dict) else {"method": self.explainer}
        )
        options = told.pop("options", {})
        explainer = make_explainer(told)
        before = classifier.rows_evaluated
        start = time.perf_counter()
        explainer.fit(classifier, self.data.X_train, self.data.y_train)
        fitted, asked = time.perf_counter(), classifier.rows_evaluated
        result = explainer.explain(X, target, random_state=self.seed, **options)
        seconds, calls = time.perf_counter() - fitted, classifier.rows_evaluated - asked
        result, lost = confirmed(result, classifier, X, target)
        reference = self.data.X_train, self.data.y_train
        scores = evaluate(result, self.metrics, reference, model=classifier, explainer=explainer)
        scores = scores.drop(columns=["source", "status"])
        # What was not returned, or is no number, has no score: not that of the instance that stands in.
        scores.loc[lost] = np.nan
        table = result.to_frame().assign(
            instance=rows[result.source],
            accuracy=trained["accuracy"],
            fit_seconds=fitted - start,
            fit_calls=asked - before,
            seconds=seconds / len(X),
            calls=calls / len(X),
            cell_status="done",
        )
        scores["valid"] = table["valid"].astype(float)
        fresh = [name for name in scores if name not in table]
        return table.join(scores[fresh]), {
            "X": np.asarray(result.X),
            "X_cf": np.asarray(result.X_cf),
        }


def confirmed(
    result: Any, classifier: Classifier, X: Array, target: Array
) -> tuple[Counterfactuals, Array]:
    """The result with the model's own word for what is valid, and a row for every instance asked for.

    An explainer's claim counts for nothing here: the model is asked again about each array that came back.
    Returns the result, and which of its rows stand in for what did not come back or is not finite.
    """
    if not isinstance(result, Counterfactuals):
        raise TypeError(f"explain must give Counterfactuals, got {type(result).__name__}.")
    source, found = np.asarray(result.source), np.array(result.X_cf, dtype=np.float64)
    if (
        found.shape[1:] != X.shape[1:]
        or len(found) != len(source)
        or not np.isin(source, range(len(X))).all()
    ):
        raise ValueError(
            f"explain gave arrays of shape {found.shape} for instances {X.shape}, rows {source.tolist()}."
        )
    missing = np.setdiff1d(np.arange(len(X)), source)
    broken: Array = np.asarray(~np.isfinite(found.reshape(len(found), -1)).all(1))
    found[broken] = X[source[broken]]
    rows = np.concatenate([source, missing]).astype(int)
    lost = np.concatenate([broken, np.ones(len(missing), bool)])
    judged = Counterfactuals.judge(
        classifier, X[rows], np.concatenate([found, X[missing]]), target[rows], method="confirmed"
    )
    claimed = np.concatenate(
        [np.asarray(result.status, object), np.full(len(missing), "error", object)]
    )
    said = np.concatenate(
        [np.asarray(result.message, object), np.full(len(missing), "not returned", object)]
    )
    said[: len(broken)][broken] = "the counterfactual is NaN or inf"
    lied = np.isin(claimed, ("valid", "already_target")) & ~judged.valid
    said[lied & ~lost] = "claimed valid; the model says otherwise"
    status = np.where(judged.valid, judged.status, np.where(lied, "invalid", claimed))
    status = np.where(lost, "error", status)
    valid = judged.valid & ~lost
    order = np.argsort(rows, kind="stable")
    judged = replace(
        judged,
        source=rows,
        valid=valid,
        status=status.astype(str),
        message=said.astype(str),
        info={name: values for name, values in result.info.items() if not len(missing)},
        provenance=result.provenance,
    )
    return judged[order], lost[order]


def failed_table(data: Dataset, reason: str, status: str, instances: int | None) -> pd.DataFrame:
    """A cell that broke down as a whole: as many rows as were asked for, none of them valid."""
    import pandas as pd

    n = len(data.X_test) if instances is None else min(instances, len(data.X_test))
    return pd.DataFrame(
        {"source": np.arange(n), "valid": False, "status": "error", "message": reason}
    ).assign(cell_status=status)
