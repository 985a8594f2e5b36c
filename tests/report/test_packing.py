"""Packed arrays; test_payload.py reads them back from whole pages."""

import numpy as np
import pytest

from contrafact.report.packing import json_numbers, pack_bits, pack_values


@pytest.mark.parametrize(("dtype", "steps"), [(np.uint8, 255), (np.uint16, 65535)])
def test_steps_span_each_channel(dtype, steps):
    packed = pack_values(np.array([[0.0, 1.0], [5.0, 7.0]]), dtype)
    assert (packed["low"], packed["high"], packed["steps"]) == ([0.0, 5.0], [1.0, 7.0], steps)


def test_only_marked_values_are_packed():
    values = np.arange(6.0).reshape(2, 3)
    assert pack_values(values, np.uint8, values > 100)["data"] == ""
    assert len(pack_values(values, np.uint8, values > 1)["data"]) == 8  # four bytes in base64


def test_bits_and_numbers():
    assert pack_bits(np.array([True, False, True])) == "BQ=="
    assert json_numbers(np.array([1 / 3, np.inf, np.nan])) == [0.3333333, None, None]
