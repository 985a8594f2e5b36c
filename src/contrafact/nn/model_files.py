"""Trained models from files and import paths. Nothing that could run code is opened without `trust`."""

from __future__ import annotations

import copy
import importlib
import os
import re
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Literal

import torch
from torch import Tensor

from .networks import FCN, MLP, NETWORKS, BiLSTM, Network, ResNet8, SmallCNN

Kind = Literal["script", "export", "weights", "pickle"]
IMPORT_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
TORCH_SUFFIXES = (".pt", ".pth", ".ts", ".bin", ".ckpt")
PICKLE_SUFFIXES = (".joblib", ".pkl", ".pickle")
ACCEPTED = (
    "TorchScript (.pt), weights of a torch network (.pt, with network), an exported program (.pt2, with "
    "trust), .joblib or .pkl (with trust), or module:name, e.g. train:model"
)
#: What training scripts call the weights among other things they save.
WEIGHT_KEYS = ("state_dict", "model_state_dict", "model")
WHY_TRUST = "opening it runs any code that it contains. If you made it, or trust who did, pass trust=True (--trust)."


def load_model(
    path: str | os.PathLike[str],
    *,
    trust: bool = False,
    network: str | torch.nn.Module | Callable[[], torch.nn.Module] | None = None,
) -> Any:
    """A trained model from a file, or from a module that can be imported.

    Parameters
    ----------
    path : str or path
        "module:name", importable from the current folder, for the object of that name; or a file:
        TorchScript, weights of a torch network (a state_dict, read with weights_only), a program of
        torch.export, .joblib or .pkl.
    trust : bool, default=False
        Open files that can run code when opened: pickles, and torch files with more than weights in them.
    network : str, module or function, optional
        What the weights belong to: "module:name" of a torch module or of a class or function that makes one
        without arguments; these objects themselves; or "fcn", "bilstm", "smallcnn", "mlp", "resnet8", the
        networks of `fit_classifier`.

    Examples
    --------
    >>> from contrafact.models import MLP
    >>> path = Path("weights.pt")
    >>> torch.save(MLP(n_features=4, n_classes=3).state_dict(), path)
    >>> load_model(path, network="mlp")(torch.zeros(2, 4)).shape
    torch.Size([2, 3])
    """
    text = os.fspath(path)
    file = Path(path).expanduser()
    if not file.exists() and IMPORT_PATH.fullmatch(text):
        if network is not None:
            raise ValueError(f"network applies to a file of weights; {text!r} is a model itself.")
        return _imported_model(text)
    if not file.is_file():
        what = "is a folder" if file.is_dir() else "does not exist"
        raise FileNotFoundError(f"model {text!r} {what}. Accepted: {ACCEPTED}.")
    kind = _kind_of(file)
    if network is not None and kind != "weights":
        raise ValueError(f"network applies to a file of weights; {file} holds a whole model.")
    if kind == "script":
        return _load_script(file)
    if kind == "weights":
        return _load_torch(file, trust, network)
    if not trust:
        what = "a torch.export program" if kind == "export" else "a pickle"
        raise ValueError(f"{file} is {what}: {WHY_TRUST}")
    return _load_export(file) if kind == "export" else _load_pickle(file)


def import_object(path: str) -> Any:
    """The object that "module:name" names; the current folder counts, and the name may have dots."""
    module_name, _, attributes = path.partition(":")
    with current_folder():
        try:
            found: Any = importlib.import_module(module_name)
        except ImportError as error:
            where = "" if error.name != module_name else f" It is looked for in {Path.cwd()} too."
            raise ImportError(f"{path!r} cannot be imported: {error}.{where}") from error
    for name in attributes.split("."):
        if not hasattr(found, name):
            known = (
                [key for key in vars(found) if not key.startswith("_")]
                if hasattr(found, "__dict__")
                else []
            )
            has = f" It has {', '.join(known[:10])}." if known else ""
            raise ImportError(f"{path!r} cannot be imported: there is no {name!r} in it.{has}")
        found = getattr(found, name)
    return found


@contextmanager
def current_folder() -> Iterator[None]:
    """Modules of the current folder can be imported inside, as by `python -m`."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)


def _imported_model(path: str) -> Any:
    model = import_object(path)
    if isinstance(model, type):
        raise TypeError(
            f"{path!r} is a class, not a trained model. Give the name of a trained instance, or a file of "
            f"weights with network={path!r} (--network {path})."
        )
    return model


def _kind_of(file: Path) -> Kind:
    """By content: what a file is called does not make it safe to open."""
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            members = {name.partition("/")[2] for name in archive.namelist()}
            names = archive.namelist()
        if any(name.startswith("code/") for name in members):
            return "script"
        if "models/model.json" in members or "serialized_exported_program.json" in names:
            return "export"
        if "data.pkl" in members:
            return "weights"
        if any(name.endswith(".npy") for name in names):
            raise ValueError(f"{file} holds arrays, not a model. Accepted: {ACCEPTED}.")
    else:
        with file.open("rb") as stream:
            pickled = stream.read(1) == b"\x80"
        suffix = file.suffix.lower()
        if pickled and suffix in TORCH_SUFFIXES:
            return "weights"  # as torch wrote them before 1.6
        if pickled or suffix in PICKLE_SUFFIXES:
            return "pickle"
    raise ValueError(f"{file} is not a model of a known kind. Accepted: {ACCEPTED}.")


def _load_script(file: Path) -> torch.nn.Module:
    with warnings.catch_warnings():
        # torch advises the author of a model to export it instead; who only has the file can't.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            module: torch.nn.Module = torch.jit.load(file, map_location="cpu")
        except RuntimeError as error:
            raise ValueError(
                f"{file} cannot be opened as TorchScript: {_first_line(error)}"
            ) from error
    return module.eval()


def _load_export(file: Path) -> torch.nn.Module:
    module: torch.nn.Module = torch.export.load(file).module()
    for part in module.modules():
        part.training = False  # an exported module has no eval(): its mode was settled at export
    return module


def _load_torch(file: Path, trust: bool, network: Any) -> torch.nn.Module:
    """Weights into the network; or, with trust, a whole module."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # of the protocol of what will be refused anyway
            stored = torch.load(file, map_location="cpu", weights_only=True)
    except UnpicklingError as error:
        if not trust:
            raise ValueError(
                f"{file} holds more than weights (a whole module, perhaps): {WHY_TRUST} Or save the weights "
                "alone, torch.save(model.state_dict(), …), and name the network (--network)."
            ) from error
        with _explained(file), current_folder():
            stored = torch.load(file, map_location="cpu", weights_only=False)
    except RuntimeError as error:
        raise ValueError(
            f"{file} cannot be opened as a torch file: {_first_line(error)}"
        ) from error
    if isinstance(stored, torch.nn.Module):
        if network is not None:
            raise ValueError(f"network applies to a file of weights; {file} holds a whole model.")
        return stored.eval()
    weights = _weights_in(stored, file)
    if network is None:
        raise ValueError(
            f"{file} holds the weights of a network, not the network. Say with network (--network) what they "
            f"belong to: module:name of a torch module or of what makes one, or {', '.join(NETWORKS)}."
        )
    module = _network(network, weights)
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        reason = " ".join(str(error).partition("\n\t")[2].split())
        raise ValueError(
            f"{file} does not fit the network {type(module).__name__}: {reason}"
        ) from error
    return module.eval()


def _weights_in(stored: Any, file: Path) -> dict[str, Tensor]:
    if isinstance(stored, Mapping):
        for key in WEIGHT_KEYS:
            if isinstance(stored.get(key), Mapping):
                stored = stored[key]
                break
        if stored and all(isinstance(value, Tensor) for value in stored.values()):
            return dict(stored)
    raise ValueError(
        f"{file} holds a {type(stored).__name__}, not the weights of a network. Accepted: a state_dict, "
        f"alone or as {', '.join(map(repr, WEIGHT_KEYS))} of a dictionary."
    )


def _network(network: Any, weights: dict[str, Tensor]) -> torch.nn.Module:
    if isinstance(network, str) and network in NETWORKS:
        return _reference_network(network, weights)
    if isinstance(network, str):
        if not IMPORT_PATH.fullmatch(network):
            raise ValueError(
                f"network {network!r} is unknown. Accepted: {', '.join(NETWORKS)}, or module:name of a torch "
                "module or of what makes one."
            )
        made = import_object(network)
    else:
        made = network
    if isinstance(made, torch.nn.Module):
        return copy.deepcopy(made)
    if callable(made):
        try:
            made = made()
        except TypeError as error:
            raise TypeError(
                f"network {network!r} cannot be made without arguments: {error}. Accepted: an instance, or a "
                "function without arguments that makes one."
            ) from error
    if not isinstance(made, torch.nn.Module):
        raise TypeError(
            f"network {network!r} gives {type(made).__name__}. Accepted: a torch module."
        )
    return made


def _reference_network(name: str, weights: dict[str, Tensor]) -> Network:
    """A network of `fit_classifier`, as large as its weights."""
    try:
        n_in, n_classes = len(weights["standardize.mean"]), len(weights["head.bias"])
        kernels = [w for key, w in weights.items() if key.startswith("blocks.") and w.ndim > 2]
        if name == "fcn":
            return FCN(n_in, n_classes, [len(w) for w in kernels], [w.shape[2] for w in kernels])
        if name == "smallcnn":
            return SmallCNN(n_in, n_classes, [len(w) for w in kernels])
        if name == "resnet8":
            return ResNet8(
                n_in, n_classes, [len(weights[f"blocks.{i}.body.3.weight"]) for i in (3, 4, 5)]
            )
        if name == "bilstm":
            n_layers = sum(
                re.fullmatch(r"lstm\.weight_hh_l\d+", key) is not None for key in weights
            )
            return BiLSTM(n_in, n_classes, weights["lstm.weight_hh_l0"].shape[1], n_layers)
        layers = [
            len(w) for key, w in weights.items() if re.fullmatch(r"layers\.\d+\.0\.weight", key)
        ]
        return MLP(n_in, n_classes, layers)
    except KeyError as error:
        raise ValueError(
            f"The weights are not those of network {name!r}: they lack {error}."
        ) from error


def _load_pickle(file: Path) -> Any:
    import joblib
    from sklearn.exceptions import InconsistentVersionWarning

    with _explained(file), current_folder(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", InconsistentVersionWarning)
        model = joblib.load(file)
    old = [w.message for w in caught if isinstance(w.message, InconsistentVersionWarning)]
    for warning in caught:
        if not isinstance(warning.message, InconsistentVersionWarning):
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    if old:  # one for every part of a pipeline and every tree of a forest
        warnings.warn(
            f"{file} was saved with scikit-learn {old[0].original_sklearn_version}, this is "
            f"{old[0].current_sklearn_version}: its answers may differ from what they were.",
            stacklevel=3,
        )
    return model


@contextmanager
def _explained(file: Path) -> Iterator[None]:
    """What goes wrong in a pickle, in terms of the file."""
    try:
        yield
    except (ImportError, AttributeError) as error:
        raise ImportError(
            f"{file} needs code that is not there: {error}. Run this where the script that made it can be "
            "imported; what it defined under __main__ has to move to a module."
        ) from error
    except (UnpicklingError, EOFError, KeyError, IndexError) as error:
        raise ValueError(f"{file} cannot be opened as a pickle: {error}") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
