"""Edits of series by shapelets: stretches of one channel to be replaced."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from ...engine import Tasks
from ...numerics import occurrence
from .pool import smallest_in_groups
from .shapelets import Shapelet

#: the rank of a value that no edit touches
NEVER = 2**31 - 1


def make_edits(
    instances: Tasks,
    shapelets: Sequence[Shapelet],
) -> Tasks:
    """Make every edit by one shapelet that may bring an instance closer to its target.

    A shapelet of the instance's class that occurs is removed: the same stretch of the guide takes
    its place. A shapelet of the target class that does not occur is inserted where its class has
    it, at the local level of the instance.

    Parameters
    ----------
    instances : Tasks
        One task per instance, with guides.
    shapelets : sequence of Shapelet
        What to remove and insert.

    Returns
    -------
    Tasks
        One entry per edit, by shapelet, then by instance. Each carries `shapelet` (its number),
        `channel`, `window` (length,), True where the channel is replaced, and `values` (length,),
        by what.
    """
    x = instances.x
    n = len(shapelets)
    length = instances.shape[1]
    values = x.new_zeros(n, len(x), length)
    window = torch.zeros_like(values, dtype=torch.bool)
    is_edit = window.new_zeros(n, len(x))
    channel = instances.row.new_zeros(n)
    for number, shapelet in enumerate(shapelets):
        edit = _edit_by(shapelet, instances)
        is_edit[number], window[number], values[number] = edit
        channel[number] = shapelet.channel
    by_shapelet, position = is_edit.nonzero(as_tuple=True)
    edits = instances.take(position)
    return edits.attach(
        shapelet=by_shapelet,
        channel=channel[by_shapelet],
        window=window[is_edit],
        values=values[is_edit],
    )


def _edit_by(
    shapelet: Shapelet,
    instances: Tasks,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return which instances a shapelet edits, in which windows, and by what values."""
    occurs, place = shapelet.find(instances.x)
    is_old = instances.label == shapelet.column
    is_wanted = instances.target == shapelet.column
    is_removed = occurs & is_old
    is_inserted = ~occurs & is_wanted

    start = torch.where(is_removed, place, shapelet.start)
    length = instances.shape[1]
    time = torch.arange(length, device=start.device)
    time_in_shapelet = time - start[:, None]
    last = len(shapelet) - 1
    window = (time_in_shapelet >= 0) & (time_in_shapelet <= last)

    x = instances.x[:, shapelet.channel]
    x_in_window = torch.where(window, x, 0)
    level = x_in_window.sum(1, keepdim=True) / len(shapelet)
    time_in_shapelet = time_in_shapelet.clamp(0, last)
    insertion = level + shapelet.values[time_in_shapelet]
    removal = instances.guide[:, shapelet.channel]
    values = torch.where(is_removed[:, None], removal, insertion)
    return is_removed | is_inserted, window, values


def apply_edits(edits: Tasks) -> Tensor:
    """Replace the stretch of each edit in its instance, within the constraints.

    Parameters
    ----------
    edits : Tasks
        Edits made by `make_edits`.

    Returns
    -------
    Tensor of shape (edits, channels, length)
        One candidate per edit.
    """
    n_channels = edits.shape[0]
    in_channel = one_hot(edits["channel"], n_channels).bool()
    window = edits["window"][:, None]
    values = edits["values"][:, None]
    replaced = in_channel[:, :, None] & window
    x_cf = torch.where(replaced, values, edits.x)
    return edits.project(x_cf)


def stack_edits(instances: Tasks, edits: Tasks) -> Tasks:
    """Combine all edits that do no harm, the most helpful on top of the others.

    Parameters
    ----------
    instances : Tasks
        One task per instance.
    edits : Tasks
        Their edits, which carry their `gain`.

    Returns
    -------
    Tasks
        The instances; each carries `edited` (channels, length), the series with all edits, and
        `rank` (channels, length), the place of the edit that a value comes from among the edits of
        its channel: 0 for the most helpful, NEVER where no edit touches the value.
    """
    edits = edits.attach(owner=_owner(instances, edits))
    harmless = edits.take(edits["gain"] >= 0)
    group = _channel_number(harmless)
    loss = -harmless["gain"]
    by_gain = smallest_in_groups(group, loss, len(harmless))
    harmless = harmless.take(by_gain)
    place = occurrence(group[by_gain])
    edited = instances.x.clone()
    rank = torch.full(edited.shape, NEVER, device=edited.device)
    # The most helpful comes last, over the others.
    levels = place.unique().flip(0)
    for level in levels.tolist():
        layer = harmless.take(place == level)  # one edit per channel at most
        channel = (layer["owner"], layer["channel"])
        window = layer["window"]
        rank[channel] = torch.where(window, level, rank[channel])
        edited[channel] = torch.where(window, layer["values"], edited[channel])
    return instances.attach(edited=edited, rank=rank)


def rank_channels(instances: Tasks, edits: Tasks) -> Tensor:
    """Order the channels of every instance by their most helpful edit.

    Parameters
    ----------
    instances : Tasks
        One task per instance.
    edits : Tasks
        Their edits, which carry their `gain`.

    Returns
    -------
    Tensor of int, shape (n, channels)
        The place of each channel, 0 for the one with the largest gain.
    """
    n_channels = instances.shape[0]
    edits = edits.attach(owner=_owner(instances, edits))
    gain = edits["gain"]
    channel = _channel_number(edits)
    n_all = len(instances) * n_channels
    best = gain.new_full((n_all,), -torch.inf)
    best = best.scatter_reduce(0, channel, gain, "amax")
    best = best.reshape(-1, n_channels)
    order = best.argsort(dim=1, descending=True, stable=True)
    return order.argsort(dim=1)


def _owner(instances: Tasks, edits: Tasks) -> Tensor:
    """Return the position of the instance of each edit."""
    return torch.searchsorted(instances.row, edits.row)


def _channel_number(edits: Tasks) -> Tensor:
    """Return the number of the channel of each edit, among those of all instances."""
    n_channels = edits.shape[0]
    return n_channels * edits["owner"] + edits["channel"]
