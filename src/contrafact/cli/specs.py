"""Parsers for the values of --rows, --freeze and --bounds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.cleaning import Array
from ..data.mask_files import MASK_SUFFIXES, read_mask

if TYPE_CHECKING:
    from ..engine import Constraints
    from ..engine.instances import Modality

WINDOW = re.compile(r"(\d*):(\d*)")
NUMBERED = re.compile(r"(?:ch|channel|column|feature) ?(\d+)")
#: One or two windows, after the name of a channel where there is one. A name may contain colons.
PLACE = re.compile(r"(?:(.+):)?(\d*:\d*(?:,\d*:\d*)?)")

#: What the first axis of an instance counts.
PARTS = {"row": "column", "series": "channel", "image": "channel"}
#: What --freeze accepts, for messages.
FREEZE_EXAMPLES = {
    "row": "'age', 'column 3' or '0:3' (columns 0 to 2)",
    "series": "'0:90' (time steps 0 to 89), 'x', 'ch 2' or 'x:0:30' (steps of one channel)",
    "image": "'0:4' (lines), '0:4,2:6' (lines, columns), 'ch 0', 'ch 0:0:4' or 'mask.png' "
    "(a picture of the same size; what is white stays)",
}
#: How many names of columns or channels a message lists.
MOST_NAMES = 8


def parse_rows(spec: str | None, n: int, most: int) -> Array:
    """Parse row numbers: "0:40", "3,17" or "0:3,17:20".

    Parameters
    ----------
    spec : str or None
        The value of --rows; None selects the first `most` rows.
    n : int
        Number of rows there are.
    most : int
        Number of rows without a selection.

    Returns
    -------
    array of int
        Row numbers in the order given, each once.

    Raises
    ------
    ValueError
        If a part cannot be parsed or lies outside the rows.

    Examples
    --------
    >>> parse_rows("3,0:2", 20, 200).tolist()
    [3, 0, 1]
    """
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
                f"--rows {spec!r}: {part!r} is not a row. Accepted: 0:40, 3,17 or 0:3,17:20."
            )
        if not len(chosen) or chosen[-1] >= n:
            raise ValueError(f"--rows {spec!r}: {part!r} is not within the {n} rows, 0 to {n - 1}.")
        rows.extend(chosen)
    return np.array(list(dict.fromkeys(rows)))


@dataclass(frozen=True)
class Layout:
    """Describe one instance, to resolve --freeze and --bounds.

    Parameters
    ----------
    shape : tuple of int
        Shape of an instance: (features,), (channels, length) or (channels, height, width).
    modality : {"series", "image", "row"}
        The kind of data.
    names : sequence of str, optional
        Names of the columns or channels.
    """

    shape: tuple[int, ...]
    modality: Modality
    names: Sequence[str] | None = None

    @property
    def part(self) -> str:
        """What the first axis counts: "column" or "channel"."""
        return PARTS[self.modality]

    def position(self, name: str) -> int | None:
        """Return the position of a column or channel by its name or number; None if unknown."""
        if self.names is not None and name in self.names:
            return list(self.names).index(name)
        numbered = NUMBERED.fullmatch(name)
        if numbered is None:
            return None
        number = int(numbered[1])
        return number if number < self.shape[0] else None

    def known(self) -> str:
        """Return which columns or channels there are, for messages."""
        if self.names is None:
            return f"{self.part} 0 to {self.shape[0] - 1}"
        listed = ", ".join(repr(name) for name in self.names[:MOST_NAMES])
        if len(self.names) > MOST_NAMES:
            listed += f", … ({len(self.names)})"
        return f"{self.part}s {listed}"

    def frozen(self, specs: Sequence[str]) -> Array | None:
        """Parse the values of --freeze.

        Parameters
        ----------
        specs : sequence of str
            Each names a part that may not change.

        Returns
        -------
        boolean array of the instance's shape, or None
            The union of the parts; None where there is no spec.

        Raises
        ------
        ValueError
            If a spec cannot be parsed or lies outside the instance.
        """
        if not specs:
            return None
        mask = np.zeros(self.shape, dtype=bool)
        for spec in specs:
            mask[self._place(spec.strip())] = True
        return mask

    def _place(self, spec: str) -> Any:
        """Return the index of the part that a spec of --freeze names."""
        whole = self.position(spec)
        if whole is not None:
            return whole
        if spec.lower().endswith(MASK_SUFFIXES):
            return self._mask(spec)
        parts = PLACE.fullmatch(spec)
        if parts is None:
            raise self._not_understood(spec)
        name = parts[1]
        windows = parts[2].split(",")
        if self.modality == "row":
            if name is not None:
                raise self._not_understood(spec)
            return self._windows(spec, windows, self.shape)
        channel = slice(None) if name is None else self.position(name)
        if channel is None:
            raise self._not_understood(spec)
        return (channel, *self._windows(spec, windows, self.shape[1:]))

    def _mask(self, path: str) -> Any:
        """Return the index of the pixels that are white in a picture, in every channel."""
        if self.modality != "image":
            raise ValueError(
                f"--freeze {path!r}: a picture is a mask for images; these are {self.modality} "
                f"data. Accepted: {FREEZE_EXAMPLES[self.modality]}."
            )
        height, width = self.shape[1:]
        return (slice(None), read_mask(path, (height, width)))

    def _windows(
        self, spec: str, windows: Sequence[str], sizes: Sequence[int]
    ) -> tuple[slice, ...]:
        """Return one slice per window, each within its axis."""
        if len(windows) > len(sizes):
            raise self._not_understood(spec)
        slices = []
        for window, size in zip(windows, sizes, strict=False):
            first, last = window.split(":")
            start = int(first or 0)
            stop = int(last or size)
            if not start < stop <= size or window == ":":
                raise ValueError(f"--freeze {spec!r}: {window!r} is not a window within 0:{size}.")
            slices.append(slice(start, stop))
        return tuple(slices)

    def _not_understood(self, spec: str) -> ValueError:
        """Return the error for a spec of --freeze that cannot be parsed."""
        return ValueError(
            f"--freeze {spec!r} is not understood. Accepted: {FREEZE_EXAMPLES[self.modality]}. "
            f"There are {self.known()}."
        )

    def bounds(self, specs: Sequence[str]) -> tuple[Array | None, Array | None]:
        """Parse the values of --bounds.

        Parameters
        ----------
        specs : sequence of str
            Intervals, each for all values or for one column or channel; a later one replaces an
            earlier one.

        Returns
        -------
        lower, upper : arrays of the instance's shape, or None
            The bounds of every value; None where there is no spec.

        Raises
        ------
        ValueError
            If a spec cannot be parsed.
        """
        if not specs:
            return None, None
        lower = np.full(self.shape, -np.inf)
        upper = np.full(self.shape, np.inf)
        for spec in specs:
            name, _, interval = spec.rpartition("=")
            place: Any = self.position(name.strip()) if name else ...
            if place is None:
                raise ValueError(
                    f"--bounds {spec!r}: there is no {self.part} {name!r}. "
                    f"There are {self.known()}."
                )
            low, high = parse_interval(spec, interval)
            lower[place] = low
            upper[place] = high
        return lower, upper


def parse_interval(spec: str, text: str) -> tuple[float, float]:
    """Return the ends of an interval.

    Parameters
    ----------
    spec : str
        The value of --bounds, for messages.
    text : str
        "LOW:HIGH", of which one may be missing.

    Returns
    -------
    low, high : float
        The ends, infinite where they are missing.
    """
    not_understood = ValueError(
        f"--bounds {spec!r} is not understood. Accepted: LOW:HIGH, LOW:, :HIGH, for one column or "
        "channel NAME=LOW:HIGH, e.g. 0:1 or glucose=3:12."
    )
    low_text, colon, high_text = text.partition(":")
    if not colon or text == ":":
        raise not_understood
    try:
        low = float(low_text or "-inf")
        high = float(high_text or "inf")
    except ValueError:
        raise not_understood from None
    if np.isnan(low) or np.isnan(high):
        raise not_understood
    if low > high:
        raise ValueError(
            f"--bounds {spec!r}: the lowest value, {low_text}, is above the highest, {high_text}."
        )
    return low, high


def parse_assignment(option: str, spec: str, accepted: str) -> tuple[str, str]:
    """Split "NAME=VALUE".

    Parameters
    ----------
    option : str
        The option, for messages.
    spec : str
        Its value.
    accepted : str
        What is accepted, for messages.

    Returns
    -------
    name, value : str
        Without spaces around them.

    Examples
    --------
    >>> parse_assignment("--cost", "age = 2", "NAME=NUMBER")
    ('age', '2')
    """
    name, equals, value = spec.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise ValueError(f"{option} {spec!r} is not understood. Accepted: {accepted}.")
    return name.strip(), value.strip()


def make_constraints(
    layout: Layout, freeze: Sequence[str], bounds: Sequence[str], max_step: float | None
) -> Constraints | None:
    """Make the constraints that --freeze, --bounds and --max-step ask for.

    Parameters
    ----------
    layout : Layout
        The instances.
    freeze, bounds : sequence of str
        Values of the options.
    max_step : float or None
        Largest change from one time step to the next.

    Returns
    -------
    Constraints or None
        None where nothing is limited.

    Raises
    ------
    ValueError
        If a value cannot be parsed, or --max-step is given for data other than series.
    """
    from ..engine import Constraints

    lower, upper = layout.bounds(bounds)
    constraints = Constraints(
        lower=lower,
        upper=upper,
        frozen=layout.frozen(freeze),
        max_step=max_step,
    )
    if max_step is not None and layout.modality != "series":
        raise ValueError(f"--max-step applies to series; these are {layout.modality} data.")
    return constraints if constraints.kinds else None
