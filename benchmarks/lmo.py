"""Measure the linear oracle of contrafact.geometry: exactness, and time next to sort + search.

    make bench-lmo

All implementations run in one process on the same rows, in turns; the best time of each counts.
The gap is certified by `duality_gap`, which does not need the optimum. Writes
benchmarks/results/lmo.md.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from _common import conditions, make_parser, table_head, table_row, write_page, yes_no
from contrafact.geometry import duality_gap, lmo

NORMS = (1, 1.05, 1.1, 1.25, 1.5, 2, 4, math.inf)
SCALES = (1e-30, 1e-12, 1.0, 1e12, 1e30)
#: eps as a share of the norm of the whole slack; from 1 on only the box binds
SHARES = (0.001, 0.1, 0.7, 1.5)
SIZES = (2, 100, 3072)


# --- reference implementations -------------------------------------------------------------------


def sort_and_search(w: Tensor, x: Tensor, eps: Tensor, p: float) -> Tensor:
    """Solve by sorting the kinks and searching, in float32 and without care for scales."""
    slack = slack_to_box(w, x)
    a = w.abs() ** (1 / (p - 1))
    level = find_level(slack**p, a**p, eps**p) ** (1 / p)
    return w.sign() * torch.minimum(slack, level * a)


def careful_sort_and_search(w: Tensor, x: Tensor, eps: Tensor, p: float) -> Tensor:
    """Solve the same in float64, with w and eps scaled to 1.

    As exact as contrafact's oracle as long as p is not close to 1.
    """
    slack = slack_to_box(w, x)
    magnitude = w.abs().double()
    scaled = magnitude / magnitude.amax(1, keepdim=True)
    a = scaled ** (1 / (p - 1))
    budget = torch.ones_like(eps, dtype=torch.float64)
    level = find_level((slack.double() / eps) ** p, a**p, budget) ** (1 / p) * eps
    return w.sign() * torch.minimum(slack, (level * a).float())


def slack_to_box(w: Tensor, x: Tensor) -> Tensor:
    """Return how far each coordinate can move in the direction of w within [0, 1]."""
    return torch.where(w > 0, 1 - x, x)


def find_level(G: Tensor, A: Tensor, budget: Tensor) -> Tensor:
    """Return s with sum(min(G, s A)) = budget, row by row; inf if the budget exceeds sum(G)."""
    kink, order = (G / A).sort(dim=1)
    G = G.gather(1, order)
    A = A.gather(1, order)
    spent = G.cumsum(1) - G
    slope = A.flip(1).cumsum(1).flip(1)
    k = torch.searchsorted(spent + kink * slope, budget)
    inside = k.clamp_max(G.shape[1] - 1)
    s = (budget - spent.gather(1, inside)) / slope.gather(1, inside)
    return torch.where(k < G.shape[1], s, torch.inf)


# --- exactness -----------------------------------------------------------------------------------


def draw(kind: str, n: int, d: int) -> Tensor:
    """Draw n random directions of d coordinates."""
    normal = torch.randn(n, d, dtype=torch.float64)
    if kind == "Gaussian":
        return normal
    if kind == "Cauchy":
        return normal / torch.randn(n, d, dtype=torch.float64)
    return normal.sign() * (3 * torch.randn(n, d, dtype=torch.float64)).exp()


def row_norms(delta: Tensor, p: float) -> Tensor:
    """Return the l_p norm of every row in float64."""
    return torch.linalg.vector_norm(delta.double(), p, dim=1)


def worst_case(kind: str, p: float) -> tuple[float, float, bool]:
    """Return the largest gap and norm violation over scales, radii and sizes, in float32.

    The third value tells whether all answers were finite.
    """
    gap = -math.inf
    violation = -math.inf
    finite = True
    for d in SIZES:
        x = torch.rand(8, d)
        x[:, ::3] = x[:, ::3].round()  # a third of the coordinates on the boundary
        base = draw(kind, 8, d)
        for scale in SCALES:
            w = (base * scale).float()
            for share in SHARES:
                eps = (share * row_norms(slack_to_box(w, x), p)).float()
                delta = lmo(w, x, eps, p)
                excess = row_norms(delta, p) / eps.double() - 1
                finite = finite and bool(delta.isfinite().all())
                gap = max(gap, duality_gap(w, x, delta, eps, p).max().item())
                violation = max(violation, excess.max().item())
    return gap, violation, finite


def exactness() -> list[str]:
    """Return the table of gaps and norm violations."""
    lines = table_head("w", "p", "largest gap", "largest norm violation", "NaN")
    for kind in ("Gaussian", "Cauchy", "log-normal, σ = 3"):
        for p in NORMS:
            gap, violation, finite = worst_case(kind, p)
            lines.append(
                table_row(
                    kind,
                    f"{p:g}",
                    f"{max(gap, 0):.1e}",
                    f"{max(violation, 0):.1e}",
                    yes_no(not finite),
                )
            )
    return lines


# --- speed ---------------------------------------------------------------------------------------


def best_times(calls: list[Callable[[], Tensor]], seconds: float) -> list[float]:
    """Return the best time of each call, taken in turns for `seconds`, at least three turns."""
    best = [math.inf] * len(calls)
    start = time.perf_counter()
    turns = 0
    while turns < 3 or time.perf_counter() - start < seconds:
        for i, call in enumerate(calls):
            begin = time.perf_counter()
            call()
            best[i] = min(best[i], time.perf_counter() - begin)
        turns += 1
    return best


def speed(p: float, seconds: float) -> list[str]:
    """Return the table of times next to the reference implementations."""
    lines = table_head(
        "d",
        "batch",
        "ε",
        "clipped",
        "ours",
        "lean",
        "careful",
        "ours / lean",
        "ours / careful",
        "gap of lean",
    )
    for d, radii in ((3072, (6.0, 40.0)), (150528, (50.0, 400.0))):
        for batch in (1, 16, 64):
            w = torch.randn(batch, d)
            x = torch.rand(batch, d)
            for radius in radii:
                lines.append(speed_row(w, x, radius, p, seconds))
                print(lines[-1], flush=True)
    return lines


def speed_row(w: Tensor, x: Tensor, radius: float, p: float, seconds: float) -> str:
    """Time the three implementations on one batch."""
    batch, d = w.shape
    eps = torch.full((batch, 1), radius)
    delta = lmo(w, x, radius, p)
    clipped = (delta.abs() >= slack_to_box(w, x)).float().mean().item()
    lean_delta = sort_and_search(w, x, eps, p)
    lean_gap = duality_gap(w, x, lean_delta, radius, p).abs().max().item()
    ours, lean, careful = best_times(
        [
            partial(lmo, w, x, radius, p),
            partial(sort_and_search, w, x, eps, p),
            partial(careful_sort_and_search, w, x, eps, p),
        ],
        seconds,
    )
    return table_row(
        d,
        batch,
        f"{radius:g}",
        f"{clipped:.0%}",
        f"{ours * 1e3:.2f}",
        f"{lean * 1e3:.2f}",
        f"{careful * 1e3:.2f}",
        f"{ours / lean:.2f}",
        f"{ours / careful:.2f}",
        f"{lean_gap:.0e}",
    )


def listed(values: tuple[float, ...]) -> str:
    """Return the values separated by commas."""
    return ", ".join(f"{value:g}" for value in values)


def main() -> None:
    """Measure both and write the page."""
    parser = make_parser(__doc__)
    parser.add_argument(
        "--seconds", type=float, default=3.0, help="time for each line of the speed table"
    )
    parser.add_argument("--threads", type=int, default=1, help="threads of torch, for all sides")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    gaps = exactness()
    print("\n".join(gaps))
    write_page(
        "lmo.md",
        conditions("python benchmarks/lmo.py", threads=torch.get_num_threads()),
        "",
        "# The linear oracle: exactness in float32",
        "",
        f"Worst case over |w| scaled by {listed(SCALES)}; d = {listed(SIZES)}; "
        f"ε = {listed(SHARES)} of the norm of the slack; 8 rows each. The gap is the certified "
        "fraction of the optimum that is missed (`duality_gap`); the violation is relative to ε.",
        "",
        *gaps,
        "",
        "# Time beside sort + binary search, p = 1.5",
        "",
        "Gaussian w, x uniform in [0, 1], float32; milliseconds, best of all turns in "
        f"{args.seconds:g} s. *Ours* is the public function with all its checks. *Lean* is a "
        "float32 sort with cumulative sums and a search, without checks and without scaling; "
        "*careful* scales w and ε and works in float64, as ours does.",
        "",
        *speed(1.5, args.seconds),
        "",
    )


if __name__ == "__main__":
    main()
