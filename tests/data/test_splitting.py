import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrafact.data import load_dataset
from contrafact.data.readers import Source
from contrafact.data.splitting import split_source, stratified_split


def test_split_is_stratified_repeatable_complete_and_shuffled():
    from sklearn.datasets import load_wine

    data, again = load_dataset("wine"), load_dataset("wine")
    np.testing.assert_array_equal(data.X_test, again.X_test)
    together = np.concatenate([data.X_train, data.X_test])
    np.testing.assert_array_equal(np.sort(together, axis=0), np.sort(load_wine().data, axis=0))
    assert [int((data.y_test == c).sum()) for c in data.classes] == [18, 21, 14]
    assert len(set(data.y_test[:8])) > 1  # scikit-learn's own order has the classes in blocks


@given(st.lists(st.integers(2, 40), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_every_class_is_in_both_parts(sizes, random):
    y = [label for label, size in enumerate(sizes) for _ in range(size)]
    random.shuffle(y)
    y = np.array(y)
    train, test = stratified_split(y)
    assert sorted([*train, *test]) == list(range(len(y)))
    for label, size in enumerate(sizes):
        n_test = (y[test] == label).sum()
        assert 1 <= n_test <= size - 1
        assert abs(n_test - 0.3 * size) <= 1


def test_instances_keep_their_labels():
    y = np.array(["a", "b"] * 5)
    source = split_source(Source("toy", "row", [(np.arange(10.0)[:, None], y)], ("t",)))
    assert source.names == ("t",)
    for X, labels in source.parts:
        assert (labels == y[X[:, 0].astype(int)]).all()


def test_a_single_instance_cannot_be_split():
    with pytest.raises(ValueError, match="single instance of class 'b'"):
        stratified_split(np.array(["a", "a", "b"]))
