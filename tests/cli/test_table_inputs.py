"""`contrafact explain` and `contrafact schema` on a table with columns of many kinds."""

import json

import joblib
import numpy as np
import pandas as pd
import pytest
from sample_files import WIDE
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from typer.testing import CliRunner

from contrafact.cli import app
from contrafact.data import make_patients

NUMBERS = ["age", "bmi", "systolic", "hba1c", "prior_admissions"]
CATEGORIES = ["sex", "smokes", "activity", "ward"]


@pytest.fixture(scope="module")
def ward(tmp_path_factory):
    """A folder with patients and two models of their risk."""
    folder = tmp_path_factory.mktemp("ward")
    frame, risk = make_patients(300)
    frame = frame.drop(columns="admitted")
    frame.assign(risk=risk).to_csv(folder / "patients.csv")
    frame.assign(risk=risk).to_parquet(folder / "patients.parquet")
    prepare = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), NUMBERS),
        (OneHotEncoder(), CATEGORIES),
    )
    texts = pd.read_csv(folder / "patients.csv", index_col=0).drop(columns="risk")
    joblib.dump(make_pipeline(prepare, LogisticRegression()).fit(texts, risk), folder / "a.joblib")
    native = HistGradientBoostingClassifier(max_iter=20).fit(
        texts.astype(dict.fromkeys(["sex", "activity", "ward"], "category")), risk
    )
    joblib.dump(native, folder / "native.joblib")
    return folder


@pytest.fixture
def call(ward, monkeypatch):
    monkeypatch.chdir(ward)

    def invoke(*args, command="explain"):
        return CliRunner().invoke(app, [command, *map(str, args)], env=WIDE)

    return invoke


def explain(call, *args):
    told = call("a.joblib", "patients.csv", "--trust", "--label", "risk", *args, "--json")
    assert told.exit_code == 0, told.output
    return json.loads(told.stdout)["methods"][0]["rows"]


def test_limits_in_words_of_columns(call, ward):
    frame = pd.read_csv(ward / "patients.csv", index_col=0)
    rows = explain(
        call,
        *("--target", "low", "--rows", "0:40", "--method", "CoMTE", "--freeze", "sex"),
        *("--increasing", "age", "--decreasing", "prior_admissions", "--bounds", "hba1c=4:9"),
        *("--max-changed", 2, "--relation", "systolic >= bmi + 60"),
        *("--forbidden", "ward=medicine:surgery", "--cost", "bmi=3"),
    )
    moved = [row for row in rows if row["status"] == "valid"]
    assert len(moved) > 4
    for row in moved:
        own = frame.iloc[row["source"]]
        changes = {name: after for name, (_, after) in row["changes"].items()}
        assert 1 <= len(changes) <= 2 and "sex" not in changes
        assert changes.get("age", own["age"]) >= own["age"]
        assert changes.get("prior_admissions", 0) <= own["prior_admissions"]
        assert 4 <= changes.get("hba1c", 5) <= 9
        assert changes.get("ward") != "surgery" or own["ward"] != "medicine"


def test_texts_become_categories_where_the_model_was_trained_on_them(call):
    told = call("native.joblib", "patients.csv", "--trust", "--label", "risk", "--rows", "0:4")
    assert told.exit_code == 0, told.output


def test_parquet_is_read(call):
    told = call("a.joblib", "patients.parquet", "--trust", "--label", "risk", "--rows", "0:4")
    assert told.exit_code == 0, told.output


def test_a_schema_can_be_written_corrected_and_used(call, tmp_path):
    path = tmp_path / "schema.json"
    told = call("patients.csv", "--label", "risk", "--save", path, command="schema")
    assert told.exit_code == 0 and "age" in told.stdout and "integer from 20 to 89" in told.stdout
    schema = json.loads(path.read_text())
    by_name = {column["name"]: column for column in schema["columns"]}
    by_name["hba1c"].update(lower=5.5, upper=5.6)
    path.write_text(json.dumps(schema))
    nearest = ("--method", "NearestUnlike", "--no-refine")
    rows = explain(call, "--target", "low", "--rows", "0:30", *nearest, "--schema", path)
    values = [row["changes"]["hba1c"][1] for row in rows if "hba1c" in row["changes"]]
    assert len(values) > 3 and np.isin(values, [5.5, 5.6]).all()


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (["--increasing", "sex"], "column 'sex' is categorical, which has no order"),
        (["--increasing", "agee"], "There is no column 'agee'"),
        (["--bounds", "hba1c=x:9"], "--bounds 'hba1c=x:9' is not understood"),
        (["--forbidden", "ward:medicine"], "NAME=BEFORE:AFTER"),
        (["--forbidden", "ward=icu:surgery"], "'icu' is not a level"),
        (["--cost", "age=cheap"], "--cost 'age=cheap'"),
        (["--relation", "import os"], "is not accepted. Accepted: a comparison"),
        (["--schema", "patients.csv"], "--schema patients.csv cannot be used"),
        (["--max-step", "1"], "--max-step applies to series"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_line(call, args, reason):
    told = call("a.joblib", "patients.csv", "--trust", "--label", "risk", *args)
    assert told.exit_code == 2
    assert reason in told.stderr.strip().splitlines()[-1]


def test_limits_of_columns_need_a_table(call, ward):
    np.savez(ward / "rows.npz", X=np.zeros((4, 9)), modality="row")
    told = call("a.joblib", "rows.npz", "--trust", "--increasing", "age")
    assert told.exit_code == 2
