"""Masks from picture files: which pixels of an image a constraint applies to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..validation import FilePath, Nothing, Real, Satisfies, check_parameters
from .cleaning import Array

if TYPE_CHECKING:
    from PIL.Image import Image

#: formats of Pillow that only decode pixels; others may start a program, as PostScript does
FORMATS = ("PNG", "BMP", "GIF", "JPEG", "TIFF")
#: suffixes by which the command line knows a mask
MASK_SUFFIXES = (".png", ".bmp", ".gif", ".jpg", ".jpeg", ".tif", ".tiff")
MOST_SIDE = 20_000
RULES = {
    "path": FilePath(),
    "shape": Nothing()
    | Satisfies(
        lambda value: (
            isinstance(value, Sequence)
            and len(value) == 2
            and all(isinstance(side, int | np.integer) and side > 0 for side in value)
        ),
        "(height, width)",
    ),
    "threshold": Real(above=0, at_most=1),
}


def read_mask(
    path: str | Path,
    shape: tuple[int, int] | None = None,
    *,
    threshold: float = 0.5,
) -> Array:
    """Read a mask from a picture: white is True, black and transparent are False.

    A pixel is True where its brightness times its opacity, both from 0 to 1, reaches `threshold`.
    Brightness is that of Pillow's mode "L": 0.299 red + 0.587 green + 0.114 blue.

    Parameters
    ----------
    path : str or Path
        A .png, .bmp, .gif, .jpg or .tif file: of 1 bit, gray of 8 or 16 bits, a palette or colors,
        with or without transparency. Of several frames the first is read.
    shape : (int, int), optional
        Height and width that the mask must have: those of the images it is for.
    threshold : float, default=0.5
        Above 0, at most 1.

    Returns
    -------
    array of bool, shape (height, width)
        The mask, for instance for `Constraints(frozen=...)`.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not a picture, is damaged, or has another size.

    Examples
    --------
    >>> from PIL import Image
    >>> Image.fromarray(np.array([[0, 255], [100, 200]], np.uint8)).save("keep.png")
    >>> read_mask("keep.png", shape=(2, 2))
    array([[False,  True],
           [False,  True]])
    """
    from PIL import Image, UnidentifiedImageError

    given = {"path": path, "shape": shape, "threshold": threshold}
    check_parameters("read_mask", RULES, given)
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no mask file at the path {path}.")
    try:
        with Image.open(path, formats=FORMATS) as picture:
            # The size is in the header: a wrong one is refused before anything is decoded.
            _check_size(path, picture, shape)
            return _brightness(picture) >= threshold
    except UnidentifiedImageError:
        raise ValueError(
            f"{path} is not a picture that can be read. Accepted: {', '.join(FORMATS)}."
        ) from None
    except (OSError, SyntaxError, Image.DecompressionBombError) as problem:
        raise ValueError(f"The picture {path} cannot be read: {problem}") from None


def _check_size(path: Path, picture: Image, shape: tuple[int, int] | None) -> None:
    """Check that a picture has the size of the images, or at least a usual one."""
    width, height = picture.size
    if shape is not None and (height, width) != tuple(shape):
        raise ValueError(
            f"The mask {path} has {height} × {width} pixels (height × width), the images have "
            f"{shape[0]} × {shape[1]}. Accepted: the same size."
        )
    if max(width, height) > MOST_SIDE:
        raise ValueError(f"The mask {path} has {height} × {width} pixels; at most {MOST_SIDE}.")


def _brightness(picture: Image) -> Array:
    """Return brightness times opacity of every pixel, from 0 to 1."""
    if picture.mode.startswith("I;16"):  # Pillow would cut these at 255
        return np.asarray(picture, dtype=np.float64) / (2**16 - 1)
    gray_and_opacity = np.asarray(picture.convert("RGBA").convert("LA"), dtype=np.float64) / 255
    brightness: Array = gray_and_opacity[..., 0] * gray_and_opacity[..., 1]
    return brightness
