"""TS-NUC: the search is the paper's, a batch is as many runs, and its modes and options do what
they say."""

import warnings

import numpy as np
import pytest
import torch
from aeon.classification.convolution_based import RocketClassifier
from linear_autoencoder import Pca
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from torch import nn

import contrafact as cf
from contrafact.explainers import tsnuc
from contrafact.explainers.support.code_network import CodeNetwork
from contrafact.nn.autoencoders import ConvAutoencoder, LSTMAutoencoder
from contrafact.nn.networks import FCN, BiLSTM, seeded
from contrafact.testing.case_models import with_quick_votes

ITALY = cf.load_dataset("ItalyPowerDemand")
MOTIONS = cf.load_dataset("BasicMotions")
X = ITALY.X_test[np.random.default_rng(0).permutation(len(ITALY.X_test))[:60]]


# --- models and autoencoders, each trained once ---------------------------------------------------


@pytest.fixture(scope="module", autouse=True)
def networks():
    """The same codes train the same network, so each is trained once: most tests here share
    theirs."""
    fit, trained = CodeNetwork.fit, {}

    def fit_once(codes, max_epochs, skip):
        key = codes.numpy().tobytes(), max_epochs, skip
        if key not in trained:
            trained[key] = fit(codes, max_epochs, skip)
        return trained[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CodeNetwork, "fit", fit_once)
        yield


@pytest.fixture(scope="module")
def autoencoder():
    return cf.fit_autoencoder("cnn", ITALY.X_train, max_epochs=120)


@pytest.fixture(scope="module")
def rough():
    """An autoencoder that keeps little, so that plain reconstruction changes classes."""
    with seeded(0):
        module = LSTMAutoencoder((1, 24), latent=8, hidden=16)
    return cf.fit_autoencoder(module, ITALY.X_train, learning_rate=1e-2, max_epochs=40)


@pytest.fixture(scope="module")
def bilstm():
    with seeded(0):
        module = BiLSTM(1, 2, hidden=8)
    return cf.fit_classifier(
        module, ITALY.X_train, ITALY.y_train, max_epochs=30, learning_rate=2e-2
    )


@pytest.fixture(scope="module")
def fcn():
    with seeded(0):
        module = FCN(1, 2, widths=(8, 8), kernels=(5, 3))
    return cf.fit_classifier(
        module, ITALY.X_train, ITALY.y_train, max_epochs=30, learning_rate=1e-2
    )


@pytest.fixture(scope="module")
def forest():
    return with_quick_votes(
        RandomForestClassifier(30, random_state=0).fit(ITALY.X_train[:, 0], ITALY.y_train)
    )


@pytest.fixture(scope="module")
def rocket():
    model = RocketClassifier(n_kernels=200, random_state=0).fit(ITALY.X_train, ITALY.y_train)
    torch.set_num_threads(
        1
    )  # numba has reset it, and fixtures that follow in the same test would train with more
    return model


@pytest.fixture(scope="module")
def models(linear, fcn, bilstm, forest, rocket):
    return {"linear": linear, "fcn": fcn, "bilstm": bilstm, "forest": forest, "rocket": rocket}


def fitted(model, autoencoder, reference=ITALY, **params):
    """Quietly: what `fit` warns about has a test of its own.

    Few steps of the second search: many would amplify how batches of another size round.
    """
    nearer = None if "preset" in params else 2
    given = {"autoencoder": autoencoder, "max_epochs": 60, "max_iter": 60, "nearer": nearer}
    explainer = cf.TSNUC(**{**given, **params})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return explainer.fit(model, reference.X_train, reference.y_train)


def rmse(result):
    return np.sqrt(np.square(result.delta).mean((1, 2)))


def decoded(autoencoder, X):
    """D(E(x)): what plain reconstruction makes of the instances."""
    with torch.no_grad():
        return autoencoder(torch.as_tensor(X).to(next(autoencoder.parameters()))).numpy()


# --- a batch is as many separate runs -------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("linear", {}),
        ("linear", {"noise_std": 0.2, "feedback": True}),
        ("linear", {"mode": "zeroth_order", "max_iter": 15}),
        ("fcn", {"noise_std": 0.2}),
        ("fcn", {"feedback": True}),
        ("bilstm", {}),
        ("bilstm", {"noise_std": 0.2, "feedback": True, "residual": False, "shorten": False}),
    ],
    ids=str,
)
def test_a_batch_equals_a_loop(models, autoencoder, kind, params):
    explainer = fitted(models[kind], autoencoder, **params)
    together = explainer.explain(X[:12], random_state=3)
    for i in range(0, 12, 2):
        alone = explainer.explain(X[i : i + 1], random_state=3)
        np.testing.assert_allclose(alone.X_cf[0], together.X_cf[i], atol=1e-5, rtol=0)
        np.testing.assert_allclose(
            alone.info["loss_curve"][0], together.info["loss_curve"][i], atol=1e-5, rtol=0
        )
        for name in ("iterations", "converged", "fallback", "flipped_at_start", "centroid"):
            assert alone.info[name][0] == together.info[name][i]
    assert together.valid.all() and not together.info["fallback"].all()


@pytest.mark.parametrize("noise", [{}, {"noise_std": 0.2}], ids=["k", "k and noise"])
def test_working_in_turns_changes_nothing(linear, autoencoder, monkeypatch, noise):
    """Turns of 6 entries: three counterfactuals of a row stay together."""
    explainer = fitted(linear, autoencoder, **noise)
    whole = explainer.explain(X[:6], k=3)
    monkeypatch.setattr(tsnuc, "MAX_WEIGHTS", 6 * explainer.network_.size)
    turns = explainer.explain(X[:6], k=3)
    np.testing.assert_allclose(turns.X_cf, whole.X_cf, atol=1e-5)


def test_turns_that_part_a_row_change_nothing_either(linear, autoencoder, monkeypatch):
    explainer = fitted(linear, autoencoder)
    whole = explainer.explain(X[:4], k=3)
    monkeypatch.setattr(tsnuc, "MAX_WEIGHTS", 4 * explainer.network_.size)
    turns = explainer.explain(X[:4], k=3)
    assert turns.X_cf.shape == whole.X_cf.shape
    np.testing.assert_allclose(turns.X_cf, whole.X_cf, atol=1e-5)


def paper_search(explainer, module, x, target, *, feedback, residual, max_iter, doubling=np.inf):
    """The paper's listing for one instance, in plain torch: its own network, torch's Adam."""
    autoencoder, carrier = explainer.latent_.autoencoder, explainer.network_
    d, place = carrier.latent, explainer.centroids_.place[explainer.centroids_.owner == target]
    network = nn.Sequential(nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d), nn.ReLU(), nn.Linear(d, d))
    layers = [layer for layer in network if isinstance(layer, nn.Linear)]
    with torch.no_grad():
        for layer, part in zip(layers, carrier.weights.split(d * d + d), strict=True):
            layer.weight.copy_(part[: d * d].reshape(d, d).T)
            layer.bias.copy_(part[d * d :])
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    z = autoencoder.encode(x)
    still = autoencoder.decode(network(z)).detach()
    path, losses = [], []
    for t in range(max_iter):
        z_hat = network(z)
        x_cf = autoencoder.decode(z_hat)
        if residual:
            x_cf = x + (
                x_cf - still
            )  # the slope of |x − x'| is 0 only where x' is x to the last bit
        logits = module(x_cf)
        entropy = nn.functional.cross_entropy(logits, torch.tensor([target]))
        distance = ((x - x_cf) / autoencoder.scaling.std).abs().mean()
        loss = 0.05 * 2 ** (t / doubling) * entropy + 0.01 * distance + (z_hat - place[0]).norm()
        path.append(z_hat.detach()[0])
        losses.append(loss.item())
        if logits.argmax(1).item() == target:
            break
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if feedback:
            z = z_hat.detach()
    return torch.stack(path), np.array(losses), x_cf.detach()


@pytest.mark.usefixtures("own_random_numbers")
@pytest.mark.parametrize(
    "how",
    [
        {"feedback": False, "residual": False},
        {"feedback": True, "residual": True},
        {"feedback": False, "residual": True, "doubling": 2},
    ],
    ids=["as it is", "feedback and residual", "doubling"],
)
@pytest.mark.parametrize("kind", ["fcn", "bilstm"])
def test_the_search_is_the_papers(models, autoencoder, kind, how):
    model = models[kind]
    explainer = fitted(
        model, autoencoder, preset="paper", noise_mean=0.0, noise_std=0.0, max_iter=20, **how
    )
    result = explainer.explain(X[:12])
    long = [
        i for i in range(12) if result.info["converged"][i] and result.info["iterations"][i] >= 4
    ]
    assert len(long) >= 3  # of a run that stops at once there is nothing to compare
    for i in long:
        x = torch.from_numpy(X[i : i + 1]).float()
        target = model.classes.tolist().index(result.target[i])
        path, losses, x_cf = paper_search(explainer, model.module, x, target, max_iter=20, **how)
        assert len(path) == result.info["iterations"][i]
        shown = np.linspace(0, 1, result.info["path"].shape[1]) * (len(path) - 1)
        shown = shown.round().astype(int)
        np.testing.assert_allclose(result.info["loss_curve"][i], losses[shown], atol=1e-5)
        on_plane = (path @ explainer.latent_.plane)[shown]
        np.testing.assert_allclose(result.info["path"][i], on_plane, atol=1e-5)
        np.testing.assert_allclose(result.X_cf[i], x_cf[0], atol=1e-5)


# --- modes ----------------------------------------------------------------------------------------


def test_gradients_are_not_promised_where_there_are_none(forest, autoencoder):
    with pytest.raises(
        ValueError, match=r"mode='gradient' needs a model with gradients.*'predict_only'"
    ):
        fitted(forest, autoencoder, mode="gradient")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"mode": "exact"}, "mode must be 'auto', .*, got 'exact'"),
        ({"preset": "thesis"}, "preset must be 'library' or 'paper', got 'thesis'"),
        (
            {"centroids": "medoids"},
            "centroids must be 'predictions', 'labels', 'prototypes' or None, got 'medoids'",
        ),
        (
            {"autoencoder": "vae"},
            "autoencoder must be None, 'cnn', 'lstm' or an Autoencoder object, got 'vae'",
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
        fitted(linear, **{"autoencoder": None, **params})


def test_labels_are_needed_for_centroids_of_labels(linear, autoencoder):
    for params in ({"centroids": "labels"}, {"preset": "paper"}):
        with pytest.raises(ValueError, match=r"centroids='labels', .* needs y"):
            cf.TSNUC(autoencoder=autoencoder, **params).fit(linear, ITALY.X_train)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("learning_rate", 0),
        ("max_iter", 0),
        ("max_epochs", 0),
        ("n_centroids", 0),
        ("beta", 0),
        ("lambda_model", -1),
        ("lambda_distance", -0.01),
        ("lambda_centroid", -1),
        ("noise_std", -0.1),
        ("doubling", -1),
        ("denoise", "no"),
        ("fallback", 1),
    ],
)
def test_bad_values_are_refused(linear, option, value):
    with pytest.raises(ValueError, match=f"TSNUC: {option} must be .*, got {value!r}"):
        cf.TSNUC(**{option: value}).fit(linear, ITALY.X_train, ITALY.y_train)


def test_the_papers_preset_repairs_nothing(linear, autoencoder):
    """No line to a neighbor, centroids of the labels: what the search ends with is returned."""
    few_steps = {"preset": "paper", "max_iter": 2, "noise_mean": 0.0, "noise_std": 0.0}
    explainer = fitted(linear, autoencoder, **few_steps)
    result = explainer.explain(X)
    assert not result.info["fallback"].any()
    assert np.array_equal(result.valid, result.info["converged"]) and not result.valid.all()
    codes = explainer.latent_.codes
    means = [codes[ITALY.y_train == label].mean(0) for label in explainer.classifier_.classes]
    torch.testing.assert_close(explainer.centroids_.place, torch.stack(means))
    repaired = fitted(linear, autoencoder, fallback=True, **few_steps).explain(X)
    assert repaired.valid.all() and repaired.info["fallback"].any()


@pytest.mark.parametrize("kind", ["forest", "rocket"])
def test_predicting_is_enough(models, autoencoder, kind):
    result = fitted(models[kind], autoencoder, mode="predict_only", max_iter=150).explain(X)
    assert result.valid.mean() >= 0.95
    assert result.info["fallback"].mean() <= 0.25  # it is the search that turns them, not the line


def test_predict_only_never_looks_at_a_slope(fcn, autoencoder):
    """A model of labels alone gives the same search as the network behind it."""

    def votes(x):
        return fcn.predict(x.astype(np.float32))

    slopes = fitted(fcn, autoencoder, mode="predict_only", max_iter=30).explain(X[:12])
    labels = cf.as_classifier(votes, classes=fcn.classes)
    steps = fitted(labels, autoencoder, mode="auto", max_iter=30).explain(X[:12])
    # A near tie of probabilities is not clear enough to stop at; labels alone cannot show it.
    same = slopes.info["iterations"] == steps.info["iterations"]
    assert same.sum() >= 10 and slopes.info["converged"][same].sum() >= 8
    np.testing.assert_allclose(
        steps.info["loss_curve"][same], slopes.info["loss_curve"][same], atol=1e-5
    )
    np.testing.assert_allclose(steps.info["path"][same], slopes.info["path"][same], atol=1e-5)


def test_lambda_model_counts_where_slopes_are_used_only(linear, autoencoder):
    def cf_of(mode, weight):
        return fitted(linear, autoencoder, mode=mode, lambda_model=weight).explain(X[:12]).X_cf

    assert np.array_equal(cf_of("predict_only", 0.05), cf_of("predict_only", 5.0))
    assert not np.array_equal(cf_of("gradient", 0.05), cf_of("gradient", 5.0))


@pytest.mark.parametrize("kind", ["linear", "bilstm"])
def test_slopes_that_are_felt_out_agree_with_exact_ones(models, autoencoder, kind):
    """The model term is made to lead, so that a wrong slope of it would show."""
    heavy = {"lambda_model": 2.0, "lambda_centroid": 0.1, "nearer": 0}
    exact, felt = (
        fitted(models[kind], autoencoder, mode=mode, **heavy).explain(X[:12])
        for mode in ("gradient", "zeroth_order")
    )
    assert exact.valid.all() and felt.valid.all() and not felt.info["fallback"].any()
    assert 1 / 1.3 < rmse(felt).mean() / rmse(exact).mean() < 1.3
    ways = felt.delta.reshape(12, -1), exact.delta.reshape(12, -1)
    felt_way, exact_way = (way / np.linalg.norm(way, axis=1, keepdims=True) for way in ways)
    assert ((felt_way * exact_way).sum(1) > 0.9).all()


# --- targets and centroids ------------------------------------------------------------------------


def three_waves(n=90, seed=0):
    """Three classes of series of which the middle one lies nearer to one neighbor than to the
    other."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    t = np.linspace(0, 2 * np.pi, 20)
    level = np.array([0.0, 1.0, 1.8])[y][:, None, None]
    return level * np.sin(t) + 0.5 * rng.normal(size=(n, 1, 20)), np.array(["low", "mid", "top"])[y]


def test_the_target_is_the_class_of_the_nearest_unlike_cluster():
    X_train, y_train = three_waves()
    rows, _ = three_waves(60, seed=1)
    model = LogisticRegression().fit(X_train[:, 0], y_train)
    pca = Pca(X_train, 5)
    explainer = cf.TSNUC(autoencoder=pca, skip=True, n_centroids=1, max_iter=5)
    result = explainer.fit(model, X_train, y_train).explain(rows)
    axes = pca.axes.numpy()
    said = model.predict(X_train[:, 0])
    mean = np.stack([(X_train[said == c].reshape(-1, 20) @ axes).mean(0) for c in model.classes_])
    distance = np.linalg.norm((rows.reshape(-1, 20) @ axes)[:, None] - mean, axis=2)
    own = model.predict(rows[:, 0])[:, None] == model.classes_
    nearest = model.classes_[np.where(own, np.inf, distance).argmin(1)]
    assert (result.target == nearest).all()
    runner_up = model.classes_[np.where(own, -1, model.predict_proba(rows[:, 0])).argmax(1)]
    assert (result.target != runner_up).any()  # or the test could not tell it from the usual choice
    # A target that is given is kept.
    assert (explainer.explain(rows[:6], target="top").target == "top").all()


def test_centroids_of_labels_and_of_predictions_differ_where_the_model_errs(linear):
    pca = Pca(ITALY.X_train, 6)
    y = ITALY.y_train.copy()
    wrong = np.random.default_rng(0).permutation(len(y))[:20]
    y[wrong] = np.where(y[wrong] == "1", "2", "1")
    codes = ITALY.X_train.reshape(len(y), -1) @ pca.axes.numpy()
    said, found = linear.predict(ITALY.X_train[:, 0]), {}
    for how, label in (("labels", y), ("predictions", said)):
        explainer = cf.TSNUC(
            autoencoder=pca, skip=True, n_centroids=1, centroids=how, shorten=False
        )
        explainer.fit(linear, ITALY.X_train, y)
        mean = np.stack([codes[label == c].mean(0) for c in linear.classes_])
        np.testing.assert_allclose(explainer.centroids_.place, mean, atol=1e-9)
        found[how] = explainer.explain(X[:12])
    assert not np.allclose(found["labels"].X_cf, found["predictions"].X_cf)


def near_and_far():
    """Series at a level of −3, 0 or 3: the far ones lie on both sides of the near ones."""
    levels = np.repeat([-3.0, 0.0, 3.0], 20)
    X = levels[:, None, None] + 0.2 * np.random.default_rng(0).normal(size=(60, 1, 10))
    model = cf.as_classifier(
        lambda x: np.stack([1 - (far := np.abs(x.mean((1, 2))) > 1.5), far], axis=1).astype(float),
        classes=["near", "far"],
    )
    return X, model


def test_a_centroid_that_decodes_into_another_class_is_told_by_name():
    X, model = near_and_far()
    pca = Pca(X, 3)
    with pytest.warns(UserWarning, match="decoded centroids of 'far' into other classes") as told:
        cf.TSNUC(autoencoder=pca, skip=True, n_centroids=1).fit(model, X)
    assert "near" not in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cf.TSNUC(autoencoder=pca, skip=True, n_centroids=2).fit(model, X)


def test_the_centroid_told_is_the_nearest_of_the_target_class():
    X, model = near_and_far()
    explainer = cf.TSNUC(autoencoder=Pca(X, 3), skip=True, n_centroids=2, learning_rate=0.02).fit(
        model, X
    )
    rows = 0.3 * np.sign(np.arange(8) - 3.5)[:, None, None] + np.zeros((8, 1, 10))
    result = explainer.explain(rows, target="far")
    place = explainer.centroids_.place[torch.from_numpy(result.info["centroid"])]
    side = explainer.latent_.decode(place).mean((1, 2)).sign().numpy()
    assert result.valid.all() and (side == np.sign(rows[:, 0, 0])).all()
    assert (np.sign(result.X_cf.mean((1, 2))) == side).all()


def test_a_target_without_centroids_is_no_error_of_the_search(linear, autoencoder):
    """As with other guided methods: nothing was found, and the model's word on the best attempt
    stands."""

    def three(x):
        proba = linear.predict_proba(x.reshape(len(x), -1))
        return np.column_stack([0.999 * proba, np.full(len(x), 0.001)])

    explainer = fitted(cf.as_classifier(three, classes=["1", "2", "3"]), autoencoder, max_iter=5)
    result = explainer.explain(X[:2], target="3")
    assert not (result.status == "error").any()


# --- presets, noise, residual ---------------------------------------------------------------------

PAPER = {
    "autoencoder": "lstm",
    "centroids": "labels",
    "n_centroids": 1,
    "max_iter": 10_000,
    "noise_mean": -1.0,
    "noise_std": 1.0,
    "feedback": True,
    "residual": False,
    "nearer": 0,
    "shorten": False,
    "doubling": 0,  # None would take the library's; 0 is never
    "denoise": False,
    "fallback": False,
}


def test_the_papers_preset_is_its_settings_and_given_ones_win(linear):
    reference = cf.Dataset(
        "few", "series", ITALY.X_train[:20], ITALY.y_train[:20], ITALY.X_test[:2], ITALY.y_test[:2]
    )
    limits = {"max_epochs": 1, "max_iter": 3}  # else minutes

    def explain(**params):
        explainer = fitted(linear, reference=reference, **{"autoencoder": None, **params, **limits})
        return explainer, explainer.explain(X[:6])

    preset, of_preset = explain(preset="paper")
    assert type(preset.latent_.autoencoder) is LSTMAutoencoder
    assert (preset.latent_.autoencoder.latent, preset.latent_.autoencoder.recur.in_features) == (
        128,
        256,
    )
    assert preset.centroids_.owner.tolist() == [0, 1]
    assert cf.TSNUC(preset="paper")._setting("max_iter") == PAPER["max_iter"]

    def same(a, b):
        return np.array_equal(a.X_cf, b.X_cf) and np.array_equal(a.info["path"], b.info["path"])

    _, explicit = explain(**PAPER)
    assert same(of_preset, explicit)
    trained = {"autoencoder": preset.latent_.autoencoder}
    for name, value in (
        ("noise_std", 0.1),
        ("noise_mean", 0.0),
        ("residual", True),
        ("shorten", True),
    ):
        _, given = explain(**{"preset": "paper", **trained, name: value})
        _, expected = explain(**{**PAPER, **trained, name: value})
        assert same(given, expected) and not same(given, of_preset)


def test_a_row_that_turns_with_noise_is_tried_without(linear, rough):
    """F is the identity and stands still, so without noise there is only the plain reconstruction:
    where that
    is in the target class it must be the answer, elsewhere the noisy point stays."""
    options = {
        "skip": True,
        "learning_rate": 1e-300,
        "noise_std": 1.0,
        "residual": False,
        "nearer": 0,
        "shorten": False,
        "max_iter": 100,
    }
    result = fitted(linear, rough, **options).explain(X)
    noisy = fitted(linear, rough, denoise=False, **options).explain(X)
    plain = decoded(rough, X)
    quiet = linear.predict(plain[:, 0]) == result.target
    turned = result.info["converged"]
    assert turned.all() and result.valid.all() and not result.info["fallback"].any()
    assert 3 <= quiet.sum() <= 57
    np.testing.assert_allclose(result.X_cf[quiet], plain[quiet], atol=1e-5)
    assert (np.abs(result.X_cf - plain)[~quiet].max((1, 2)) > 1e-2).all()
    assert (np.abs(noisy.X_cf - plain).max((1, 2)) > 1e-2).all()


def test_noise_follows_the_seed(linear, autoencoder):
    explainer = fitted(linear, autoencoder, noise_std=0.3)
    one, same, other = (explainer.explain(X[:8], random_state=seed).X_cf for seed in (1, 1, 2))
    assert np.array_equal(one, same) and not np.array_equal(one, other)


def test_the_residual_takes_the_reconstruction_error_away(linear, rough):
    """With the distance as the only term the first loss is the change that no movement makes."""
    alone = {
        "skip": True,
        "lambda_model": 0.0,
        "lambda_centroid": 0.0,
        "lambda_distance": 1.0,
        "max_iter": 1,
    }

    def change(residual):
        result = fitted(linear, rough, residual=residual, **alone).explain(X[:12])
        return result.info["loss_curve"][:, 0]

    error = np.abs(decoded(rough, X[:12]) - X[:12]).mean((1, 2)) / float(rough.scaling.std)
    assert (change(True) == 0).all()
    np.testing.assert_allclose(change(False), error, rtol=1e-4)
    assert error.min() > 0.01


def test_what_plain_reconstruction_turns_is_told(linear, rough):
    explainer = fitted(linear, rough, skip=True, residual=False, max_iter=30)
    result = explainer.explain(X)
    turned = linear.predict(decoded(rough, X)[:, 0]) == result.target
    assert 3 <= turned.sum() <= 57
    assert np.array_equal(result.info["flipped_at_start"], turned)
    kept = fitted(linear, rough, skip=True, residual=True, max_iter=30).explain(X)
    assert not kept.info["flipped_at_start"].any()
    report = cf.reconstruction_report(rough, linear, X)
    assert report.loc["all", "flip_rate"] == pytest.approx(turned.mean())


def test_rows_that_do_not_turn_take_the_line_and_say_so(linear, autoencoder):
    result = fitted(linear, autoencoder, max_iter=2).explain(X[:20])
    line = cf.LineSearch().fit(linear, ITALY.X_train, ITALY.y_train).explain(X[:20])
    fallback = result.info["fallback"]
    assert result.valid.all() and fallback.sum() >= 5
    assert np.array_equal(fallback, ~result.info["converged"])
    np.testing.assert_allclose(result.X_cf[fallback], line.X_cf[fallback])


def test_the_edit_is_a_movement_of_the_decoder(linear):
    """The decoder's plane is all the method may move in; the line to a neighbor leaves it."""
    pca = Pca(ITALY.X_train, 6)
    result = fitted(linear, pca, skip=True, max_iter=300, learning_rate=5e-3).explain(X[:20])
    axes, edit = pca.axes.numpy(), result.delta.reshape(20, -1)
    outside = np.linalg.norm(edit - edit @ axes @ axes.T, axis=1) / np.linalg.norm(edit, axis=1)
    searched = ~result.info["fallback"]
    assert result.valid.all() and searched.sum() >= 15
    assert (outside[searched] < 1e-6).all()


def test_the_second_search_comes_nearer_and_stays_in_the_class(fcn, autoencoder):
    before = fitted(fcn, autoencoder, nearer=0).explain(X[:20])
    after = fitted(fcn, autoencoder, nearer=60).explain(X[:20])
    assert after.valid.all()
    assert np.array_equal(after.info["fallback"], before.info["fallback"])
    assert rmse(after).mean() < 0.9 * rmse(before).mean()
    kept = fitted(fcn, autoencoder, nearer=60).explain(X[:20], confidence=0.9)
    assert (kept.cf_proba.max(1)[kept.valid] >= 0.9).all()


@pytest.mark.parametrize("shorten", [True, False])
@pytest.mark.parametrize("calls", [12, 40, 100, None])
def test_the_second_search_is_never_farther(linear, autoencoder, calls, shorten):
    """Nor does it take the budget from the way back to the first point accepted."""
    budget = None if calls is None else cf.Budget(calls=calls * 20)
    before, after = (
        fitted(linear, autoencoder, nearer=n, shorten=shorten).explain(X[:20], budget=budget)
        for n in (0, 100)
    )
    assert np.array_equal(after.valid, before.valid) and before.valid.sum() >= 5
    assert (rmse(after) <= rmse(before) * (1 + 1e-5)).all()


def test_the_second_search_leaves_alternatives_where_they_are(linear, autoencoder):
    before, after = (fitted(linear, autoencoder, nearer=n).explain(X[:6], k=2) for n in (0, 30))
    first = np.r_[True, before.source[1:] != before.source[:-1]]
    assert np.array_equal(before.source, after.source) and not first.all()
    np.testing.assert_allclose(after.X_cf[~first], before.X_cf[~first], atol=1e-5)
    assert (rmse(after)[first] < rmse(before)[first]).all()


def test_the_second_search_needs_gradients(forest, linear, autoencoder):
    for model, mode in ((forest, "auto"), (linear, "predict_only")):
        none, many = (
            fitted(model, autoencoder, mode=mode, nearer=n).explain(X[:6]) for n in (0, 50)
        )
        assert np.array_equal(none.X_cf, many.X_cf)


# --- requests -------------------------------------------------------------------------------------


def test_refine_makes_it_sparse(bilstm, autoencoder):
    explainer = fitted(bilstm, autoencoder)
    dense, sparse = explainer.explain(X), explainer.explain(X, refine=True)
    assert dense.valid.all() and sparse.valid.all()
    assert dense.changed_fraction.mean() > 0.9
    assert sparse.changed_fraction.mean() < 0.4
    assert (rmse(sparse) <= rmse(dense) + 1e-9).all()


def test_confidence_is_kept(bilstm, autoencoder):
    result = fitted(bilstm, autoencoder, max_iter=150).explain(X[:20], confidence=0.8)
    plain = fitted(bilstm, autoencoder).explain(X[:20])
    assert result.valid.all() and (result.target_proba[:, 1] >= 0.8).all()
    assert (plain.target_proba[:, 1] < 0.8).any()
    assert result.info["fallback"].mean() <= 0.25


def test_a_search_that_reached_the_confidence_is_not_thrown_away(linear, autoencoder):
    result = fitted(linear, autoencoder, max_iter=300).explain(X, confidence=0.8)
    assert not (result.info["converged"] & result.info["fallback"]).any()


def test_budgets_are_kept(linear, autoencoder):
    explainer = fitted(linear, autoencoder)
    free = explainer.explain(X[:10])
    tight = explainer.explain(X[:10], budget=cf.Budget(calls=60))
    ample = explainer.explain(X[:10], budget=cf.Budget(calls=10_000))
    assert tight.calls.sum() <= 60 < free.calls.sum()
    assert set(tight.status) <= {"valid", "budget"} and (tight.status == "budget").any()
    assert np.array_equal(ample.X_cf, free.X_cf)


def test_k_counterfactuals_differ(linear, autoencoder):
    result = fitted(linear, autoencoder).explain(X[:6], k=3)
    assert len(result) == 18 and result.valid.all()
    each = result.X_cf.reshape(6, 3, -1)
    assert (np.linalg.norm(each[:, :, None] - each[:, None], axis=-1) + np.eye(3) > 1e-3).all()
    # The first of each starts at the instance's own code: it is the one that k = 1 gives.
    np.testing.assert_allclose(
        each[:, 0], fitted(linear, autoencoder).explain(X[:6]).X_cf[:, 0], atol=1e-5
    )


@pytest.fixture(scope="module")
def motions():
    with seeded(0):
        autoencoder = ConvAutoencoder((6, 100), latent=16, widths=(16, 16))
        module = FCN(6, 4, widths=(16, 16), kernels=(7, 5))
    autoencoder = cf.fit_autoencoder(
        autoencoder, MOTIONS.X_train, learning_rate=5e-3, max_epochs=60
    )
    model = cf.fit_classifier(
        module, MOTIONS.X_train, MOTIONS.y_train, learning_rate=1e-2, max_epochs=30
    )
    return model, autoencoder


def test_several_channels_classes_and_wishes_at_once(motions):
    model, autoencoder = motions
    # Movements have no common phase and so no mean worth going to: the model leads.
    explainer = fitted(
        model,
        autoencoder,
        MOTIONS,
        max_iter=150,
        learning_rate=3e-3,
        lambda_model=1.0,
        lambda_centroid=0.0,
    )
    rows = MOTIONS.X_test[::4]
    result = explainer.explain(rows, k=2, confidence=0.8, budget=cf.Budget(calls=500 * len(rows)))
    assert result.valid.all() and (result.target_proba[:, 1] >= 0.8).all()
    assert result.calls.sum() <= 500 * len(rows)
    assert len(set(result.target)) >= 3 and (result.target != result.labels).all()
    found = np.bincount(result.source)[result.source]
    assert (found == 2).mean() >= 0.5 and not result.info["fallback"][found == 2].all()
    assert np.array_equal(found < 2, result.message == "1 of 2 counterfactuals: no more were found")


@pytest.mark.parametrize(
    "option",
    [
        {"mode": "predict_only"},
        {"mode": "zeroth_order"},
        {"max_epochs": 5},
        {"n_centroids": 1},
        {"beta": 20.0},
        {"lambda_model": 1.0},
        {"lambda_distance": 1.0},
        {"lambda_centroid": 0.05},
        {"learning_rate": 4e-3},
        {"max_iter": 2},
        {"noise_mean": 0.1},
        {"noise_std": 0.1},
        {"feedback": True},
        {"residual": False},
        {"nearer": 0},
        {"shorten": False},
        {"doubling": 2},
        {"skip": True},
        {"preset": "paper"},
    ],
    ids=str,
)
def test_every_option_matters(linear, autoencoder, option):
    rows = X[:8]
    plain, other = (fitted(linear, autoencoder, **params).explain(rows) for params in ({}, option))
    assert not np.allclose(plain.X_cf, other.X_cf, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "kind"), [(None, ConvAutoencoder), ("cnn", ConvAutoencoder), ("lstm", LSTMAutoencoder)]
)
def test_an_autoencoder_that_is_named_is_trained(linear, name, kind):
    trained = fitted(linear, name, max_epochs=2).latent_.autoencoder
    assert type(trained) is kind and len(trained.history["val_loss"]) == 2


def test_the_autoencoder_matters(linear, autoencoder, rough):
    one, other = (fitted(linear, a).explain(X[:8]) for a in (autoencoder, rough))
    assert not np.allclose(one.X_cf, other.X_cf)
