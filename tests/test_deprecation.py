import inspect
import math
import warnings

import pytest

from contrafact.deprecation import (
    renamed_attributes,
    renamed_parameters,
    renamed_value,
    warn_renamed,
)


class Method:
    @renamed_parameters(lr="learning_rate", epochs="max_iter")
    def __init__(self, learning_rate=0.1, *, max_iter=10, kind="gray"):
        """Store the parameters."""
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.kind = renamed_value("kind", kind, {"grey": "gray"})


@renamed_parameters(lr="learning_rate")
def step(x, learning_rate=0.1):
    return x, learning_rate


def warned(call):
    """Return what a call returns, and the warnings it gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    assert all(warning.category is DeprecationWarning for warning in caught)
    assert all(warning.filename == __file__ for warning in caught)  # it points to the caller
    return result, [str(warning.message) for warning in caught]


def test_new_names_give_no_warning():
    method, messages = warned(lambda: Method(0.5, max_iter=3))
    assert (method.learning_rate, method.max_iter, messages) == (0.5, 3, [])


def test_old_names_work_with_a_warning():
    result, messages = warned(lambda: step(1, lr=0.5))
    assert result == (1, 0.5)
    assert messages == [
        "step(lr=...) is now learning_rate=...; the old name will be removed in version 0.3."
    ]


def test_several_old_names_of_a_class():
    method, messages = warned(lambda: Method(lr=0.5, epochs=3))
    assert (method.learning_rate, method.max_iter) == (0.5, 3)
    assert sorted(message.split(" is now ")[0] for message in messages) == [
        "Method(epochs=...)",
        "Method(lr=...)",
    ]


def test_both_names_are_an_error():
    with pytest.raises(TypeError, match="step got both learning_rate and its old name lr"):
        step(1, lr=0.5, learning_rate=0.5)
    with pytest.warns(DeprecationWarning), pytest.raises(TypeError, match="learning_rate"):
        step(1, 0.5, lr=0.5)


def test_unknown_names_are_still_errors():
    with pytest.raises(TypeError, match="rate"):
        step(1, rate=0.5)


def test_signature_and_docstring_stay():
    assert list(inspect.signature(step).parameters) == ["x", "learning_rate"]
    assert list(inspect.signature(Method).parameters) == ["learning_rate", "max_iter", "kind"]
    assert Method.__init__.__doc__ == "Store the parameters."


def test_old_values_are_translated():
    def choose(kind):
        return renamed_value("kind", kind, {"grey": "gray"})

    result, messages = warned(lambda: choose("grey"))
    assert result == "gray"
    assert messages[0].startswith("kind='grey' is now kind='gray'; the old name will be removed")
    for value in ("gray", None, 3, ["grey"]):
        result, messages = warned(lambda value=value: choose(value))
        assert result is value and messages == []


def test_old_attributes_are_found():
    lookup = renamed_attributes("package", {"circle": "math.tau"})
    result, messages = warned(lambda: lookup("circle"))
    assert result == math.tau
    assert messages == [
        "package.circle is now math.tau; the old name will be removed in version 0.3."
    ]
    with pytest.raises(AttributeError, match="module 'package' has no attribute 'square'"):
        lookup("square")


def test_the_warning_can_be_aimed():
    def inner():
        warn_renamed("old", "new", stacklevel=2)

    _, messages = warned(inner)
    assert messages == ["old is now new; the old name will be removed in version 0.3."]
