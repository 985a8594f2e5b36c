"""Trained models from files and import paths; code in files runs only where it is trusted."""

from __future__ import annotations

import os
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, Literal

import torch

from ..consent import require_trust
from .damage import DAMAGE, damaged
from .import_paths import IMPORT_PATH, current_folder, import_object
from .onnx_files import is_onnx, read_onnx
from .safetensors_files import is_safetensors
from .skops_files import SCHEMA, read_skops

Kind = Literal["import", "onnx", "safetensors", "skops", "script", "export", "torch", "pickle"]
TORCH_SUFFIXES = (".pt", ".pth", ".ts", ".bin", ".ckpt")
PICKLE_SUFFIXES = (".joblib", ".pkl", ".pickle")
ACCEPTED = (
    "weights of a torch network (.pt or .safetensors, with network); .onnx; .skops; TorchScript "
    "(.pt), an exported program (.pt2), .joblib or .pkl (with trust); or module:name, e.g. "
    "train:model"
)
WHY_SCRIPT = (
    "it is a program that runs when it is opened and asked, and that can overwrite files "
    "(torch.save is one of its operations)"
)
WEIGHTS_INSTEAD = (
    "Or save the weights alone, torch.save(model.state_dict(), …), "
    "and name the network (--network)."
)


@dataclass(frozen=True)
class ModelSource:
    """Say where a model is and how it is stored.

    Parameters
    ----------
    path : str
        As given: an import path or the path of a file.
    kind : {"import", "onnx", "safetensors", "skops", "script", "export", "torch", "pickle"}
        An object to import; a graph of operators; weights; an estimator of scikit-learn;
        TorchScript; a program of torch.export; weights or a module written by torch.save; a pickle.
    """

    path: str
    kind: Kind

    @property
    def file(self) -> Path:
        """The file, unless the kind is "import"."""
        return Path(self.path).expanduser()


def find_model(path: str | os.PathLike[str]) -> ModelSource:
    """Find a model and recognize how it is stored, without running any of its code.

    Parameters
    ----------
    path : str or path
        "module:name" or a file.

    Returns
    -------
    ModelSource
        Its kind is recognized by content: what a file is called does not make it safe to open.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file holds no model of a known kind.
    """
    text = os.fspath(path)
    file = Path(path).expanduser()
    if not file.exists() and IMPORT_PATH.fullmatch(text):
        return ModelSource(text, "import")
    if not file.is_file():
        what = "is a folder" if file.is_dir() else "does not exist"
        raise FileNotFoundError(f"model {text!r} {what}. Accepted: {ACCEPTED}.")
    return ModelSource(text, _kind_of(file))


def read_model(source: ModelSource, trust: bool) -> Any:
    """Read a model that is stored whole.

    Parameters
    ----------
    source : ModelSource
        Of any kind but "torch" and "safetensors", which hold weights: see `read_torch_file` and
        `read_safetensors`.
    trust : bool
        Open files that can run code when opened or asked.

    Returns
    -------
    object
        The model; torch modules are in eval mode.

    Raises
    ------
    ValueError
        If the file needs trust, or is damaged.
    """
    if source.kind == "import":
        return _import_model(source.path)
    if source.kind == "onnx":
        return read_onnx(source.file)
    if source.kind == "skops":
        with one_version_warning(source.file):
            return read_skops(source.file, trust)
    if source.kind == "script":
        require_trust(f"{source.file} is TorchScript", trust, WHY_SCRIPT, WEIGHTS_INSTEAD)
        return _load_script(source.file)
    if source.kind == "export":
        require_trust(f"{source.file} is a torch.export program", trust)
        return _load_export(source.file)
    require_trust(f"{source.file} is a pickle", trust)
    return _load_pickle(source.file)


def read_torch_file(file: Path, trust: bool) -> Any:
    """Read what torch.save wrote.

    Parameters
    ----------
    file : Path
        A file of kind "torch".
    trust : bool
        Open the file also if it holds more than weights.

    Returns
    -------
    object
        Usually a state_dict, a dictionary with one among other things, or a module.

    Raises
    ------
    ValueError
        If the file needs trust, or is damaged.
    """
    try:
        # A stream, for torch chooses another reader by the name of a file.
        with file.open("rb") as stream, warnings.catch_warnings():
            # torch warns about the pickle protocol of files that are refused anyway.
            warnings.simplefilter("ignore", UserWarning)
            return torch.load(stream, map_location="cpu", weights_only=True)
    except UnpicklingError:
        subject = f"{file} holds more than weights (a whole module, perhaps)"
        require_trust(subject, trust, instead=WEIGHTS_INSTEAD)
    except (*DAMAGE, AttributeError, ImportError) as error:  # nothing is imported here
        raise damaged(file, "a torch file", error) from error
    with file.open("rb") as stream, _pickle_errors(file), current_folder():
        return torch.load(stream, map_location="cpu", weights_only=False)


def _kind_of(file: Path) -> Kind:
    """Recognize the kind of a file by its content."""
    try:
        is_archive = zipfile.is_zipfile(file)
    except zipfile.BadZipFile as error:
        raise damaged(file, "an archive", error) from error
    kind = _kind_of_archive(file) if is_archive else _kind_of_stream(file)
    if kind is None:
        raise ValueError(f"{file} is not a model of a known kind. Accepted: {ACCEPTED}.")
    return kind


def _kind_of_archive(file: Path) -> Kind | None:
    """Recognize a zip archive by the names of its members."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except DAMAGE as error:
        raise damaged(file, "an archive", error) from error
    members = {name.partition("/")[2] for name in names}  # without the folder of the archive's name
    if any(name.startswith("code/") for name in members):
        return "script"
    if "models/model.json" in members or "serialized_exported_program.json" in names:
        return "export"
    if "data.pkl" in members:
        return "torch"
    if SCHEMA in names:
        return "skops"
    if any(name.endswith(".npy") for name in names):
        raise ValueError(f"{file} holds arrays, not a model. Accepted: {ACCEPTED}.")
    return None


def _kind_of_stream(file: Path) -> Kind | None:
    """Recognize any other file by its structure, and by its suffix if it is compressed."""
    if is_safetensors(file):  # may begin with the byte that pickles begin with
        return "safetensors"
    if is_onnx(file):
        return "onnx"
    with file.open("rb") as stream:
        pickled = stream.read(1) == b"\x80"
    suffix = file.suffix.lower()
    if pickled and suffix in TORCH_SUFFIXES:
        return "torch"  # as torch wrote files before version 1.6
    if pickled or suffix in PICKLE_SUFFIXES:
        return "pickle"
    return None


def _import_model(path: str) -> Any:
    """Import a trained model; refuse a class."""
    model = import_object(path)
    if isinstance(model, type):
        raise TypeError(
            f"{path!r} is a class, not a trained model. Give the name of a trained instance, "
            f"or a file of weights with network={path!r} (--network {path})."
        )
    return model


def _load_script(file: Path) -> torch.nn.Module:
    """Load TorchScript."""
    with warnings.catch_warnings():
        # torch advises the author of a model to export it instead; its user cannot.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            module: torch.nn.Module = torch.jit.load(file, map_location="cpu")
        except DAMAGE as error:
            raise damaged(file, "TorchScript", error) from error
    return module.eval()


def _load_export(file: Path) -> torch.nn.Module:
    """Load a program of torch.export."""
    try:
        module: torch.nn.Module = torch.export.load(file).module()
    except DAMAGE as error:
        raise damaged(file, "a torch.export program", error) from error
    for part in module.modules():
        part.training = False  # an exported module has no eval(): its mode was fixed at export
    return module


def _load_pickle(file: Path) -> Any:
    """Load a pickle."""
    import joblib

    with _pickle_errors(file), current_folder(), one_version_warning(file):
        return joblib.load(file)


@contextmanager
def one_version_warning(file: Path) -> Iterator[None]:
    """Turn scikit-learn's warnings about the version that saved a file into one."""
    from sklearn.exceptions import InconsistentVersionWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", InconsistentVersionWarning)
        yield
    outdated = []  # one warning for every part of a pipeline and every tree of a forest
    for warning in caught:
        if isinstance(warning.message, InconsistentVersionWarning):
            outdated.append(warning.message)
        else:
            warnings.warn_explicit(
                warning.message,
                warning.category,
                warning.filename,
                warning.lineno,
            )
    if outdated:
        warnings.warn(
            f"{file} was saved with scikit-learn {outdated[0].original_sklearn_version}, this is "
            f"{outdated[0].current_sklearn_version}: its answers may differ from what they were.",
            stacklevel=5,  # the caller of load_model
        )


@contextmanager
def _pickle_errors(file: Path) -> Iterator[None]:
    """Explain what goes wrong in a pickle in terms of the file."""
    try:
        yield
    except (ImportError, AttributeError) as error:
        raise ImportError(
            f"{file} needs code that is not there: {error}. Run this where the script that made it "
            "can be imported; what it defined under __main__ has to move to a module."
        ) from error
    except DAMAGE as error:
        raise damaged(file, "a pickle", error) from error
