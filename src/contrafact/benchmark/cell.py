"""Tasks of a cell: train a classifier, or explain with one method and score the result."""

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
    """Train a classifier.

    Parameters
    ----------
    data : Dataset
        The data set; the training part is learned, accuracy is that on the test part.
    classifier : object
        As `train_classifier` takes it.
    seed : int
        Seed of the training.
    """

    data: Dataset
    classifier: Any
    seed: int

    def run(self) -> bytes:
        """Return the pickled model, with its test accuracy and the seconds it took."""
        start = time.perf_counter()
        model = train_classifier(self.classifier, self.data, self.seed)
        predicted = as_model(model, self.data).predict(self.data.X_test)
        trained = {
            "model": model,
            "accuracy": float(np.mean(predicted == self.data.y_test)),
            "seconds": time.perf_counter() - start,
        }
        return pickle.dumps(trained)


@dataclass(frozen=True)
class Explain:
    """Explain some test rows with one method, and score the result.

    Parameters
    ----------
    data : Dataset
        The data set; methods are fitted to its training part.
    trained : bytes
        What `Train.run` returned.
    explainer : object
        As `make_explainer` takes it; a table may have `options` for `explain`.
    seed : int
        Seed of the choice of instances and of the search.
    instances : int or None
        How many test rows; None for all.
    selection : {"stratified", "random", "all"}
        Which test rows.
    metrics : sequence of str or None
        As `evaluate` takes them.
    retrained : tuple of bytes, default=()
        What `Train.run` returned for other seeds: models that judge whether answers survive.
    """

    data: Dataset
    trained: bytes
    explainer: Any
    seed: int
    instances: int | None
    selection: Any
    metrics: Any
    retrained: tuple[bytes, ...] = ()

    def run(self) -> tuple[pd.DataFrame, dict[str, Array]]:
        """Return one row per counterfactual, and the arrays X and X_cf."""
        trained = pickle.loads(self.trained)
        classifier = as_model(trained["model"], self.data)
        rows, target = select_instances(
            classifier,
            self.data.X_test,
            self.instances,
            self.selection,
            self.seed,
        )
        X = self.data.X_test[rows]
        explainer, options = self._explainer()

        calls_before_fit = classifier.rows_evaluated
        fit_start = time.perf_counter()
        explainer.fit(classifier, self.data.X_train, self.data.y_train)
        calls_before = classifier.rows_evaluated
        start = time.perf_counter()
        result = explainer.explain(X, target, random_state=self.seed, **options)
        seconds = time.perf_counter() - start
        calls = classifier.rows_evaluated - calls_before

        result, is_lost = confirm(result, classifier, X, target)
        table = result.to_frame().assign(
            instance=rows[result.source],
            accuracy=trained["accuracy"],
            fit_seconds=start - fit_start,
            fit_calls=calls_before - calls_before_fit,
            seconds=seconds / len(X),
            calls=calls / len(X),
            cell_status="done",
        )
        table = self._with_scores(table, result, is_lost, classifier, explainer)
        arrays = {
            "X": np.asarray(result.X),
            "X_cf": np.asarray(result.X_cf),
        }
        return table, arrays

    def _explainer(self) -> tuple[Any, dict[str, Any]]:
        """Return the unfitted explainer, and the options for its `explain`."""
        settings = {"method": self.explainer}
        if isinstance(self.explainer, dict):
            settings = dict(self.explainer)
        options = settings.pop("options", {})
        return make_explainer(settings), options

    def _with_scores(
        self,
        table: pd.DataFrame,
        result: Counterfactuals,
        is_lost: Array,
        classifier: Classifier,
        explainer: Any,
    ) -> pd.DataFrame:
        """Append a column for every metric that the table does not have yet."""
        scores = evaluate(
            result,
            self.metrics,
            reference=(self.data.X_train, self.data.y_train),
            model=classifier,
            explainer=explainer,
            other_models=[
                as_model(pickle.loads(each)["model"], self.data) for each in self.retrained
            ],
        )
        scores = scores.drop(columns=["source", "status"])
        # A counterfactual that was not returned, or is not finite, has no score: certainly not
        # that of the instance that stands in for it.
        scores.loc[is_lost] = np.nan
        new = [name for name in scores if name not in table]
        return table.join(scores[new])


def confirm(
    result: Any,
    classifier: Classifier,
    X: Array,
    target: Array,
) -> tuple[Counterfactuals, Array]:
    """Ask the model again about every array that an explainer returned.

    What an explainer claims does not count: validity is the model's answer. Every instance asked
    for gets a row; the instance itself stands in for what was not returned or is not finite.

    Parameters
    ----------
    result : Counterfactuals
        What the explainer returned.
    classifier : Classifier
        The model.
    X : ndarray of shape (n, *instance)
        The instances that were to be explained.
    target : ndarray of shape (n,)
        Their target classes.

    Returns
    -------
    confirmed : Counterfactuals
        At least one row for every instance, in their order.
    is_lost : ndarray of bool, one per row
        Rows where the instance stands in.

    Raises
    ------
    TypeError, ValueError
        Where the result is no Counterfactuals, or its arrays do not belong to the instances.
    """
    if not isinstance(result, Counterfactuals):
        raise TypeError(f"explain must give Counterfactuals, got {type(result).__name__}.")
    source = np.asarray(result.source)
    X_cf = np.array(result.X_cf, dtype=np.float64)
    _check_belongs(X_cf, source, X)

    flat = X_cf.reshape(len(X_cf), -1)
    is_broken = np.logical_not(np.isfinite(flat).all(axis=1))
    source_of_broken = source[is_broken]
    X_cf[is_broken] = X[source_of_broken]
    missing = np.setdiff1d(np.arange(len(X)), source)
    is_missing = np.ones(len(missing), bool)
    is_lost = np.concatenate([is_broken, is_missing])
    rows = np.concatenate([source, missing]).astype(int)
    judged = Counterfactuals.from_arrays(
        classifier,
        X[rows],
        np.concatenate([X_cf, X[missing]]),
        target[rows],
        method="confirmed",
    )

    claim = _with_missing(result.status, "error", len(missing))
    message = _with_missing(result.message, "not returned", len(missing))
    message[np.flatnonzero(is_broken)] = "the counterfactual is NaN or inf"
    is_false_claim = np.isin(claim, ("valid", "already_target")) & ~judged.valid
    message[is_false_claim & ~is_lost] = "claimed valid; the model says otherwise"
    status = np.where(is_false_claim, "invalid", claim)
    status = np.where(judged.valid, judged.status, status)
    is_unanswered = judged.status == "error"
    message[is_unanswered] = judged.message[is_unanswered]
    is_lost = is_lost | is_unanswered
    status = np.where(is_lost, "error", status)

    confirmed = replace(
        judged,
        source=rows,
        valid=judged.valid & ~is_lost,
        status=status.astype(str),
        message=message.astype(str),
        info={} if len(missing) else dict(result.info),
        provenance=result.provenance,
    )
    order = np.argsort(rows, kind="stable")
    return confirmed[order], is_lost[order]


def failed_table(
    data: Dataset,
    reason: str,
    status: str,
    instances: int | None,
) -> pd.DataFrame:
    """Make the table of a cell that failed as a whole.

    Parameters
    ----------
    data : Dataset
        The data set of the cell.
    reason : str
        Why it failed.
    status : {"error", "timeout"}
        How it failed.
    instances : int or None
        How many test rows were asked for; None for all.

    Returns
    -------
    DataFrame
        As many rows as were asked for, none of them valid.
    """
    import pandas as pd

    n = len(data.X_test)
    if instances is not None:
        n = min(instances, n)
    return pd.DataFrame(
        {
            "source": np.arange(n),
            "valid": False,
            "status": "error",
            "message": reason,
            "cell_status": status,
        }
    )


def _check_belongs(
    X_cf: Array,
    source: Array,
    X: Array,
) -> None:
    """Raise where arrays that came back do not belong to the instances."""
    has_shape = X_cf.shape == (len(source), *X.shape[1:])
    is_known = np.isin(source, range(len(X)))
    if not has_shape or not is_known.all():
        raise ValueError(
            f"explain gave arrays of shape {X_cf.shape} for instances {X.shape}, "
            f"rows {source.tolist()}."
        )


def _with_missing(
    texts: Any,
    text: str,
    count: int,
) -> Array:
    """Append a text for every row that did not come back."""
    missing = np.full(count, text, object)
    return np.concatenate([np.asarray(texts, object), missing])
