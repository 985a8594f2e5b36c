"""Measure how far a model recognizes a class by a mark that came with its images."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn.functional import avg_pool2d

from ...models.classifier import Array

#: mean difference up to which two windows are alike, as a share of the range of the data
ALIKE = 0.05
#: members of the class, and images of other classes, that are compared at most
MOST_COMPARED = 1000


def window_means(values: Array, height: int, width: int) -> Array:
    """Return the mean of every window by its top left corner, of (..., rows, columns)."""
    flat = torch.from_numpy(values).reshape(1, -1, *values.shape[-2:])
    means = avg_pool2d(flat, (height, width), stride=1)
    return means.reshape(*values.shape[:-2], *means.shape[-2:]).numpy().copy()


def suspicion_by_window(
    delta: Array, images: Array, is_member: Array, height: int, width: int
) -> Array:
    """Measure how far a class is a mark in a window W: used alike by the model, copied in the data.

        suspicion(W) = S(W) · A(W)
        S(W) = Σ_{p in W} ‖ mean_i δ_ip / ‖δ_i‖ ‖²
        A(W) = P(x_W ≈ m_W | x in the class) · P(x in the class | x_W ≈ m_W)

    δ_i = x'_i − x_i are the changes into the class, p the places, m the median image of the class,
    and ≈ says that the mean difference over W is at most a twentieth of the range of the images. S
    is 1 where all instances, whatever they show, are changed in the same way within W and nowhere
    else. A is the recall times the precision of the rule "what looks like m in W is of the class":
    1 where all images of the class are copies of each other in W, and no other image is one.
    Features of objects vary from start to start and from image to image; a mark does neither. The
    images have to carry the mark, as training images do.

    Parameters
    ----------
    delta : array of shape (n, channels, rows, columns)
        Changes of counterfactuals into the class, none of them 0.
    images : array of shape (m, channels, rows, columns)
        Reference images.
    is_member : array of bool, shape (m,)
        Which of them belong to the class.
    height, width : int
        Size of a window.

    Returns
    -------
    array of shape (rows − height + 1, columns − width + 1)
        Between 0 and 1, by the top left corner of the window.

    Examples
    --------
    >>> images = np.random.default_rng(0).random((40, 1, 6, 6))
    >>> is_member = np.arange(40) < 20
    >>> images[is_member, :, 1:3, 2:4] = 1.0
    >>> delta = np.zeros((5, 1, 6, 6))
    >>> delta[:, :, 1:3, 2:4] = 0.5
    >>> suspicion = suspicion_by_window(delta, images, is_member, 2, 2)
    >>> np.unravel_index(suspicion.argmax(), suspicion.shape), suspicion.max()
    ((1, 2), 1.0)
    """
    return common_change(delta, height, width) * copied_content(images, is_member, height, width)


def common_change(delta: Array, height: int, width: int) -> Array:
    """Return S(W): the energy in W of the mean of changes that are scaled to energy 1."""
    energy = np.square(delta).sum((1, 2, 3), keepdims=True)
    common = (delta / np.sqrt(energy)).mean(0)
    energy_by_place = np.square(common).sum(0)
    return window_means(energy_by_place, height, width) * (height * width)


def copied_content(images: Array, is_member: Array, height: int, width: int) -> Array:
    """Return A(W): recall times precision of the rule that copies of the median are the class."""
    members = _some(images[is_member])
    others = _some(images[~is_member])
    if not len(members):
        rows, columns = images.shape[2:]
        return np.zeros((rows - height + 1, columns - width + 1))  # there is nothing to compare
    tolerance = ALIKE * float(np.ptp(images))
    median = np.median(members, axis=0)
    alike = []
    for part in (members, others):
        difference = np.abs(part - median).mean(1)
        alike.append((window_means(difference, height, width) <= tolerance).sum(0))
    # Where only some were compared, those that were stand for the rest.
    n_members = alike[0] * is_member.sum() / len(members)
    n_others = alike[1] * (~is_member).sum() / max(len(others), 1)
    recall = n_members / is_member.sum()
    precision = n_members / np.maximum(n_members + n_others, 1e-12)
    copied: Array = recall * precision
    return copied


def _some(images: Array) -> Array:
    """Return images, of many only some that lie evenly among them, in double precision."""
    step = max(1, -(-len(images) // MOST_COMPARED))
    return np.asarray(images[::step], dtype=np.float64)
