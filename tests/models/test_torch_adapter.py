"""Torch modules: what they answer through the adapter is what they answer themselves."""

import copy

import numpy as np
import pytest
import torch
from scipy.special import softmax
from torch import nn

import contrafact as cf
from contrafact.models import as_classifier
from contrafact.models.torch_adapter import TorchClassifier


def network(*end, n_outputs=3, seed=0):
    """A small network with every kind of layer that has a mode or a state; `end` comes last."""
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


@pytest.mark.usefixtures("own_random_numbers")
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
    # The only other device that every machine has; as_classifier refuses it, since it is of no use.
    classifier = TorchClassifier(module, None, None, "meta")
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


def test_a_class_masked_out_is_an_answer_like_any_other():
    class Masked(torch.nn.Module):
        def forward(self, x):
            return torch.stack([x[:, 0], x[:, 1], torch.full_like(x[:, 0], -torch.inf)], 1)

    verdict = as_classifier(Masked()).evaluate(np.array([[1.0, 2.0], [3.0, 0.0]]))
    assert verdict.label.tolist() == [1, 0] and (verdict.proba[:, 2] == 0).all()
    assert verdict.score.isfinite().all()
