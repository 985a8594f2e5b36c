"""Grids are checked before anything runs; files import nothing that was not allowed."""

import pytest
from sklearn.linear_model import LogisticRegression
from small_grid import toy

from contrafact.benchmark import Benchmark, run
from contrafact.benchmark.grid_checks import check_grid

LR = "sklearn.linear_model:LogisticRegression"


def grid(**parts):
    told = {"datasets": {"a": toy(0)}, "classifiers": {"m": LR}, "explainers": {"l": "LineSearch"}}
    return Benchmark(**{**told, **parts})


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"metrics": ["dtw_loff"]}, r"metric 'dtw_loff' is unknown. Did you mean 'dtw_lof'\?"),
        ({"metrics": ["l2", "l2"]}, "'l2' is asked for twice"),
        ({"metrics": ["survival"]}, "'survival' needs retrainings of at least 1"),
        ({"metrics": ["transfer_validity"]}, "needs other_model, which a benchmark does not have"),
        ({"explainers": {"c": "CLES"}}, r"explainers.c: method 'CLES' is .* mean 'CELS'\?"),
        (
            {"explainers": {"c": {"method": "CELS", "max_itr": 3}}},
            r"explainers.c: parameter 'max_itr' is unknown. Did you mean 'max_iter'\?",
        ),
        ({"explainers": {"c": {"method": "CELS", "max_iter": 0}}}, "CELS: max_iter must be"),
        (
            {"explainers": {"l": {"method": "LineSearch", "options": {"refin": True}}}},
            r"option 'refin' is unknown. Did you mean 'refine'\?",
        ),
        ({"explainers": {"l": {"method": "LineSearch", "options": {"k": 0}}}}, "k must be"),
        ({"explainers": {"l": {"steps": 3}}}, "explainers.l: method is missing"),
        ({"classifiers": {"n": "fnc"}}, r"classifier 'fnc' is unknown. Did you mean 'fcn'\?"),
        (
            {"classifiers": {"n": {"model": "fcn", "epochs": 3}}},
            r"parameter 'epochs' is unknown. Did you mean 'max_epochs'\?",
        ),
        (
            {"classifiers": {"n": "sklearn.linear_model:LogisticRegresion"}},
            r"Did you mean 'LogisticRegression'\?",
        ),
        (
            {"classifiers": {"n": {"model": LR, "max_itr": 3}}},
            r"parameter 'max_itr' is unknown. Did you mean 'max_iter'\?",
        ),
        (
            {"classifiers": {"n": {"model": LogisticRegression(), "D": 3}}},
            r"parameter 'D' is unknown. Did you mean 'C'\?|parameter 'D' is unknown",
        ),
        ({"classifiers": {"n": 3}}, "must be a classifier or a function, got 3"),
        ({"classifiers": {"n": "sklearn.nothing:LR"}}, "cannot be imported"),
        ({"datasets": ["iris"], "metrics": ["dtw"]}, "'dtw' is for series data; iris holds row"),
        ({"datasets": [toy(0), toy(0)]}, "two are called 'toy0'"),
    ],
)
def test_what_does_not_exist_is_refused_before_anything_runs(parts, message, tmp_path):
    with pytest.raises((ValueError, TypeError, ImportError), match=message):
        run(grid(**parts), tmp_path / "store", progress=False)
    assert not (tmp_path / "store").exists()


def test_what_exists_passes():
    check_grid(
        grid(
            classifiers={
                "net": {"model": "fcn", "max_epochs": 2},
                "own": lambda data, seed: None,
                "estimator": {"model": LogisticRegression(), "C": 2.0},
                "aeon": "aeon.classification.convolution_based:RocketClassifier",
                "prototypes": {"model": "contrafact.prototypes:GLVQ"},
            },
            explainers={"g": {"method": "Graft", "options": {"k": 2, "refine": "minimal"}}},
            metrics=["l2", "survival", "noise_survival"],
            retrainings=1,
        )
    )


TOML = """
datasets = ["ItalyPowerDemand"]
[classifiers]
m = {model}
[explainers]
l = {method}
"""


@pytest.mark.parametrize(
    ("model", "method"),
    [
        (f'"{LR}"', '"subprocess:Popen"'),
        (f'"{LR}"', '{ method = "subprocess:Popen", args = "touch ran" }'),
        (f'"{LR}"', '"contrafact.explainers:CELS"'),
        ('"subprocess:Popen"', '"LineSearch"'),
        ('{ model = "subprocess:Popen", args = "touch ran" }', '"LineSearch"'),
        ('{ model = "here:Mine" }', '"LineSearch"'),
        ('"sklearn.utils:Bunch"', '"LineSearch"'),
        ('"sklearn.datasets:load_svmlight_file"', '"LineSearch"'),
        ('"sklearn.linear_model:LinearRegression"', '"LineSearch"'),
        ('"sklearn_evil:Mine"', '"LineSearch"'),
        ('"sklearn..os:system"', '"LineSearch"'),
        ('"aeon.classification.deep_learning:FCNClassifier"', '"LineSearch"'),
        ('"aeon.classification.deep_learning.base:BaseDeepClassifier"', '"LineSearch"'),
    ],
)
def test_a_file_imports_nothing_without_trust(model, method, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("here", "sklearn_evil"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w')\nclass Mine: pass")
    path = tmp_path / "grid.toml"
    path.write_text(TOML.format(model=model, method=method))
    with pytest.raises(ValueError, match=r"would be imported, which can run code.*--trust"):
        Benchmark.from_toml(path)
    assert not (tmp_path / "ran").exists()


def test_trust_imports_what_the_file_names(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    code = (
        "from sklearn.linear_model import LogisticRegression\nclass Mine(LogisticRegression): ..."
    )
    (tmp_path / "trusted_models.py").write_text(code)
    path = tmp_path / "grid.toml"
    path.write_text(TOML.format(model='"trusted_models:Mine"', method='"LineSearch"'))
    assert Benchmark.from_toml(path, trust=True).classifiers == {"m": "trusted_models:Mine"}
