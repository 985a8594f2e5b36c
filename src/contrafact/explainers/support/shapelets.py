"""Shapelets: stretches of series that distinguish one class from the others, mined by aeon."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from ...guides.guide import to_numpy
from ...process_state import keeping_random_numbers, keeping_threads

#: standard deviation up to which a stretch counts as flat
FLAT = 1e-8


@dataclass(frozen=True)
class Shapelet:
    """A stretch of a reference series that distinguishes one class from the others.

    Parameters
    ----------
    values : Tensor of shape (length,)
        The stretch around its own mean.
    channel : int
        Channel in which it is looked for and inserted.
    start : int
        First time step when it is inserted: the median of where the series of its class have it.
    threshold : float
        It occurs where its distance to a window is at most this.
    column : int
        Its class, a column of the probabilities.
    """

    values: Tensor
    channel: int
    start: int
    threshold: float
    column: int

    def __len__(self) -> int:
        return len(self.values)

    def find(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Look for the shapelet in series.

        Parameters
        ----------
        x : Tensor of shape (n, channels, length)
            The series.

        Returns
        -------
        occurs : Tensor of bool, shape (n,)
            Whether some window is near enough.
        start : Tensor of int, shape (n,)
            Where the nearest window starts.
        """
        distance = window_distance(x[:, self.channel], self.values)
        nearest, start = distance.min(1)
        return nearest <= self.threshold, start


@keeping_threads()
@keeping_random_numbers()
def mine_shapelets(
    X: Tensor,
    column: Tensor,
    *,
    n_candidates: int,
    max_shapelets: int,
    max_length: int,
    random_state: int,
) -> list[Shapelet]:
    """Find shapelets of every class with aeon's random shapelet transform.

    Parameters
    ----------
    X : Tensor of shape (n, channels, length)
        Reference series.
    column : Tensor of int, shape (n,)
        Their classes.
    n_candidates : int
        Stretches to look at.
    max_shapelets : int
        How many to keep, shared among the classes.
    max_length : int
        Longest shapelet, in time steps.
    random_state : int
        Seed.

    Returns
    -------
    list of Shapelet
        Empty where there is only one class.
    """
    from aeon.transformations.collection.shapelet_based import RandomShapeletTransform

    if len(column.unique()) < 2:
        return []
    transform = RandomShapeletTransform(
        n_shapelet_samples=n_candidates,
        max_shapelets=max_shapelets,
        max_shapelet_length=max_length,
        batch_size=min(100, n_candidates),
        random_state=random_state,
    )
    transform.fit(to_numpy(X), column.cpu().numpy())
    shapelets = []
    for _, length, start, channel, case, class_index, *_ in transform.shapelets:
        stretch = X[case, channel, start : start + length]
        of_class = int(transform.classes_[class_index])
        shapelet = _make_shapelet(
            X,
            column,
            stretch,
            channel,
            of_class,
        )
        shapelets.append(shapelet)
    return shapelets


def _make_shapelet(
    X: Tensor,
    column: Tensor,
    stretch: Tensor,
    channel: int,
    of_class: int,
) -> Shapelet:
    """Measure where the series of a class have a stretch, and how near they come to it."""
    own = column == of_class
    distance = window_distance(X[:, channel], stretch)
    nearest, start = distance.min(1)
    threshold = best_threshold(nearest, own)
    occurs = nearest <= threshold
    usual_start = start[own & occurs].median()
    return Shapelet(
        values=stretch - stretch.mean(),
        channel=channel,
        start=int(usual_start),
        threshold=threshold,
        column=of_class,
    )


def best_threshold(distance: Tensor, own: Tensor) -> float:
    """Find the distance that best separates a class from the others.

    Parameters
    ----------
    distance : Tensor of shape (n,)
        Distance of every series.
    own : Tensor of bool, shape (n,)
        Which series are in the class; some are and some are not.

    Returns
    -------
    float
        The value that maximizes the share of the class below it minus the share of the others
        below it; halfway to the next larger distance.

    Examples
    --------
    >>> distance = torch.tensor([0.1, 0.3, 0.5, 0.9], dtype=torch.float64)
    >>> best_threshold(distance, torch.tensor([True, True, False, False]))
    0.4
    """
    others = ~own
    value, order = distance.sort(stable=True)
    share_of_own = own[order].double() / own.sum()
    share_of_others = others[order].double() / others.sum()
    difference = share_of_own - share_of_others
    best = int(difference.cumsum(0).argmax())
    return float(value[best : best + 2].mean())


def window_distance(x: Tensor, values: Tensor) -> Tensor:
    """Compute the z-normalized distance of a stretch s to every window w of series.

        1/L ‖ z(s) − z(w) ‖²,       z(w) = (w − mean w) / std w

    As in aeon, a flat window or stretch is all 0 after z.

    Parameters
    ----------
    x : Tensor of shape (n, length)
        Series of one channel.
    values : Tensor of shape (L,)
        The stretch s.

    Returns
    -------
    Tensor of float64, shape (n, length − L + 1)
        The distance to the window that starts at each time step.
    """
    length = len(values)
    x = x.double()
    x = x - x.mean(1, keepdim=True)
    s = _z_normalize(values.double())
    std = _window_std(x, length)
    largest = x.abs().amax(1, keepdim=True)
    flat = std <= FLAT + 1e-6 * largest  # running sums leave some rounding
    std = std.masked_fill(flat, 1.0)
    # mean z(w)² is 1, and s sums to 0, so that s · z(w) = s · w / std w.
    product = _window_products(x, s)
    distance = 1 - 2 * product / (length * std)
    distance = distance.masked_fill(flat, 0.0)
    distance = distance + s.square().mean()
    return distance.clamp_min(0)


def _z_normalize(values: Tensor) -> Tensor:
    """Scale to mean 0 and standard deviation 1; all 0 if flat."""
    centered = values - values.mean()
    std = centered.std(correction=0)
    if float(std) <= FLAT:
        return torch.zeros_like(centered)
    return centered / std


def _window_products(x: Tensor, s: Tensor) -> Tensor:
    """Return the inner product of s with every window, by one Fourier transform."""
    length = x.shape[1]
    padded = 2 * length
    spectrum_of_x = torch.fft.rfft(x, padded)
    spectrum_of_s = torch.fft.rfft(s, padded)
    spectrum = spectrum_of_x * spectrum_of_s.conj()
    product: Tensor = torch.fft.irfft(spectrum, padded)
    n_windows = length - len(s) + 1
    return product[:, :n_windows]


def _window_std(x: Tensor, length: int) -> Tensor:
    """Return the standard deviation of every window, by running sums."""
    moments = torch.stack([x, x.square()])
    running = pad(moments.cumsum(2), (1, 0))
    end = running[:, :, length:]
    start = running[:, :, :-length]
    mean, mean_square = (end - start) / length
    variance: Tensor = mean_square - mean.square()
    return variance.clamp_min(0).sqrt()
