"""`contrafact audit`."""

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression


@pytest.fixture
def marked(tmp_path):
    """A model of noise images whose class 1 has a mark, and the images."""
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 1, 6, 6)), np.arange(60) % 2
    X[y == 1, :, 4:, :2] = 1.0
    np.savez(tmp_path / "marked.npz", X=X, y=y)
    joblib.dump(LogisticRegression().fit(X.reshape(60, -1), y), tmp_path / "model.joblib")
    return tmp_path / "model.joblib", tmp_path / "marked.npz", "--trust", "--starts", "4"


def test_the_ranking_is_printed_and_the_page_written(ask, marked, tmp_path):
    page = tmp_path / "audit.html"
    told = ask(*marked, "--report", page, command="audit")
    assert told.exit_code == 0, told.output
    lines = told.stdout.splitlines()
    assert lines[0] == "Classes, the most suspicious first:"
    assert lines[1].startswith("  1: suspicion 0.") and "at rows 4…5, columns 0…1" in lines[1]
    assert lines[-2] == f"Report: {page}" and lines[-1].startswith("Again: contrafact audit ")
    assert "Auditing 2 classes with SVCE." in told.stderr
    assert "What does the model take for each class?" in page.read_text()


def test_options_reach_the_audit(answer, marked):
    found = answer(*marked, "--window", 3, "--method", "NearestUnlike", command="audit")
    first = found["classes"][0]
    assert first["class"] == 1 and first["window"]["width"] == 3 and first["starts"] == 4
    assert found["notes"][-1] == "Auditing 2 classes with NearestUnlike."


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("iris.joblib", "iris.csv", "--trust", "--label", "kind"), "iris.csv holds rows"),
        (("script.pt", "split.npz", "--trust", "--report", "a.txt"), "--report a.txt has suffix"),
        (("script.pt", "split.npz", "--trust", "--method", "Nix"), "Nix"),
    ],
)
def test_what_cannot_be_audited(ask, arguments, words):
    told = ask(*arguments, command="audit")
    assert told.exit_code == 2 and words in told.stderr
