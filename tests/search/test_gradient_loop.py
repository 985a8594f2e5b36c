"""The gradient loop: exact, batched, robust."""

import pytest
import torch
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.search import Adam, Point, Stop, minimize
from contrafact.search.gradients import ModelGradient, with_temperature

DATA = cf.load_dataset("ItalyPowerDemand")
LINEAR = LogisticRegression(max_iter=500).fit(DATA.X_train[:, 0], DATA.y_train)


@pytest.fixture
def tasks_of(open_tasks):
    return lambda model, X: open_tasks(model, X, modality="series")


def toward_target(point: Point) -> torch.Tensor:
    return 1 - point.p_target + 0.01 * point.theta.square().flatten(1).mean(1)


def add(tasks, theta):
    return tasks.x + theta


def as_function(X):
    return LINEAR.predict_proba(X.reshape(len(X), -1))


SOON = Stop(0.6, 3, 0.0, 60)


def run(tasks, stop=SOON, step=None, **options):
    start = torch.zeros_like(tasks.x)
    return minimize(tasks, start, add, toward_target, step or Adam(0.1), stop, **options)


def test_a_batch_is_as_many_separate_runs(tasks_of):
    X = DATA.X_test[:6]
    together = run(tasks_of(LINEAR, X))
    for i in range(len(X)):
        alone = run(tasks_of(LINEAR, X[i : i + 1]))
        torch.testing.assert_close(together.code[i], alone.code[0])
        assert together.iterations[i] == alone.iterations[0]


def test_finished_tasks_leave(tasks_of):
    tasks = tasks_of(LINEAR, DATA.X_test[:20])
    optimum = run(tasks)
    assert optimum.iterations.min() < optimum.iterations.max()
    assert torch.equal(tasks.oracle.meter.spent, optimum.iterations)


def linear_code(tasks, theta, t):
    """A code between θ and the candidate: each row's own 24 × 24 matrix θ, applied to a fixed
    vector."""
    return (theta.unflatten(1, (24, 24)) @ torch.linspace(-1, 1, 24, dtype=theta.dtype))[:, None]


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("encode", [None, linear_code], ids=["direct", "through a code"])
def test_finite_differences_agree_with_the_exact_gradient(tasks_of, rows, encode):
    X = DATA.X_test[:rows]
    exact = tasks_of(LINEAR, X)
    by_answers = tasks_of(cf.as_classifier(as_function, classes=LINEAR.classes_), X)
    shape = exact.x.shape if encode is None else (rows, 24 * 24)
    generator = torch.Generator().manual_seed(0)
    theta = 0.1 * torch.randn(shape, generator=generator, dtype=exact.x.dtype)
    # Scores of a function are log-probabilities: the same temperature makes the losses equal.
    temperature = with_temperature(exact)["temperature"]
    gradients = []
    for tasks in (exact, by_answers):
        tasks = tasks.attach(temperature=temperature)
        model = ModelGradient(tasks, add, toward_target, encode, "auto", 1e-4, 24)
        assert model.exact == (tasks.oracle is exact.oracle)
        gradients.append(model.evaluate(tasks, theta, 0).gradient)
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-4, atol=1e-7)


def test_a_loss_blind_to_the_score_costs_one_row_a_step(tasks_of):
    """Without gradients the model is asked once per step, and still says when to stop."""
    tasks = tasks_of(cf.as_classifier(as_function, classes=LINEAR.classes_), DATA.X_test[:6])
    guide = torch.from_numpy(DATA.X_train.mean(0))

    def away(point):
        return (point.x_cf - guide + 4 * point.tasks.x).square().flatten(1).sum(1)

    optimum = minimize(
        tasks,
        torch.zeros_like(tasks.x),
        add,
        away,
        Adam(0.3),
        Stop(0.0, 1, 0.0, 60),
        gradients="none",
    )
    assert torch.equal(tasks.oracle.meter.spent, optimum.iterations)
    assert optimum.reached.any() and optimum.iterations[optimum.reached].max() < 60


@pytest.mark.usefixtures("own_random_numbers")
def test_a_saturated_model_still_has_a_slope(tasks_of):
    """At logits of ±thousands the probability is flat to the last bit; the search must move all
    the same."""

    class Saturated(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(24, 2).double()
            w, b = torch.from_numpy(LINEAR.coef_[0]), torch.from_numpy(LINEAR.intercept_)
            self.linear.weight.data = 500 * torch.stack([-w, w])
            self.linear.bias.data = 500 * torch.cat([-b, b])

        def forward(self, x):
            return self.linear(x.flatten(1))

    tasks = tasks_of(cf.as_classifier(Saturated(), classes=LINEAR.classes_), DATA.X_test[:10])
    assert (tasks.p_target(tasks.before) < 1e-30).any()
    assert run(tasks).reached.all()


def test_the_best_iterate_is_kept(tasks_of):
    """A step far too long jumps about; what is returned is the best point visited, not the last."""
    tasks = tasks_of(LINEAR, DATA.X_test[:10])
    optimum = run(tasks, stop=Stop(2.0, 1, 0.0, 30), step=Adam(3.0))
    tasks = with_temperature(tasks)
    x_cf = tasks.x + optimum.code
    score = tasks.classifier.logits(x_cf)
    loss = toward_target(Point(tasks, optimum.code, optimum.code, x_cf, score, 0))
    torch.testing.assert_close(loss, optimum.loss)
    assert optimum.reached.all()


@pytest.mark.usefixtures("own_random_numbers")
def test_nan_names_the_row_and_spares_the_others(tasks_of):
    class Fragile(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(24, 2).double()

        def forward(self, x):
            x = x.flatten(1)
            return self.linear(x) * torch.sqrt(90 - x[:, :1])  # NaN beyond 90

    classifier = cf.as_classifier(Fragile(), classes=LINEAR.classes_)
    tasks = tasks_of(classifier, DATA.X_test[:4])

    def poisoned(tasks, theta):
        x_cf = add(tasks, theta)
        return torch.where((tasks["position"] == 2)[:, None, None], x_cf + 100, x_cf)

    start = torch.zeros_like(tasks.x)
    minimize(tasks, start, poisoned, toward_target, Adam(0.1), Stop(0.6, 3, 0.0, 10))
    assert [bool(reason) for reason in tasks.oracle.states.reason] == [False, False, True, False]
