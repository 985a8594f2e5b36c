"""TSEvo: a population of edits evolves between reaching the target, staying near and changing little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ..engine import Batch, Candidates, Tags
from ..engine.batch import lead, place_in_row
from ..guides import Guide, NearestUnlikeNeighbor
from ..models.classifier import Array
from ..numerics.randomness import fold_in, row_normal, row_uniform
from ..prototypes import select_diverse
from ..search import front_ranks, survivors
from .support.guided import GuidedExplainer

MUTATIONS = ("authentic_opposing", "frequency", "mean")
#: numbers of one generation worked on at once; more instances take turns, which changes no result
MAX_ELEMENTS = 2**22
#: share of the mutations that give a window back to the instance
GIVE_BACK = 0.4


@dataclass
class Population:
    """Individuals (n, m, channels, length) and their objectives (n, m, 3)."""

    x: Tensor
    F: Tensor

    @property
    def merit(self) -> Tensor:
        """Smaller is better: values changed, then distance; infinite where the target is not reached."""
        reached, d, s = self.F.unbind(2)
        return torch.where(reached == 0, s + d / (1 + d), torch.inf)

    def join(
        self,
        row: Tensor,
        x: Tensor,
        F: Tensor,
        room: int,
    ) -> Population:
        """With more individuals, `row` says whose; where a row gets fewer than others, or than `room`, the
        rest is absent: infinite in every objective, so that it never lives on."""
        place = place_in_row(row)
        room = max(room, int(place.max()) + 1 if len(row) else 0)
        more_x = self.x.new_zeros(len(self.x), room, *self.x.shape[2:])
        more_F = self.F.new_full((len(self.x), room, 3), torch.inf)
        more_x[row, place], more_F[row, place] = x, F
        return Population(torch.cat([self.x, more_x], 1), torch.cat([self.F, more_F], 1))

    def take(self, which: Tensor) -> Population:
        pool = torch.arange(len(which), device=which.device)[:, None]
        return Population(self.x[pool, which], self.F[pool, which])


class TSEvo(GuidedExplainer):
    """Evolutionary counterfactuals (Höllig, Kulbach, Thoma, ICMLA 2022), by NSGA-II.

        minimize over x'    short(x'),    mean |x' − x|,    #{x' ≠ x}

    where short(x') is 0 once the model accepts x' as class c, and before 1 − σ(lead of c in the scores).

    Every individual is a series. The first generation holds x, its nearest unlike neighbor, and mutated
    copies of x. Then parents win a binary tournament, swap a window, and their offspring mutate.
    The best by front and crowding distance live on. The individual of class c that changes fewest values, of
    those the nearest, is never crowded out: it is the answer. All instances evolve together, each by its own
    random numbers, and for all generations.

    The model is asked only where its answer can matter. Offspring farther and no sparser than an individual
    that has reached c are dominated whatever the model says. And once c is reached, `thrifty` drops offspring
    of two parents that have not reached it: these are most of them, and few get there.

    Where no individual reaches c the straight line to the neighbor is tried, told in `info["fallback"]`.

    Parameters
    ----------
    population, generations : individuals per instance (even), and how often they reproduce.
    mutation : "authentic_opposing" copies a window from a series of class c, "frequency" a band of its
        spectrum, "mean" draws a window around the mean of the class; "all" takes one of them at random. Two
        in five take the values of x instead, which gives back edits that were not needed.
    crossover_rate, mutation_rate : how often pairs swap a window, and offspring mutate.
    max_window : longest window of a mutation, as a share of the length; lengths are drawn log-uniformly.
    thrifty : False asks about more offspring, for somewhat sparser answers at several times the model rows.
    metric : "euclidean" or "dtw", for the neighbor.

    `info`: guide_index, front_size (individuals in the first front), reached (those in the target class),
    fallback.

    Examples
    --------
    >>> result = TSEvo(population=20, generations=20).fit(model, X_train, y_train).explain(X_test[:8])
    >>> result.valid.mean()
    1.0
    """

    tags = Tags(modalities=("series",))

    def __init__(
        self,
        population: int = 52,
        generations: int = 100,
        mutation: Literal["authentic_opposing", "frequency", "mean", "all"] = "authentic_opposing",
        crossover_rate: float = 0.9,
        mutation_rate: float = 0.6,
        max_window: float = 0.25,
        thrifty: bool = True,
        metric: Literal["euclidean", "dtw"] = "euclidean",
    ) -> None:
        self.population, self.generations, self.mutation = population, generations, mutation
        self.crossover_rate, self.mutation_rate = crossover_rate, mutation_rate
        self.max_window, self.thrifty, self.metric = max_window, thrifty, metric

    @classmethod
    def _get_test_params(cls) -> list[dict[str, Any]]:
        return [
            {"population": 8, "generations": 4},
            {"population": 6, "generations": 3, "mutation": "all"},
        ]

    def _make_guide(self) -> Guide:
        if self.population < 4 or self.population % 2:
            raise ValueError(
                f"population must be an even number of at least 4, got {self.population}."
            )
        if self.generations < 0:
            raise ValueError(f"generations must not be negative, got {self.generations}.")
        if self.mutation not in (*MUTATIONS, "all"):
            known = ", ".join(map(repr, MUTATIONS))
            raise ValueError(f"mutation must be one of {known} or 'all', got {self.mutation!r}.")
        for name in ("crossover_rate", "mutation_rate", "max_window"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie between 0 and 1, got {getattr(self, name)}.")
        return NearestUnlikeNeighbor(self.metric)

    def _fit(self, X: Tensor, y: Array | None) -> None:
        super()._fit(X, y)
        of_class = self.guide_.candidate_class_
        columns = torch.arange(len(self.classifier_.classes), device=of_class.device)
        member = (of_class == columns[:, None]).to(X.dtype)
        self._by_class = of_class.argsort(stable=True)
        self._count = torch.bincount(of_class, minlength=len(columns))
        self._first = self._count.cumsum(0) - self._count
        size = self._count.clamp_min(1).reshape(-1, 1, 1)
        self._mean = torch.einsum("cr,rdt->cdt", member, X) / size
        square = (X - self._mean[of_class]).square()
        self._spread = (torch.einsum("cr,rdt->cdt", member, square) / size).sqrt()

    def _explain(self, batch: Batch) -> Candidates:
        target = self.classifier_.classes[batch.target.cpu().numpy()]
        guides, index = self.guide_.guide(
            batch.x,
            target,
            confidence=batch.confidence,
        )
        known = index[:, 0] >= 0
        batch.refuse(
            batch.rows[~known],
            "the reference data hold no row that the model puts in the target class",
        )
        size = max(1, MAX_ELEMENTS // (2 * self.population * batch.x[:1].numel()))
        parts, offsets = [], [rows for rows in batch.rows[known].split(size) if len(rows)]
        for rows in offsets:
            part = batch.take(rows)
            try:
                found = self._evolve(part, guides[rows, 0])
            finally:
                batch.absorb(part, rows)
            found.info["guide_index"] = index[rows[found.rows], 0]
            parts.append(found)
        return (
            Candidates.concat(parts, offsets)
            if len(parts)
            else Candidates(batch.x[:0], batch.rows[:0])
        )

    def _evolve(self, batch: Batch, guide: Tensor) -> Candidates:
        m = self.population
        row, slot = (
            batch.rows.repeat_interleave(m),
            torch.arange(m, device=guide.device).repeat(len(batch)),
        )
        x = self._mutated(batch, batch.x[row], row, slot, 0)
        x[slot == 0], x[slot == 1] = guide, batch.x
        now = Population(
            x.new_zeros(len(batch), 0, *self.shape_), guide.new_zeros(len(batch), 0, 3).double()
        )
        now = self._grown(batch, now, x, row)
        for generation in range(1, self.generations + 1):
            if not bool(batch.affords(batch.rows).any()):
                break
            x, row, slot = self._mated(batch, now, generation)
            now = self._grown(
                batch,
                now,
                self._mutated(batch, x, row, slot, generation),
                row,
            )
        batch.progress(len(batch))
        return self._answers(batch, now, guide)

    def _grown(
        self,
        batch: Batch,
        now: Population,
        x: Tensor,
        row: Tensor,
    ) -> Population:
        """The best of those there were and of the offspring `x`; offspring that are not asked about die."""
        x = batch.project(x, row)
        delta = (x - batch.x[row]).flatten(1)
        d, s = delta.abs().mean(1).double(), delta.count_nonzero(1).double()
        short_now, d_now, s_now = now.F.unbind(2)
        d_now = torch.where(short_now == 0, d_now, torch.inf)
        open_ = ~((d_now[row] <= d[:, None]) & (s_now[row] <= s[:, None])).any(1)
        asked = open_.nonzero().flatten()
        asked = asked[batch.affords(row[asked])]
        x, row, d, s = x[asked], row[asked], d[asked], s[asked]
        verdict = batch.ask(x, row, cached=True)
        # Nothing short of the target counts as reached.
        short = (1 - lead(verdict.score, batch.target[row]).double().sigmoid()).clamp_min(1e-12)
        short = torch.where(batch.accepts(verdict, row), 0.0, short)
        both = now.join(
            row, x, torch.stack([short, d, s], 1), max(0, self.population - now.x.shape[1])
        )
        # Only where something came in: the order of the others must not depend on their neighbors.
        changed = torch.bincount(row, minlength=len(batch)).nonzero().flatten()
        kept = torch.arange(self.population, device=row.device).repeat(len(batch), 1)
        kept[changed] = survivors(
            both.F[changed],
            self.population,
            both.merit[changed].argmin(1),
        )
        return both.take(kept)

    def _answers(
        self,
        batch: Batch,
        population: Population,
        guide: Tensor,
    ) -> Candidates:
        """Of those that reach the target the best by merit, and k − 1 more that differ from it."""
        merit = population.merit
        if batch.k == 1:
            chosen = merit.argmin(1, keepdim=True)
        else:
            best = merit.amin(1, keepdim=True)
            quality = torch.where(merit.isfinite(), best / merit, 0.0).clamp_min(1e-9)
            chosen = select_diverse(
                population.x,
                min(batch.k, self.population),
                quality,
            )
        good = merit.gather(1, chosen).isfinite()
        none = ~good.any(1)
        good[:, 0] |= none
        rows, slot = good.nonzero(as_tuple=True)
        x_cf = population.x[rows, chosen[rows, slot]]
        lost, fallback = none[rows].nonzero().flatten(), torch.zeros_like(rows, dtype=torch.bool)
        end = batch.project(guide[rows[lost]], rows[lost])
        x_cf[lost], fallback[lost] = self._rescue(batch, rows[lost], end)
        info = {
            "front_size": (front_ranks(population.F) == 0).sum(1)[rows],
            "reached": merit.isfinite().sum(1)[rows],
            "fallback": fallback,
        }
        return Candidates(x_cf, rows, info)

    # --- variation ------------------------------------------------------------------------------------------

    def _draws(self, batch: Batch, count: int, stream: int) -> Tensor:
        """(count, n, individuals) numbers in [0, 1), in double: they become positions."""
        draws = row_uniform(batch.seeds, count * self.population, stream)
        return (
            torch.from_numpy(draws)
            .to(batch.x.device)
            .reshape(len(batch), count, -1)
            .transpose(0, 1)
        )

    def _mated(
        self, batch: Batch, now: Population, generation: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Offspring, their rows and their places. Parents win a binary tournament: the first of two, as
        survivors come best first. Pairs swap a window, in one channel or in all of them."""
        u = self._draws(batch, 6, 2 * generation)
        parents = (u[:2].amin(0) * self.population).long().unflatten(1, (-1, 2))
        reached = now.F[:, :, 0] == 0
        fit = torch.ones_like(parents[:, :, 0], dtype=torch.bool)
        if self.thrifty:
            fit = reached[batch.rows[:, None, None], parents].any(2) | ~reached.any(1, keepdim=True)
        row, pair = fit.nonzero(as_tuple=True)
        x = now.x[row[:, None], parents[row, pair]]
        mate, where, first, length = u[2:, row, pair]
        channels, time = self.shape_
        channel = (2 * channels * where).long()[:, None]
        channel = (channel >= channels) | (channel == torch.arange(channels, device=x.device))
        window = windows(first, length, time, time) & (mate < self.crossover_rate)[:, None]
        swap = (channel[:, :, None] & window[:, None])[:, None]
        x = torch.where(swap, x.flip(1), x).flatten(0, 1)
        slot = 2 * pair[:, None] + torch.arange(2, device=x.device)
        return x, row.repeat_interleave(2), slot.flatten()

    def _mutated(
        self, batch: Batch, x: Tensor, row: Tensor, slot: Tensor, generation: int
    ) -> Tensor:
        """In one channel of some individuals; in generation 0 of all, with windows of any length.

        Some later mutations take the values of the instance: edits that were not needed are given back.
        """
        u = self._draws(batch, 7, 2 * generation + 1)[:, row, slot]
        rate, share = (self.mutation_rate, self.max_window) if generation else (1.0, 1.0)
        which = (u[0] < rate).nonzero().flatten()
        kind, channel, reference, source, first, length = u[1:, which]
        row, slot = row[which], slot[which]
        channel = (channel * self.shape_[0]).long()
        target = batch.target[row]
        member = self._by_class[self._first[target] + (reference * self._count[target]).long()]
        series, other = x[which, channel], self.guide_.candidates_[member, channel]
        back = (source < GIVE_BACK) & (generation > 0)
        kinds = MUTATIONS if self.mutation == "all" else (self.mutation,)
        kind = (kind * len(kinds)).long()
        for i, name in enumerate(kinds):
            w = (kind == i).nonzero().flatten()
            if len(w) == 0:
                continue
            if name == "mean":
                seeds = fold_in(batch.seeds[row[w].cpu().numpy()], slot[w].cpu().numpy())
                noise = torch.from_numpy(row_normal(seeds, series.shape[-1], generation)).to(series)
                at = target[w], channel[w]
                other[w] = self._mean[at] + self._spread[at] * noise
            now, new = (
                series[w],
                torch.where(
                    back[w, None],
                    batch.x[row[w], channel[w]],
                    other[w],
                ),
            )
            if name == "frequency":
                now, new = torch.fft.rfft(now), torch.fft.rfft(new)
            size = now.shape[-1]
            now = torch.where(
                windows(first[w], length[w], size, max(1, int(share * size))), new, now
            )
            series[w] = torch.fft.irfft(now, n=series.shape[-1]) if name == "frequency" else now
        x[which, channel] = series
        return x


def windows(
    first: Tensor,
    length: Tensor,
    size: int,
    longest: int,
) -> Tensor:
    """Masks (…, size) of windows with log-uniform lengths up to `longest`, from numbers in [0, 1)."""
    width = torch.exp(length * np.log(longest + 1)).long().clamp(1, longest)
    start = (first * (size - width + 1)).long()
    place = torch.arange(size, device=first.device)
    return (place >= start[..., None]) & (place < (start + width)[..., None])
