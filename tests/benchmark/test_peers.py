"""Methods of other libraries: their arrays count, their claims do not, failures are rows."""

import pickle
import time
import types

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

from contrafact.benchmark.peers import TscfEvalPeer, WildboarPeer
from contrafact.engine import Budget, Constraints, Counterfactuals
from contrafact.models import as_classifier

pytestmark = pytest.mark.filterwarnings("ignore:1 of 1 rows failed")


@pytest.fixture(scope="module")
def data():
    """Three classes of series around levels −2, 0 and 2; names are text."""
    rng = np.random.default_rng(0)
    y = np.repeat(["low", "mid", "high"], 20)
    X = rng.normal(size=(60, 1, 12)) + np.repeat([-2, 0, 2], 20)[:, None, None]
    return X, y


@pytest.fixture(scope="module")
def model(data):
    X, y = data
    return LogisticRegression(max_iter=500).fit(X[:, 0], y)


class Nearest:
    """tscf-eval's interface: the nearest series of another class, or of the one of interest."""

    def __init__(self, model, data, flat=True):
        self.model, (self.X, self.y) = model, data
        self.flat, self.asked = flat, []

    def explain(self, x, y_pred=None, *, class_of_interest=None):
        self.asked.append((x.shape, y_pred, class_of_interest))
        fits = self.y == class_of_interest if class_of_interest is not None else self.y != y_pred
        candidates = self.X[fits & (self.model.predict(self.X) == self.y)]
        found = candidates[np.square(candidates - x).reshape(len(candidates), -1).sum(1).argmin()]
        return found if self.flat else found[None, None], "whatever", {}


class Untargeted(Nearest):
    def explain(self, x, y_pred=None):
        return super().explain(x, y_pred)


class Several(Nearest):
    def explain_k(self, x, k=5, y_pred=None, *, class_of_interest=None):
        fits = self.X[self.y == class_of_interest]
        return fits[:k], np.repeat(class_of_interest, k), [{}] * k


class Rogue:
    """Does to the rows what their first value says."""

    acts: tuple = ()

    def __init__(self, model, data):
        self.calls = 0

    def explain(self, x, y_pred):
        self.calls += 1
        act = self.acts[int(x[0])]
        if act == "crash":
            raise KeyError("no such thing")
        return {
            "lie": (x, "high", {"valid": True}),
            "none": None,
            "no array": (None, "high", {}),
            "nan": (np.full_like(x, np.nan), "high", {}),
            "short": (x[:-1], "high", {}),
            "text": ("sorry", "high", {}),
            "upright": (x[:, None], "high", {}),
            "right": (x * 0 + 9, "high", {}),
        }[act]


def rogue(*acts):
    return type("Rogue", (Rogue,), {"acts": acts})


# --- truth


def test_only_what_the_model_says_counts(data, model):
    X, y = data
    acts = ["lie", "crash", "right", "none", "nan", "short", "no array", "text", "upright", "right"]
    rows = X[:10].copy()
    rows[:, 0, 0] = range(10)
    rows[:, 0, 1:] = -3
    explainer = TscfEvalPeer(rogue(*acts)).fit(model, X, y)
    result = explainer.explain(rows, "high")
    assert isinstance(result, Counterfactuals) and len(result) == 10
    status = dict(zip(acts, zip(result.status, result.message, strict=True), strict=True))
    assert status["right"] == ("valid", "")
    assert status["lie"][0] == "invalid"
    for act, said in {
        "crash": "KeyError: 'no such thing'",
        "none": "Rogue returned None",
        "no array": "Rogue returned None",
        "nan": "NaN",
        "short": r"shape (11,); the instance has shape (1, 12)",
        "upright": r"shape (12, 1); the instance has shape (1, 12)",
        "text": "could not convert string to float",
    }.items():
        assert status[act][0] == "error" and said in status[act][1], (act, status[act])
    assert result.valid.tolist() == [act == "right" for act in acts]
    assert np.isfinite(result.X_cf).all()
    np.testing.assert_array_equal(result.X_cf[[1, 3, 4]], rows[[1, 3, 4]])
    assert explainer.peer_.calls == 10  # nobody is asked twice because another row failed


def test_same_answers_as_from_arrays(data, model):
    X, y = data
    result = TscfEvalPeer(Nearest).fit(model, X, y).explain(X[:30], "high")
    judged = Counterfactuals.from_arrays(model, X[:30], result.X_cf, "high")
    np.testing.assert_array_equal(result.valid, judged.valid)
    np.testing.assert_array_equal(result.cf_proba, judged.cf_proba)
    assert result.valid.all()


def test_peers_cannot_change_what_they_are_shown(data, model):
    class Scribbler(Nearest):
        def __init__(self, model, data):
            data[0][:] = 0
            super().__init__(model, data)

        def explain(self, x, y_pred):
            x[:] = 7
            return x, "high", {}

    X, y = data
    before = X.copy()
    result = TscfEvalPeer(Scribbler).fit(model, X, y).explain(X[:3], "high")
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(result.X, before[:3])
    assert result.valid.all() and (result.X_cf == 7).all()


# --- tscf-eval


def test_peers_get_series_labels_and_targets_as_they_know_them(data, model):
    X, y = data
    explainer = TscfEvalPeer(Nearest, {"flat": False}).fit(model, X, y)
    result = explainer.explain(X[:2], ["mid", "high"])
    assert explainer.peer_.asked == [((12,), "low", "mid"), ((12,), "low", "high")]
    assert result.cf_labels.tolist() == ["mid", "high"]


def test_more_channels_stay(data):
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(size=(20, 2, 6)) - 2, rng.normal(size=(20, 2, 6)) + 2])
    y = np.repeat([0, 1], 20)
    flat = LogisticRegression().fit(X.reshape(40, -1), y)
    explainer = TscfEvalPeer(Nearest).fit(flat, X, y)
    assert explainer.explain(X).valid.all() and explainer.peer_.asked[0][0] == (2, 6)


def test_an_untargeted_peer_goes_its_own_way(data, model):
    """From "low" it finds "mid"; asked for "high" that is a change of class, not a valid one."""
    X, y = data
    result = TscfEvalPeer(Untargeted).fit(model, X, y).explain(X[:5], "high")
    assert set(result.cf_labels) == {"mid"} and not result.valid.any()
    assert (result.evaluate(["flipped"])["flipped"] == 1).all()


def test_k_counterfactuals(data, model):
    X, y = data
    several = TscfEvalPeer(Several).fit(model, X, y).explain(X[:4], "high", k=3)
    assert np.bincount(several.source).tolist() == [3] * 4 and several.valid.all()
    one = TscfEvalPeer(Nearest).fit(model, X, y).explain(X[:4], "high", k=3)
    assert len(one) == 4 and "1 of 3 counterfactuals" in one.message[0]


def test_calls_are_the_rows_the_model_saw(data):
    """Every row that the peer asks about while explaining, none that it asked about before."""
    X, y = data
    seen = 0

    def level(rows):
        nonlocal seen
        seen += len(rows)
        mean = rows.reshape(len(rows), -1).mean(1)
        p = np.exp(-((mean[:, None] - [2, -2, 0]) ** 2))
        return p / p.sum(1, keepdims=True)

    explainer = TscfEvalPeer(Nearest).fit(
        as_classifier(level, classes=["high", "low", "mid"]), X, y
    )
    seen = 0
    result = explainer.explain(X[:5], "high")
    assert result.calls.sum() == seen == 5 * (60 + 2)
    assert result.info["counted"].all() and result.valid.all()


def test_budgets_end_a_search(data, model):
    X, y = data
    explainer = TscfEvalPeer(Nearest).fit(model, X, y)
    poor = explainer.explain(X[:5], "high", budget=Budget(calls=5 * 50))
    assert (poor.status == "budget").all() and poor.calls.sum() <= 250
    rich = explainer.explain(X[:5], "high", budget=Budget(calls=5 * 70))
    assert rich.valid.all()


def test_errors_pass_on_request(data, model):
    X, y = data
    rows = X[:2].copy()
    rows[:, 0, 0] = range(2)
    explainer = TscfEvalPeer(rogue("right", "crash")).fit(model, X, y)
    with pytest.raises(KeyError, match="no such thing"):
        explainer.explain(rows, "high", on_error="raise")
    kept = explainer.explain(rows, "high")
    assert list(kept.exceptions) == [1] and isinstance(kept.exceptions[1], KeyError)


def test_a_deadline_ends_the_request(data, model):
    class Slow(Nearest):
        def explain(self, x, y_pred):
            time.sleep(0.05)
            return super().explain(x, y_pred, class_of_interest="high")

    X, y = data
    result = TscfEvalPeer(Slow).fit(model, X, y).explain(X[:20], "high", budget=Budget(seconds=0.5))
    assert 0 < (result.status == "budget").sum() < 20 and len(result) == 20


def test_a_ready_object_is_used_as_it_is(data, model):
    X, y = data
    ready = Nearest(model, (X[:, 0], y))
    result = TscfEvalPeer(ready).fit(model, X, y).explain(X[:4], "high")
    assert result.valid.all() and not result.info["counted"].any()
    assert ready.asked == []  # a copy


def test_own_models_are_handed_over_on_request(data, model):
    X, y = data
    counted, own = (
        TscfEvalPeer(Nearest, hand_over=how).fit(model, X, y) for how in ("counted", "own")
    )
    assert own.peer_.model is model and counted.peer_.model is not model
    assert not own.explain(X[:2], "high").info["counted"].any()
    with pytest.raises(ValueError, match="hand_over must be 'counted' or 'own', got 'mine'"):
        TscfEvalPeer(Nearest, hand_over="mine").fit(model, X, y)


def test_peers_by_name(data, model, monkeypatch):
    import sys

    X, y = data
    monkeypatch.setitem(sys.modules, "a_library", types.SimpleNamespace(Nearest=Nearest))
    explainer = TscfEvalPeer("a_library:Nearest")
    assert clone(explainer).fit(model, X, y).explain(X[:4], "high").valid.all()


def test_labels_may_be_left_out(data, model):
    X, _ = data
    assert TscfEvalPeer(Nearest).fit(model, X).explain(X[:4], "high").valid.all()


def test_constraints_are_refused(data, model):
    X, y = data
    with pytest.raises(ValueError, match="cannot keep bounds"):
        TscfEvalPeer(Nearest).fit(model, X, y).explain(X[:2], constraints=Constraints(upper=1.0))


def test_fitted_peers_can_be_sent_to_another_process(data, model):
    X, y = data
    explainer = pickle.loads(pickle.dumps(TscfEvalPeer(Nearest).fit(model, X, y)))
    assert explainer.explain(X[:4], "high").valid.all()


# --- wildboar


class Neighbors:
    """wildboar's interface, for k-nearest neighbors only, as some of theirs are."""

    def __init__(self, act="right"):
        self.act = act

    def fit(self, estimator, X, y):
        if not isinstance(estimator, KNeighborsClassifier):
            raise TypeError("k-nearest neighbors only")
        self.X_, self.y_ = X, y
        return self

    def explain(self, X, y):
        if self.act == "crash":
            raise RuntimeError("broken")
        found = np.stack([self.X_[self.y_ == label].mean(0) for label in y])
        return {"right": found, "none": None, "lie": X, "more": np.concatenate([found, found])}[
            self.act
        ]


@pytest.fixture(scope="module")
def neighbors(data):
    X, y = data
    return KNeighborsClassifier(3).fit(X[:, 0], y)


@pytest.mark.parametrize("peer", [Neighbors(), Neighbors], ids=["object", "class"])
def test_wildboars_way(data, neighbors, peer):
    X, y = data
    explainer = WildboarPeer(peer).fit(neighbors, X, y)
    result = explainer.explain(X[:30], "high")
    assert result.valid.all() and (result.cf_labels == "high").all()
    assert explainer.peer_.X_.shape == (60, 12)
    assert not result.info["counted"].any()


@pytest.mark.parametrize(
    ("act", "status", "said"),
    [
        ("crash", "error", "RuntimeError: broken"),
        ("none", "error", "Neighbors returned None"),
        ("more", "error", "shape (2, 12)"),
        ("lie", "invalid", "not reached"),
    ],
)
def test_wildboars_failures_are_rows(data, neighbors, act, status, said):
    X, y = data
    result = WildboarPeer(Neighbors, {"act": act}).fit(neighbors, X, y).explain(X[:3], "high")
    assert (result.status == status).all() and all(said in message for message in result.message)


def test_a_peer_that_does_not_take_the_model_says_so_at_fit(data, model):
    X, y = data
    with pytest.raises(TypeError, match="k-nearest neighbors only"):
        WildboarPeer(Neighbors).fit(model, X, y)
