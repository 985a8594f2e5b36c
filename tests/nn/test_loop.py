"""The training loop: steps, averages, early stopping, by the numbers."""

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from contrafact.nn.loop import train

X = torch.linspace(-1, 1, 24, dtype=torch.float64).reshape(12, 2)
Y = X.sum(1).sin()


def linear():
    module = nn.Linear(2, 1, dtype=torch.float64)
    nn.init.constant_(module.weight, 0.3)
    nn.init.constant_(module.bias, -0.2)
    return module


def run(module=None, *, lr=0.1, hook=None, seed=0, **options):
    """Least squares by plain gradient descent."""
    module = linear() if module is None else module
    optimizer = torch.optim.SGD(module.parameters(), lr=lr)
    if hook is not None:
        optimizer.register_step_post_hook(hook)
    settings = {"watch": None, "max_epochs": 3, "batch_size": 12, "patience": 100, **options}
    settings.setdefault("schedule", lambda mean: None)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        history = train(
            module,
            len(X),
            lambda rows, epoch: (module(X[rows])[:, 0] - Y[rows]).square().mean(),
            optimizer,
            **settings,
        )
    return module, history


def weights(module):
    return nn.utils.parameters_to_vector(module.parameters()).detach()


def watching(values, module=None):
    """Says these validation losses, one after the other, and notes the weights it saw."""
    seen, said = [], iter(values)

    def watch():
        if module is not None:
            seen.append((weights(module).clone(), module.training))
        return {"val_loss": next(said)}

    return watch, seen


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize(("batch_size", "accumulate"), [(6, 2), (4, 3), (1, 12)])
def test_accumulated_batches_make_the_step_of_the_whole(batch_size, accumulate):
    whole, history = run()
    parts, other = run(batch_size=batch_size, accumulate=accumulate)
    torch.testing.assert_close(weights(parts), weights(whole))
    assert other["train_loss"] == pytest.approx(history["train_loss"])
    assert not torch.allclose(weights(run(batch_size=batch_size)[0]), weights(whole), atol=1e-6)


@pytest.mark.usefixtures("own_random_numbers")
def test_steps_are_counted_by_groups_of_batches():
    steps = []
    run(batch_size=2, accumulate=4, max_epochs=1, hook=lambda *_: steps.append(1))
    assert len(steps) == 2  # six batches: four, and the two that are left


@pytest.mark.usefixtures("own_random_numbers")
def test_the_average_is_what_is_kept():
    module, path = linear(), []
    average = AveragedModel(module, multi_avg_fn=get_ema_multi_avg_fn(0.5))

    def after_step(*_):
        average.update_parameters(module)
        path.append(weights(module).clone())

    run(module, hook=after_step, average=average, max_epochs=4)
    mean = path[0]
    for place in path[1:]:
        mean = (mean + place) / 2
    torch.testing.assert_close(weights(module), mean)
    assert not torch.allclose(mean, path[-1])
    assert not module.training


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize("restore_best", [True, False])
def test_the_average_of_the_best_epoch(restore_best):
    module = linear()
    average = AveragedModel(module, multi_avg_fn=get_ema_multi_avg_fn(0.5))
    watch, seen = watching([3.0, 1.0, 2.0, 2.0], average.module)
    run(
        module,
        hook=lambda *_: average.update_parameters(module),
        average=average,
        watch=watch,
        max_epochs=4,
        restore_best=restore_best,
    )
    assert all(not training for _, training in seen)
    torch.testing.assert_close(weights(module), seen[1 if restore_best else 3][0])


@pytest.mark.usefixtures("own_random_numbers")
def test_listener_hears_every_epoch_and_may_end_it():
    heard = []

    def listener(history):
        heard.append({name: list(curve) for name, curve in history.items()})
        return len(heard) == 3

    watch, _ = watching([3.0, 2.0, 1.0, 0.0])
    _, history = run(listener=listener, watch=watch, max_epochs=10)
    assert [len(curves["train_loss"]) for curves in heard] == [1, 2, 3]
    assert heard[-1] == history and history["val_loss"] == [3.0, 2.0, 1.0]
    assert len(run(listener=lambda history: None, max_epochs=5)[1]["train_loss"]) == 5


@pytest.mark.usefixtures("own_random_numbers")
def test_best_weights_come_back_unless_told_otherwise():
    module = linear()
    watch, seen = watching([3.0, 1.0, 2.0, 1.5, 1.2], module)
    run(module, watch=watch, max_epochs=5)
    torch.testing.assert_close(weights(module), seen[1][0])
    module = linear()
    watch, seen = watching([3.0, 1.0, 2.0, 1.5, 1.2], module)
    run(module, watch=watch, max_epochs=5, restore_best=False)
    torch.testing.assert_close(weights(module), seen[4][0])
    assert all(not training for _, training in seen)


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize(("patience", "epochs"), [(1, 3), (2, 6), (3, 7)])
def test_patience(patience, epochs):
    watch, _ = watching([3.0, 1.0, 2.0, 0.9, 2.0, 1.5, 1.2])
    assert len(run(watch=watch, max_epochs=7, patience=patience)[1]["val_loss"]) == epochs


@pytest.mark.usefixtures("own_random_numbers")
def test_patience_on_a_flat_curve():
    watch, _ = watching([1.0] * 20)
    assert len(run(watch=watch, max_epochs=20, patience=4)[1]["val_loss"]) == 5


@pytest.mark.usefixtures("own_random_numbers")
def test_clip_bounds_the_step():
    start = weights(linear())
    free, clipped = (
        weights(run(max_epochs=1, lr=1.0, clip=clip)[0]) - start for clip in (None, 0.01)
    )
    assert float(clipped.norm()) == pytest.approx(0.01, rel=1e-4) and float(free.norm()) > 0.1
    torch.testing.assert_close(clipped / clipped.norm(), free / free.norm())


@pytest.mark.usefixtures("own_random_numbers")
def test_schedule_gets_the_loss_that_decides():
    heard = []
    _, history = run(schedule=heard.append)
    assert heard == history["train_loss"]
    heard = []
    watch, _ = watching([3.0, 1.0, 2.0])
    run(schedule=heard.append, watch=watch)
    assert heard == [3.0, 1.0, 2.0]


@pytest.mark.usefixtures("own_random_numbers")
def test_wrong_settings_and_divergence():
    for wrong in ({"max_epochs": 0}, {"batch_size": 0}):
        with pytest.raises(ValueError, match="must be at least 1"):
            run(**wrong)
    with pytest.raises(ValueError, match="diverged in epoch"):
        run(lr=1e150, max_epochs=10)
