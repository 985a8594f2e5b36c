"""The package as a whole: quick to import, and complete."""

import subprocess
import sys
import time

import contrafact as cf
from contrafact.explainers.registry import explainer_classes


def test_import_is_quick_and_light():
    heavy = ("torch", "aeon", "sklearn", "pandas")
    code = f"import sys, contrafact; print([m for m in {heavy} if m in sys.modules])"
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        out = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        seconds.append(time.perf_counter() - start)
        assert out.strip() == "[]"
    assert min(seconds) < 0.5


def test_every_public_name_resolves():
    for name in cf.__all__:
        assert getattr(cf, name) is not None
    assert set(cf.__all__) <= set(dir(cf))


def test_every_explainer_is_public():
    assert set(explainer_classes()) <= set(cf.__all__)
    assert set(cf.list_explainers().index) == set(explainer_classes())


def test_unknown_name_is_an_attribute_error():
    assert not hasattr(cf, "NoSuchName")
