"""Models from files: every kind opens, and nothing that could run code does without trust."""

import pickle
import sys
import types
import warnings
import zipfile

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

import contrafact as cf
from contrafact.models.files import ModelSource, find_model
from contrafact.nn import load_model
from saved_models import Payload, X, answers, net


@pytest.mark.usefixtures("own_random_numbers")
def test_import_paths(module_file):
    before = list(sys.path)
    model = load_model("my_models:trained")
    assert isinstance(model, nn.Linear) and load_model("my_models:shelf.inner") is model
    assert sys.path == before
    with pytest.raises(TypeError, match=r"'my_models:Tiny' is a class.*network='my_models:Tiny'"):
        load_model("my_models:Tiny")
    with pytest.raises(ImportError, match=r"no 'trainde' in it\. It has .*trained"):
        load_model("my_models:trainde")
    with pytest.raises(
        ImportError, match=r"'my_modles:trained'.*No module named 'my_modles'.*looked for in"
    ):
        load_model("my_modles:trained")
    with pytest.raises(ImportError, match=r"No module named 'not_there_at_all'\.$"):
        load_model("my_broken:model")


def test_finding_a_model_runs_nothing(tmp_path, module_file):
    """An import path is only recognized; a file is opened, but not unpickled."""
    proof = tmp_path / "proof"
    (tmp_path / "m.pkl").write_bytes(pickle.dumps(Payload(proof)))
    torch.save(Payload(proof), tmp_path / "m.bin")
    assert find_model("my_broken:model") == ModelSource("my_broken:model", "import")
    assert find_model(tmp_path / "m.pkl").kind == "pickle"
    source = find_model(tmp_path / "m.bin")
    assert source.kind == "torch" and source.file == tmp_path / "m.bin"
    assert not proof.exists()


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_torchscript_answers_as_the_module_does(tmp_path):
    module = net()
    torch.jit.script(module).save(tmp_path / "net.ts")
    loaded = load_model(tmp_path / "net.ts", trust=True)
    np.testing.assert_allclose(answers(loaded), answers(module), atol=1e-6)
    assert not loaded.training
    cut = (tmp_path / "net.ts").read_bytes()
    (tmp_path / "cut.ts").write_bytes(cut[:-200])
    with pytest.raises(ValueError, match=r"cut\.ts"):
        load_model(tmp_path / "cut.ts", trust=True)


@pytest.mark.usefixtures("own_random_numbers")
def test_exported_programs_need_trust(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "net.pt2", "w") as archive:
        archive.writestr("net/models/model.json", "{}")
    with pytest.raises(ValueError, match=r"torch\.export program: opening it runs.*--trust"):
        load_model(tmp_path / "net.pt2")
    module = net()
    # Exporting takes seconds; what matters here is that an exported module refuses eval().
    monkeypatch.setattr(module, "eval", None)
    monkeypatch.setattr(
        torch.export, "load", lambda file: types.SimpleNamespace(module=lambda: module)
    )
    np.testing.assert_allclose(
        answers(load_model(tmp_path / "net.pt2", trust=True)), answers(net()), atol=1e-6
    )


@pytest.mark.usefixtures("own_random_numbers")
def test_a_whole_module_needs_trust(tmp_path):
    torch.save(net(), tmp_path / "whole.pt")
    with pytest.raises(ValueError, match=r"more than weights.*runs any code.*--trust.*state_dict"):
        load_model(tmp_path / "whole.pt")
    assert not load_model(tmp_path / "whole.pt", trust=True).training


@pytest.mark.parametrize("compress", [0, 3])
def test_joblib_with_trust(tmp_path, compress):
    model = LogisticRegression().fit(X[:, 0].numpy(), [0, 1, 0, 1, 0, 1])
    joblib.dump(model, tmp_path / "m.joblib", compress=compress)
    np.testing.assert_array_equal(
        answers(load_model(tmp_path / "m.joblib", trust=True)), answers(model)
    )


def test_an_older_scikit_learn_is_told_in_one_sentence(tmp_path, monkeypatch):
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(
        X[:, 0].numpy(), [0, 1, 0, 1, 0, 1]
    )
    monkeypatch.setattr("sklearn.base.__version__", "0.1")
    joblib.dump(model, tmp_path / "m.joblib")
    monkeypatch.undo()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_model(tmp_path / "m.joblib", trust=True)
    assert [str(w.message) for w in caught] == [
        f"{tmp_path / 'm.joblib'} was saved with scikit-learn 0.1, this is {sklearn.__version__}: "
        "its answers may differ from what they were."
    ]


def test_broken_and_foreign_files_are_explained(tmp_path):
    (tmp_path / "text.txt").write_text("hello")
    (tmp_path / "cut.pkl").write_bytes(pickle.dumps([1, 2, 3])[:-2])
    np.savez(tmp_path / "data.npz", X=[1.0])
    sys.modules["gone_for_good"] = type(sys)("gone_for_good")
    exec("class Lost: pass", sys.modules["gone_for_good"].__dict__)
    (tmp_path / "lost.pkl").write_bytes(pickle.dumps(sys.modules["gone_for_good"].Lost()))
    del sys.modules["gone_for_good"]
    for name, kind, reason in [
        ("text.txt", ValueError, r"not a model of a known kind\. Accepted: weights"),
        ("data.npz", ValueError, r"holds arrays, not a model"),
        ("nowhere.pt", FileNotFoundError, r"does not exist\. Accepted: weights"),
        (".", FileNotFoundError, r"is a folder"),
        ("cut.pkl", ValueError, r"cannot be opened as a pickle"),
        ("lost.pkl", ImportError, r"needs code that is not there: No module named 'gone_for_good'"),
    ]:
        with pytest.raises(kind, match=reason):
            load_model(tmp_path / name, trust=True)


def test_columns_by_name_are_asked_by_name(tmp_path):
    """A pipeline that picks its columns by name, trained on a DataFrame, read from a file."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=["age", "noise", "glucose"])
    y = np.where(frame["glucose"] + frame["age"] > 0, "ill", "well")
    scale = ColumnTransformer([("scaled", StandardScaler(), ["glucose", "age"])])
    joblib.dump(make_pipeline(scale, LogisticRegression()).fit(frame, y), tmp_path / "m.joblib")
    model = load_model(tmp_path / "m.joblib", trust=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = (
            cf.LineSearch()
            .fit(model, frame.to_numpy(), y)
            .explain(frame.to_numpy()[:10], refine=True)
        )
    np.testing.assert_allclose(result.proba, model.predict_proba(frame[:10]))
    assert result.valid.all() and not result.changed[:, 1].any()
