"""Modules run as in eval mode, and are not touched: not their modes, not their state."""

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import nn

import contrafact as cf
from contrafact.models import as_classifier
from contrafact.models.eval_mode import EvalModule, eval_copy


def network(*end):
    """A small network with layers that behave otherwise in training; `end` comes last."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        body = [nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Dropout(0.5), nn.Linear(8, 3)]
        module = nn.Sequential(*body, *end)
        module[0](torch.randn(64, 6))
        module[1](3 * torch.randn(64, 8) + 1)  # moves the running statistics off their start
    return module.train()


@pytest.fixture
def x():
    return torch.randn(20, 6, generator=torch.Generator().manual_seed(1))


def expected(module, x):
    return copy.deepcopy(module).eval()(x)


class ByList(nn.Module):
    """Reaches its registered parts through a plain list."""

    def __init__(self):
        super().__init__()
        self.inner = network()
        self.steps = list(self.inner)

    def forward(self, x):
        for step in self.steps:
            x = step(x)
        return x


class ByMethod(nn.Module):
    """Reaches its part through a bound method."""

    def __init__(self):
        super().__init__()
        self.inner = network()
        self.ask = self.inner.forward

    def forward(self, x):
        return self.ask(x)


class ByClosure(nn.Module):
    """Reaches its part through a function, which no copy can follow."""

    def __init__(self):
        super().__init__()
        inner = self.inner = network()
        self.ask = lambda x: inner(x)

    def forward(self, x):
        return self.ask(x)


class WithLock(nn.Module):
    """Holds what cannot be copied."""

    def __init__(self):
        super().__init__()
        self.inner = network()
        self.lock = threading.Lock()

    def forward(self, x):
        with self.lock:
            return self.inner(x)


class OwnSwitch(nn.Module):
    """Changes its weights in `train`, as adapters that are merged for evaluation do."""

    def __init__(self):
        super().__init__()
        self.inner = network()
        self.merged = False

    def train(self, mode=True):
        super().train(mode)
        if self.merged == mode:
            self.inner[4].bias.data += -1 if mode else 1
            self.merged = not mode
        return self

    def forward(self, x):
        return self.inner(x)


def weight_normed():
    module = network()
    with pytest.warns(FutureWarning):
        nn.utils.weight_norm(module[0])
    module(torch.zeros(2, 6))  # leaves a weight that is no leaf
    module[1].reset_running_stats()
    return module


COPIED = {
    "sequence": network,
    "list": ByList,
    "bound method": ByMethod,
    "own switch": OwnSwitch,
    "weight norm": weight_normed,
    "spectral norm": lambda: nn.Sequential(nn.utils.parametrizations.spectral_norm(network()[0])),
}
SWITCHED = {
    "closure": ByClosure,
    "lock": WithLock,
}


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize("name", [*COPIED, *SWITCHED])
def test_answers_as_in_eval_mode_and_changes_nothing(name, x):
    module = {**COPIED, **SWITCHED}[name]()
    wanted = None if name in SWITCHED or name == "weight norm" else expected(module, x)
    modes = [part.training for part in module.modules()]
    state = copy.deepcopy(module.state_dict())
    run = EvalModule(module)
    first, second = run(x), run(x)
    torch.testing.assert_close(first, second, rtol=0, atol=0)
    if wanted is not None:
        torch.testing.assert_close(first, wanted, rtol=0, atol=0)
    assert [part.training for part in module.modules()] == modes
    assert all(torch.equal(state[key], value) for key, value in module.state_dict().items())
    assert (eval_copy(module) is None) == (name in SWITCHED)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript_in_train_mode(x):
    module = torch.jit.script(network())
    wanted = expected(network(), x)
    run = EvalModule(module)
    torch.testing.assert_close(run(x), wanted)
    assert module.training and eval_copy(module) is None
    assert torch.equal(module.state_dict()["1.running_mean"], network()[1].running_mean)


def test_a_module_in_eval_mode_runs_itself(x):
    module = network().eval()
    seen = []
    module.register_forward_hook(lambda part, inputs, output: seen.append(part))
    EvalModule(module)(x)
    assert seen == [module]


def test_the_copy_shares_weights_buffers_and_hooks(x):
    module = network()
    copied = eval_copy(module)
    assert not any(part.training for part in copied.modules())
    for name, value in module.state_dict(keep_vars=True).items():
        assert copied.state_dict(keep_vars=True)[name] is value
    seen = []
    module.register_forward_hook(lambda part, inputs, output: seen.append(output))
    copied(x)
    assert len(seen) == 1


def new_weights(module):
    with torch.no_grad():
        module[4].weight.mul_(2)


def new_layer(module):
    module[4] = nn.Linear(8, 3)


def new_value(module):
    module[1].eps = 0.5


def new_precision(module):
    module.double()


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize("update", [new_weights, new_layer, new_value, new_precision])
def test_later_changes_are_followed(update, x):
    module = network()
    run = EvalModule(module)
    before = run(x)
    update(module)
    x = x.to(module[0].weight)
    after = run(x)
    torch.testing.assert_close(after, expected(module, x), rtol=0, atol=0)
    assert not torch.equal(before, after)


def test_weights_that_are_not_shared_are_followed_too(x):
    module = OwnSwitch()
    run = EvalModule(module)
    run(x)
    new_weights(module.inner)
    torch.testing.assert_close(run(x), expected(module, x), rtol=0, atol=0)


def test_a_copy_is_made_once(x, monkeypatch):
    made = []
    monkeypatch.setattr(
        "contrafact.models.eval_mode.eval_copy",
        lambda module: made.append(module) or eval_copy(module),
    )
    run = EvalModule(network())
    run(x)
    run(x)
    assert len(made) == 1


def test_hooks_see_one_thread_only(x):
    run = EvalModule(network())
    seen = []
    inside = threading.Barrier(2)

    def elsewhere():
        inside.wait()
        run(x)
        inside.wait()

    other = threading.Thread(target=elsewhere)
    other.start()
    with run.hooked() as module:
        module.register_forward_hook(lambda part, inputs, output: seen.append(len(output)))
        inside.wait()
        inside.wait()
        assert seen == []
        run(x[:3])
    other.join()
    run(x)
    assert seen == [3]


def test_classifiers_can_be_pickled_and_copied_after_use(x):
    classifier = as_classifier(network())
    answer = classifier.predict_proba(x)
    for other in (pickle.loads(pickle.dumps(classifier)), copy.deepcopy(classifier)):
        assert other.in_eval_mode.module is other.module is not classifier.module
        np.testing.assert_array_equal(other.predict_proba(x), answer)


def series_network():
    """A network for series, with layers that training changes, in train mode."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = nn.Sequential(
            nn.Conv1d(1, 6, 5, padding=2),
            nn.BatchNorm1d(6),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
            nn.Linear(6, 2),
        )
        for _ in range(20):
            module(torch.randn(32, 1, 24).cumsum(2))
        logits = eval_copy(module)(torch.randn(200, 1, 24).cumsum(2))
        module[-1].bias.data -= logits.detach().median(0).values  # both classes are about as likely
    return module


@pytest.mark.parametrize(
    "explainer",
    [cf.LineSearch(), cf.NativeGuide(mode="cam"), cf.CELS(max_iter=15)],
    ids=lambda explainer: type(explainer).__name__,
)
def test_threads_may_explain_with_one_module_in_train_mode(explainer):
    module = series_network()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(48, 1, 24)).astype(np.float32).cumsum(2)
    explainer.fit(module, X, as_classifier(module).predict(X))
    parts = np.split(X[:32], 8)
    serial = [explainer.explain(part) for part in parts]
    state = copy.deepcopy(module.state_dict())
    for _ in range(3):
        with ThreadPoolExecutor(8) as pool:
            threaded = list(pool.map(explainer.explain, parts))
        for ours, theirs in zip(threaded, serial, strict=True):
            np.testing.assert_array_equal(ours.X_cf, theirs.X_cf)
            np.testing.assert_array_equal(ours.valid, theirs.valid)
            np.testing.assert_array_equal(ours.calls, theirs.calls)
    assert all(part.training for part in module.modules())
    assert all(torch.equal(state[name], value) for name, value in module.state_dict().items())
    assert any(result.valid.any() for result in serial)
