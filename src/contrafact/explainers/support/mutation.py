"""Mutation of an evolutionary search: windows of series are replaced."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ...engine import Tasks
from .class_series import ClassSeries
from .population import Population
from .windows import make_windows

#: kinds of mutations
MUTATIONS = ("authentic_opposing", "frequency", "mean")
#: share of the mutations that restore a window of the instance
RESTORED = 0.4
#: random numbers per individual
N_NUMBERS = 7


class Mutation:
    """Replace a window in one channel of some individuals.

    A window takes the values of the target class, or those of the instance, which undoes edits
    that were not needed. In generation 0 all individuals mutate, with windows of any length and
    values of the target class.

    Parameters
    ----------
    series : ClassSeries
        Reference series of the classes.
    kinds : sequence of {"authentic_opposing", "frequency", "mean"}
        Kinds to choose from at random: "authentic_opposing" copies a window of a series of the
        class, "frequency" a band of its spectrum, "mean" draws a window around the mean of the
        class.
    rate : float
        How often an individual mutates.
    max_window : float
        Longest window as a share of the length.
    """

    def __init__(
        self,
        series: ClassSeries,
        kinds: Sequence[str],
        rate: float,
        max_window: float,
    ) -> None:
        self.series = series
        self.kinds = kinds
        self.rate = rate
        self.max_window = max_window

    def __call__(
        self,
        population: Population,
        offspring: Tasks,
        x: Tensor,
        generation: int,
    ) -> Tensor:
        """Mutate offspring.

        Parameters
        ----------
        population : Population
            Where the offspring come from; it draws their random numbers.
        offspring : Tasks
            One task per offspring; they carry `population` and `slot`.
        x : Tensor of shape (offspring, channels, length)
            The offspring.
        generation : int
            Number of the generation.

        Returns
        -------
        Tensor of shape (offspring, channels, length)
            The offspring after mutation.
        """
        numbers = population.draw(N_NUMBERS, stream=2 * generation + 1)
        number = offspring["population"]
        slot = offspring["slot"]
        numbers = numbers[number, slot]  # (offspring, N_NUMBERS)
        chance, kind, where, member, source, start, width = numbers.unbind(1)
        channel = (where * offspring.shape[0]).long()
        mutates = chance < self.rate
        restored = source < RESTORED
        if generation == 0:
            mutates = torch.ones_like(mutates)
            restored = torch.zeros_like(restored)
        mutants = offspring.attach(
            kind=(kind * len(self.kinds)).long(),
            channel=channel,
            member=member,
            restored=restored,
            start=start,
            width=width,
            series=_pick_channel(x, channel),
        )
        mutants = mutants.take(mutates)
        entry = mutates.nonzero().flatten()
        channel = channel[mutates]
        x = x.clone()
        x[entry, channel] = self._mutate(mutants, generation)
        return x

    def _mutate(self, mutants: Tasks, generation: int) -> Tensor:
        """Return the mutated channel of each individual, (mutants, length)."""
        max_window = self.max_window if generation > 0 else 1.0
        mutated = mutants["series"].clone()
        for number, kind in enumerate(self.kinds):
            chosen = mutants["kind"] == number
            if not bool(chosen.any()):
                continue
            part = mutants.take(chosen)
            series = part["series"]
            new = self._new_values(part, kind, generation)
            replace = _replace_band if kind == "frequency" else _replace_window
            mutated[chosen] = replace(
                part,
                series,
                new,
                max_window,
            )
        return mutated

    def _new_values(
        self,
        mutants: Tasks,
        kind: str,
        generation: int,
    ) -> Tensor:
        """Return what the windows are taken from, (mutants, length)."""
        channel = mutants["channel"]
        target = mutants.target
        if kind == "mean":
            length = mutants.shape[1]
            noise = mutants.normal(
                length,
                mutants["slot"],
                stream=generation,
            )
            mean = self.series.mean[target, channel]
            spread = self.series.spread[target, channel]
            of_class = mean + spread * noise
        else:
            of_class = self.series.pick(
                target,
                channel,
                mutants["member"],
            )
        of_instance = _pick_channel(mutants.x, channel)
        restored = mutants["restored"][:, None]
        return torch.where(restored, of_instance, of_class)


def _pick_channel(x: Tensor, channel: Tensor) -> Tensor:
    """Return one channel of each series, (n, length)."""
    entry = torch.arange(len(x), device=x.device)
    return x[entry, channel]


def _replace_window(
    mutants: Tasks,
    series: Tensor,
    new: Tensor,
    max_window: float,
) -> Tensor:
    """Copy a random window of `new` into the series."""
    size = series.shape[1]
    longest = max(1, int(max_window * size))
    window = make_windows(
        mutants["start"],
        mutants["width"],
        size,
        longest,
    )
    return torch.where(window, new, series)


def _replace_band(
    mutants: Tasks,
    series: Tensor,
    new: Tensor,
    max_window: float,
) -> Tensor:
    """Copy a random band of the spectrum of `new` into that of the series."""
    length = series.shape[1]
    spectrum = _replace_window(
        mutants,
        torch.fft.rfft(series),
        torch.fft.rfft(new),
        max_window,
    )
    mutated: Tensor = torch.fft.irfft(spectrum, n=length)
    return mutated
