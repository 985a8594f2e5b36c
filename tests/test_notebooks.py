"""A notebook that is run by a kernel: what every cell shows."""

from __future__ import annotations

import nbformat
import pytest
from nbclient import NotebookClient

import contrafact as cf

CELLS = {
    "start": """
        import contrafact as cf
        from contrafact.report import plot, plot_audit
        from sklearn.linear_model import LogisticRegression

        data = cf.load_dataset("ItalyPowerDemand")
        X, y = data.X_train, data.y_train
        model = LogisticRegression(max_iter=1000).fit(X[:, 0], y)
        explainer = cf.LineSearch().fit(model, X, y)
    """,
    "explain": "result = explainer.explain(data.X_test[:8], progress=True)",
    "train": "_ = cf.fit_classifier('fcn', X, y, max_epochs=2, progress=True)",
    "result": "result",
    "figure": "plot(result, 0)",
    "method": "result.plot(0)",
    "silent figure": "plot(result, 0);",
    "pyplot": "import matplotlib.pyplot as plt; plot(result, 0)",
    "inline": "%matplotlib inline\nplot(result, 0)",
    "audit": "audit = cf.class_audit(model, data.X_test[:8], '1'); audit",
    "audit figure": "plot_audit(audit)",
    "explainer": "explainer",
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """What each cell of the notebook shows, by its name."""
    folder = tmp_path_factory.mktemp("notebook")
    cells = [nbformat.v4.new_code_cell("\n".join(_lines(code))) for code in CELLS.values()]
    notebook = nbformat.v4.new_notebook(cells=cells)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(name, str(folder / name))
        patch.delenv("MPLBACKEND", raising=False)  # the kernel sets its own
        resources = {"metadata": {"path": str(folder)}}
        NotebookClient(notebook, timeout=300, resources=resources).execute()
    return dict(zip(CELLS, (cell.outputs for cell in notebook.cells), strict=True))


def _lines(code):
    return [line.strip() for line in code.strip().splitlines()]


def test_a_result_shows_itself(outputs):
    (shown,) = outputs["result"]
    assert shown.data["text/plain"].startswith("<Counterfactuals: 8 series of 1 × 24 by LineSearch")
    assert "8 of 8 now get the class" in shown.data["text/html"]
    assert "data:image/png;base64," in shown.data["text/html"]


@pytest.mark.parametrize("cell", ["figure", "method", "pyplot", "inline", "audit figure"])
def test_a_figure_is_shown_once(outputs, cell):
    (shown,) = outputs[cell]
    assert shown.output_type == "execute_result"
    assert set(shown.data) == {"text/plain", "image/png"}


def test_a_semicolon_hides_a_figure(outputs):
    assert outputs["silent figure"] == []


@pytest.mark.parametrize(("cell", "last"), [("explain", "8/8"), ("train", "2/2")])
def test_progress_is_one_output_that_ends_complete(outputs, cell, last):
    (shown,) = outputs[cell]
    assert shown.output_type == "display_data"
    value, total = last.split("/")
    bar = f'max="{total}" value="{value}"'
    assert last in shown.data["text/plain"] and bar in shown.data["text/html"]


def test_an_audit_is_a_few_lines(outputs):
    (shown,) = outputs["audit"]
    first, *regions = shown.data["text/plain"].splitlines()
    assert first.startswith("<ClassAudit of '1': ") and "by SVCE" in first
    assert 1 <= len(regions) <= 5 and regions[0].startswith("  t = ")


def test_an_explainer_is_its_constructor(outputs):
    (shown,) = outputs["explainer"]
    assert shown.data["text/plain"] == repr(cf.LineSearch())
