"""Sets of channels to take over from a distractor, and searches for the best one."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from ...engine import Tasks
from ...search.segments import count_segments, sum_by_segment


class ChannelSets:
    """The best set of channels found so far, one per task.

    A set is better than another if the model accepts it and not the other, then if it has fewer
    channels, then if the target leads by more.

    Parameters
    ----------
    tasks : Tasks
        With guides, the distractors; an instance may have several tasks.

    Attributes
    ----------
    chosen : Tensor of bool, shape (n, channels)
        The best sets.
    merit : Tensor of float64, shape (n,)
        How good they are; above 1 where the model accepts them.
    """

    def __init__(self, tasks: Tasks) -> None:
        self.tasks = tasks
        self.channel = channels_of(tasks)
        self.n_channels = count_segments(self.channel)
        device = tasks.row.device
        self.chosen = torch.ones(
            len(tasks),
            self.n_channels,
            dtype=torch.bool,
            device=device,
        )
        self.merit = torch.full(
            (len(tasks),),
            -torch.inf,
            dtype=torch.float64,
            device=device,
        )
        difference = sum_by_segment((tasks.guide - tasks.x).abs(), self.channel).double()
        largest = difference.amax(1, keepdim=True).clamp_min(1e-300)
        self._tie_break = 1e-9 * difference / largest

    @property
    def accepted(self) -> Tensor:
        """Whether the model accepts the best set, (n,)."""
        return self.merit > 1

    def result(self) -> Tensor:
        """Return the best sets as instances; all channels where no set was accepted."""
        return self._swap(self.tasks, self.chosen | ~self.accepted[:, None])

    def grow(self) -> None:
        """Add the channel with the largest gain until accepted, then take back those not needed."""
        nothing = torch.zeros_like(self.chosen)
        self._walk(nothing, torch.full_like(self.merit, -torch.inf), grow=True)

    def climb(self, chosen: Tensor) -> None:
        """Add or take back the best channel as long as that is better, starting from given sets."""
        merit = torch.full_like(self.merit, -torch.inf)
        able = self.tasks.affords()
        merit[able] = self._merit(self.tasks.take(able), chosen[able])
        self._walk(chosen, merit, grow=False)

    def _walk(self, chosen: Tensor, merit: Tensor, grow: bool) -> None:
        """Change one channel at a time until no change is better."""
        chosen = chosen.clone()
        position = torch.arange(len(self.tasks), device=chosen.device)
        while len(position):
            tasks = self.tasks.take(position)
            now = chosen[position]
            merit_now = merit[position]
            accepted = merit_now > 1
            value = self._try_changes(tasks, now, accepted, grow)
            best = (value + self._tie_break[position]).argmax(1, keepdim=True)
            value = value.gather(1, best)[:, 0]
            moves = value > merit_now
            if grow:
                moves |= ~accepted & value.isfinite()
            position = position[moves]
            channel = best[moves, 0]
            chosen[position, channel] = ~chosen[position, channel]
            merit[position] = value[moves]
        better = merit > self.merit
        self.chosen[better] = chosen[better]
        self.merit[better] = merit[better]

    def _try_changes(
        self,
        tasks: Tasks,
        now: Tensor,
        accepted: Tensor,
        grow: bool,
    ) -> Tensor:
        """Return the merit of every set that differs in one channel, (n, channels)."""
        options = torch.ones_like(now)
        if grow:
            options = now == accepted[:, None]  # take back where accepted, add where not
        is_last = now & (now.sum(1, keepdim=True) == 1)
        options &= ~is_last  # no channel at all is the instance itself
        task, channel = options.nonzero(as_tuple=True)
        able = tasks.take(task).affords()
        task = task[able]
        channel = channel[able]
        trial = now[task] ^ one_hot(channel, self.n_channels).bool()
        value = torch.full(
            now.shape,
            -torch.inf,
            dtype=torch.float64,
            device=now.device,
        )
        value[task, channel] = self._merit(tasks.take(task), trial)
        return value

    def _merit(self, tasks: Tasks, chosen: Tensor) -> Tensor:
        """Score sets: in (−1, 1) by the target's lead where not accepted, else above 1."""
        x_cf = self._swap(tasks, chosen)
        verdict = tasks.ask(x_cf, cached=True)
        lead = tasks.lead(verdict)
        fewer = self.n_channels + 1 - chosen.sum(1)
        return lead / (1 + lead.abs()) + 2 * fewer * tasks.accepts(x_cf, verdict)

    def _swap(self, tasks: Tasks, chosen: Tensor) -> Tensor:
        """Take the chosen channels from the distractors."""
        return tasks.project(torch.where(chosen[:, self.channel], tasks.guide, tasks.x))


def channels_of(tasks: Tasks) -> Tensor:
    """Return the channel of each value, of the shape of an instance.

    A feature of a row is a channel, and so is a column or one-hot group of a table.
    """
    if tasks.space is not None:
        return tasks.space.part
    number = torch.arange(tasks.shape[0], device=tasks.row.device)
    return number.reshape(-1, *[1] * (len(tasks.shape) - 1)).expand(tasks.shape)
