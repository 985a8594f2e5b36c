"""Attempts to make a file run code without consent: each has a payload that writes a file."""

import io
import json
import pickle
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path

import joblib
import numpy as np
import pytest
import torch
from onnx import TensorProto, helper
from safetensors.torch import save_file
from torch import nn

import contrafact as cf
from contrafact.consent import require_trust
from contrafact.models.import_paths import import_object
from saved_models import Payload, X

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")


class WritingForward(nn.Module):
    """Asked, it writes a file; TorchScript can do that without any Python."""

    def __init__(self, proof: str):
        super().__init__()
        self.proof = proof

    def forward(self, x):
        torch.save(x, self.proof)
        return x.flatten(1)[:, :2]


class WritingOpening(WritingForward):
    """Opened, it writes a file."""

    @torch.jit.export
    def __getstate__(self):
        return self.proof, self.training

    @torch.jit.export
    def __setstate__(self, state: tuple[str, bool]):
        self.proof = state[0]
        self.training = state[1]
        torch.save(torch.ones(1), self.proof)


def pickled(path: Path, proof: Path) -> None:
    path.write_bytes(pickle.dumps(Payload(proof)))


def pickled_by_protocol_0(path: Path, proof: Path) -> None:
    path.write_bytes(pickle.dumps(Payload(proof), protocol=0))


def compressed(path: Path, proof: Path) -> None:
    joblib.dump(Payload(proof), path, compress=3)


def saved_by_torch(path: Path, proof: Path) -> None:
    torch.save(Payload(proof), path)


def saved_by_old_torch(path: Path, proof: Path) -> None:
    torch.save(Payload(proof), path, _use_new_zipfile_serialization=False)


def among_weights(path: Path, proof: Path) -> None:
    torch.save({"state_dict": {"weight": torch.ones(2), "bias": Payload(proof)}}, path)


def scripted(path: Path, proof: Path) -> None:
    torch.jit.script(WritingForward(str(proof))).save(path)


def scripted_opening(path: Path, proof: Path) -> None:
    torch.jit.script(WritingOpening(str(proof))).save(path)
    proof.unlink(missing_ok=True)


def scripted_without_its_folder_of_code(path: Path, proof: Path) -> None:
    """An archive that torch takes for TorchScript, though nothing in it is called code."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/data.pkl", pickle.dumps(Payload(proof)))
        archive.writestr("net/constants.pkl", pickle.dumps(Payload(proof)))
        archive.writestr("net/version", "3\n")


def exported(path: Path, proof: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/models/model.json", "{}")
        archive.writestr("net/data/weights/model.pt", pickle.dumps(Payload(proof)))


def pickle_before_an_archive(path: Path, proof: Path) -> None:
    """A pickle for those who read from the front, harmless weights for those who look for a zip."""
    weights = io.BytesIO()
    torch.save({"weight": torch.ones(2)}, weights)
    path.write_bytes(pickle.dumps(Payload(proof)) + weights.getvalue())


def objects_in_arrays(path: Path, proof: Path) -> None:
    arrays = {"X": np.array([Payload(proof)], dtype=object), "y": np.zeros(1)}
    with path.open("wb") as file:
        np.savez(file, **arrays)


def in_skops(path: Path, proof: Path) -> None:
    """A description that names a function of the standard library, and what to hand to it."""
    texts = [{**NAMED, "__loader__": "JsonNode", "content": json.dumps(f"touch {proof}")}]
    schema = {
        "__class__": "system",
        "__module__": "os",
        "__loader__": "ListNode",
        "content": texts,
        "protocol": 2,
    }
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", json.dumps(schema))


def bound_in_skops(path: Path, proof: Path) -> None:
    """A harmless type around a function that is none."""
    function = {"__class__": "system", "__module__": "os", "__loader__": "FunctionNode"}
    nothing = {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode"}
    empty = {"__class__": "dict", "__module__": "builtins", "__loader__": "DictNode"}
    keys = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": []}
    empty |= {"content": {}, "key_types": keys}
    parts = {"func": function, "args": {**nothing, "content": []}, "kwds": empty}
    schema = {
        "__class__": "partial",
        "__module__": "functools",
        "__loader__": "PartialNode",
        "content": {**parts, "namespace": empty},
        "protocol": 2,
    }
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", json.dumps(schema))


def pickle_in_skops(path: Path, proof: Path) -> None:
    """An array of Python objects, as NumPy stores it."""
    array = io.BytesIO()
    np.save(array, np.array([Payload(proof)], dtype=object), allow_pickle=True)
    schema = {
        "__class__": "ndarray",
        "__module__": "numpy",
        "__loader__": "NdArrayNode",
        "type": "numpy",
        "file": "a.npy",
        "protocol": 2,
    }
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", json.dumps(schema))
        archive.writestr("a.npy", array.getvalue())


def network_named_by_weights(path: Path, proof: Path) -> None:
    """Metadata that name a function to call, as --network might."""
    metadata = {"network": "os:getcwd"}
    save_file({"weight": torch.ones(2)}, path, metadata)


def operator_of_a_library(path: Path, proof: Path) -> None:
    """An ONNX operator that a library of its own would compute."""
    node = helper.make_node("Write", ["x"], ["y"], domain="ai.onnx.contrib", path=str(proof))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.contrib", 1)]
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 4])
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 2])
    graph = helper.make_graph([node], "file", [value], [out])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    path.write_bytes(model.SerializeToString())


NAMED = {"__class__": "str", "__module__": "builtins", "is_json": True}
ATTEMPTS = [
    pickled,
    pickled_by_protocol_0,
    compressed,
    saved_by_torch,
    saved_by_old_torch,
    among_weights,
    scripted,
    scripted_opening,
    scripted_without_its_folder_of_code,
    exported,
    pickle_before_an_archive,
    objects_in_arrays,
    in_skops,
    bound_in_skops,
    pickle_in_skops,
    network_named_by_weights,
    operator_of_a_library,
]
SUFFIXES = [".pt", ".pth", ".ts", ".pt2", ".bin", ".ckpt", ".joblib", ".pkl", ".npz", ".csv", ""]
SUFFIXES += [".onnx", ".safetensors", ".skops"]
#: Attempts that do run when the file is trusted: the payloads are real.
REAL = [pickled, compressed, saved_by_torch, scripted_opening]


@pytest.fixture
def proof(tmp_path) -> Path:
    return tmp_path / "proof"


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.__name__)
def test_no_model_file_runs_code_without_consent(tmp_path, proof, attempt, suffix):
    path = tmp_path / f"file{suffix}"
    attempt(path, proof)
    for network in (None, "mlp"):
        with pytest.raises(ValueError, match="file"):
            cf.load_model(path, network=network)
    assert not proof.exists()


@pytest.mark.parametrize("attempt", REAL, ids=lambda attempt: attempt.__name__)
def test_the_payloads_run_when_trusted(tmp_path, proof, attempt):
    path = tmp_path / "file.pkl"
    attempt(path, proof)
    with suppress(ValueError):  # what was written is a payload, and no model
        cf.load_model(path, trust=True)
    assert proof.exists()


def test_trusted_torchscript_can_write_when_asked(tmp_path, proof):
    scripted(tmp_path / "net.pt", proof)
    model = cf.load_model(tmp_path / "net.pt", trust=True)
    assert not proof.exists()
    model(X)
    assert proof.exists()  # so the question is needed even where opening runs nothing


def test_one_question_for_all_kinds(tmp_path, proof):
    for attempt in (pickled, saved_by_torch, scripted, exported):
        attempt(tmp_path / "file", proof)
        with pytest.raises(ValueError, match="If you made it, or trust who did, pass trust=True"):
            cf.load_model(tmp_path / "file")


@pytest.mark.parametrize("trust", [None, "no", 1, "True"])
def test_only_true_is_consent(tmp_path, proof, trust):
    pickled(tmp_path / "file", proof)
    with pytest.raises(ValueError, match="trust must be True or False"):
        cf.load_model(tmp_path / "file", trust=trust)
    assert not proof.exists()


def test_what_works_without_trust_is_said():
    with pytest.raises(ValueError, match=r"^It can run: for a reason\. If you.*Or do this\.$"):
        require_trust("It can run", False, "for a reason", "Or do this.")


def test_a_python_file_is_no_model(tmp_path, proof, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("trap.py").write_text(f"open({str(proof)!r}, 'w')")
    with pytest.raises(ValueError, match="not a model of a known kind"):
        cf.load_model("trap.py")
    assert not proof.exists()


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".ts", ".tsv", ".txt"])
@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.__name__)
def test_no_data_file_runs_code(tmp_path, proof, attempt, suffix):
    path = tmp_path / f"file{suffix}"
    attempt(path, proof)
    for read in (cf.load_dataset, cf.Counterfactuals.load):
        with suppress(Exception):  # how it is refused is tested with the readers
            read(str(path))
    assert not proof.exists()


@pytest.fixture
def trapped_folder(tmp_path, proof, monkeypatch) -> Path:
    """The current folder, with modules named as libraries; imported, they write a file."""
    folder = tmp_path / "trapped"
    folder.mkdir()
    for name in ("torch", "numpy", "sklearn", "aeon", "typer", "json", "contrafact", "statistics"):
        (folder / f"{name}.py").write_text(f"open({str(proof)!r}, 'w')\nmodel = 'trapped'\n")
    (folder / "own.py").write_text("import statistics, torch\nmodel = torch.nn.Linear(4, 3)\n")
    monkeypatch.chdir(folder)
    yield folder
    sys.modules.pop("own", None)


@pytest.mark.usefixtures("own_random_numbers")
def test_libraries_are_not_taken_from_the_current_folder(trapped_folder, proof):
    """In a process of its own, where nothing has been imported yet."""
    script = Path(sys.executable).with_name("contrafact")
    torch.save(nn.Linear(4, 3).state_dict(), "weights.pt")
    quick = ["iris", "--rows", "0", "--method", "NearestUnlike", "--no-refine"]
    for model in (["own:model"], ["weights.pt", "--network", "own:model"]):
        told = subprocess.run(
            [script, "explain", *model, *quick], capture_output=True, text=True, timeout=100
        )
        assert told.returncode in (0, 1), told.stderr  # 1: explained, but not reached
    assert not proof.exists()


@pytest.mark.usefixtures("own_random_numbers")
def test_a_module_of_the_folder_does_not_replace_an_installed_one(trapped_folder, proof):
    before = list(sys.path)
    assert isinstance(import_object("own:model"), nn.Linear)
    for name in ("torch", "statistics"):
        with pytest.raises(ImportError, match=rf"no 'model' in it.*rename {name}\.py of"):
            import_object(f"{name}:model")
    assert not proof.exists() and sys.path == before


def test_a_folder_that_is_on_the_path_stays_there(tmp_path, monkeypatch):
    (tmp_path / "own_module.py").write_text("model = 3")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    before = list(sys.path)
    assert import_object("own_module:model") == 3
    assert sys.path == before
    del sys.modules["own_module"]


def test_settings_of_numba_in_the_current_folder_are_refused(tmp_path, monkeypatch):
    """They can name a folder of compiled functions, which numba unpickles."""
    from typer.testing import CliRunner

    from contrafact.cli import app

    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, ["methods", "--json"]).exit_code == 0
    Path(".numba_config.yaml").write_text("cache_dir: trap")
    told = CliRunner().invoke(app, ["methods", "--json"])
    assert told.exit_code == 2 and "numba takes settings from it" in told.stderr
