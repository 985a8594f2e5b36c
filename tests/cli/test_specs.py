"""The syntax of --rows, --freeze and --bounds."""

import numpy as np
import pytest
from PIL import Image

from contrafact.cli.specs import Layout, parse_rows


def test_rows():
    assert parse_rows("3,17,0:2,1", 20, 200).tolist() == [3, 17, 0, 1]
    assert parse_rows("18:", 20, 200).tolist() == [18, 19]
    assert parse_rows(None, 20, 5).tolist() == [0, 1, 2, 3, 4]


def test_what_can_be_frozen_and_bounded():
    series = Layout((2, 6), "series", ("x", "a:b"))
    assert series.frozen(["0:2"]).tolist() == [[True] * 2 + [False] * 4] * 2
    assert series.frozen(["x", "a:b:4:"]).tolist() == [[True] * 6, [False] * 4 + [True] * 2]
    assert series.frozen(["ch 1::1"]).sum() == 1 and series.frozen([]) is None
    image = Layout((1, 4, 5), "image")
    assert image.frozen(["1:2,3:5"])[0, 1].tolist() == [False] * 3 + [True] * 2
    assert image.frozen(["0:2"]).sum() == 10 and image.frozen(["ch 0"]).all()
    row = Layout((3,), "row", ("age", "0:1", "a=b"))
    assert row.frozen(["1:3"]).tolist() == [False, True, True]
    assert row.frozen(["0:1"]).tolist() == [False, True, False]  # a name comes first
    lower, upper = row.bounds([":5", "a=b=-1e2:", "age=3:12"])
    assert lower.tolist() == [3, -np.inf, -100] and upper.tolist() == [12, 5, np.inf]
    for layout, spec in [
        (row, "x:0:1"),
        (row, ":"),
        (series, "0:2,0:2"),
        (series, "3:3"),
        (image, "0:-1"),
    ]:
        with pytest.raises(ValueError, match=r"--freeze .*(Accepted|within)"):
            layout.frozen([spec])


def test_a_picture_is_a_mask_of_images(tmp_path):
    keep = np.zeros((4, 5), bool)
    keep[1, 2:] = True
    path = str(tmp_path / "keep.PNG")
    Image.fromarray(keep).save(path)
    image = Layout((2, 4, 5), "image")
    assert image.frozen([path]).tolist() == [keep.tolist()] * 2
    assert image.frozen([path, "0:1"]).sum() == 2 * (3 + 5)
    with pytest.raises(ValueError, match=r"4 × 5 pixels .*the images have 5 × 4"):
        Layout((2, 5, 4), "image").frozen([path])
    with pytest.raises(ValueError, match="a picture is a mask for images; these are series"):
        Layout((1, 20), "series").frozen([path])
    with pytest.raises(FileNotFoundError, match=r"no mask file at the path missing\.png"):
        image.frozen(["missing.png"])
