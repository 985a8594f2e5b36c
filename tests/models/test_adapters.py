"""Torch modules, scikit-learn and aeon estimators, functions: each says through us what it says itself."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from aeon.classification.convolution_based import RocketClassifier
from aeon.classification.interval_based import TimeSeriesForestClassifier
from scipy.special import softmax
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_blobs
from sklearn.ensemble import RandomForestClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier
from torch import nn

import contrafact as cf
from contrafact.models import as_classifier
from contrafact.models.classifier import Reshaped

# ---------------------------------------------------------------------------------------------- torch


def network(*end, n_outputs=3, seed=0):
    """A small network with every kind of layer that has a mode or a state; `end` comes after the last."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        body = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.5))
        module = nn.Sequential(body, nn.Linear(8, n_outputs))
        module(torch.randn(64, 6))  # moves the running statistics off their start
    return module.extend(end)


@pytest.fixture
def rows():
    return np.random.default_rng(1).normal(size=(40, 6)).astype(np.float32)


def softmax_of(module, rows):
    with torch.no_grad():
        return copy.deepcopy(module).eval()(torch.from_numpy(rows)).double().softmax(1).numpy()


@pytest.mark.parametrize(
    "end", [nn.Softmax(1), nn.LogSoftmax(1)], ids=["probabilities", "log-probabilities"]
)
def test_modules_may_give_any_of_three(rows, end):
    logits, ended = network(), network(end)
    expected = softmax_of(logits, rows)
    np.testing.assert_allclose(as_classifier(logits).predict_proba(rows), expected, atol=1e-6)
    classifier = as_classifier(ended)
    np.testing.assert_allclose(classifier.predict_proba(rows), expected, atol=1e-6)
    x = torch.from_numpy(rows)
    np.testing.assert_allclose(classifier.logits(x).detach().softmax(1), expected, atol=1e-6)
    assert np.ptp(expected[:, 0]) > 0.1


class Squeezed(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x).squeeze(1)


class SigmoidInside(nn.Module):
    """The Sigmoid is the last to be registered, but not the last to be used."""

    def __init__(self, factor=20.0):
        super().__init__()
        self.inner, self.factor, self.activation = network(n_outputs=1), factor, nn.Sigmoid()

    def forward(self, x):
        return self.factor * (self.activation(self.inner(x)) - 0.5)


def test_one_output_is_the_second_class(rows):
    with torch.no_grad():
        d = network(n_outputs=1).eval()(torch.from_numpy(rows))[:, 0].double().numpy()
    p = 1 / (1 + np.exp(-d))
    for module in (
        network(n_outputs=1),
        network(nn.Sigmoid(), n_outputs=1),
        Squeezed(network(n_outputs=1)),
        Squeezed(network(nn.Sigmoid(), n_outputs=1)),
    ):
        classifier = as_classifier(module, classes=["no", "yes"])
        np.testing.assert_allclose(
            classifier.predict_proba(rows), np.stack([1 - p, p], 1), atol=1e-6
        )
        assert (classifier.predict(rows) == np.where(d > 0, "yes", "no")).all()
    assert 0 < (d > 0).sum() < len(d)


def test_a_sigmoid_inside_is_not_one_at_the_end(rows):
    module = SigmoidInside()
    with torch.no_grad():
        d = copy.deepcopy(module).eval()(torch.from_numpy(rows))[:, 0].double()
    np.testing.assert_allclose(
        as_classifier(module).predict_proba(rows)[:, 1], d.sigmoid(), atol=1e-6
    )


class Ended(nn.Module):
    """What the inner module gives, through a function."""

    def __init__(self, inner, function):
        super().__init__()
        self.inner, self.function = inner, function

    def forward(self, x):
        return self.function(self.inner(x))


def test_a_sigmoid_need_not_be_a_layer(rows):
    with torch.no_grad():
        d = network(n_outputs=1).eval()(torch.from_numpy(rows))[:, 0].sigmoid()
    classifier = as_classifier(Ended(network(n_outputs=1), torch.sigmoid))
    np.testing.assert_allclose(classifier.predict_proba(rows)[:, 1], d, atol=1e-6)


def test_a_logit_that_looks_like_a_probability_is_still_one(rows):
    linear = nn.Linear(rows.shape[1], 1)
    nn.init.zeros_(linear.weight)
    nn.init.constant_(linear.bias, 0.7)
    linear.weight.data[0, 0] = 0.01
    p = as_classifier(linear).predict_proba(np.zeros_like(rows[:1]))
    np.testing.assert_allclose(p[0, 1], 1 / (1 + np.exp(-0.7)), atol=1e-6)


def test_more_than_a_tensor_is_refused(rows):
    with pytest.raises(TypeError, match=r"must give one tensor \(rows, classes\), got tuple"):
        as_classifier(Ended(network(), lambda out: (out, out))).predict_proba(rows)


def test_bfloat16(rows):
    classifier = as_classifier(network().bfloat16())
    expected = softmax_of(network(), rows)
    np.testing.assert_allclose(classifier.predict_proba(rows), expected, atol=0.03)
    x = torch.from_numpy(rows).float().requires_grad_()
    classifier.logits(x).sum().backward()
    assert x.grad.abs().sum() > 0
    result = cf.LineSearch().fit(classifier, rows, classifier.predict(rows)).explain(rows[:3])
    assert result.valid.all()


@pytest.mark.parametrize("end", [(), (nn.Softmax(1),)], ids=["logits", "probabilities"])
def test_a_row_of_nan_does_not_decide_how_the_others_are_read(rows, end):
    expected = softmax_of(network(), rows)
    broken = rows.copy()
    broken[0] = np.nan
    classifier = as_classifier(network(*end))
    assert np.isnan(classifier.predict_proba(broken[:1])).all()
    np.testing.assert_allclose(classifier.predict_proba(broken)[1:], expected[1:], atol=1e-6)
    np.testing.assert_allclose(classifier.predict_proba(rows), expected, atol=1e-6)


def test_the_first_answer_settles_how_all_are_read():
    classifier = as_classifier(nn.Identity())
    logits = np.array([[0.25, 0.75], [3.0, -1.0]])
    together = classifier.predict_proba(logits)
    np.testing.assert_allclose(together, softmax(logits, axis=1), atol=1e-7)
    np.testing.assert_array_equal(classifier.predict_proba(logits[:1]), together[:1])


def modes(module):
    return [m.training for m in module.modules()]


@pytest.mark.parametrize("mode", ["train", "eval", "mixed"])
def test_every_submodule_keeps_its_mode_and_its_state(rows, mode):
    module = network()
    module.train(mode != "eval")
    if mode == "mixed":
        module[0].eval()
        module[0][3].train()
    before, state = modes(module), copy.deepcopy(module.state_dict())
    classifier = as_classifier(module)
    answers = [classifier.predict_proba(rows) for _ in range(2)]
    x = torch.from_numpy(rows).requires_grad_()
    torch.autograd.grad(classifier.logits(x).sum(), x)
    assert modes(module) == before
    np.testing.assert_array_equal(*answers)  # dropout and batch statistics were off
    np.testing.assert_allclose(answers[0], softmax_of(module, rows), atol=1e-6)
    assert all(torch.equal(state[name], value) for name, value in module.state_dict().items())
    assert all(p.grad is None and p.requires_grad for p in module.parameters())


class Raises(nn.Module):
    def forward(self, x):
        raise RuntimeError("out of order")


@pytest.mark.parametrize("ask", ["predict", "predict_proba", "logits"])
def test_modes_come_back_when_the_module_fails(rows, ask):
    module = network(Raises())
    module[0].eval()
    before = modes(module)
    with pytest.raises(RuntimeError, match="out of order"):
        getattr(as_classifier(module), ask)(torch.from_numpy(rows))
    assert modes(module) == before


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_module_computes_in_its_own_precision(rows, dtype):
    module = network().to(dtype)
    seen = []
    module.register_forward_pre_hook(lambda m, args: seen.append(args[0].dtype))
    fine = rows.astype(np.float64) + 1e-10  # a step that float32 cannot see
    classifier = as_classifier(module)
    moved = np.abs(classifier.predict_proba(fine) - classifier.predict_proba(rows)).max()
    assert set(seen) == {dtype} and classifier.dtype == dtype
    assert (moved > 0) == (dtype == torch.float64)


def test_a_module_without_parameters(rows):
    np.testing.assert_allclose(
        as_classifier(nn.Identity()).predict_proba(rows),
        softmax(rows.astype(np.float64), 1),
        atol=1e-7,
    )


def test_logits_have_the_gradient_of_finite_differences(rows):
    for end in ((), (nn.Softmax(1),), (nn.Flatten(),)):
        classifier = as_classifier(network(*end).double())
        x = classifier.as_input(rows[:5]).requires_grad_()
        c = torch.tensor([0, 1, 2, 0, 1])[:, None]
        (ours,) = torch.autograd.grad(classifier.logits(x).log_softmax(1).gather(1, c).sum(), x)
        h = 1e-5
        steps = h * torch.eye(6, dtype=torch.float64)
        plus, minus = (
            classifier.evaluate((x.detach()[:, None] + s * steps).reshape(-1, 6)).score
            for s in (1, -1)
        )
        theirs = (
            ((plus - minus) / (2 * h))
            .reshape(5, 6, 3)
            .gather(2, c[:, None].expand(-1, 6, -1))[..., 0]
        )
        torch.testing.assert_close(ours, theirs, atol=1e-7, rtol=1e-5)
        assert ours.abs().max() > 0.1


def test_another_device_gets_a_copy():
    module = network()
    classifier = as_classifier(module, device="meta")
    assert {p.device.type for p in module.parameters()} == {"cpu"}
    assert {p.device.type for p in classifier.module.parameters()} == {"meta"}
    assert classifier.as_input(np.zeros((1, 6))).device.type == classifier.device.type == "meta"
    assert as_classifier(module, device="cpu").module is module  # already there: no copy


def test_history_starts_empty_and_apart():
    first, second = as_classifier(network()), as_classifier(network())
    first.history["loss"] = [1.0]
    assert second.history == {}


class Standardized(nn.Module):
    """Works in place, as first layers sometimes do."""

    def __init__(self):
        super().__init__()
        self.inner = network()

    def forward(self, x):
        x -= 1.0
        return self.inner(x)


@pytest.mark.parametrize(
    "first", [Standardized, lambda: nn.Sequential(nn.ReLU(inplace=True), network())]
)
def test_a_module_that_works_in_place_changes_nothing_of_ours(rows, first):
    before = rows.copy()
    classifier = as_classifier(first())
    proba = classifier.predict_proba(rows)
    np.testing.assert_array_equal(rows, before)
    x = torch.from_numpy(rows).requires_grad_()
    (gradient,) = torch.autograd.grad(classifier.logits(x)[:, 0].sum(), x)
    assert gradient.abs().max() > 0
    np.testing.assert_array_equal(x.detach().numpy(), before)
    np.testing.assert_allclose(proba, classifier.logits(x).detach().softmax(1), atol=1e-6)


# --------------------------------------------------------------------------------------- scikit-learn

DATA = {"iris": load_iris(return_X_y=True), "cancer": load_breast_cancer(return_X_y=True)}
DATA["wine"] = load_wine(return_X_y=True)


def off(X, seed=0):
    """The data moved by their own spread: rows about which a model is unsure."""
    return X + X.std(axis=0) * np.random.default_rng(seed).normal(size=X.shape)


def scaled(classifier):
    return make_pipeline(StandardScaler(), classifier)


class PredictOnly:
    """Not a scikit-learn class at all."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self._means = np.stack([X[y == c].mean(0) for c in self.classes_])
        return self

    def predict(self, X):
        return self.classes_[((X[:, None] - self._means) ** 2).sum(2).argmin(1)]


class Column(PredictOnly):
    """Gives a column of labels, as CatBoost does."""

    def predict(self, X):
        return super().predict(X)[:, None]


def sure(proba):
    """Rows whose two best probabilities differ by more than rounding."""
    best = np.sort(proba, axis=1)
    return best[:, -1] - best[:, -2] > 1e-9


ESTIMATORS = {
    "logistic": scaled(LogisticRegression()),
    "forest": RandomForestClassifier(10, random_state=0),
    "tree": DecisionTreeClassifier(max_depth=3, random_state=0),
    "neighbors": KNeighborsClassifier(4),
    "naive bayes": GaussianNB(),
    "mlp": scaled(MLPClassifier((5,), max_iter=50, random_state=0)),
    "ridge": RidgeClassifier(),
    "linear svc": scaled(LinearSVC()),
    "svc": scaled(SVC()),
    "svc, pairwise": SVC(decision_function_shape="ovo"),
    "svc, platt": SVC(probability=True, random_state=0),
    "sgd": scaled(SGDClassifier(random_state=0)),
    "sgd, clipped": scaled(SGDClassifier(loss="modified_huber", random_state=0)),
    "nearest centroid": NearestCentroid(),
    "stacked": StackingClassifier(
        [("a", LogisticRegression())], SVC(probability=True, random_state=0)
    ),
    "voting": VotingClassifier(
        [("a", GaussianNB()), ("b", DecisionTreeClassifier(random_state=0))]
    ),
    "search": GridSearchCV(scaled(LogisticRegression()), {"logisticregression__C": [0.1, 1]}, cv=2),
    "search of svc": GridSearchCV(SVC(probability=True, random_state=0), {"C": [1, 10]}, cv=2),
    "predict only": PredictOnly(),
    "predict only, column": Column(),
}


@pytest.fixture(scope="module", params=[(e, d) for e in ESTIMATORS for d in DATA], ids=" on ".join)
def fitted(request):
    name, data = request.param
    X, y = DATA[data]
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # probability=True is on its way out of scikit-learn; unconverged is fine
        model = copy.deepcopy(ESTIMATORS[name]).fit(X, y)
        classifier = as_classifier(model)
    return model, classifier, np.concatenate([X, off(X)])


def test_labels_are_those_of_their_predict(fitted):
    model, classifier, X = fitted
    theirs = np.ravel(model.predict(X))
    np.testing.assert_array_equal(classifier.predict(X), theirs)
    np.testing.assert_array_equal(classifier.classes[classifier.evaluate(X).label], theirs)
    assert len(np.unique(theirs)) == len(model.classes_)


def test_probabilities_are_theirs(fitted):
    """Of predict_proba; else the softmax of the decision function; else 1 for what they predict."""
    model, classifier, X = fitted
    ours = classifier.predict_proba(X)
    in_pairs = getattr(model, "decision_function_shape", "ovr") == "ovo" and len(model.classes_) > 2
    if hasattr(model, "predict_proba"):
        expected = model.predict_proba(X)
    elif hasattr(model, "decision_function") and not in_pairs:
        d = model.decision_function(X)
        d = d if d.ndim == 2 else np.stack([0 * d, d], 1)
        expected = softmax(d, axis=1)
        np.testing.assert_allclose(classifier.evaluate(X).score, d)
    else:
        expected = np.ravel(model.predict(X))[:, None] == model.classes_
    np.testing.assert_allclose(ours, expected, atol=1e-12)
    np.testing.assert_allclose(classifier.verdict(X).proba, expected, atol=1e-12)


@pytest.mark.parametrize("name", ["svc, platt", "nearest centroid", "sgd, clipped", "stacked"])
@pytest.mark.filterwarnings("ignore")
def test_their_predict_is_not_always_the_argmax(name):
    """The reason why these are asked twice: if this ever fails, the second question can go."""
    X, y = DATA["wine"]
    model = copy.deepcopy(ESTIMATORS[name]).fit(X, y)
    rows = np.concatenate([X, off(X)])
    assert (model.classes_[model.predict_proba(rows).argmax(1)] != model.predict(rows)).any()


def test_rows_counted_are_the_rows_seen(fitted):
    """Count what reaches the model's own methods from outside; one method may call another inside."""
    model, _, X = fitted
    classifier, model = as_counted(copy.deepcopy(model))
    for ask, rows_per in (
        (classifier.evaluate, classifier.rows_per_evaluation),
        (classifier.verdict, classifier.rows_per_verdict),
    ):
        seen, counted = model.seen[0], classifier.rows_evaluated
        ask(X[:33])
        assert model.seen[0] - seen == classifier.rows_evaluated - counted == rows_per * 33


def as_counted(model):
    seen, depth = [0], [0]

    def counting(method):
        def ask(X):
            seen[0] += len(X) * (depth[0] == 0)
            depth[0] += 1
            try:
                return method(X)
            finally:
                depth[0] -= 1

        return ask

    classifier = as_classifier(
        model
    )  # before counting: a twin is compared with its model once, at the start
    for name in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, name):
            setattr(model, name, counting(getattr(model, name)))
    model.seen = seen
    return classifier, model


def test_only_models_whose_predict_differs_are_asked_twice_in_searches():
    X, y = DATA["iris"]
    asked = {
        name: as_classifier(copy.deepcopy(ESTIMATORS[name]).fit(X, y)).rows_per_evaluation
        for name in ("logistic", "forest", "ridge", "naive bayes", "search", "predict only", "svc")
    }
    assert asked == dict.fromkeys(asked, 1) | {"svc": 2}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(max_iter=500),
        scaled(LogisticRegression()),
        DecisionTreeClassifier(),
        GridSearchCV(DecisionTreeClassifier(), {"max_depth": [2]}, cv=2),
    ],
    ids=["twin", "pipeline", "tree", "search"],
)
def test_feature_names_are_given_back(estimator):
    X, y = DATA["iris"]
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = copy.deepcopy(estimator).fit(frame, y)
    classifier = as_classifier(model)
    np.testing.assert_allclose(classifier.predict_proba(X), model.predict_proba(frame))
    np.testing.assert_array_equal(classifier.predict(X), model.predict(frame))
    assert classifier.feature_names == ["a", "b", "c", "d"]
    assert all(type(name) is str for name in classifier.feature_names)
    assert Reshaped(classifier, (4,)).feature_names == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(max_iter=500).fit(*DATA["iris"]),
        nn.Linear(4, 3),
        lambda X: softmax(X[:, :3], axis=1),
    ],
    ids=["trained on an array", "module", "function"],
)
def test_models_without_feature_names_have_none(model):
    classifier = as_classifier(model)
    assert classifier.feature_names is None
    assert Reshaped(classifier, (4,)).feature_names is None


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), DecisionTreeClassifier(random_state=0)], ids=type
)
def test_series_are_flattened_for_a_flat_model(estimator):
    X, y = DATA["cancer"]
    X = StandardScaler().fit_transform(X)
    model = copy.deepcopy(estimator).fit(X, y)
    classifier = as_classifier(model)
    series = X.reshape(-1, 3, 10)
    np.testing.assert_array_equal(classifier.predict_proba(series), model.predict_proba(X))
    np.testing.assert_array_equal(classifier.predict(series), model.predict(X))
    with pytest.raises(
        ValueError, match=r"trained on 30 features per row, but X has 27 \(shape \(\d+, 3, 9\)\)"
    ):
        classifier.predict(series[..., :9])
    if classifier.differentiable:
        x = torch.from_numpy(series).requires_grad_()
        logits = classifier.logits(x)
        np.testing.assert_allclose(logits.detach().softmax(1), model.predict_proba(X), atol=1e-12)
        (gradient,) = torch.autograd.grad(logits[:, 1].sum(), x)
        np.testing.assert_allclose(gradient[0].numpy(), model.coef_.reshape(3, 10))


def test_a_scaler_that_works_in_place_changes_nothing_of_ours():
    X, y = DATA["wine"]
    model = make_pipeline(StandardScaler(copy=False), LogisticRegression()).fit(X.copy(), y)
    plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    rows, classifier = off(X), as_classifier(model)
    before = rows.copy()
    verdict = classifier.verdict(rows)  # asks twice: the second time about the same rows
    np.testing.assert_array_equal(rows, before)
    np.testing.assert_allclose(verdict.proba, plain.predict_proba(before))
    np.testing.assert_array_equal(classifier.classes[verdict.label], plain.predict(before))


LABELS = {
    "strings": np.array(["setosa", "Virginica", "versicolor, the second"]),
    "objects": np.array(["b", "a", "c"], dtype=object),
    "negative": np.array([-1, 7, -3]),
    "floats": np.array([1.0, -4.0, 2.0]),
    "bools": np.array([True, False, True]),
}


@pytest.mark.parametrize(
    "estimator", [LogisticRegression(max_iter=500), RidgeClassifier(), PredictOnly()], ids=type
)
@pytest.mark.parametrize("kind", LABELS)
def test_labels_are_whatever_the_user_has(kind, estimator):
    X, y = DATA["iris"]
    labels = LABELS[kind][y]
    model = copy.deepcopy(estimator).fit(X, labels)
    ours = as_classifier(model).predict(X)
    np.testing.assert_array_equal(ours, model.predict(X))
    assert set(ours.tolist()) == set(labels.tolist())
    assert ours.dtype.kind == ("U" if labels.dtype.kind == "O" else labels.dtype.kind)


@pytest.mark.parametrize("classes", [["b", "a", "c"], [3, -1, 7], [2.5, 0.5, 1.5]])
@pytest.mark.parametrize("kind", ["estimator", "labels", "probabilities", "tensor"])
def test_classes_may_come_in_any_order(classes, kind):
    X, _ = DATA["iris"]

    class Unnamed:
        def column(self, X):
            return (X[:, 2] > 2.5).astype(int) + (X[:, 2] > 5)

        def predict(self, X):
            return np.asarray(classes)[self.column(X)]

    model = {
        "estimator": Unnamed(),
        "labels": Unnamed().predict,
        "probabilities": lambda X: np.eye(3)[Unnamed().column(X)],
        "tensor": lambda X: torch.eye(3)[Unnamed().column(X)].requires_grad_(),
    }[kind]
    classifier = as_classifier(model, classes=classes)
    np.testing.assert_array_equal(classifier.predict(X), Unnamed().predict(X))
    np.testing.assert_array_equal(classifier.predict_proba(X), np.eye(3)[Unnamed().column(X)])
    assert classifier.classes.tolist() == classes


def test_an_unknown_label_of_an_estimator_is_refused():
    X, y = DATA["iris"]
    model = PredictOnly().fit(X, y)
    model.classes_ = np.array([0, 1])
    model.predict = lambda X: np.arange(len(X)) % 4
    with pytest.raises(
        ValueError, match=r"predicts labels \[2, 3\] that are not in classes \[0, 1\]"
    ):
        as_classifier(model).predict(X)


@pytest.mark.parametrize(
    "estimator",
    [LogisticRegression(max_iter=500), scaled(MLPClassifier((5,), random_state=0)), GaussianNB()],
    ids=type,
)
@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))], ids=["copy", "pickle"]
)
@pytest.mark.filterwarnings("ignore")
def test_pickling_keeps_the_twin(estimator, duplicate):
    X, y = DATA["iris"]
    classifier = as_classifier(copy.deepcopy(estimator).fit(X, y), batch_size=17)
    classifier.predict(X)
    again = duplicate(classifier)
    assert (
        again.differentiable == classifier.differentiable == (not isinstance(estimator, GaussianNB))
    )
    assert (again.batch_size, again.rows_evaluated) == (17, classifier.rows_evaluated)
    np.testing.assert_array_equal(again.predict_proba(X), classifier.predict_proba(X))
    if again.differentiable:
        x = torch.from_numpy(X)
        assert torch.equal(again.logits(x), classifier.logits(x))


def test_four_classes_in_pairs():
    """One column per pair of classes (six) must not be read as one per class."""
    X, y = make_blobs(120, centers=4, cluster_std=3, random_state=0)
    model = SVC(decision_function_shape="ovo").fit(X, y)
    np.testing.assert_array_equal(as_classifier(model).predict(X), model.predict(X))


# ----------------------------------------------------------------------------------------------- aeon


def waves(n_classes, n=60, channels=1, length=40, seed=0):
    """Noisy sines, one frequency per class."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    t = np.linspace(0, 2 * np.pi, length)
    phase = rng.uniform(0, 2 * np.pi, (n, channels, 1))
    X = np.sin((1 + y[:, None, None]) * t + phase) + rng.normal(
        scale=1.2, size=(n, channels, length)
    )
    return X, np.array(["slow", "fast", "faster"])[y]


@pytest.fixture(
    scope="module",
    params=[(2, 1), (3, 1), (3, 2)],
    ids=lambda p: f"{p[0]} classes, {p[1]} channels",
)
def rocket(request):
    n_classes, channels = request.param
    model = RocketClassifier(n_kernels=50, random_state=0).fit(*waves(n_classes, channels=channels))
    return model, waves(n_classes, channels=channels, seed=1)[0]


def test_rocket_decides_as_itself_and_scores_smoothly(rocket):
    model, X = rocket
    classifier = as_classifier(model)
    theirs = model.predict(X)
    np.testing.assert_array_equal(classifier.predict(X), theirs)
    for verdict in (classifier.evaluate(X), classifier.verdict(X)):
        np.testing.assert_array_equal(verdict.proba, model.predict_proba(X))
        np.testing.assert_array_equal(classifier.classes[verdict.label], theirs)
        assert torch.equal(verdict.score.argmax(1), verdict.label)
        assert (
            len(verdict.score.max(1).values.unique()) > len(X) // 3
        )  # probabilities alone have two values
    assert len(np.unique(theirs)) == len(model.classes_)


def test_rocket_rows_counted_are_the_rows_seen(rocket):
    model, X = rocket
    model = copy.deepcopy(model)
    seen = []
    for owner, name in (
        (model, "predict"),
        (model, "predict_proba"),
        (model.pipeline_, "decision_function"),
    ):
        method = getattr(owner, name)
        setattr(owner, name, lambda X, method=method: (seen.append(len(X)), method(X))[1])
    classifier = as_classifier(model, batch_size=20)
    classifier.evaluate(X)
    assert sum(seen) == classifier.rows_evaluated == len(X)
    classifier.verdict(X)
    assert sum(seen) == classifier.rows_evaluated == 3 * len(X)


def test_rocket_with_probabilities_of_its_own_keeps_them():
    X, y = waves(2)
    model = RocketClassifier(
        n_kernels=50, estimator=LogisticRegression(max_iter=500), random_state=0
    ).fit(X, y)
    classifier = as_classifier(model)
    proba = classifier.predict_proba(X)
    np.testing.assert_allclose(proba, model.predict_proba(X))
    np.testing.assert_allclose(classifier.evaluate(X).score.exp(), proba)
    assert len(np.unique(proba)) > 10


@pytest.mark.parametrize("n_classes", [2, 3])
def test_interval_forest(n_classes):
    model = TimeSeriesForestClassifier(n_estimators=5, random_state=0).fit(*waves(n_classes))
    X = waves(n_classes, seed=1)[0]
    classifier = as_classifier(model)
    theirs = model.predict_proba(X)
    np.testing.assert_allclose(classifier.predict_proba(X), theirs)
    np.testing.assert_array_equal(classifier.predict(X), model.predict(X))
    clear = sure(theirs)  # aeon draws lots between equals
    evaluated = classifier.classes[classifier.evaluate(X).label]
    np.testing.assert_array_equal(evaluated[clear], model.predict(X)[clear])
    assert clear.mean() > 0.5 and not classifier.differentiable


def test_aeon_takes_flat_rows_as_univariate_series(rocket):
    model, X = rocket
    if X.shape[1] == 1:
        classifier = as_classifier(model)
        np.testing.assert_array_equal(classifier.predict(X[:, 0]), classifier.predict(X))
        torch.testing.assert_close(classifier.evaluate(X[:, 0]).score, classifier.evaluate(X).score)


def test_aeon_pickles_with_its_score(rocket):
    model, X = rocket
    again = pickle.loads(pickle.dumps(as_classifier(model)))
    torch.testing.assert_close(again.evaluate(X).score, as_classifier(model).evaluate(X).score)


def test_unfitted_aeon_says_so():
    with pytest.raises(ValueError, match="RocketClassifier has no classes_: fit it first"):
        as_classifier(RocketClassifier())


# ------------------------------------------------------------------------------------------ functions


def test_a_function_that_works_in_place_changes_nothing_of_ours():
    X = DATA["iris"][0].copy()

    def shifted(X):
        X -= X.mean(1, keepdims=True)
        return softmax(X, axis=1)

    expected = shifted(X.copy())
    np.testing.assert_allclose(as_classifier(shifted).predict_proba(X), expected)
    np.testing.assert_array_equal(X, DATA["iris"][0])


def test_a_function_may_round_its_probabilities_or_fail_on_a_row():
    proba = np.array([[0.33, 0.33, 0.33], [np.nan, np.nan, np.nan], [0.2, 0.1, 0.7]])
    classifier = as_classifier(lambda X: proba)
    np.testing.assert_array_equal(classifier.predict_proba(np.zeros((3, 2))), proba)


def test_a_class_masked_out_is_an_answer_like_any_other():
    class Masked(torch.nn.Module):
        def forward(self, x):
            return torch.stack([x[:, 0], x[:, 1], torch.full_like(x[:, 0], -torch.inf)], 1)

    verdict = as_classifier(Masked()).evaluate(np.array([[1.0, 2.0], [3.0, 0.0]]))
    assert verdict.label.tolist() == [1, 0] and (verdict.proba[:, 2] == 0).all()
    assert verdict.score.isfinite().all()
