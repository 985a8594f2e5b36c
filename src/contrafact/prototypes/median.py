"""Median LVQ: prototypes that are data points, for any dissimilarity."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from typing_extensions import Self, override

from ..data.arrays import as_real
from ..nn.loop import History
from ..validation import Function, Integer, Nothing, OneOf, Real, Rule
from .dissimilarity import (
    ELASTIC_OPTIONS,
    as_series,
    check_metric_options,
    elastic_distances,
    nearest_by_dtw,
)
from .estimator import Array, Counts, PrototypeClassifier, generator
from .median_inputs import given_samples, read_dissimilarity, search_columns, search_cost
from .median_twin import median_twin
from .option_rules import BAND, CALLBACKS, CLASS_WEIGHT, COUNTS, EPOCHS, NAMED, SEED
from .temperature import likely_temperature
from .training_rows import TrainingRows

if TYPE_CHECKING:
    from .swap import SwapSearch
    from .swap_columns import Columns
    from .swap_costs import Cost


class MedianLVQ(PrototypeClassifier):
    """Learn which data points are the prototypes, by exact swap search.

        min over prototype sets   Σ_i w_i f(μ_i),     μ_i = (d⁺_i − d⁻_i) / (d⁺_i + d⁻_i)

    with d⁺ and d⁻ a sample's dissimilarities to the nearest prototype of its own class and of the
    others. Each prototype in turn goes where the cost, with all others in place, is least among
    the samples of its class, until no single swap lowers it. Only dissimilarities are needed, and
    they may be asymmetric. After Nebel et al., with swaps in place of their expectation
    maximization.

    Parameters
    ----------
    n_prototypes : int or dict from label to int, default=1
        Prototypes per class. They are at different places, so a class with fewer different points
        has fewer.
    metric : str or function, default="euclidean"
        "euclidean": the Euclidean distance (not squared); of series "dtw", dynamic time warping,
        "soft_dtw", its divergence with γ = 1 (see `SoftDTW`), or aeon's "ddtw", "wdtw", "wddtw",
        "adtw", "erp", "edr", "lcss", "msm" or "twe"; "precomputed": X as a matrix D
        with D[i, j] the dissimilarity from sample i to training sample j; or a function of two
        instances, called for all pairs.
    objective : {"sigmoid", "glvq", "rslvq"}, default="sigmoid"
        "sigmoid": f(μ) = βμ/√(1 + β²μ²), close to counting errors; "glvq": f(μ) = −log(4 − μ);
        "rslvq": the cost is
        −Σ_i w_i log(Σ_{k of own class} e^{−d_ik/T} / Σ_k e^{−d_ik/T}).
    init : {"greedy", "kmeans++", "random"}, default="greedy"
        Where prototypes start; "greedy": each where it lowers the dissimilarities within its class
        most.
    temperature : float, optional
        T of "rslvq" and of `predict_proba`, in units of the dissimilarity; default: 0.3 times the
        mean d⁺ at the start for "rslvq", else the one under which the training labels are most
        probable.
    window : float, optional
        Sakoe-Chiba band of the metrics of series, as a fraction of the length; default: no band.
    max_sweeps : int, default=100
        Largest number of rounds over the prototypes.
    random_state : int or RandomState, optional
        Seed of "kmeans++" and "random"; default: draw one.
    margin : float, optional
        Samples count only until μ < −margin: f(max(μ + margin, 0)), from 0 to 2, for "sigmoid" and
        "glvq"; default: they always count.
    class_weight : "balanced" or dict from label to float, optional
        Weight of the rows of a class; default: all equal.
    tol : float, default=0.0
        A swap has to lower the cost by more than this.
    n_init : int, default=1
        Starts, of which the one of the lowest cost is kept. Those after the first of "greedy",
        which has one way to start, are drawn as "kmeans++" does.
    callbacks : tuple of functions, default=()
        Called with {"train_loss": costs so far} after each round; a true answer ends the search
        from that start.
    metric_params : dict, optional
        Parameters of a metric of series by name, those of aeon: `gamma` of "soft_dtw", `g` of
        "wdtw", "wddtw" and "erp", `warp_penalty` of "adtw", `epsilon` of "edr" and "lcss",
        `c` and `independent` of "msm", `nu` and `lmbda` of "twe"; default: those of aeon.
    beta : float, optional
        β of "sigmoid"; default: 3.5 over the root mean square of μ at the start.

    Attributes
    ----------
    prototype_indices_ : int array of shape (K,)
        The rows of X that are the prototypes.
    prototypes_ : array of shape (K, *shape) or None
        The prototypes themselves; None for "precomputed".
    cost_, loss_ : float
        The cost reached.
    loss_history_ : list of float
        The cost at the start and after each swap.
    n_iter_ : int
        Rounds.
    beta_ : float
        β, for "sigmoid".

    Notes
    -----
    There is no learning rate, schedule or patience: every swap lowers the cost as far as one swap
    can, and the search ends where none does, so there is nothing to tune or to wait for.

    `predict` with "dtw" skips prototypes that lower bounds rule out (LB_Kim, LB_Keogh) and leaves
    off where the best is exceeded; its answers are those of `distances`. The gradients that
    explainers get with "dtw" are along the cheapest path.

    References
    ----------
    Nebel, Hammer, Frohberg, Villmann: Median variants of learning vector quantization for learning
    of dissimilarity data. Neurocomputing 169, 2015. doi:10.1016/j.neucom.2014.12.096

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MedianLVQ(n_prototypes=2).fit(X, y)
    >>> bool((X[model.prototype_indices_] == model.prototypes_).all())
    True
    >>> round(model.score(X, y), 2)
    0.97
    """

    #: default β, times the root mean square of μ at the start
    steepness: ClassVar[float] = 3.5
    squared = False
    rules: ClassVar[Mapping[str, Rule]] = {
        "n_prototypes": COUNTS,
        "metric": OneOf("euclidean", "precomputed", *ELASTIC_OPTIONS)
        | Function("one row", "another"),
        "objective": OneOf("sigmoid", "glvq", "rslvq"),
        "init": OneOf("greedy", "kmeans++", "random"),
        "temperature": Real(above=0) | Nothing(),
        "window": BAND,
        "margin": Real(at_least=0, at_most=2) | Nothing(),
        "class_weight": CLASS_WEIGHT,
        "tol": Real(at_least=0),
        "n_init": Integer(at_least=1, at_most=10**6),
        "max_sweeps": EPOCHS,
        "callbacks": CALLBACKS,
        "random_state": SEED,
        "metric_params": NAMED,
        "beta": Real(at_least=1e-6, at_most=1e6) | Nothing(),
    }

    def __init__(
        self,
        n_prototypes: Counts = 1,
        metric: str | Callable[[Array, Array], float] = "euclidean",
        objective: Literal["sigmoid", "glvq", "rslvq"] = "sigmoid",
        init: Literal["greedy", "kmeans++", "random"] = "greedy",
        temperature: float | None = None,
        window: float | None = None,
        max_sweeps: int = 100,
        random_state: Any = None,
        margin: float | None = None,
        class_weight: Literal["balanced"] | Mapping[Any, float] | None = None,
        tol: float = 0.0,
        n_init: int = 1,
        callbacks: tuple[Callable[[History], bool | None], ...] = (),
        metric_params: Mapping[str, Any] | None = None,
        beta: float | None = None,
    ) -> None:
        self.n_prototypes = n_prototypes
        self.metric = metric
        self.objective = objective
        self.init = init
        self.temperature = temperature
        self.window = window
        self.max_sweeps = max_sweeps
        self.random_state = random_state
        self.margin = margin
        self.class_weight = class_weight
        self.tol = tol
        self.n_init = n_init
        self.callbacks = callbacks
        self.metric_params = metric_params
        self.beta = beta

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        initial_prototypes: Any = None,
    ) -> Self:
        """Choose the prototypes among the rows of X.

        Parameters
        ----------
        X : array of shape (n, *shape), or (n, n) for metric="precomputed"
            Instances, or the dissimilarities of all pairs.
        y : array of shape (n,)
            Labels of any type.
        sample_weight : array of shape (n,), optional
            Weight of each row; rows of weight 0 are left out; default: all equal.
        initial_prototypes : int array of shape (K,), or tuple of two arrays, optional
            The rows of X to start from; or prototypes (K, *shape) and their labels (K,), each of
            which starts at the sample of its class that is nearest. At least one of every class, in
            place of `n_prototypes`, `init` and `n_init`; default: as these say.

        Returns
        -------
        self
            The fitted object.
        """
        from .swap_costs import RSLVQCost, SigmoidCost
        from .swap_start import several_starts

        self._check_options()
        X, t, weight = self._check_training_data(X, y, sample_weight)
        kept = np.ones(len(X), bool)
        if weight is None:
            weight = np.ones(len(X))
        else:
            kept = as_real(sample_weight, "sample_weight") > 0
        # The search takes the samples sorted by class.
        order = np.argsort(t, kind="stable")
        labels = t[order]
        weights = self._weights(X, t, weight)[order]
        columns = search_columns(self, X, kept, order)
        if initial_prototypes is None:
            counts = self._counts(self.n_prototypes, t)
            rng = generator(self.random_state)
            starts = several_starts(columns, labels, counts, weights, self.init, self.n_init, rng)
        else:
            given = given_samples(self, initial_prototypes, X, t, kept)
            place = order.argsort()
            starts = [np.sort(place[given])]
        cost = search_cost(self, columns, labels, weights, starts[0])
        self.__dict__.pop("beta_", None)  # of an earlier fit
        if isinstance(cost, SigmoidCost):
            self.beta_ = cost.slope
        search = self._run(columns, labels, cost, starts)
        chosen = order[search.indices]
        self._store_prototypes(X, t, kept, chosen)
        temperature = cost.temperature if isinstance(cost, RSLVQCost) else self.temperature
        if temperature is None:
            d = torch.from_numpy(search.d.T.copy())
            rows = torch.from_numpy(labels)
            temperature = likely_temperature(d, rows, self._owner(), weights)
        self.temperature_ = temperature
        return self

    def _check_options(self) -> None:
        """Check every parameter, and refuse those that the metric does not use."""
        self._check_parameters()
        check_metric_options(self.metric, self.window, self.metric_params)
        if self.margin is not None and self.objective == "rslvq":
            raise ValueError(
                f"margin={self.margin} needs objective='sigmoid' or 'glvq': the likelihood of "
                "'rslvq' has no μ."
            )
        if self.beta is not None and self.objective != "sigmoid":
            raise ValueError(f"beta={self.beta} needs objective='sigmoid'.")

    def _weights(self, X: Array, t: Array, weight: Array) -> Array:
        """Return the weights of the samples times those of their classes."""
        if self.class_weight is None:
            return weight
        rows = TrainingRows(X, t, weight).balanced(self.class_weight, self.classes_)
        assert rows.weight is not None
        return rows.weight

    def _run(
        self,
        columns: Columns,
        labels: Array,
        cost: Cost,
        starts: list[Array],
    ) -> SwapSearch:
        """Search from every start and keep the best; warn if that search was cut short."""
        from .swap import search_from

        listener = self._notify_callbacks if self.callbacks else None
        runs = [
            search_from(columns, labels, cost, start, self.max_sweeps, self.tol, listener)
            for start in starts
        ]
        best, history, n_sweeps, converged = min(runs, key=lambda run: run[1][-1])
        self.loss_history_ = history
        self.n_iter_ = n_sweeps
        self.cost_ = history[-1]
        self.loss_ = self.cost_
        if not converged:
            warnings.warn(
                f"Swaps still lowered the cost after max_sweeps={self.max_sweeps} sweeps.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return best

    def _notify_callbacks(self, costs: list[float]) -> bool:
        """Call every callback with the curve; returns whether one of them ends the search."""
        answers = [bool(callback({"train_loss": list(costs)})) for callback in self.callbacks]
        return any(answers)

    def _store_prototypes(
        self,
        X: Array,
        t: Array,
        kept: Array,
        chosen: Array,
    ) -> None:
        """Set the attributes of the prototypes, which are the rows `chosen` of those kept."""
        self.prototype_indices_ = np.flatnonzero(kept)[chosen]
        columns = t[chosen]
        self.prototype_labels_ = self.classes_[columns]
        points: Any = None
        if self.metric != "precomputed":
            points = X[chosen].reshape(-1, *self.shape_)
        self.prototypes_ = points

    def _dissimilarities(
        self,
        X: Array,
        Y: Array | None = None,
    ) -> Array:
        """Compute the dissimilarities (n, m) from X to Y, or to X itself; both are flat."""
        if self.metric == "euclidean":
            return np.asarray(cdist(X, X if Y is None else Y))
        if callable(self.metric):
            X = X.reshape(-1, *self.shape_)
            others = X if Y is None else Y.reshape(-1, *self.shape_)
            pairs = [[read_dissimilarity(self.metric(x, y)) for y in others] for x in X]
            return np.array(pairs, dtype=np.float64)
        series = as_series(X, self.shape_)
        if Y is not None:
            Y = as_series(Y, self.shape_)
        return elastic_distances(series, Y, self.metric, self.window, self.metric_params)

    def _flat_prototypes(self) -> Array:
        """Return the prototypes as rows (K, features)."""
        return self.prototypes_.reshape(len(self.prototypes_), -1)

    @override
    def _distances(self, X: Array) -> Array:
        if self.metric == "precomputed":
            return X[:, self.prototype_indices_]
        return self._dissimilarities(X, self._flat_prototypes())

    @override
    def predict(self, X: Any) -> Array:
        if self.metric != "dtw":
            return super().predict(X)
        check_is_fitted(self)
        rows = as_series(self._check_instances(X), self.shape_)
        order = np.argsort(self.prototype_labels_, kind="stable")
        prototypes = as_series(self._flat_prototypes(), self.shape_)[order]
        nearest, _ = nearest_by_dtw(rows, prototypes, self.window)
        return np.asarray(self.prototype_labels_[order][nearest])

    def metric_(self) -> None:
        """Return None: the metric is plainly Euclidean, as exact counterfactuals need.

        Raises
        ------
        TypeError
            Where the dissimilarity is another one.
        """
        if self.metric != "euclidean":
            raise TypeError(
                f"MedianLVQ(metric={self.metric!r}) has no linear metric, as exact "
                "counterfactuals and radii need."
            )

    def differentiable_twin(self) -> Any:
        """Return a differentiable function with the same probabilities, as `as_classifier` needs.

        Returns
        -------
        function or None
            From a Tensor of rows (n, features) to logits (n, classes) whose softmax is
            `predict_proba`; None where the metric has no gradient.
        """
        check_is_fitted(self)
        return median_twin(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        precomputed = self.metric == "precomputed"
        tags.input_tags.pairwise = precomputed
        tags.input_tags.positive_only = precomputed
        return tags
