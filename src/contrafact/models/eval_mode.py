"""Torch modules as in eval mode, without switching a module that other threads may be using."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from operator import is_
from pickle import PicklingError
from threading import RLock
from types import FunctionType
from typing import Any, NamedTuple, TypeVar, cast

import torch
from torch import Tensor, nn
from typing_extensions import Self

Module = TypeVar("Module", bound=nn.Module)
#: What torch keeps in every module, besides its parts and its mode: a copy shares it.
_SHARED = frozenset(vars(nn.Module())) - {"_modules", "training"}
#: Held while a module that cannot be copied is in eval mode.
_SWITCHING = RLock()
#: Copies that run in place of modules, by the id of their `EvalModule`, in this thread only.
_HOOKED: ContextVar[dict[int, nn.Module] | None] = ContextVar("hooked", default=None)


class EvalModule:
    """Run a module as in eval mode without switching it, so that threads may share it.

    A module in eval mode runs as it is. In place of any other runs a copy in eval mode that shares
    its weights, buffers and hooks (see `eval_copy`): it costs no memory and follows later updates.
    Where a module cannot be copied, it is switched and switched back, one thread at a time.

    Parameters
    ----------
    module : torch.nn.Module
        The module, in any mode.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        # The copy and what it was made of: one attribute, so that threads see both or neither.
        self._made: tuple[Contents, nn.Module | None] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"module": self.module, "_made": None}

    def __call__(self, x: Tensor) -> Any:
        """Run the module on rows."""
        hooked = _HOOKED.get() or {}
        if id(self) in hooked:
            return hooked[id(self)](x)
        if not _in_training(self.module):
            return self.module(x)
        copied = self._copy()
        if copied is not None:
            return copied(x)
        with _SWITCHING, evaluating(self.module):
            return self.module(x)

    @contextmanager
    def hooked(self) -> Iterator[nn.Module]:
        """Yield a module for hooks that see what this thread asks inside the block, and no more."""
        copied = eval_copy(self.module, share_hooks=False)
        if copied is None:
            with _SWITCHING, evaluating(self.module):
                yield self.module
            return
        others = _HOOKED.get() or {}
        token = _HOOKED.set({**others, id(self): copied})
        try:
            yield copied
        finally:
            _HOOKED.reset(token)

    def _copy(self) -> nn.Module | None:
        """Return the copy in eval mode, a new one where the module has other contents by now."""
        contents = Contents.of(self.module)
        if self._made is None or not contents.same(self._made[0]):
            self._made = (contents, eval_copy(self.module))
        return self._made[1]


class Contents(NamedTuple):
    """What a copy of a module was made of, to see whether it still is."""

    objects: list[Any]  # parts and their attributes; kept, so that no id is given out again
    versions: list[int]  # of the tensors that the copy does not share

    @classmethod
    def of(cls, module: nn.Module) -> Self:
        """Collect the contents of a module."""
        objects: list[Any] = []
        for part in module.modules():
            objects.append(part)
            objects.extend(vars(part).values())
        if not _acts_on_switching(module):
            return cls(objects, [])
        tensors = [*module.parameters(), *module.buffers()]
        return cls(objects, [tensor._version for tensor in tensors])

    def same(self, other: Self) -> bool:
        """Return whether two contents are the same objects, with the same values."""
        if len(self.objects) != len(other.objects) or self.versions != other.versions:
            return False
        return all(map(is_, self.objects, other.objects))


def eval_copy(module: nn.Module, share_hooks: bool = True) -> nn.Module | None:
    """Copy a module in eval mode; weights and buffers are shared.

    A module with `train` or `eval` of its own gets a whole copy, which it may change in them.

    Parameters
    ----------
    module : torch.nn.Module
        The module; it is not changed.
    share_hooks : bool, default=True
        Share the hooks too; False: hooks added to one are not called by the other.

    Returns
    -------
    torch.nn.Module or None
        The copy, in eval mode; None where there can be none: TorchScript, parts that cannot be
        copied, such as locks, and functions that call parts of the module itself.
    """
    whole = _acts_on_switching(module)
    memo: dict[int, Any] = {}
    for part in module.modules():
        if isinstance(part, torch.jit.ScriptModule):
            return None
        for name, value in vars(part).items():
            if _calls_modules(value):
                return None
            of_torch = name in _SHARED
            if of_torch and "hook" in name:
                memo[id(value)] = value if share_hooks else copy.copy(value)
            elif not whole and (of_torch or isinstance(value, Tensor)):
                memo[id(value)] = value
    try:
        copied = copy.deepcopy(module, memo)
    except (TypeError, ValueError, AttributeError, RuntimeError, PicklingError):
        return None
    if whole:
        copied.eval()
    for part in copied.modules():
        part.training = False  # also where eval() is refused, as by modules of torch.export
    return copied


def in_eval_mode(module: Module, name: str) -> Module:
    """Return a module if it is in eval mode, else a copy that is.

    Parameters
    ----------
    module : torch.nn.Module
        The module; it is not changed.
    name : str
        What error messages call it.

    Returns
    -------
    torch.nn.Module
        For use in place of the module; shares its weights where `eval_copy` does.

    Raises
    ------
    ValueError
        If the module is in train mode and cannot be copied.
    """
    if not _in_training(module):
        return module
    copied = eval_copy(module)
    if copied is None:
        raise ValueError(
            f"{name} is in train mode and cannot be copied; call {name}.eval() before."
        )
    return cast(Module, copied)


def _in_training(module: nn.Module) -> bool:
    """Return whether any part is in train mode; faster than `modules()`, since asked every time."""
    parts = [module]
    while parts:
        part = parts.pop()
        if part.training:
            return True
        parts.extend(child for child in part._modules.values() if child is not None)
    return False


def _acts_on_switching(module: nn.Module) -> bool:
    """Return whether a part does more in `train` or `eval` than to set the mode."""
    kinds = {type(part) for part in module.modules()}
    return any(
        kind.train is not nn.Module.train or kind.eval is not nn.Module.eval for kind in kinds
    )


def _calls_modules(value: Any) -> bool:
    """Return whether a function refers to modules that a copy of it would refer to as well."""
    if not isinstance(value, FunctionType):
        return False
    names = inspect.getclosurevars(value)
    referred = [*names.nonlocals.values(), *names.globals.values()]
    return any(isinstance(found, nn.Module) for found in referred)


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Set eval mode inside the block, and restore the mode of every submodule after it.

    For a module that no other thread uses, such as one in training.
    """
    training = [part for part in module.modules() if part.training]
    if training:
        module.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True
