"""LatentCF++ and Glacier through an autoencoder: they move codes, and only as the decoder can."""

import numpy as np
import pytest
import torch
from linear_autoencoder import Pca
from sklearn.ensemble import RandomForestClassifier

import contrafact as cf
from contrafact.nn.autoencoders import ConvAutoencoder, LSTMAutoencoder
from contrafact.nn.networks import BiLSTM, SmallCNN, seeded

ITALY = cf.load_dataset("ItalyPowerDemand")
X = ITALY.X_test[np.random.default_rng(0).permutation(len(ITALY.X_test))[:30]]


@pytest.fixture(scope="module")
def autoencoder():
    with seeded(0):
        module = ConvAutoencoder((1, 24), latent=8, widths=(16, 24))
    return cf.fit_autoencoder(module, ITALY.X_train, learning_rate=5e-3, max_epochs=120)


@pytest.fixture(scope="module")
def narrow():
    """A code of three numbers: its decoder reaches so little that being in its image says much."""
    with seeded(0):
        module = ConvAutoencoder((1, 24), latent=3, widths=(12, 16))
    return cf.fit_autoencoder(module.double(), ITALY.X_train, learning_rate=5e-3, max_epochs=80)


@pytest.fixture(scope="module")
def bilstm():
    with seeded(0):
        module = BiLSTM(1, 2, hidden=8)
    return cf.fit_classifier(
        module, ITALY.X_train, ITALY.y_train, max_epochs=30, learning_rate=2e-2
    )


@pytest.fixture(scope="module")
def digits():
    data = cf.load_dataset("digits")
    with seeded(0):
        autoencoder = ConvAutoencoder((1, 8, 8), latent=16, widths=(12, 16))
        module = SmallCNN(1, 10)
    model = cf.fit_classifier(
        module, data.X_train[:500], data.y_train[:500], learning_rate=5e-3, max_epochs=10
    )
    return (
        data,
        model,
        cf.fit_autoencoder(autoencoder, data.X_train[:500], learning_rate=5e-3, max_epochs=20),
    )


def explain(model, autoencoder, method=cf.LatentCF, rows=X, **params):
    explainer = method(autoencoder=autoencoder, **params)
    return explainer.fit(model, ITALY.X_train, ITALY.y_train).explain(rows)


def l2(result):
    return np.linalg.norm(result.delta.reshape(len(result), -1), axis=1)


def outside(edit, axes):
    """The share of an edit that no movement of the linear decoder can make."""
    edit = edit.reshape(len(edit), -1)
    return np.linalg.norm(edit - edit @ axes @ axes.T, axis=1) / np.linalg.norm(edit, axis=1)


def off_the_image(autoencoder, points, start):
    """How far points are from the nearest D(z), found anew from `start` (root mean square)."""
    points, z = torch.as_tensor(points), start.clone().requires_grad_()
    optimizer = torch.optim.LBFGS(
        [z], lr=1, max_iter=300, line_search_fn="strong_wolfe", tolerance_change=0
    )

    def closure():
        optimizer.zero_grad()
        loss = (autoencoder.decode(z) - points).square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return (autoencoder.decode(z) - points).square().mean((1, 2)).sqrt().detach().numpy()


# --- a latent method ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bilstm", "linear"])
def test_every_row_turns(kind, linear, bilstm, autoencoder):
    result = explain({"bilstm": bilstm, "linear": linear}[kind], autoencoder)
    assert result.valid.all()
    assert result.info["converged"].mean() >= 0.9
    assert np.array_equal(result.info["fallback"], ~result.info["converged"])


@pytest.mark.parametrize("method", [cf.LatentCF, cf.Glacier], ids=["LatentCF", "Glacier"])
@pytest.mark.parametrize("kind", ["linear", "bilstm"])
def test_the_edit_is_a_movement_of_the_decoder(method, kind, linear, bilstm):
    pca = Pca(ITALY.X_train, 6)
    model = {"bilstm": bilstm, "linear": linear}[kind]
    result = explain(model, pca, method)
    searched = ~result.info["fallback"]
    assert result.valid.all() and searched.mean() >= 0.9
    assert (outside(result.delta[searched], pca.axes.numpy()) < 1e-4).all()
    free = explain(model, None, cf.Glacier)
    assert (outside(free.delta, pca.axes.numpy()) > 0.1).mean() > 0.9  # or the test could not fail


def test_without_the_residual_the_counterfactual_is_a_decoded_code(linear, narrow):
    result = explain(linear, narrow, residual=False)
    searched = ~result.info["fallback"]
    assert searched.sum() >= 10 and result.valid.all()
    start = narrow.encode(torch.from_numpy(X))
    reached = off_the_image(narrow, result.X_cf[searched], start[torch.from_numpy(searched)])
    # The rows themselves, which the autoencoder does not keep, are what is far from its image.
    assert np.median(off_the_image(narrow, X, start)) > 0.1
    assert np.median(reached) < 1e-4 and (reached < 0.02).mean() >= 0.9


def test_with_it_the_edit_alone_is(linear, narrow):
    result = explain(linear, narrow)
    searched = ~result.info["fallback"]
    assert searched.sum() >= 10 and result.valid.all()
    start = narrow.encode(torch.from_numpy(X))
    moved = result.delta + narrow.decode(start).numpy()
    reached = off_the_image(narrow, moved[searched], start[torch.from_numpy(searched)])
    assert np.median(reached) < 1e-4 and (reached < 0.02).mean() >= 0.9
    assert np.median(off_the_image(narrow, result.X_cf, start)) > 0.1


def test_it_stops_at_the_boundary(linear):
    """On a linear model in a linear code the path is shortened to 1/64 of its length from the
    boundary."""
    pca = Pca(ITALY.X_train, 6)
    result = explain(linear, pca)
    searched = ~result.info["fallback"]
    back = result.X - (result.X - result.X_cf) * (1 - 1 / 32)
    assert (linear.predict(result.X_cf[:, 0]) == result.target).all()
    assert (linear.predict(back[searched, 0]) != result.target[searched]).mean() > 0.5


def test_a_batch_equals_a_loop(bilstm, autoencoder):
    for method in (cf.LatentCF, cf.Glacier):
        explainer = method(autoencoder=autoencoder, max_iter=60)
        explainer.fit(bilstm, ITALY.X_train, ITALY.y_train)
        together = explainer.explain(X[:8]).X_cf
        alone = np.concatenate([explainer.explain(X[i : i + 1]).X_cf for i in range(0, 8, 2)])
        np.testing.assert_allclose(alone, together[::2], atol=1e-5, rtol=0)


def test_higher_tau_goes_further(linear, autoencoder):
    near, far = (explain(linear, autoencoder, tau=tau) for tau in (0.5, 0.95))
    assert (near.info["iterations"] < far.info["iterations"]).mean() > 0.9
    # Both begin at the instance, where the loss is the square of what is missing to tau.
    assert (far.info["loss_curve"][:, 0] > near.info["loss_curve"][:, 0]).all()


@pytest.mark.parametrize("method", [cf.LatentCF, cf.Glacier], ids=["LatentCF", "Glacier"])
def test_confidence_is_searched_for(method, linear, autoencoder):
    explainer = method(autoencoder=autoencoder).fit(linear, ITALY.X_train, ITALY.y_train)
    result = explainer.explain(X, confidence=0.8)
    assert (result.target_proba[:, 1] >= 0.8).all()
    assert result.info["fallback"].mean() < 0.5


def test_confidence_is_kept(linear, autoencoder):
    explainer = cf.LatentCF(autoencoder=autoencoder, max_iter=50).fit(
        linear, ITALY.X_train, ITALY.y_train
    )
    result = explainer.explain(X[:10], confidence=0.8)
    assert result.valid.all() and (result.target_proba[:, 1] >= 0.8).all()


def test_rows_that_do_not_turn_take_the_line_and_say_so(linear, autoencoder):
    result = explain(linear, autoencoder, max_iter=2)
    line = cf.LineSearch().fit(linear, ITALY.X_train, ITALY.y_train).explain(X)
    fallback = result.info["fallback"]
    assert result.valid.all() and fallback.sum() >= 10
    np.testing.assert_allclose(result.X_cf[fallback], line.X_cf[fallback])


def test_models_without_gradients_are_felt_out(linear, autoencoder):
    """The same model without its gradients: a fifth of the steps, and nearly the same way."""

    def hidden(x):
        return linear.predict_proba(x.reshape(len(x), -1))

    black_box = cf.as_classifier(hidden, classes=linear.classes_)
    felt, exact = (
        explain(model, autoencoder, rows=X[:12], max_iter=150) for model in (black_box, linear)
    )
    assert felt.valid.all() and not felt.info["fallback"].any()
    assert felt.info["iterations"].max() <= 30
    ways = felt.delta.reshape(12, -1), exact.delta.reshape(12, -1)
    felt_way, exact_way = (way / np.linalg.norm(way, axis=1, keepdims=True) for way in ways)
    assert ((felt_way * exact_way).sum(1) > 0.9).all()


def test_forests_are_turned(autoencoder):
    forest = RandomForestClassifier(30, random_state=0).fit(ITALY.X_train[:, 0], ITALY.y_train)
    result = explain(forest, autoencoder, rows=X[:12], max_iter=100, learning_rate=0.2)
    assert result.valid.all() and not result.info["fallback"].all()


def test_k_counterfactuals_differ(linear, autoencoder):
    explainer = cf.LatentCF(autoencoder=autoencoder).fit(linear, ITALY.X_train, ITALY.y_train)
    result = explainer.explain(X[:5], k=3)
    assert len(result) == 15 and result.valid.all()
    each = result.X_cf.reshape(5, 3, -1)
    assert (np.linalg.norm(each[:, :, None] - each[:, None], axis=-1) + np.eye(3) > 1e-3).all()
    np.testing.assert_allclose(each[:, 0], explainer.explain(X[:5]).X_cf[:, 0], atol=1e-5)


# --- weights --------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["local", "global"])
def test_important_segments_are_spared(bilstm, autoencoder, weights):
    """At equal length of the edit: the share of it that falls on costly points must shrink."""
    strong = {"strength": 100.0, "proximity": 1.0, "max_iter": 200, "rows": X[:20]}
    steered = explain(bilstm, autoencoder, weights=weights, **strong)
    free = explain(bilstm, autoencoder, weights="uniform", **strong)
    assert steered.valid.all() and free.valid.all()
    cost = steered.info["weights"].reshape(20, -1)
    assert (free.info["weights"] == 1).all() and cost.min() >= 1 and cost.max() > 50
    dear = cost > np.quantile(cost, 0.7, axis=1, keepdims=True)

    def share(result):
        size = np.abs(result.delta.reshape(20, -1))
        return ((size * dear).sum(1) / size.sum(1))[
            ~steered.info["fallback"] & ~free.info["fallback"]
        ]

    assert len(share(free)) >= 10
    assert share(steered).mean() < 0.95 * share(free).mean()


@pytest.mark.parametrize(
    "option",
    [
        {"weights": "uniform"},
        {"weights": "global"},
        {"strength": 100.0},
        {"n_segments": 4},
        {"proximity": 1.0},
        {"tau": 0.9},
        {"learning_rate": 0.2},
        {"max_iter": 3},
        {"residual": False},
    ],
    ids=str,
)
def test_every_option_matters(linear, autoencoder, option):
    plain, other = (explain(linear, autoencoder, rows=X[:10], **params) for params in ({}, option))
    assert not np.allclose(plain.X_cf, other.X_cf, atol=1e-4)


@pytest.mark.parametrize("method", [cf.LatentCF, cf.Glacier], ids=["LatentCF", "Glacier"])
@pytest.mark.parametrize(("name", "kind"), [("cnn", ConvAutoencoder), ("lstm", LSTMAutoencoder)])
def test_an_autoencoder_that_is_named_is_trained(linear, method, name, kind):
    explainer = method(autoencoder=name, max_epochs=2).fit(linear, ITALY.X_train, ITALY.y_train)
    trained = explainer.latent_.autoencoder
    assert type(trained) is kind and len(trained.history["val_loss"]) == 2


def test_the_autoencoder_matters(linear, autoencoder, narrow):
    wide, three = (explain(linear, a, rows=X[:8]) for a in (autoencoder, narrow))
    assert not np.allclose(wide.X_cf, three.X_cf)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"weights": "rigid"}, "weights must be 'uniform', .*, got 'rigid'"),
        (
            {"autoencoder": "vae"},
            "autoencoder must be 'cnn', 'lstm' or an Autoencoder object, got 'vae'",
        ),
        (
            {"autoencoder": ConvAutoencoder((1, 9))},
            r"autoencoder takes instances of shape \(1, 9\)",
        ),
    ],
    ids=str,
)
def test_errors_name_the_parameter(linear, params, message):
    with pytest.raises(ValueError, match=message):
        explain(linear, **{"autoencoder": "cnn", **params})


# --- images, and Glacier --------------------------------------------------------------------------


def test_images_turn(digits):
    data, model, autoencoder = digits
    rows = data.X_test[:20]
    explainer = cf.LatentCF(autoencoder=autoencoder, n_segments=4, learning_rate=0.1)
    result = explainer.fit(model, data.X_train[:500], data.y_train[:500]).explain(rows)
    assert result.valid.all() and result.info["fallback"].mean() <= 0.3
    nearest = cf.NearestUnlike().fit(model, data.X_train[:500], data.y_train[:500]).explain(rows)
    assert (l2(result) < l2(nearest)).mean() >= 0.9
    weights = result.info["weights"]
    assert weights.shape == rows.shape and len(np.unique(weights[0])) > 1


def test_glacier_through_an_autoencoder_is_another_search(linear, autoencoder):
    plain, latent = (explain(linear, a, cf.Glacier) for a in (None, autoencoder))
    assert plain.valid.all() and latent.valid.all()
    assert latent.info["fallback"].mean() <= 0.1
    searched = ~latent.info["fallback"]
    # In one channel the metric is Euclidean: no movement of a code beats the free projection.
    assert (l2(latent)[searched] > l2(plain)[searched] - 1e-6).all()
    assert (l2(latent)[searched] > 1.02 * l2(plain)[searched]).mean() > 0.9


def test_glacier_moves_as_the_decoder_does(linear, narrow):
    """x' lies on the line from x to x + D(z) − D(E(x)): a movement of the decoder, and a share of
    it."""
    result = explain(linear, narrow, cf.Glacier, max_iter=200)
    searched = ~result.info["fallback"]
    assert searched.sum() >= 15
    start = narrow.encode(torch.from_numpy(X))
    moved = result.delta + narrow.decode(start).numpy()
    off = off_the_image(narrow, moved[searched], start[torch.from_numpy(searched)])
    size = np.sqrt(np.square(result.delta[searched]).mean((1, 2)))
    assert np.median(off / size) < 0.05
    free = explain(linear, None, cf.Glacier)
    moved = free.delta + narrow.decode(start).numpy()
    assert np.median(off_the_image(narrow, moved, start) / (l2(free) / np.sqrt(24))) > 0.2
