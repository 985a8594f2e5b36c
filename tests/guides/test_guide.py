"""Guides: the nearest point that the model puts in the target class, whatever the numbers."""

import itertools
import time

import numpy as np
import pytest
import torch
from aeon.distances import dtw_distance
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from contrafact.guides import NearestUnlikeCluster, NearestUnlikeNeighbor
from contrafact.models import as_classifier


class Parity(torch.nn.Module):
    """Three classes scattered over the rows without any pattern in space; computes in `dtype`."""

    def __init__(self, dtype=torch.float64):
        super().__init__()
        self.unused = torch.nn.Parameter(torch.zeros(1, dtype=dtype))

    def forward(self, x):
        column = (x.double().flatten(1) * 37).sum(1).floor().long() % 3
        return torch.nn.functional.one_hot(column, 3).to(x.dtype)


def by_first(X):
    """Class 1 where the first value is above 0."""
    p = 1 / (1 + np.exp(-np.asarray(X).reshape(len(X), -1)[:, 0]))
    return np.stack([1 - p, p], 1)


def brute_force(x, reference, member, k, distance=None):
    """Index (n, k) of the nearest members, the first row of equals; −1 where there are fewer."""
    x, reference = x.astype(np.float64), reference.astype(np.float64)
    if distance is None:
        distance = ((x[:, None] - reference) ** 2).reshape(len(x), len(reference), -1).sum(2)
    distance = np.where(member, distance, np.inf)
    order = np.argsort(distance, axis=1, kind="stable")[:, :k]
    index = np.where(np.isfinite(np.take_along_axis(distance, order, 1)), order, -1)
    return np.pad(index, ((0, 0), (0, k - index.shape[1])), constant_values=-1)


def points(kind, rng, n, d):
    values = rng.normal(size=(n, d))
    return {
        "normal": lambda: values,
        "whole numbers": lambda: rng.integers(0, 3, (n, d)).astype(float),  # ties everywhere
        "copies": lambda: values[
            rng.integers(0, 3, n)
        ],  # more equals than any short list of leaders
        "large offset": lambda: values + 1e6,
        "two offsets": lambda: values + 1e6 * rng.choice([-1, 1], (n, 1)),  # centering cannot help
        "one outlier": lambda: values * np.where(np.arange(n) == 0, 1e6, 1)[:, None],
        "tiny": lambda: values * 1e-25,  # squares vanish in float32
        "huge": lambda: values * 1e25,
        "constant": lambda: np.zeros((n, d)),
    }[kind]()


KINDS = [
    "normal",
    "whole numbers",
    "copies",
    "large offset",
    "two offsets",
    "one outlier",
    "tiny",
    "huge",
]


@settings(max_examples=150, deadline=None)
@given(
    kind=st.sampled_from([*KINDS, "constant"]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 10**6),
    n=st.integers(1, 60),
    d=st.sampled_from([1, 2, 7, 40]),
    k=st.integers(1, 6),
)
def test_neighbors_equal_a_brute_force_search(kind, dtype, seed, n, d, k):
    rng = np.random.default_rng(seed)
    both = points(kind, rng, n + 5, d).astype(np.float32 if dtype == torch.float32 else np.float64)
    x, reference = both[:5], both[5:]
    classifier = as_classifier(Parity(dtype), classes=["a", "b", "c"])
    guide = NearestUnlikeNeighbor().fit(classifier, reference)
    labels = classifier.predict(reference)
    for target in "abc":
        arrays, index = guide.guide(x, target, k)
        np.testing.assert_array_equal(index, brute_force(x, reference, labels == target, k))
        found = (index >= 0).numpy()
        np.testing.assert_array_equal(arrays.numpy()[found], reference[index.numpy()[found]])
        np.testing.assert_array_equal(arrays.numpy()[~found], np.repeat(x[:, None], k, 1)[~found])


@pytest.mark.parametrize("max_elements", [2**24, 300, 1])
def test_blocks_of_queries_change_nothing(monkeypatch, max_elements):
    rng = np.random.default_rng(3)
    reference, x = points("copies", rng, 80, 4), rng.normal(size=(30, 4))
    monkeypatch.setattr(NearestUnlikeNeighbor, "max_elements", max_elements)
    guide = NearestUnlikeNeighbor().fit(by_first, reference)
    expected = brute_force(x, reference, by_first(reference).argmax(1) == 1, 4)
    np.testing.assert_array_equal(guide.guide(x, 1, 4)[1], expected)


@pytest.mark.parametrize("kind", [NearestUnlikeNeighbor, NearestUnlikeCluster])
def test_only_what_the_model_puts_in_the_class(kind):
    """Half of the labels are wrong; the guide never follows them."""
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])
    model = LogisticRegression(max_iter=500).fit(X, names[y])
    wrong = names[np.random.default_rng(0).permutation(y)]
    told, untold = kind().fit(model, X, wrong), kind().fit(model, X)
    for target in names:
        arrays, index = told.guide(X, target, k=3)
        assert (model.predict(arrays[index >= 0].numpy()) == target).all()
        assert torch.equal(index, untold.guide(X, target, k=3)[1])


def test_labels_name_the_outputs_of_a_raw_module():
    module = torch.nn.Linear(2, 3)
    reference = np.random.default_rng(0).normal(size=(50, 2))
    guide = NearestUnlikeNeighbor().fit(
        module, reference, np.array(["a", "b", "c"] * 16 + ["a", "b"])
    )
    with torch.no_grad():
        column = module(torch.from_numpy(reference).float()).argmax(1).numpy()
    _, index = guide.guide(reference[:4], "c")
    expected = brute_force(
        *(a.astype(np.float32) for a in (reference[:4], reference)), column == 2, 1
    )
    np.testing.assert_array_equal(index, expected)


@pytest.mark.parametrize(
    "guide",
    [
        NearestUnlikeNeighbor(),
        NearestUnlikeNeighbor(diverse=True),
        NearestUnlikeNeighbor("dtw"),
        NearestUnlikeCluster(3),
    ],
    ids=["neighbor", "diverse", "dtw", "cluster"],
)
def test_several_targets_in_one_call(guide):
    rng = np.random.default_rng(5)
    reference, x = rng.normal(size=(60, 1, 8)), rng.normal(size=(9, 1, 8))
    guide.fit(as_classifier(Parity(), classes=["a", "b", "c"]), reference)
    targets = np.array(list("abcacbbca"))
    arrays, index = guide.guide(x, targets, k=2)
    for i, target in enumerate(targets):
        one_array, one_index = guide.guide(x[i : i + 1], target, k=2)
        assert torch.equal(arrays[i], one_array[0]) and torch.equal(index[i], one_index[0])
    assert (
        guide.candidate_class_[index] == torch.tensor(["abc".index(t) for t in targets])[:, None]
    ).all()


@pytest.mark.parametrize("window", [None, 0.1])
def test_dtw_neighbors_are_those_of_aeon(window):
    rng = np.random.default_rng(2)
    reference, x = rng.normal(size=(25, 2, 12)).cumsum(2), rng.normal(size=(4, 2, 12)).cumsum(2)
    guide = NearestUnlikeNeighbor("dtw", window=window).fit(by_first, reference)
    distance = np.array([[dtw_distance(a, b, window=window) for b in reference] for a in x])
    member = by_first(reference).argmax(1) == 1
    _, index = guide.guide(x, 1, 3)
    np.testing.assert_array_equal(index, brute_force(x, reference, member, 3, distance))
    assert (index.numpy() != brute_force(x, reference, member, 3)).any()  # warping matters here


def smallest_gap(guides):
    return min((a - b).norm() for a, b in itertools.combinations(guides, 2))


@pytest.mark.parametrize("metric", ["euclidean", "dtw"])
def test_diverse_guides_are_spread(metric):
    rng = np.random.default_rng(7)
    # Five copies, nearly, of each series: the nearest k are copies of one.
    reference = (rng.normal(size=(12, 1, 1, 10)) + 0.01 * rng.normal(size=(12, 5, 1, 10))).reshape(
        60, 1, 10
    )
    x = rng.normal(size=(10, 1, 10))
    k_nearest = NearestUnlikeNeighbor(metric).fit(by_first, reference)
    diverse = NearestUnlikeNeighbor(metric, diverse=True).fit(by_first, reference)
    k = 4
    near_arrays, near = k_nearest.guide(x, 1, k)
    arrays, index = diverse.guide(x, 1, k)
    pool = k_nearest.guide(x, 1, diverse.pool_factor * k)[1]
    assert torch.equal(index[:, 0], near[:, 0])  # the nearest is still there, first
    assert torch.equal(diverse.guide(x, 1)[1], near[:, :1])
    for i in range(len(x)):
        assert smallest_gap(arrays[i]) > 5 * smallest_gap(near_arrays[i])
        assert len(set(index[i].tolist())) == k and set(index[i].tolist()) <= set(pool[i].tolist())


@pytest.mark.parametrize("seed", range(5))
def test_diverse_guides_are_no_closer_together_than_the_nearest(seed):
    rng = np.random.default_rng(seed)
    reference, x = rng.normal(size=(200, 3)), rng.normal(size=(20, 3))
    near, spread = (
        NearestUnlikeNeighbor(diverse=d).fit(by_first, reference).guide(x, 1, 3)[0]
        for d in (False, True)
    )
    gaps = [
        (float(smallest_gap(a)), float(smallest_gap(b))) for a, b in zip(near, spread, strict=True)
    ]
    assert all(b >= a for a, b in gaps) and any(b > a for a, b in gaps)


def test_too_few_for_diversity_are_all_taken():
    reference = np.array([[1.0], [2.0], [3.0], [-1.0]])
    _, index = (
        NearestUnlikeNeighbor(diverse=True).fit(by_first, reference).guide(reference[3:], 1, k=5)
    )
    assert index.tolist() == [[0, 1, 2, -1, -1]]


@pytest.mark.parametrize(
    "guide", [NearestUnlikeNeighbor(), NearestUnlikeCluster(4)], ids=["row", "cluster"]
)
def test_a_class_that_the_model_never_gives_has_no_guide(guide):
    reference = -1 - np.random.default_rng(0).random((20, 3))
    guide.fit(as_classifier(by_first, classes=["low", "high"]), reference, ["low", "high"] * 10)
    x = reference[:2] + 0.5
    arrays, index = guide.guide(x, "high", k=2)
    assert index.tolist() == [[-1, -1], [-1, -1]]
    np.testing.assert_array_equal(arrays, np.repeat(x[:, None], 2, 1))
    assert (guide.guide(x, "low", k=2)[1] >= 0).all()


def test_confident_candidates_are_preferred():
    rng = np.random.default_rng(4)
    reference, x = rng.normal(scale=2, size=(80, 2)), rng.normal(size=(10, 2)) - [2, 0]
    guide = NearestUnlikeNeighbor().fit(by_first, reference)
    p = by_first(reference)[:, 1]
    plain, firm = guide.guide(x, 1, 2)[1], guide.guide(x, 1, 2, confidence=0.9)[1]
    np.testing.assert_array_equal(firm, brute_force(x, reference, p >= 0.9, 2))
    assert (plain != firm).any()
    assert p.max() < 0.9999  # where no candidate is that sure, any will do
    assert torch.equal(guide.guide(x, 1, 2, confidence=0.9999)[1], plain)
    more = int((p >= 0.9).sum()) + 1  # where fewer than k are that sure, k come back all the same
    assert (guide.guide(x, 1, more, confidence=0.9)[1] >= 0).all()


def test_confident_clusters_are_preferred():
    reference = np.array([[0.5, 0.0], [0.6, 0.0], [5.0, 0.0], [5.1, 0.0], [-1.0, 0.0]])
    guide = NearestUnlikeCluster(2).fit(by_first, reference)
    near, far = (
        guide.guide(reference[4:], 1, confidence=c)[0][0, 0, 0].item() for c in (None, 0.9)
    )
    assert (near, far) == pytest.approx((0.55, 5.05))


@pytest.mark.parametrize("shape", [(6,), (2, 5), (3, 4, 4)])
def test_one_cluster_is_the_mean_of_the_class(shape):
    rng = np.random.default_rng(8)
    reference = rng.normal(size=(50, *shape))
    labels = by_first(reference).argmax(1)
    guide = NearestUnlikeCluster().fit(
        by_first, reference, 1 - labels
    )  # the labels are wrong, all of them
    for c in (0, 1):
        arrays, index = guide.guide(reference[:3], c)
        np.testing.assert_allclose(
            arrays[:, 0], np.broadcast_to(reference[labels == c].mean(0), (3, *shape))
        )
        assert index.tolist() == [[c]] * 3


def outside_the_circle(X):
    return np.eye(2)[(np.linalg.norm(X, axis=1) > 1).astype(int)]


def test_a_center_the_model_rejects_is_replaced_by_its_nearest_member():
    rng = np.random.default_rng(9)
    angle = rng.uniform(0, 2 * np.pi, 40)
    ring = np.stack([np.cos(angle), np.sin(angle)], 1) * rng.uniform(1.5, 3, (40, 1))
    disc = rng.normal(scale=0.2, size=(30, 2))
    guide = NearestUnlikeCluster().fit(outside_the_circle, np.concatenate([ring, disc]))
    center = ring.mean(0)
    assert np.linalg.norm(center) < 1  # inside: the model would say "disc"
    expected = ring[np.linalg.norm(ring - center, axis=1).argmin()]
    np.testing.assert_array_equal(guide.guide(disc[:1], 1)[0][0, 0], expected)
    np.testing.assert_array_equal(
        guide.candidate_proba_, np.eye(2)
    )  # of the member, not of the center
    np.testing.assert_allclose(guide.guide(ring[:1], 0)[0][0, 0], disc.mean(0))


@pytest.mark.parametrize("random_state", [0, 1])
def test_clusters_are_those_of_k_means(random_state):
    rng = np.random.default_rng(10)
    reference = rng.normal(size=(90, 1, 4)) + 2
    reference[30:] -= 4
    labels = by_first(reference).argmax(1)
    guide = NearestUnlikeCluster(3, random_state).fit(by_first, reference)
    assert torch.bincount(guide.candidate_class_).tolist() == [3, 3]
    members = reference[labels == 1].reshape(-1, 4)
    centers = KMeans(3, n_init=3, random_state=random_state).fit(members).cluster_centers_
    arrays, index = guide.guide(reference[-5:], 1, k=4)
    for row, guides in zip(reference[-5:], arrays, strict=True):
        nearest_first = np.argsort(np.linalg.norm(centers - row, axis=1))
        np.testing.assert_allclose(guides[:3, 0], centers[nearest_first])
    assert (index[:, 3] == -1).all() and index[:, :3].sort(1).values.tolist() == [[3, 4, 5]] * 5


def test_no_more_clusters_than_distinct_rows():
    reference = np.array([[1.0, 0.0]] * 5 + [[2.0, 0.0]] * 5 + [[-1.0, 0.0]])
    guide = NearestUnlikeCluster(4).fit(by_first, reference)
    assert guide.candidate_class_.tolist() == [0, 1, 1]
    assert sorted(guide.candidates_[1:, 0].tolist()) == [1.0, 2.0]


def test_the_model_is_asked_once_per_reference_row():
    classifier = as_classifier(by_first, classes=["low", "high"])
    reference = np.random.default_rng(0).normal(size=(50, 3))
    guide = NearestUnlikeNeighbor().fit(classifier, reference)
    guide.guide(reference, "low", 3)
    assert classifier.rows_evaluated == 50


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g, x: NearestUnlikeNeighbor("cosine"), "'euclidean' or 'dtw', got 'cosine'"),
        (lambda g, x: NearestUnlikeCluster(0), "n_clusters must be at least 1, got 0"),
        (
            lambda g, x: NearestUnlikeNeighbor("dtw").fit(by_first, x),
            r"needs series .*, got \(5, 3\)",
        ),
        (
            lambda g, x: g.guide(x, "pont"),
            "target 'pont' is not a class of this model. Classes: 'gun', 'point'",
        ),
        (lambda g, x: g.guide(x, ["gun"] * 4 + ["pont"]), "target 'pont' is not a class"),
        (lambda g, x: g.guide(x, ["gun"] * 4), "shape"),
        (lambda g, x: g.guide(x, "gun", k=0), "k must be at least 1, got 0"),
    ],
)
def test_errors_say_what_was_given(call, message):
    x = np.random.default_rng(0).normal(size=(5, 3))
    guide = NearestUnlikeNeighbor().fit(as_classifier(by_first, classes=["gun", "point"]), x)
    with pytest.raises(ValueError, match=message):
        call(guide, x)


def best_of_three(work):
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def test_the_search_costs_little_more_than_one_matrix_product():
    """1,000 queries, 10,000 series of length 500. The best of 5 attempts: other work shares the machine."""
    rng = np.random.default_rng(0)
    reference, x = (rng.standard_normal((n, 1, 500), dtype=np.float32) for n in (10_000, 1_000))
    for series in (reference, x):
        series[..., 1:] += 50  # far from the origin, as raw measurements are
    guide = NearestUnlikeNeighbor().fit(by_first, reference)
    target = np.arange(1_000) % 2
    a, b = torch.from_numpy(x).flatten(1), torch.from_numpy(reference).flatten(1)

    ratios = []
    while len(ratios) < 5 and (not ratios or min(ratios) > 1.5):
        product = best_of_three(lambda: a @ b.T)
        ratios.append(best_of_three(lambda: guide.guide(x, target)) / product)
    assert min(ratios) <= 1.5, ratios

    member = by_first(reference).argmax(1)
    np.testing.assert_array_equal(
        guide.guide(x[:20], target[:20])[1],
        np.concatenate(
            [brute_force(x[i : i + 1], reference, member == target[i], 1) for i in range(20)]
        ),
    )
