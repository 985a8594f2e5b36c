"""Latent plots: the codes, the path and the losses of a result."""

import numpy as np
import pytest

import contrafact as cf
from contrafact.report import plot_latent


@pytest.fixture(scope="module")
def latent():
    data = cf.load_dataset("ItalyPowerDemand")
    model = cf.fit_classifier("fcn", data.X_train, data.y_train, max_epochs=10)
    explainer = cf.TSNUC(max_epochs=20, max_iter=30).fit(model, data.X_train, data.y_train)
    return explainer, explainer.explain(data.X_test[:6])


def test_latent_plot_shows_codes_path_and_loss(latent):
    explainer, result = latent
    where, how = plot_latent(explainer, result, 2).axes
    path = next(line for line in where.lines if len(line.get_xdata()) > 1)
    np.testing.assert_allclose(np.stack(path.get_data(), 1), result.info["path"][2])
    assert sum(len(c.get_offsets()) for c in where.collections) == len(
        explainer.latent_.codes
    ) + len(explainer.centroids_.place)
    assert len(how.lines) == len(result)
    np.testing.assert_allclose(how.lines[-1].get_ydata(), result.info["loss_curve"][2])


def test_latent_plot_needs_a_path(latent, series):
    with pytest.raises(ValueError, match="has no path"):
        plot_latent(latent[0], series)
