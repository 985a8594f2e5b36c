"""Objects as plain values and arrays, and back, without pickle: what a fitted explainer holds."""

from __future__ import annotations

import importlib
import math
from collections import OrderedDict
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ...models.classifier import Array

#: packages whose objects may be stored; no code runs when they are made again
PACKAGES = ("contrafact.", "torch.nn.")
SIMPLE = (bool, int, str, type(None))
#: containers by the name they are stored under
CONTAINERS: dict[str, Any] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
}


class PlainWriter:
    """Convert objects to values that JSON has, and arrays.

    Objects of this package and modules of torch are stored by class and attributes. One that
    occurs twice is stored once.

    Parameters
    ----------
    known : mapping of str to object
        Objects that are not stored but given again when reading, such as the model.

    Attributes
    ----------
    arrays : dict of str to array
        The arrays so far, by the names under which the values refer to them.
    """

    def __init__(self, known: Mapping[str, Any]) -> None:
        self._known = {id(value): name for name, value in known.items() if value is not None}
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no id is given out again
        self.arrays: dict[str, Array] = {}

    def write(self, value: Any, place: str) -> Any:
        """Convert one value.

        Parameters
        ----------
        value : object
            What to convert.
        place : str
            Where it was found, for error messages.

        Returns
        -------
        JSON value
            For `PlainReader.read`.

        Raises
        ------
        TypeError
            If it is of a kind that cannot be stored.
        """
        if isinstance(value, SIMPLE) and type(value) in SIMPLE:
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if id(value) in self._known:
            return {"known": self._known[id(value)]}
        if id(value) in self._numbers:
            return {"same": self._numbers[id(value)]}
        number = len(self._kept)
        self._numbers[id(value)] = number
        self._kept.append(value)
        return {"number": number, **self._describe(value, place)}

    def _describe(self, value: Any, place: str) -> dict[str, Any]:
        """Describe a value that is stored for the first time."""
        if isinstance(value, Tensor):
            return self._tensor(value)
        if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufcUS":
            return {"array": self._keep_array(np.asarray(value)), "scalar": value.ndim == 0}
        if isinstance(value, torch.dtype | torch.device):
            kind = "dtype" if isinstance(value, torch.dtype) else "device"
            return {kind: str(value).removeprefix("torch.")}
        for name, container in CONTAINERS.items():
            if type(value) is container or (name == "tuple" and isinstance(value, torch.Size)):
                return {name: [self.write(item, f"{place}[…]") for item in value]}
        if type(value) in (dict, OrderedDict):
            items = [
                [self.write(key, place), self.write(item, f"{place}[{key!r}]")]
                for key, item in value.items()
            ]
            return {"dict": items, "ordered": type(value) is OrderedDict}
        return self._object(value, place)

    def _object(self, value: Any, place: str) -> dict[str, Any]:
        """Describe an object by its class and attributes."""
        kind = type(value)
        path = f"{kind.__module__}:{kind.__qualname__}"
        if not path.startswith(PACKAGES) or not hasattr(value, "__dict__"):
            raise TypeError(f"{place} cannot be saved: it is of the type {kind.__qualname__}.")
        attributes = {
            name: self.write(item, f"{place}.{name}")
            for name, item in vars(value).items()
            if not isinstance(getattr(kind, name, None), cached_property)
        }
        return {"object": path, "attributes": attributes}

    def _tensor(self, value: Tensor) -> dict[str, Any]:
        """Describe a tensor; bfloat16, which NumPy does not have, is stored as float32."""
        narrow = value.dtype == torch.bfloat16
        array = (value.float() if narrow else value).detach().cpu().numpy()
        return {
            "tensor": self._keep_array(array),
            "dtype": str(value.dtype).removeprefix("torch."),
            "parameter": isinstance(value, nn.Parameter),
            "gradient": value.requires_grad,
        }

    def _keep_array(self, array: Array) -> str:
        name = f"array/{len(self.arrays)}"
        self.arrays[name] = array
        return name


class PlainReader:
    """Make objects again that `PlainWriter` converted.

    Parameters
    ----------
    arrays : mapping of str to array
        The arrays, by name.
    known : mapping of str to object
        What takes the place of objects that were not stored.
    device : torch.device
        Where to put tensors.
    """

    def __init__(
        self,
        arrays: Mapping[str, Array],
        known: Mapping[str, Any],
        device: torch.device,
    ) -> None:
        self._arrays = arrays
        self._known = known
        self._device = device
        self._made: dict[int, Any] = {}

    def share(self, other: PlainReader) -> None:
        """Refer to what another reader made of the same file."""
        self._made.update(other._made)

    def read(self, plain: Any) -> Any:
        """Make the value that was converted.

        Parameters
        ----------
        plain : JSON value
            What `PlainWriter.write` returned.

        Returns
        -------
        object
            The value.

        Raises
        ------
        ValueError
            If it is no such value, or names a class that may not be made.
        """
        if isinstance(plain, (float, *SIMPLE)):
            return plain
        if "float" in plain:
            return float(plain["float"])
        if "known" in plain:
            return self._known[plain["known"]]
        if "same" in plain:
            return self._made[plain["same"]]
        if "object" in plain:
            return self._object(plain)
        made = self._value(plain)
        self._made[plain["number"]] = made
        return made

    def _value(self, plain: Mapping[str, Any]) -> Any:
        """Make anything but an object, which may refer to itself."""
        if "tensor" in plain:
            return self._tensor(plain)
        if "array" in plain:
            array = self._arrays[plain["array"]]
            return array[()] if plain["scalar"] else array
        if "dtype" in plain:
            return _dtype(plain["dtype"])
        if "device" in plain:
            return self._device
        if "dict" in plain:
            items = [(self.read(key), self.read(item)) for key, item in plain["dict"]]
            return OrderedDict(items) if plain["ordered"] else dict(items)
        for name, container in CONTAINERS.items():
            if name in plain:
                return container([self.read(item) for item in plain[name]])
        raise ValueError(f"unknown kind of value: {', '.join(plain)}")

    def _tensor(self, plain: Mapping[str, Any]) -> Tensor:
        array = self._arrays[plain["tensor"]]
        tensor = torch.from_numpy(array).to(self._device, _dtype(plain["dtype"]))
        if plain["parameter"]:
            return nn.Parameter(tensor, requires_grad=plain["gradient"])
        return tensor.requires_grad_(plain["gradient"]) if plain["gradient"] else tensor

    def _object(self, plain: Mapping[str, Any]) -> Any:
        kind = _class_of(plain["object"])
        made = object.__new__(kind)
        self._made[plain["number"]] = made
        attributes = {name: self.read(item) for name, item in plain["attributes"].items()}
        vars(made).update(attributes)
        return made


def _dtype(name: str) -> torch.dtype:
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"unknown dtype {name!r}")
    return dtype


def _class_of(path: str) -> type[Any]:
    """Return a class that may be made, by "module:name"."""
    module, _, name = path.partition(":")
    if not path.startswith(PACKAGES):
        raise ValueError(f"{path!r} is no class of contrafact or torch.nn")
    kind: Any = importlib.import_module(module)
    for part in name.split("."):
        kind = getattr(kind, part, None)
    if not isinstance(kind, type):
        raise ValueError(f"{path!r} is no class of contrafact or torch.nn")
    return kind
