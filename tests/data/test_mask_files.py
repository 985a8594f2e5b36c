"""read_mask: masks from picture files."""

import numpy as np
import pytest
from PIL import Image

import contrafact as cf
from contrafact.data import read_mask

GRAY = np.array([[0, 127, 128], [200, 255, 10]], np.uint8)
EXPECTED = [[False, False, True], [True, True, False]]


@pytest.mark.parametrize(
    "kind", ["1.png", "L.png", "P.png", "RGB.png", "I;16.png", "L.bmp", "L.tif"]
)
def test_kinds_of_pictures_give_the_same_mask(tmp_path, kind):
    mode, _, suffix = kind.partition(".")
    if mode == "I;16":
        picture = Image.fromarray(GRAY.astype(np.uint16) * 257)
        assert picture.mode == mode
    else:
        picture = Image.fromarray(GRAY if mode != "1" else GRAY >= 128).convert(mode)
    picture.save(tmp_path / f"mask.{suffix}")
    mask = read_mask(tmp_path / f"mask.{suffix}", (2, 3))
    assert mask.dtype == bool and mask.tolist() == EXPECTED


def test_what_is_transparent_is_not_in_the_mask(tmp_path):
    opacity = np.array([[255, 255, 0], [255, 100, 255]], np.uint8)
    pixels = np.stack([GRAY, opacity], axis=-1)
    Image.fromarray(pixels, "LA").save(tmp_path / "mask.png")
    assert read_mask(tmp_path / "mask.png").tolist() == [[False] * 3, [True, False, False]]


def test_the_threshold_matters(tmp_path):
    Image.fromarray(GRAY).save(tmp_path / "mask.png")
    assert read_mask(tmp_path / "mask.png", threshold=1.0).sum() == 1
    assert read_mask(tmp_path / "mask.png", threshold=0.01).sum() == 5


def bright_on_the_right(X):
    bright = np.clip(np.asarray(X)[:, 0, :, 4:].mean((1, 2)) / 10, 0, 1)
    return np.stack([1 - bright, bright], axis=1)


def test_a_mask_freezes_pixels(tmp_path):
    digits = cf.load_dataset("digits")
    frozen = np.zeros((8, 8), bool)
    frozen[:, :4] = True
    Image.fromarray(frozen).save(tmp_path / "left.png")
    limits = cf.Constraints(frozen=read_mask(tmp_path / "left.png", (8, 8)))
    model = cf.as_classifier(bright_on_the_right, classes=[0, 1])
    explainer = cf.LineSearch().fit(model, digits.X_train)
    result = explainer.explain(digits.X_test[:4], constraints=limits)
    assert not result.changed[..., frozen].any() and result.changed.any()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no mask file"),
        (b"", "not a picture"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 3 2\n", "not a picture"),
        ("cut", "cannot be read"),
        ("small", r"1 × 3 pixels \(height × width\), the images have 2 × 3"),
    ],
)
def test_what_is_not_a_mask_is_refused_in_one_line(tmp_path, content, words):
    path = tmp_path / "mask.png"
    if content == "cut":
        Image.fromarray(np.tile(GRAY, (1, 1))).save(path)
        path.write_bytes(path.read_bytes()[:50])
    elif content == "small":
        Image.fromarray(GRAY[:1]).save(path)
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises((ValueError, FileNotFoundError), match=words) as problem:
        read_mask(path, (2, 3))
    assert "\n" not in str(problem.value) and "mask.png" in str(problem.value)
