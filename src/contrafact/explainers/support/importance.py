"""How much each part of an instance matters: segments switched off, segments copied, class activation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from ...engine import Batch
from ...engine.batch import lead
from ...models.adapters import TorchClassifier
from ...models.classifier import Classifier, Reshaped

#: numbers built at once; more candidates are tried in turn
MAX_ELEMENTS = 2**24


def segment_importance(
    p_label: Callable[[Tensor, Tensor], Tensor],
    x: Tensor,
    segment: Tensor,
    n_masks: int = 64,
    ridge: float = 1.0,
) -> Tensor:
    """Importance in [0, 1] per row and segment, as LIME finds it for series (Guillemé et al. 2019).

    In a random half of the segments the series is replaced by the segment's own mean. A ridge regression of
    the model's probability on which segments were kept gives coefficients; their size over the row's largest
    is the importance. All rows share the masks: one model batch, one small linear system.

    Parameters
    ----------
    p_label : (rows (m, *shape), their positions in x) → probability of the class each row's instance has.
    x : (n, *shape).
    segment : (*shape), the segment each value belongs to.
    """
    n_segments = int(segment.max()) + 1
    flat, ids = x.flatten(1), segment.flatten()
    sums = flat.new_zeros(len(x), n_segments).index_add_(1, ids, flat)
    means = (sums / torch.bincount(ids, minlength=n_segments))[:, ids].reshape(x.shape)

    generator = torch.Generator().manual_seed(0)
    kept = torch.rand(n_masks, n_segments, generator=generator) < 0.5
    which = torch.arange(len(x)).repeat_interleave(n_masks).to(x.device)
    mask = kept[:, segment.cpu()].to(x.device).repeat(len(x), *[1] * (x.ndim - 1))
    p = p_label(torch.where(mask, x[which], means[which]), which).reshape(len(x), n_masks).double()

    Z = kept.double().to(x.device) - kept.double().mean(0).to(x.device)
    gram = Z.T @ Z + ridge * torch.eye(n_segments, dtype=torch.float64, device=x.device)
    coefficient = torch.linalg.solve(gram, Z.T @ (p - p.mean(1, keepdim=True)).T).T.abs()
    largest = coefficient.amax(1, keepdim=True)
    return torch.where(largest > 0, coefficient / largest.clamp_min(1e-300), 0.0).to(x.dtype)


def copy_gain(batch: Batch, rows: Tensor, toward: Tensor, segment: Tensor) -> Tensor:
    """What copying each segment of `toward` alone does to the lead of the target: (rows, segments).

    Occlusion by the guide, as it were: one model row per segment; 0 where the budget does not allow it.
    """
    n_segments = int(segment.max()) + 1
    gain = torch.zeros(len(rows), n_segments, dtype=torch.float64, device=rows.device)
    able = batch.affords(rows, n_segments).nonzero().flatten()
    part = torch.arange(n_segments, device=rows.device)
    for some in able.split(max(1, MAX_ELEMENTS // (n_segments * segment.numel()))):
        entry = some.repeat_interleave(n_segments)
        here = segment == part.repeat(len(some)).reshape(-1, *[1] * segment.ndim)
        trial = batch.project(torch.where(here, toward[entry], batch.x[rows[entry]]), rows[entry])
        after = lead(batch.ask(trial, rows[entry]).score, batch.target[rows[entry]])
        before = lead(batch.verdict.score[rows[some]], batch.target[rows[some]])
        gain[some] = after.reshape(-1, n_segments) - before[:, None]
    return gain


def activation_gain(batch: Batch, rows: Tensor, toward: Tensor) -> Tensor:
    """By how much the class activation of `toward` exceeds the instance's own at each time: (rows, length).

        g_t = (w_c − w_y) · (h_t(n) − h_t(x)),      logits = W mean_t h_t + b

    for networks that average maps h over time before their last layer W (`pooled_maps`). c is the target, y
    the instance's class. The mean of g over all t is what going from x to n does to the target's lead over y,
    so g tells where n wins it. Two model rows each; 0 where the budget does not allow it.
    """
    length = batch.x.shape[-1]
    gain = batch.x.new_zeros(len(rows), length)
    able = batch.affords(rows, 2).nonzero().flatten()
    some, head = rows[able], _head(batch.classifier)
    assert head is not None
    with pooled_maps(batch.classifier) as maps:
        batch.ask(torch.cat([toward[able], batch.x[some]]), torch.cat([some, some]))
    if len(able):
        h_toward, h_own = torch.cat(maps).tensor_split(2)
        w = head.weight.detach()[batch.target[some]] - head.weight.detach()[batch.label[some]]
        activation = torch.einsum("nf,nft->nt", w, h_toward - h_own)
        gain[able] = torch.nn.functional.interpolate(activation[:, None], length, mode="linear")[
            :, 0
        ]
    return gain.double()


@contextmanager
def pooled_maps(classifier: Classifier) -> Iterator[list[Tensor]]:
    """Collects the maps (m, features, time) that a network averages over time before its last linear layer.

    One entry for every batch the model is asked about inside; none for models that do not work this way.
    """
    maps: list[Tensor] = []
    latest: list[Tensor] = []
    head = _head(classifier)
    if head is None:
        yield maps
        return

    def look(module: torch.nn.Module, inputs: object, output: object) -> None:
        if isinstance(output, Tensor) and output.ndim == 3 and output.shape[2] > 1:
            latest[:] = [output.detach()]

    def compare(module: torch.nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if latest and inputs[0].shape == latest[0].shape[:2]:
            mean, tolerance = latest[0].mean(2), 1e-4 * float(latest[0].abs().max())
            if torch.allclose(mean, inputs[0], rtol=0.0, atol=tolerance, equal_nan=True):
                maps.append(latest[0])

    hooks = [part.register_forward_hook(look) for part in _module(classifier).modules()]  # type: ignore[union-attr]
    hooks.append(head.register_forward_pre_hook(compare))
    try:
        yield maps
    finally:
        for hook in hooks:
            hook.remove()


def averages_over_time(classifier: Classifier, x: Tensor) -> bool:
    """Whether `pooled_maps` finds any, tried on `x`."""
    with pooled_maps(classifier) as maps:
        classifier.evaluate(x)
    return len(maps) > 0


def _module(classifier: Classifier) -> torch.nn.Module | None:
    while isinstance(classifier, Reshaped):
        classifier = classifier.inner
    return classifier.module if isinstance(classifier, TorchClassifier) else None


def _head(classifier: Classifier) -> torch.nn.Linear | None:
    """The last linear layer of a network, if it gives one number per class."""
    module = _module(classifier)
    layers = (
        [] if module is None else [m for m in module.modules() if isinstance(m, torch.nn.Linear)]
    )
    return layers[-1] if layers and layers[-1].out_features == len(classifier.classes) else None
