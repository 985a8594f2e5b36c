"""A source in chunks gives the counterfactuals of one call, and a killed run goes on."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scale_samples import channels, check_same, power
from sklearn.linear_model import LogisticRegression

import contrafact as cf
from contrafact.data.writing import is_draft
from contrafact.scale.folders import MANIFEST
from contrafact.scale.jobs import part_of_budget
from hospital import patients, risk


def explain_both(model, X, out, reference, chunk, **options):
    """Return the result of one call, and that of a run in chunks."""
    one = cf.explain(model, X, reference=reference, **options)
    return one, cf.explain_dataset(model, X, out, reference=reference, chunk=chunk, **options)


@pytest.mark.parametrize("chunk", [1, 7, 60, 100])
def test_any_chunk_size_gives_the_result_of_one_call(tmp_path, chunk):
    data, model = power()
    one, found = explain_both(
        model, data.X_test[:60], tmp_path / "out", data, chunk, method="NativeGuide"
    )
    assert found.complete and found.missing == 0
    check_same(one, found[:])
    assert len(list((tmp_path / "out").glob("*.parquet"))) == -(-60 // chunk)


OPTIONS = {
    "k": {"method": "RandomMask", "k": 3, "random_state": 5},
    "refined": {"method": "CELS", "refine": "believable"},
    "target": {"method": "LineSearch", "target": "1", "confidence": 0.9},
    "constraints": {"method": "SETS", "constraints": cf.Constraints(frozen=np.arange(24) < 12)},
    "recommended": {},
    "calls": {"method": "TSEvo", "budget": cf.Budget(calls=30 * 9)},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_and_shares_of_the_budget_are_those_of_one_call(tmp_path, name):
    data, model = power()
    options = OPTIONS[name]
    one, found = explain_both(model, data.X_test[:30], tmp_path, data, 11, **options)
    two = found[:]
    check_same(one, two)
    if name == "calls":
        assert "the budget ran out" in two.message, "the budget is to be felt"


def test_targets_of_single_rows(tmp_path):
    X, y, model = channels()
    target = np.arange(40) % 2
    one, found = explain_both(model, X, tmp_path, (X, y), 9, target=target, method="CoMTE")
    check_same(one, found[:])
    assert set(one.status) >= {"valid", "already_target"}


def test_a_part_of_the_budget_leaves_every_row_its_share():
    for calls in (1003, np.int64(1003)):
        part = part_of_budget(cf.Budget(calls=calls, seconds=50.0), 20, 100)
        assert part == cf.Budget(calls=200, seconds=10.0)
        assert part.share(20, 1) == cf.Budget(calls=calls).share(100, 1) == 10
    assert part_of_budget(cf.Budget(calls=math.inf), 20, 100) == cf.Budget(calls=math.inf)
    assert part_of_budget(None, 20, 100) is None


def test_numbers_of_numpy_are_numbers(tmp_path):
    X, y, model = channels()
    options = {"k": np.int64(2), "random_state": np.int64(3), "confidence": np.float32(0.75)}
    budget = cf.Budget(calls=np.int64(4000))
    one, found = explain_both(
        model, X, tmp_path, (X, y), np.int64(9), method="RandomMask", budget=budget, **options
    )
    check_same(one, found[:])


def test_images_and_rows(tmp_path):
    rng = np.random.default_rng(1)
    images = rng.random((12, 1, 8, 8)).astype(np.float32)

    def model(X):
        p = X.reshape(len(X), -1).mean(1) * 4 - 1.5
        return np.stack([1 - p, p], axis=1).clip(0, 1)

    one, found = explain_both(model, images, tmp_path / "i", images, 5, method="LineSearch")
    check_same(one, found[:])
    assert repr(found).startswith("<CounterfactualsDataset: 12 images of 1 × 8 × 8 by LineSearch")
    rows = rng.random((12, 8))
    one, found = explain_both(model, rows, tmp_path / "r", rows, 5, method="GrowingSpheres")
    check_same(one, found[:])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_keep_their_schema_labels_and_types(tmp_path, library):
    frame = patients(40)
    if library == "polars":
        import polars

        frame = polars.from_pandas(frame)
    limits = cf.Constraints(frozen=["sex"], bounds={"bmi": (np.full(40, 20.0), np.arange(40) + 25)})
    one, found = explain_both(
        risk, frame, tmp_path, frame, 9, method="NICE", k=2, constraints=limits
    )
    two = found[[*range(len(one))]]
    check_same(one, two)
    if library == "pandas":
        pd.testing.assert_frame_equal(one.frame_cf, two.frame_cf)
    else:
        assert one.frame_cf.equals(two.frame_cf)
    assert one.row_labels == two.row_labels
    assert "columns" in repr(found)


def test_a_table_in_parquet_files(tmp_path):
    frame = patients(40)
    (tmp_path / "data").mkdir()
    whole = frame.assign(label="sick", id=np.arange(40) + 700)
    whole[:25].to_parquet(tmp_path / "data" / "a.parquet", row_group_size=10)
    whole[25:].to_parquet(tmp_path / "data" / "b.parquet")
    one = cf.explain(risk, frame, reference=frame, method="NICE")
    found = cf.explain_dataset(
        risk, tmp_path / "data", tmp_path / "out", reference=frame, method="NICE", chunk=12
    )
    check_same(one, found[:])
    pd.testing.assert_frame_equal(one.frame_cf, found[:].frame_cf)
    lines = found.to_frame()
    assert lines["id"].tolist() == list(range(700, 740)) and set(lines["y"]) == {"sick"}


def test_other_processes_give_the_same_table(tmp_path):
    data, model = power()
    np.save(tmp_path / "X.npy", data.X_test[:60])
    one = cf.explain(model, data.X_test[:60], reference=data, method="NativeGuide")
    for name, source in {"file": str(tmp_path / "X.npy"), "array": data.X_test[:60]}.items():
        found = cf.explain_dataset(
            model,
            source,
            tmp_path / name,
            reference=data,
            method="NativeGuide",
            chunk=20,
            workers=2,
        )
        check_same(one, found[:])


PROGRAM = """
import sys
from scale_samples import power
import contrafact as cf
data, model = power()
cf.explain_dataset(model, sys.argv[1], sys.argv[2], reference=data, method="LineSearch", chunk=4)
"""


def test_a_killed_run_goes_on_and_nothing_is_done_twice(tmp_path):
    data, model = power()
    X = data.X_test[:200]
    np.save(tmp_path / "X.npy", X)
    out = tmp_path / "out"
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    run = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "X.npy"), str(out)],
        env={**os.environ, "PYTHONPATH": path},
    )
    while run.poll() is None and len(list(out.glob("part-*"))) < 3:
        time.sleep(0.002)
    run.send_signal(signal.SIGKILL)
    run.wait()
    (out / ".contrafact-draft-1-killed.parquet").write_bytes(b"half")
    part = cf.Counterfactuals.open(out)
    kept = {path.name: path.stat().st_mtime_ns for path in out.glob("part-*")}
    assert 3 <= len(kept) < 50 and not part.complete
    assert part.missing == 200 - 4 * len(kept) and "rows missing" in repr(part)
    again = cf.explain_dataset(
        model, tmp_path / "X.npy", out, reference=data, method="LineSearch", progress=True
    )
    check_same(cf.explain(model, X, reference=data, method="LineSearch"), again[:])
    now = {path.name: path.stat().st_mtime_ns for path in out.glob("part-*")}
    assert {name: now[name] for name in kept} == kept
    assert not any(map(is_draft, out.iterdir()))


def start(tmp_path, **options):
    """Run a small job."""
    data, model = power()
    given = {"reference": data, "method": "LineSearch", "chunk": 10, **options}
    return cf.explain_dataset(model, tmp_path / "X.npy", tmp_path / "out", **given)


@pytest.fixture
def begun(tmp_path):
    """A folder with a finished run."""
    np.save(tmp_path / "X.npy", power()[0].X_test[:40])
    return start(tmp_path)


def test_damaged_files_are_written_again(tmp_path, begun):
    whole = begun[:]
    cut, foreign, gone = (begun._path(number) for number in (0, 1, 2))
    cut.write_bytes(cut.read_bytes()[:-100])
    foreign.write_bytes(begun._path(3).read_bytes())
    gone.unlink()
    with pytest.raises(ValueError, match=r"part-00000000.parquet is damaged .* Remove it"):
        begun[:5]
    check_same(whole, start(tmp_path)[:])


def test_a_flipped_bit_is_found_when_it_is_read(begun):
    path = begun._path(0)
    content = bytearray(path.read_bytes())
    content[1000] ^= 255
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is damaged"):
        begun[:5]


def test_another_run_is_refused_in_words(tmp_path, begun):
    data, model = power()
    for options, words in {
        "chunk: 10 then, 20 now": {"chunk": 20},
        'method: "LineSearch" then, "CELS" now': {"method": "CELS"},
        "another reference": {"reference": (data.X_train[1:], data.y_train[1:])},
        "seed: 0 then, 7 now": {"random_state": 7},
        "options": {"k": 2},
        "constraints": {"constraints": cf.Constraints(lower=0)},
        "target": {"target": "1"},
    }.items():
        with pytest.raises(ValueError, match=f"another run, which differs in this: .*{options}"):
            start(tmp_path, **words)
    other = type(model)(C=0.01).fit(data.X_train[:, 0], data.y_train)
    with pytest.raises(ValueError, match="the model answers otherwise"):
        cf.explain_dataset(
            other, tmp_path / "X.npy", tmp_path / "out", reference=data, method="LineSearch"
        )
    np.save(tmp_path / "X.npy", data.X_test[:40] + 1)
    with pytest.raises(ValueError, match="another source, or it was changed"):
        start(tmp_path)


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    np.save(tmp_path / "X.npy", power()[0].X_test[:40])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("words")
    with pytest.raises(ValueError, match=r"is not empty, and holds no results .* thesis.tex"):
        start(tmp_path)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [".lock", "thesis.tex"]


def test_one_writer_at_a_time(tmp_path, begun):
    import fcntl

    with (tmp_path / "out" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(BlockingIOError, match="Another process writes results in"):
            start(tmp_path)


def test_a_bad_row_is_named_and_what_is_finished_stays(tmp_path):
    data, model = power()
    X = data.X_test[:40].copy()
    X[33, 0, 4] = np.nan
    for out, workers in (("here", None), ("there", 1)):
        with pytest.raises(ValueError, match=r"source, rows 30 to 39: X\[3\] contains NaN"):
            cf.explain_dataset(
                model,
                X,
                tmp_path / out,
                reference=data,
                method="LineSearch",
                chunk=10,
                workers=workers,
            )
        assert cf.Counterfactuals.open(tmp_path / out).missing == 10


@pytest.mark.parametrize(
    ("options", "words"),
    {
        "reference is needed": {"reference": None},
        "workers and scheduler exclude each other": {"workers": 2, "scheduler": "tcp://x:1"},
        "chunk": {"chunk": 0},
        "explain has no option 'size'": {"size": 3},
        "target '3' is not a class": {"target": "3"},
        "budget.calls=50 is too small for 40 instances": {"budget": cf.Budget(calls=50)},
    }.items(),
)
def test_wrong_arguments_are_refused_before_anything_is_written(tmp_path, options, words):
    np.save(tmp_path / "X.npy", power()[0].X_test[:40])
    with pytest.raises((ValueError, TypeError), match=options):
        start(tmp_path, **words)
    assert not (tmp_path / "out").exists()


def test_the_manifest_says_what_was_asked(tmp_path, begun):
    manifest = json.loads((tmp_path / "out" / MANIFEST).read_text())
    assert manifest["request"]["method"] == "LineSearch" and manifest["rows"] == 40
    assert manifest["request"]["source"]["files"][0][0] == "X.npy"
    assert set(manifest["made_with"]) == {"python", "contrafact", "numpy", "torch", "pyarrow"}


def test_models_that_cannot_be_pickled_work_in_one_process_only(tmp_path):
    X, y, _ = channels()

    class Stubborn(LogisticRegression):
        def __reduce__(self):
            raise RuntimeError("no copies")

    model = Stubborn().fit(X.reshape(40, -1), y)
    options = {"reference": (X, y), "method": "NearestUnlike", "chunk": 20}
    with pytest.raises(TypeError, match="cannot be sent to other processes: no copies"):
        cf.explain_dataset(model, X, tmp_path, workers=1, **options)
    assert cf.explain_dataset(model, X, tmp_path, **options).complete
