"""Exchange columns of a row for those of donors: the fewest, asked for in growing sets."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ...engine import Tasks
from ...engine.acceptance import AcceptanceTest
from ...tables import TableSpace

#: different values per column that are tried
N_VALUES = 6
#: sets that are extended by one more column, and extended sets that are asked about
BEAM, N_EXTENDED = 8, 48
#: accepted sets of each task that further tests are made for
N_FINALISTS = 3
#: numbers of the values of all donors that are held at once; more tasks are searched in turn
MAX_ELEMENTS = 2**22


@dataclass(frozen=True)
class Moves:
    """Values that single parts (columns, one-hot groups) of each row may take.

    Parameters
    ----------
    value : Tensor of shape (n, values, coordinates)
        The v-th value of the part that each coordinate belongs to.
    donor : Tensor of int, shape (n, parts, values)
        Where it comes from; -1: there is none.
    size : Tensor of float64, shape (n, parts, values)
        How far it is from the row's own.
    """

    value: Tensor
    donor: Tensor
    size: Tensor

    @classmethod
    def of(cls, tasks: Tasks, donors: Tensor, space: TableSpace) -> Moves:
        """Choose different values of the donors (n, donors, coordinates), within the limits."""
        n, n_donors, d = donors.shape
        n_parts = len(space.part_names)
        own_part = space.part == torch.arange(n_parts)[:, None]  # (parts, coordinates)
        x = tasks.x[:, None, None]
        single = torch.where(own_part[:, None], donors[:, None], x)
        every = tasks.repeat(n_parts * n_donors)
        change = (every.project(single.reshape(-1, d)) - every.x).reshape(single.shape)
        # linked columns follow the part and are computed anew, so only the part itself counts
        change = change * own_part[:, None]
        size = change.norm(dim=3)
        chosen, exists = _spread(change.sum(3), size > 0)
        take = chosen[..., None].expand(-1, -1, -1, d)
        value = (x + change).gather(2, take)  # (n, parts, values, coordinates)
        of_part = space.part[None, None, None].expand(n, 1, value.shape[2], d)
        return cls(
            value.gather(1, of_part)[:, 0],
            torch.where(exists, chosen, -1),
            torch.where(exists, size.gather(2, chosen), 0.0),
        )

    @property
    def exists(self) -> Tensor:
        """Mask of the values there are, (n, parts, values)."""
        return self.donor >= 0

    def take(self, which: Tensor) -> Moves:
        """Return the moves of some tasks."""
        return Moves(self.value[which], self.donor[which], self.size[which])

    def rows(self, tasks: Tasks, choice: Tensor, part: Tensor) -> Tensor:
        """Make rows with a choice (m, parts) of values, -1 for the row's own; one per task."""
        by_coordinate = choice[:, part]
        value = self.value.gather(1, by_coordinate.clamp(min=0)[:, None])[:, 0]
        return tasks.project(torch.where(by_coordinate >= 0, value, tasks.x))


def _spread(change: Tensor, exists: Tensor) -> tuple[Tensor, Tensor]:
    """Choose donors whose changes (n, parts, donors) differ, evenly from the least to the largest.

    Returns the chosen donors (n, parts, values) and whether there are so many.
    """
    ordered, order = torch.where(exists, change, torch.inf).sort(dim=2, stable=True)
    is_new = torch.ones_like(exists)
    is_new[:, :, 1:] = ordered[:, :, 1:] != ordered[:, :, :-1]
    is_new &= ordered.isfinite()
    count = is_new.sum(2, keepdim=True)
    # the different ones first, in their order
    first = (~is_new).long().sort(dim=2, stable=True).indices
    step = torch.arange(N_VALUES) / (N_VALUES - 1)
    place = (step * (count - 1).clamp(min=0)).round().long()
    few = torch.arange(N_VALUES).expand_as(place)
    place = torch.where(count < N_VALUES, few, place)
    in_reach = place < count
    return order.gather(2, first.gather(2, place.clamp(max=change.shape[2] - 1))), in_reach


@dataclass(frozen=True)
class Exchanged:
    """Sets of exchanged parts that are accepted, up to three for each task.

    Parameters
    ----------
    x_cf : Tensor of shape (n, finalists, coordinates)
        The rows; the instance where there is none.
    found : Tensor of bool, shape (n, finalists)
        Whether there is one.
    passed : Tensor of bool, shape (n, finalists)
        Whether it passed the further test, too.
    donor : Tensor of int, shape (n, finalists)
        Donor of the part that adds most; -1: there is none.
    """

    x_cf: Tensor
    found: Tensor
    passed: Tensor
    donor: Tensor


def exchange_parts(
    tasks: Tasks,
    donors: Tensor,
    rounds: int,
    test: AcceptanceTest | None = None,
) -> Exchanged:
    """Find the fewest columns to exchange for those of donors.

    First every column alone is tried with several values of the donors; then sets of two, three,
    ..., those first whose parts together promise most. A task ends with the smallest sets that are
    accepted.

    Parameters
    ----------
    tasks : Tasks
        Rows of a table.
    donors : Tensor of shape (n, donors, coordinates)
        Rows of the target class; they need not keep the constraints.
    rounds : int
        Size of the largest sets.
    test : AcceptanceTest, optional
        What sets have to pass besides; where none does, the accepted ones count.

    Returns
    -------
    Exchanged
        What was found.
    """
    assert tasks.space is not None
    moves_per_task = len(tasks.space.part_names) * donors[0].numel() if len(tasks) else 1
    size = max(1, MAX_ELEMENTS // moves_per_task)
    parts = []
    for part, donor in zip(tasks.split(size), donors.split(size) or [donors], strict=True):
        search = _ExchangeSearch(part, donor, test)
        search.try_alone()
        for _ in range(rounds - 1):
            if not search.extend():
                break
        parts.append(Exchanged(search.x_cf, search.found, search.passed, search.donor))
    return Exchanged(
        torch.cat([part.x_cf for part in parts]),
        torch.cat([part.found for part in parts]),
        torch.cat([part.passed for part in parts]),
        torch.cat([part.donor for part in parts]),
    )


class _ExchangeSearch:
    """Sets of parts that were asked about; all tasks in step."""

    def __init__(self, tasks: Tasks, donors: Tensor, test: AcceptanceTest | None) -> None:
        assert tasks.space is not None
        self.tasks = tasks
        self.test = test
        self.space = tasks.space
        self.moves = Moves.of(tasks, donors, tasks.space)
        n = len(tasks)
        self.x_cf = tasks.x[:, None].repeat(1, N_FINALISTS, 1)
        self.found = torch.zeros(n, N_FINALISTS, dtype=torch.bool)
        self.passed = torch.zeros_like(self.found)
        self.donor = torch.full((n, N_FINALISTS), -1)
        self.before = tasks.lead(tasks.before).double()
        self.gain = torch.full(self.moves.size.shape, -torch.inf, dtype=torch.float64)
        self.open = torch.arange(n)
        self.choice = torch.empty(0)
        self.lead = torch.empty(0)

    def try_alone(self) -> None:
        """Ask about every value of every part."""
        n, n_parts, n_values = self.moves.donor.shape
        alone = torch.arange(n_parts).repeat_interleave(n_values)
        choice = torch.full((n, n_parts * n_values, n_parts), -1)
        place = torch.arange(n_parts * n_values)
        choice[:, place, alone] = place % n_values
        lead = self._ask(choice, self.moves.exists.flatten(1))
        self.gain = (lead - self.before[:, None]).view(n, n_parts, n_values)
        self._next_beam(choice, lead)

    def extend(self) -> bool:
        """Add one more part to the best sets; return whether any task is still open."""
        if len(self.open) == 0:
            return False
        gain = self.gain[self.open]
        _, n_parts, n_values = gain.shape
        is_free = (self.choice < 0)[..., None]  # (n, beam, parts, 1)
        expected = self.lead[:, :, None, None] + torch.where(is_free, gain[:, None], -torch.inf)
        expected = expected.nan_to_num(-torch.inf, neginf=-torch.inf).flatten(1)
        count = min(N_EXTENDED, expected.shape[1])
        best = self._promising(expected, count)
        state = best // (n_parts * n_values)
        part = best // n_values % n_parts
        choice = self.choice.gather(1, state[..., None].expand(-1, -1, n_parts)).clone()
        choice.scatter_(2, part[..., None], (best % n_values)[..., None])
        worth = expected.gather(1, best).isfinite() & ~_repeated(choice)
        lead = self._ask(choice, worth)
        self._next_beam(choice, lead)
        return len(self.open) > 0

    def _promising(self, expected: Tensor, count: int) -> Tensor:
        """Choose extended sets: half by the lead expected, half by the least change to the class.

        A change grows by what it adds: where more is expected than needed, numbers will go back.
        """
        size = self.moves.size[self.open]
        size_now = self._size(self.choice, size)
        total = (size_now[:, :, None, None] + size[:, None]).flatten(1)
        before = self.before[self.open][:, None]
        needed = (-before / (expected - before)).clamp(0, 1)
        cheap = torch.where(expected > 0, 1 / (1 + total * needed), 0.0)
        half = count // 2
        by_size = cheap.topk(half, dim=1).indices
        rest = expected.scatter(1, by_size, -torch.inf)
        rest = torch.where(cheap.gather(1, by_size).amin(1, keepdim=True) > 0, rest, expected)
        by_lead = rest.topk(count - half, dim=1).indices
        return torch.cat([by_size, by_lead], dim=1)

    def _size(self, choice: Tensor, size: Tensor) -> Tensor:
        """Return the sizes of sets, (n, sets)."""
        sizes = size[:, None].expand(-1, choice.shape[1], -1, -1)
        own = sizes.gather(3, choice.clamp(min=0)[..., None])[..., 0]
        return (own * (choice >= 0)).sum(2)

    def _ask(self, choice: Tensor, worth: Tensor) -> Tensor:
        """Ask about sets (open, sets, parts); keep the accepted, return leads (-inf: not asked)."""
        lead = torch.full(worth.shape, -torch.inf, dtype=torch.float64)
        accepted = torch.zeros_like(worth)
        place, number = worth.nonzero(as_tuple=True)
        able = self.tasks.take(self.open[place]).affords()
        place, number = place[able], number[able]
        trying = self.tasks.take(self.open[place])
        moves = self.moves.take(self.open[place])
        rows = moves.rows(trying, choice[place, number], self.space.part)
        if len(place):
            verdict = trying.ask(rows)
            lead[place, number] = trying.lead(verdict).double()
            accepted[place, number] = trying.accepts(rows, verdict)
        self._keep(choice, lead, accepted)
        return lead

    def _keep(self, choice: Tensor, lead: Tensor, accepted: Tensor) -> None:
        """Keep the cheapest accepted sets of tasks that had none, or none that passed the test."""
        before = self.before[self.open][:, None]
        size = self._size(choice, self.moves.size[self.open])
        needed = (-before / (lead - before)).clamp(0, 1)
        cost = torch.where(accepted, size * needed, torch.inf)
        best_cost, best = cost.topk(min(N_FINALISTS, cost.shape[1]), dim=1, largest=False)
        if self.test is not None:
            # The surest may pass a test that the cheapest fail.
            surest = torch.where(accepted, lead, -torch.inf).argmax(1)
            best[:, -1] = torch.where(accepted.sum(1) > 2, surest, best[:, -1])
        place, rank = best_cost.isfinite().nonzero(as_tuple=True)
        task = self.open[place]
        number = best[place, rank]
        chosen = choice[place, number]
        trying = self.tasks.take(task)
        rows = self.moves.take(task).rows(trying, chosen, self.space.part)
        passed = torch.ones_like(task, dtype=torch.bool)
        if self.test is not None and len(task):
            passed = self.test.passes(trying, rows)
        had_any = self.found[task].any(1)
        kept = passed | ~had_any
        task, rank, chosen = task[kept], rank[kept], chosen[kept]
        self.x_cf[task, rank] = rows[kept]
        self.found[task, rank] = True
        self.passed[task, rank] = passed[kept]
        self.donor[task, rank] = self._main_donor(task, chosen)

    def _main_donor(self, task: Tensor, choice: Tensor) -> Tensor:
        """Return the donor of the part that changes most."""
        at = choice.clamp(min=0)[..., None]
        size = self.moves.size[task].gather(2, at)[..., 0] * (choice >= 0)
        main = size.argmax(1, keepdim=True)
        donor = self.moves.donor[task].gather(2, at)[..., 0]
        return donor.gather(1, main)[:, 0]

    def _next_beam(self, choice: Tensor, lead: Tensor) -> None:
        """Go on with the tasks that have nothing yet, from their best sets."""
        is_open = ~self.passed[self.open].any(1) & lead.isfinite().any(1)
        self.open = self.open[is_open]
        lead = lead[is_open]
        best, place = lead.topk(min(BEAM, lead.shape[1]), dim=1)
        self.lead = best
        self.choice = choice[is_open].gather(1, place[..., None].expand(-1, -1, choice.shape[2]))


def _repeated(choice: Tensor) -> Tensor:
    """Return which of some sets (n, sets, parts) are equal to one before them."""
    same = (choice[:, None] == choice[:, :, None]).all(3)
    return same.tril(-1).any(2)
