"""Networks rebuilt from files of weights."""

from __future__ import annotations

import copy
import difflib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..data.archives import MAX_BYTES
from ..models import as_classifier
from ..models.files import find_model, read_model, read_torch_file
from ..models.import_paths import IMPORT_PATH, import_object
from ..models.labels import has_class_names
from ..models.safetensors_files import (
    CLASSES_KEY,
    NETWORK_KEY,
    read_class_names,
    read_safetensors,
    write_safetensors,
)
from ..models.torch_adapter import TorchClassifier
from ..validation import Boolean, FilePath, Satisfies, brief, check_parameters
from .base import Network
from .image_networks import ResNet8, SmallCNN
from .inception import InceptionTime
from .networks import FCN, MLP, NETWORKS, BiLSTM, seeded

Weights = dict[str, Tensor]
#: Where a model may be.
PATH = Satisfies(
    lambda path: isinstance(path, str | os.PathLike) and str(path) != "",
    "a file or 'module:name'",
)
#: Names under which training scripts store the weights, among other things they save.
WEIGHT_KEYS = ("state_dict", "model_state_dict", "model")


def load_model(
    path: str | os.PathLike[str],
    *,
    trust: bool = False,
    network: str | torch.nn.Module | Callable[[], torch.nn.Module] | None = None,
) -> Any:
    """Load a trained model from a file, or from a module that can be imported.

    Parameters
    ----------
    path : str or path
        "module:name", importable from the current folder, for the object of that name; or a file:
        weights of a torch network (a state_dict, read with weights_only, or safetensors), ONNX,
        skops, TorchScript, a program of torch.export, .joblib or .pkl.
    trust : bool, default=False
        Open files that can run code: TorchScript, programs of torch.export, torch files with more
        than weights in them, skops files with types that are not known, pickles.
    network : str, module or function, optional
        What the weights belong to: "module:name" of a torch module or of a class or function that
        makes one without arguments; these objects themselves; or "fcn", "inceptiontime",
        "bilstm", "smallcnn", "mlp", "resnet8", the networks of `fit_classifier`. Files of
        `save_weights` name such a network themselves.

    Returns
    -------
    object
        The model; torch modules are in eval mode, with the attribute `classes_` where the file
        names the classes. ONNX gives a session of onnxruntime.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ImportError
        If an import path, or code that a pickle needs, cannot be imported.
    TypeError
        If an import path names a class, or `network` does not make a torch module.
    ValueError
        If the file needs `trust` or `network`, or is not a model.

    Examples
    --------
    >>> from contrafact.nn import MLP
    >>> path = Path("weights.pt")
    >>> torch.save(MLP(n_features=4, n_classes=3).state_dict(), path)
    >>> load_model(path, network="mlp")(torch.zeros(2, 4)).shape
    torch.Size([2, 3])
    """
    rules = {"path": PATH, "trust": Boolean()}
    check_parameters("load_model", rules, {"path": path, "trust": trust})
    source = find_model(path)
    if source.kind not in ("torch", "safetensors"):
        if network is not None:
            raise _not_weights(source.path)
        return read_model(source, trust)
    if source.kind == "safetensors":
        stored, metadata = read_safetensors(source.file)
        network = _named_network(metadata, source.file) if network is None else network
        classes = read_class_names(metadata, source.file)
    else:
        stored = read_torch_file(source.file, trust)
        classes = None
    if isinstance(stored, torch.nn.Module):
        if network is not None:
            raise _not_weights(source.path)
        return stored.eval()
    weights = _weights_in(stored, source.file)
    if network is None:
        raise ValueError(
            f"{source.file} holds the weights of a network, not the network. Say with network "
            "(--network) what they belong to: module:name of a torch module or of what makes one, "
            f"or {', '.join(NETWORKS)}."
        )
    with seeded(0):  # making a network draws its first weights, which are replaced
        module = _make_network(network, weights, source.file)
    _fill(module, weights, source.file)
    if classes is not None:
        vars(module)["classes_"] = classes
    return module.eval()


def save_weights(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write the weights of a network to a safetensors file, which runs no code when it is opened.

    The file also names the network, if it is one of `fit_classifier`, and the classes, so that
    `load_model` and the command line need nothing else.

    Parameters
    ----------
    model : classifier of `fit_classifier`, or torch module
        The network. A module has no class names; wrap it with `as_classifier` to name them.
    path : str or path
        The file, usually .safetensors; replaced if it exists.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    TypeError
        If `model` is no network.
    FileNotFoundError
        If the folder does not exist.

    Examples
    --------
    >>> from contrafact.nn import MLP
    >>> network = as_classifier(MLP(4, 2), classes=["ok", "faulty"])
    >>> path = save_weights(network, "weights.safetensors")
    >>> load_model(path).classes_
    ['ok', 'faulty']
    """
    check_parameters("save_weights", {"path": FilePath()}, {"path": path})
    if not isinstance(model, torch.nn.Module | TorchClassifier):
        raise TypeError(
            f"model must be a torch module or a classifier made of one, got {brief(model)}."
        )
    classifier = as_classifier(model)
    assert isinstance(classifier, TorchClassifier)
    metadata = {}
    for name, network in NETWORKS.items():
        if type(classifier.module) is network.make:
            metadata[NETWORK_KEY] = name
    if has_class_names(classifier):
        metadata[CLASSES_KEY] = json.dumps(classifier.classes.tolist())
    file = Path(path).expanduser()
    write_safetensors(file, classifier.module.state_dict(), metadata)
    return file


def _named_network(metadata: Mapping[str, str], file: Path) -> str | None:
    """Return the network of `fit_classifier` that a file names, if any.

    Only these: a file must not choose a module to import.
    """
    name = metadata.get(NETWORK_KEY)
    if name is None or name in NETWORKS:
        return name
    raise ValueError(
        f"{file} says that its weights belong to {brief(name)}. Files may name "
        f"{', '.join(NETWORKS)}; say with network (--network) which other one it is."
    )


def _not_weights(path: str) -> ValueError:
    """Make the error for a network given beside a whole model."""
    return ValueError(f"network applies to a file of weights; {path!r} is a whole model.")


def _weights_in(stored: Any, file: Path) -> Weights:
    """Find the state_dict in what a file holds."""
    if isinstance(stored, Mapping):
        for key in WEIGHT_KEYS:
            if isinstance(stored.get(key), Mapping):
                stored = stored[key]
                break
        if stored and all(isinstance(value, Tensor) for value in stored.values()):
            _check_size(stored.values(), file)
            return dict(stored)
    raise ValueError(
        f"{file} holds a {type(stored).__name__}, not the weights of a network. Accepted: "
        f"a state_dict, alone or as {', '.join(map(repr, WEIGHT_KEYS))} of a dictionary."
    )


def _check_size(weights: Iterable[Tensor], file: Path) -> None:
    """Refuse weights that say to be larger than may be; few stored numbers can claim many."""
    total = sum(weight.numel() * weight.element_size() for weight in weights)
    if total > MAX_BYTES:
        raise ValueError(
            f"{file} holds weights of {total:,} bytes, more than the {MAX_BYTES:,} allowed."
        )


def _fill(module: torch.nn.Module, weights: Weights, file: Path) -> None:
    """Load weights into a module."""
    try:
        module.load_state_dict(weights)
    except (RuntimeError, AttributeError) as error:
        reason = _first_difference(module.state_dict(), weights) or " ".join(str(error).split())
        raise ValueError(
            f"{file} does not fit the network {type(module).__name__}: {reason}."
        ) from error


def _first_difference(expected: Mapping[str, Any], given: Weights) -> str | None:
    """Name the first weight that is missing, unknown or of another shape."""
    for name, weight in given.items():
        if name not in expected:
            return f"the network has no {name!r}; it has {', '.join(map(repr, [*expected][:3]))}, …"
        if weight.shape != expected[name].shape:
            shape = tuple(expected[name].shape)
            return f"{name!r} has shape {tuple(weight.shape)}, the network's {shape}"
    missing = [name for name in expected if name not in given]
    if missing:
        return f"the file has no {missing[0]!r}"
    return None


def _make_network(network: Any, weights: Weights, file: Path) -> torch.nn.Module:
    """Make the module that `network` names, as large as the weights for reference networks."""
    if isinstance(network, str):
        if network in NETWORKS:
            return _reference_network(network, weights, file)
        if not IMPORT_PATH.fullmatch(network):
            raise _unknown_network(network)
        made = import_object(network)
    else:
        made = network
    if isinstance(made, torch.nn.Module):
        return copy.deepcopy(made)
    if callable(made):
        made = _call(made, network)
    if not isinstance(made, torch.nn.Module):
        raise TypeError(
            f"network {brief(network)} gives {type(made).__name__}. Accepted: a torch module."
        )
    return made


def _unknown_network(name: str) -> ValueError:
    """Make the error of a network that is not known, with the name that is nearest."""
    close = difflib.get_close_matches(name.lower(), NETWORKS, n=1)
    suggestion = f" Did you mean {close[0]}?" if close else ""
    return ValueError(
        f"network {name!r} is unknown.{suggestion} Accepted: {', '.join(NETWORKS)}, or module:name "
        "of a torch module or of what makes one."
    )


def _call(make: Callable[[], Any], network: Any) -> Any:
    """Call a class or function without arguments."""
    try:
        return make()
    except TypeError as error:
        raise TypeError(
            f"network {network!r} cannot be made without arguments: {error}. Accepted: "
            "an instance, or a function without arguments that makes one."
        ) from error


def _reference_network(name: str, weights: Weights, file: Path) -> Network:
    """Make a network of `fit_classifier` as large as its weights."""
    try:
        n_inputs = len(weights["standardize.mean"])
        n_classes = len(weights[_HEADS.get(name, "head.bias")])
        with torch.device("meta"):  # without memory: shapes may claim more than the file holds
            outline = _BUILDERS[name](n_inputs, n_classes, weights)
        difference = _first_difference(outline.state_dict(), weights)
        if difference is not None:
            raise ValueError(difference)
        return _BUILDERS[name](n_inputs, n_classes, weights)
    except KeyError as error:
        raise ValueError(
            f"{file}: the weights are not those of network {name!r}: they lack {error}."
        ) from error
    except (IndexError, TypeError, ValueError, RuntimeError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"{file}: the weights do not have the shapes of network {name!r}: {reason}."
        ) from error


def _fcn(n_inputs: int, n_classes: int, weights: Weights) -> FCN:
    kernels = _convolutions(weights)
    widths = [len(kernel) for kernel in kernels]
    lengths = [kernel.shape[2] for kernel in kernels]
    return FCN(n_inputs, n_classes, widths, lengths)


def _inception_time(n_inputs: int, n_classes: int, weights: Weights) -> InceptionTime:
    module = r"members\.0\.blocks\.\d+\.modules_in_row\.\d+"
    convolutions = _matching(weights, r"members\.0\.blocks\.0\.modules_in_row\.0\.convolutions.*")
    kernels = [kernel.shape[2] for kernel in convolutions]
    width = len(convolutions[0])
    depth = len(_matching(weights, rf"{module}\.normalize\.weight"))
    n_members = len(_matching(weights, r"members\.\d+\.head\.bias"))
    return InceptionTime(n_inputs, n_classes, kernels, width, depth, n_members)


def _small_cnn(n_inputs: int, n_classes: int, weights: Weights) -> SmallCNN:
    widths = [len(kernel) for kernel in _convolutions(weights)]
    return SmallCNN(n_inputs, n_classes, widths)


def _resnet8(n_inputs: int, n_classes: int, weights: Weights) -> ResNet8:
    last_convolutions = [f"blocks.{block}.body.3.weight" for block in (3, 4, 5)]
    widths = [len(weights[name]) for name in last_convolutions]
    return ResNet8(n_inputs, n_classes, widths)


def _bilstm(n_inputs: int, n_classes: int, weights: Weights) -> BiLSTM:
    hidden = weights["lstm.weight_hh_l0"].shape[1]
    n_layers = len(_matching(weights, r"lstm\.weight_hh_l\d+"))
    return BiLSTM(n_inputs, n_classes, hidden, n_layers)


def _mlp(n_inputs: int, n_classes: int, weights: Weights) -> MLP:
    layers = _matching(weights, r"layers\.\d+\.0\.weight")
    return MLP(n_inputs, n_classes, [len(layer) for layer in layers])


#: Where the bias of the last layer is stored, if not as "head.bias".
_HEADS = {"inceptiontime": "members.0.head.bias"}
_BUILDERS: dict[str, Callable[[int, int, Weights], Network]] = {
    "fcn": _fcn,
    "inceptiontime": _inception_time,
    "bilstm": _bilstm,
    "smallcnn": _small_cnn,
    "mlp": _mlp,
    "resnet8": _resnet8,
}


def _convolutions(weights: Weights) -> list[Tensor]:
    """Return the kernels of a network's blocks."""
    return [
        weight for name, weight in weights.items() if name.startswith("blocks.") and weight.ndim > 2
    ]


def _matching(weights: Weights, pattern: str) -> list[Tensor]:
    """Return the weights whose whole name matches."""
    return [weight for name, weight in weights.items() if re.fullmatch(pattern, name)]
