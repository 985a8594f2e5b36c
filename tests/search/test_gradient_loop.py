"""The gradient loop: exact, batched, robust."""

import pytest
import torch
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.engine.instances import read_instances
from contrafact.engine.options import Options
from contrafact.engine.request import open_batch
from contrafact.search.gradient_loop import (
    Adam,
    ModelTerm,
    Point,
    SteepestDescent,
    Stop,
    minimize,
    temperature,
)

DATA = cf.load_dataset("ItalyPowerDemand")
LINEAR = LogisticRegression(max_iter=500).fit(DATA.X_train[:, 0], DATA.y_train)


def make_batch(model, X, budget=None):
    classifier = model if isinstance(model, cf.Classifier) else cf.as_classifier(model)
    instances = read_instances(X, "X", "series", ("series",))
    options = Options.checked(None, 1, budget, False, None, None, frozenset())
    return open_batch(
        classifier,
        instances,
        lambda x, v: 1 - v.label,
        None,
        options,
        options.meter(len(X), 1, 0.0),
    )[0]


def toward_target(point: Point) -> torch.Tensor:
    return 1 - point.p_target + 0.01 * point.theta.square().flatten(1).mean(1)


def additive(batch):
    return lambda theta, entries: batch.x[batch.rows[entries]] + theta


def as_function(X):
    return LINEAR.predict_proba(X.reshape(len(X), -1))


SOON = Stop(0.6, 3, 0.0, 60)


def run(batch, stop=SOON, step=None, **options):
    start = torch.zeros_like(batch.x)
    return minimize(
        batch, batch.rows, start, additive(batch), toward_target, step or Adam(0.1), stop, **options
    )


def test_adam_is_adam():
    theta = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    reference = theta.clone().requires_grad_()
    optimizer, ours, step = torch.optim.Adam([reference], lr=0.1), theta.clone(), Adam(0.1)
    for _ in range(20):
        optimizer.zero_grad()
        (reference**4).sum().backward()
        optimizer.step()
        ours = step(ours, 4 * ours**3, ours.sum(1))
    torch.testing.assert_close(ours, reference.detach())


def test_steepest_descent_has_the_length_it_says_and_spares_costly_elements():
    theta, gradient = torch.zeros(2, 4), torch.ones(2, 4)
    weights = torch.tensor([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 10.0, 10.0]])
    moved = SteepestDescent(0.5, weights)(theta, gradient, torch.zeros(2))
    torch.testing.assert_close(moved.square().mean(1).sqrt(), torch.tensor([0.5, 0.5]))
    torch.testing.assert_close(moved[1, 0] / moved[1, 2], torch.tensor(10.0))


def test_a_batch_is_as_many_separate_runs():
    X = DATA.X_test[:6]
    together = run(make_batch(LINEAR, X))
    for i in range(len(X)):
        alone = run(make_batch(LINEAR, X[i : i + 1]))
        torch.testing.assert_close(together.code[i], alone.code[0])
        assert together.iterations[i] == alone.iterations[0]


def test_finished_rows_leave_the_batch():
    batch = make_batch(LINEAR, DATA.X_test[:20])
    optimum = run(batch)
    assert optimum.iterations.min() < optimum.iterations.max()
    assert torch.equal(batch.meter.spent, optimum.iterations)


def linear_code(theta, entries, t):
    """A code between θ and the candidate: each row's own 24 × 24 matrix θ, applied to a fixed vector."""
    return (theta.unflatten(1, (24, 24)) @ torch.linspace(-1, 1, 24, dtype=theta.dtype))[:, None]


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("code", [None, linear_code], ids=["direct", "through a code"])
def test_finite_differences_agree_with_the_exact_gradient(rows, code):
    X = DATA.X_test[:rows]
    exact, felt = (
        make_batch(LINEAR, X),
        make_batch(cf.as_classifier(as_function, classes=LINEAR.classes_), X),
    )
    shape = exact.x.shape if code is None else (rows, 24 * 24)
    theta = 0.1 * torch.randn(
        shape, generator=torch.Generator().manual_seed(0), dtype=exact.x.dtype
    )
    gradients = []
    for batch in (exact, felt):
        heat = temperature(
            exact
        )  # scores of a function are log-probabilities: same gaps for two classes
        term = ModelTerm(batch, batch.rows, additive(batch), heat, 1e-4, 24, code)
        gradients.append(term.evaluate(theta, batch.rows, 0, toward_target)[2])
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-4, atol=1e-7)


def test_an_objective_blind_to_the_score_costs_one_row_a_step():
    """Without slopes a model without gradients is asked once per step, and still says when to stop."""
    batch = make_batch(cf.as_classifier(as_function, classes=LINEAR.classes_), DATA.X_test[:6])
    guide = torch.from_numpy(DATA.X_train.mean(0))
    optimum = minimize(
        batch,
        batch.rows,
        torch.zeros_like(batch.x),
        additive(batch),
        lambda point: (point.x_cf - guide + 4 * batch.x[point.entries]).square().flatten(1).sum(1),
        Adam(0.3),
        Stop(0.0, 1, 0.0, 60),
        slopes="none",
    )
    assert torch.equal(batch.meter.spent, optimum.iterations)
    assert optimum.reached.any() and optimum.iterations[optimum.reached].max() < 60


def test_a_saturated_model_still_has_a_slope():
    """At logits of ±thousands the probability is flat to the last bit; the search must move all the same."""

    class Saturated(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(24, 2).double()
            w, b = torch.from_numpy(LINEAR.coef_[0]), torch.from_numpy(LINEAR.intercept_)
            self.linear.weight.data = 500 * torch.stack([-w, w])
            self.linear.bias.data = 500 * torch.cat([-b, b])

        def forward(self, x):
            return self.linear(x.flatten(1))

    batch = make_batch(cf.as_classifier(Saturated(), classes=LINEAR.classes_), DATA.X_test[:10])
    assert (batch.verdict.proba.gather(1, batch.target[:, None]) < 1e-30).any()
    assert run(batch).reached.all()


def test_the_best_iterate_is_kept():
    """A step far too long jumps about; what is returned is the best point visited, not the last."""
    batch = make_batch(LINEAR, DATA.X_test[:10])
    optimum = run(batch, stop=Stop(2.0, 1, 0.0, 30), step=Adam(3.0))
    x_cf = batch.x + optimum.code
    score = batch.classifier.logits(x_cf)
    heat = temperature(batch)
    loss = toward_target(
        Point(optimum.code, optimum.code, x_cf, score, heat, batch.target, batch.rows, 0)
    )
    torch.testing.assert_close(loss, optimum.loss)
    assert optimum.reached.all()


def test_nan_names_the_row_and_spares_the_others():
    class Fragile(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(24, 2).double()

        def forward(self, x):
            x = x.flatten(1)
            return self.linear(x) * torch.sqrt(90 - x[:, :1])  # NaN beyond 90

    classifier = cf.as_classifier(Fragile(), classes=LINEAR.classes_)
    batch = make_batch(classifier, DATA.X_test[:4])
    decode = additive(batch)

    def poisoned(theta, entries):
        x_cf = decode(theta, entries)
        return torch.where((entries == 2)[:, None, None], x_cf + 100, x_cf)

    minimize(
        batch,
        batch.rows,
        torch.zeros_like(batch.x),
        poisoned,
        toward_target,
        Adam(0.1),
        Stop(0.6, 3, 0.0, 10),
    )
    assert [bool(reason) for reason in batch.failures] == [False, False, True, False]
