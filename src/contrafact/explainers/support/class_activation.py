"""Class activation of networks that average over time before their last layer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle

from ...engine import Tasks
from ...models.adapters import TorchClassifier
from ...models.classifier import Classifier
from ...models.reshaped import Reshaped


def activation_gain(tasks: Tasks) -> Tensor:
    """Measure by how much the class activation of the guide exceeds the instance's at each time.

        g_t = (w_c − w_y) · (h_t(n) − h_t(x)),      logits = W mean_t h_t + b

    for networks that average maps h over time before their last layer W. c is the target, y the
    instance's class. The mean of g over all t is what going from x to n does to the target's lead
    over y, so g tells where n gains it.

    Parameters
    ----------
    tasks : Tasks
        With guides, for a model for which `averages_over_time` holds.

    Returns
    -------
    Tensor of float64, shape (n, length)
        g, two model rows each; 0 where the budget does not allow it.
    """
    length = tasks.shape[-1]
    gain = tasks.x.new_zeros(len(tasks), length)
    able = tasks.affords(2)
    asking = tasks.take(able)
    wrapped = _torch_classifier(tasks.classifier)
    assert wrapped is not None
    head = _last_layer(wrapped.module, tasks.classifier)
    assert head is not None
    both = Tasks.concat([asking, asking])
    with pooled_maps(tasks.classifier) as maps:
        both.ask(torch.cat([asking.guide, asking.x]))
    answered = sum(len(batch) for batch in maps)
    if 0 < answered == len(both):  # the deadline may have cut the question
        h_guide, h_own = torch.cat(maps).tensor_split(2)
        weight = head.weight.detach()
        w = weight[asking.target] - weight[asking.label]
        activation = torch.einsum("nf,nft->nt", w, h_guide - h_own)
        stretched = torch.nn.functional.interpolate(
            activation[:, None],
            length,
            mode="linear",
        )
        gain[able] = stretched[:, 0]
    return gain.double()


def averages_over_time(classifier: Classifier, x: Tensor) -> bool:
    """Check whether a network averages maps over time before its last layer.

    Parameters
    ----------
    classifier : Classifier
        The model.
    x : Tensor of shape (n, *shape)
        Instances to try it on.

    Returns
    -------
    bool
        Whether `pooled_maps` finds any.
    """
    with pooled_maps(classifier) as maps:
        classifier.evaluate(x)
    return len(maps) > 0


@contextmanager
def pooled_maps(classifier: Classifier) -> Iterator[list[Tensor]]:
    """Collect the maps that a network averages over time before its last linear layer.

    Parameters
    ----------
    classifier : Classifier
        The model.

    Yields
    ------
    list of Tensor, shape (m, features, time)
        One entry for every batch the model is asked about inside; none for models that do not work
        this way.
    """
    maps: list[Tensor] = []
    wrapped = _torch_classifier(classifier)
    if wrapped is None or _last_layer(wrapped.module, classifier) is None:
        yield maps
        return
    with wrapped.in_eval_mode.hooked() as module:
        head = _last_layer(module, classifier)
        assert head is not None
        hooks = _collect(module, head, maps)
        try:
            yield maps
        finally:
            for hook in hooks:
                hook.remove()


def _collect(
    module: torch.nn.Module,
    head: torch.nn.Linear,
    maps: list[Tensor],
) -> list[RemovableHandle]:
    """Register hooks that add to `maps` those whose mean over time enters the last layer."""
    latest: list[Tensor] = []

    def note_output(
        module: torch.nn.Module,
        inputs: object,
        output: object,
    ) -> None:
        if isinstance(output, Tensor) and output.ndim == 3 and output.shape[2] > 1:
            latest[:] = [output.detach()]

    def compare_with_mean(module: torch.nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if not latest or inputs[0].shape != latest[0].shape[:2]:
            return
        mean = latest[0].mean(2)
        tolerance = 1e-4 * float(latest[0].abs().max())
        if torch.allclose(mean, inputs[0], rtol=0.0, atol=tolerance, equal_nan=True):
            maps.append(latest[0])

    hooks = [part.register_forward_hook(note_output) for part in module.modules()]
    hooks.append(head.register_forward_pre_hook(compare_with_mean))
    return hooks


def _torch_classifier(classifier: Classifier) -> TorchClassifier | None:
    """Return the classifier of a torch module, if it is one."""
    while isinstance(classifier, Reshaped):
        classifier = classifier.inner
    return classifier if isinstance(classifier, TorchClassifier) else None


def _last_layer(module: torch.nn.Module, classifier: Classifier) -> torch.nn.Linear | None:
    """Return the last linear layer of a network, if it gives one number per class."""
    layers = [part for part in module.modules() if isinstance(part, torch.nn.Linear)]
    if not layers or layers[-1].out_features != len(classifier.classes):
        return None
    return layers[-1]
