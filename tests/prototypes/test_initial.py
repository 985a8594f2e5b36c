"""Where prototypes start."""

import numpy as np
import pytest

from contrafact.prototypes import GLVQ


@pytest.mark.parametrize("init", ["kmeans", "kmeans++", "random", "means"])
@pytest.mark.parametrize("n", [1, 3])
def test_inits(init, n, blobs):
    """After a step of length zero the prototypes are where they started."""
    X, y = blobs
    model = GLVQ(n, init=init, learning_rate=0.0, max_iter=1, random_state=0).fit(X, y)
    means = np.stack([X[y == c].mean(0) for c in range(3)])
    for c, own in enumerate(model.prototypes_.reshape(3, n, 4)):
        if init in ("random", "kmeans++"):
            rows = X[y == c]
            nearest = np.abs(own[:, None] - rows).max(2)
            assert nearest.min(1).max() < 1e-12
            assert len(np.unique(nearest.argmin(1))) == n
        elif n == 1:
            np.testing.assert_allclose(own[0], means[c])
        elif init == "means":
            assert np.abs(own - means[c]).max() < X[y == c].std()
            assert len(np.unique(own, axis=0)) == n
        else:  # centers: each is the mean of the rows nearest to it
            winner = ((X[y == c][:, None] - own) ** 2).sum(2).argmin(1)
            np.testing.assert_allclose(
                own, [X[y == c][winner == k].mean(0) for k in range(n)], atol=1e-3
            )


def start(blobs, **options):
    """Where prototypes start, in units of the training: centered, of unit spread."""
    X, y = blobs
    options = {"n_prototypes": 3, "random_state": 0, **options}
    model = GLVQ(learning_rate=0.0, max_iter=1, **options).fit(X, y)
    spread = np.sqrt(X.var(0).mean())
    return (model.prototypes_ - X.mean(0)) / spread, model


@pytest.mark.parametrize(("init", "value"), [("zeros", 0), ("ones", 1), ("fill", 2.5)])
def test_prototypes_of_one_value(init, value, blobs):
    options = {"init_options": {"value": value}} if init == "fill" else {}
    places, _ = start(blobs, init=init, **options)
    np.testing.assert_allclose(places, value, atol=1e-9)


def test_prototypes_drawn_anywhere(blobs):
    places, _ = start(blobs, n_prototypes=15, init="normal", init_options={"mean": 3, "std": 0.5})
    assert abs(places.mean() - 3) < 0.2 and abs(places.std() - 0.5) < 0.1
    places, _ = start(blobs, n_prototypes=15, init="uniform", init_options={"low": 2, "high": 3})
    assert 2 <= places.min() < 2.1 and 2.9 < places.max() <= 3


def test_class_means(blobs):
    X, y = blobs
    means = np.stack([X[y == c].mean(0) for c in range(3)])
    _, one = start(blobs, n_prototypes=1, init="class_mean")
    np.testing.assert_allclose(one.prototypes_, means)
    _, several = start(blobs, init="class_conditional_mean")
    np.testing.assert_allclose(several.prototypes_, np.repeat(means, 3, axis=0))


def test_noise_is_added_to_random_rows(blobs):
    X, _ = blobs
    scaled = (X - X.mean(0)) / np.sqrt(X.var(0).mean())
    distance = {}
    for noise_std in (1e-3, 1e-2):
        places, _ = start(blobs, init="noise", init_options={"noise_std": noise_std})
        distance[noise_std] = np.abs(places[:, None] - scaled).max(2).min(1)
    assert (distance[1e-3] > 0).all() and (distance[1e-3] < 4e-3).all()
    np.testing.assert_allclose(distance[1e-2], 10 * distance[1e-3], rtol=1e-6)


def test_a_function_places_prototypes(blobs):
    """It gets rows and labels as the user gave them, and how many prototypes are wanted."""
    X, y = blobs
    names = np.array(["a", "b", "c"])[y]
    seen = {}

    def far_ones(rows, labels, counts, rng):
        seen.update(counts, rows=rows.shape, labels=set(labels.tolist()))
        assert isinstance(rng, np.random.RandomState)
        far = [
            rows[labels == c][rows[labels == c].sum(1).argsort()[-n:]] for c, n in counts.items()
        ]
        return np.concatenate(far), np.repeat(list(counts), list(counts.values()))

    model = GLVQ({"a": 1, "b": 2, "c": 3}, init=far_ones, learning_rate=0.0, max_iter=1)
    model.fit(X, names)
    assert seen == {"a": 1, "b": 2, "c": 3, "rows": X.shape, "labels": {"a", "b", "c"}}
    assert model.prototype_labels_.tolist() == list("abbccc")
    c = X[names == "c"]
    np.testing.assert_allclose(model.prototypes_[3:], c[c.sum(1).argsort()[-3:]])
