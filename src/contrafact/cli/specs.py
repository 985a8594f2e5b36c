"""The small languages of --rows, --freeze and --bounds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.cleaning import Array

if TYPE_CHECKING:
    from ..engine import Constraints
    from ..engine.instances import Modality

WINDOW = re.compile(r"(\d*):(\d*)")
NUMBERED = re.compile(r"(?:ch|channel|column|feature) ?(\d+)")
#: Modality: what the first axis is made of, and examples of what --freeze takes.
PARTS = {
    "row": ("column", "'age', 'column 3' or '0:3' (columns 0 to 2)"),
    "series": (
        "channel",
        "'0:90' (time steps 0 to 89), 'x', 'ch 2' or 'x:0:30' (steps of one channel)",
    ),
    "image": ("channel", "'0:4' (lines), '0:4,2:6' (lines, columns), 'ch 0' or 'ch 0:0:4'"),
}


def parse_rows(spec: str | None, n: int, most: int) -> Array:
    """Row numbers: "0:40", "3,17", "0:3,17:20"; None: the first `most`."""
    if spec is None:
        return np.arange(min(n, most))
    rows: list[int] = []
    for part in spec.split(","):
        part = part.strip()
        window = WINDOW.fullmatch(part)
        if window is not None:
            chosen = range(int(window[1] or 0), int(window[2] or n))
        elif part.isdecimal():
            chosen = range(int(part), int(part) + 1)
        else:
            raise ValueError(
                f"--rows {spec!r}: {part!r} is no row. Accepted: 0:40, 3,17 or 0:3,17:20."
            )
        if not len(chosen) or chosen[-1] >= n:
            raise ValueError(f"--rows {spec!r}: {part!r} is not within the {n} rows, 0 to {n - 1}.")
        rows += chosen
    return np.array(list(dict.fromkeys(rows)))


@dataclass(frozen=True)
class Layout:
    """What one instance looks like, and what its columns or channels are called."""

    shape: tuple[int, ...]
    modality: Modality
    names: Sequence[str] | None = None

    @property
    def part(self) -> str:
        return PARTS[self.modality][0]

    def position(self, name: str) -> int | None:
        """Of a column or channel, by its name or number."""
        if self.names is not None and name in self.names:
            return list(self.names).index(name)
        numbered = NUMBERED.fullmatch(name)
        return (
            int(numbered[1]) if numbered is not None and int(numbered[1]) < self.shape[0] else None
        )

    def known(self) -> str:
        """For errors: which columns or channels there are."""
        if self.names is None:
            return f"{self.part} 0 to {self.shape[0] - 1}"
        shown = ", ".join(map(repr, self.names[:8]))
        return f"{self.part}s {shown}" + (f", … ({len(self.names)})" if len(self.names) > 8 else "")

    def frozen(self, specs: Sequence[str]) -> Array | None:
        """The mask of what may not change; None where nothing was said."""
        if not specs:
            return None
        mask = np.zeros(self.shape, dtype=bool)
        for spec in specs:
            mask[self._place(spec.strip())] = True
        return mask

    def _place(self, spec: str) -> Any:
        whole = self.position(spec)
        if whole is not None:
            return whole
        # A name may have colons itself: windows are at the end.
        parts = re.fullmatch(r"(?:(.+):)?(\d*:\d*(?:,\d*:\d*)?)", spec)
        axes = self.shape if self.modality == "row" else self.shape[1:]
        if parts is None or (parts[1] is not None and self.modality == "row"):
            raise self._unknown(spec)
        channel = slice(None) if parts[1] is None else self.position(parts[1])
        windows = parts[2].split(",")
        if channel is None or len(windows) > len(axes):
            raise self._unknown(spec)
        within = [
            self._window(spec, window, size) for window, size in zip(windows, axes, strict=False)
        ]
        return tuple(within) if self.modality == "row" else (channel, *within)

    def _window(self, spec: str, window: str, size: int) -> slice:
        first, last = window.split(":")
        start, stop = int(first or 0), int(last or size)
        if not start < stop <= size or window == ":":
            raise ValueError(f"--freeze {spec!r}: {window!r} is not a window within 0:{size}.")
        return slice(start, stop)

    def _unknown(self, spec: str) -> ValueError:
        return ValueError(
            f"--freeze {spec!r} is not understood. Accepted: {PARTS[self.modality][1]}. "
            f"There are {self.known()}."
        )

    def bounds(self, specs: Sequence[str]) -> tuple[Array | None, Array | None]:
        """Lower and upper bounds of every value; a later one takes the place of an earlier one."""
        if not specs:
            return None, None
        lower, upper = np.full(self.shape, -np.inf), np.full(self.shape, np.inf)
        for spec in specs:
            name, _, interval = spec.rpartition("=")
            place: Any = self.position(name.strip()) if name else ...
            if place is None:
                raise ValueError(
                    f"--bounds {spec!r}: there is no {self.part} {name!r}. There are {self.known()}."
                )
            lower[place], upper[place] = _interval(spec, interval)
        return lower, upper


def _interval(spec: str, text: str) -> tuple[float, float]:
    ends = text.split(":")
    try:
        low, high = ends
        interval = float(low or "-inf"), float(high or "inf")
    except ValueError:
        interval = (np.nan, np.nan)
    if interval[0] > interval[1]:
        raise ValueError(
            f"--bounds {spec!r}: the lowest value, {ends[0]}, is above the highest, {ends[1]}."
        )
    if np.isnan(interval).any() or text == ":":
        raise ValueError(
            f"--bounds {spec!r} is not understood. Accepted: LOW:HIGH, LOW:, :HIGH, for one column or "
            "channel NAME=LOW:HIGH, e.g. 0:1 or glucose=3:12."
        )
    return interval


def make_constraints(
    layout: Layout, freeze: Sequence[str], bounds: Sequence[str], max_step: float | None
) -> Constraints | None:
    """The limits asked for; None where there are none."""
    from ..engine import Constraints

    lower, upper = layout.bounds(bounds)
    limits = Constraints(lower, upper, layout.frozen(freeze), max_step)
    if max_step is not None and layout.modality != "series":
        raise ValueError(f"--max-step applies to series; these are {layout.modality} data.")
    return limits if limits.kinds else None
