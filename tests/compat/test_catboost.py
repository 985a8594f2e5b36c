"""CatBoost, fresh and after loading, when it says that it has 0 features."""

import pytest
from compat_checks import check_explained, rows_of_data, series_data

LIBRARY = "catboost"
catboost = pytest.importorskip(LIBRARY)


def make():
    return catboost.CatBoostClassifier(iterations=20, verbose=False, allow_writing_files=False)


def test_rows(ledger):
    X, y = rows_of_data()
    check_explained(ledger, "CatBoostClassifier", make().fit(X, y), X, y)


@pytest.mark.parametrize("kind", ["rows", "series"])
def test_after_loading(ledger, tmp_path, kind):
    X, y = rows_of_data() if kind == "rows" else series_data()
    flat = X.reshape(len(X), -1)
    make().fit(flat, y).save_model(tmp_path / "model.cbm")
    model = catboost.CatBoostClassifier().load_model(tmp_path / "model.cbm")
    check_explained(
        ledger,
        f"CatBoostClassifier, loaded, {kind}",
        model,
        X,
        y,
        lambda x: model.predict(x.reshape(len(x), -1)),
    )
