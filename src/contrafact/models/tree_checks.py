"""Trees from files: their nodes lead to nodes and columns that exist.

scikit-learn's compiled code follows the numbers in a tree without looking: a number that leads
outside would read memory that is not the tree's, or end the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.ensemble._forest import BaseForest
from sklearn.ensemble._gb import BaseGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.tree import BaseDecisionTree
from sklearn.tree._tree import Tree

from ..data.cleaning import Array


def check_trees(model: Any) -> None:
    """Check all trees inside of a model.

    Parameters
    ----------
    model : object
        An object that was read from a file, and not asked anything yet.

    Raises
    ------
    ValueError
        If a tree leads outside of itself or of the columns, or stands where nothing checks it.
    """
    known: set[int] = set()
    loose: list[Any] = []
    for part in _parts(model):
        if isinstance(part, Tree | TreePredictor):
            loose.append(part)
        elif isinstance(part, BaseDecisionTree) and "tree_" in vars(part):
            _check_tree(part.tree_, part.n_features_in_)
            known.add(id(part.tree_))
        elif isinstance(part, BaseForest | BaseGradientBoosting) and "estimators_" in vars(part):
            # These hand rows to the trees of their members without a check.
            for member in np.ravel(np.array(part.estimators_, dtype=object)):
                _check_tree(member.tree_, part.n_features_in_)
        elif isinstance(part, BaseHistGradientBoosting) and "_predictors" in vars(part):
            for predictor in _flat(part._predictors):
                _check_predictor(predictor, part)
                known.add(id(predictor))
    if any(id(tree) not in known for tree in loose):
        raise ValueError("it holds a tree outside of the models that have trees")


def _parts(model: Any) -> Iterator[Any]:
    """Give an object and all that it holds."""
    seen: dict[int, Any] = {}
    waiting = [model]
    while waiting:
        part = waiting.pop()
        if id(part) in seen or isinstance(part, str | bytes | int | float | None):
            continue
        seen[id(part)] = part
        yield part
        if isinstance(part, dict):
            waiting.extend(part.values())
        elif isinstance(part, list | tuple | set | frozenset):
            waiting.extend(part)
        elif isinstance(part, np.ndarray):
            waiting.extend(part.ravel() if part.dtype.hasobject else ())
        waiting.extend(getattr(part, "__dict__", {}).values())


def _flat(nested: Any) -> Iterator[Any]:
    """Give the members of a list of lists."""
    for members in nested:
        yield from members


def _check_tree(tree: Any, n_features: int) -> None:
    """Check a tree of scikit-learn that is asked about so many columns."""
    if not isinstance(tree, Tree) or tree.n_features != n_features:
        raise ValueError("a tree is not made for the columns of its model")
    left, right = tree.children_left, tree.children_right
    inner = left != -1
    _check_children(left[inner], np.flatnonzero(inner), tree.node_count)
    _check_children(right[inner], np.flatnonzero(inner), tree.node_count)
    _check_columns(tree.feature[inner], n_features)
    if tree.node_count < 1 or len(tree.value) != tree.node_count:
        raise ValueError("a tree has no value for its nodes")


def _check_predictor(predictor: Any, model: Any) -> None:
    """Check a tree of a histogram gradient boosting model."""
    nodes = getattr(predictor, "nodes", None)
    if not isinstance(predictor, TreePredictor) or not isinstance(nodes, np.ndarray):
        raise ValueError("a tree is none")
    inner = nodes["is_leaf"] == 0
    at, branches = np.flatnonzero(inner), nodes[inner]
    if len(nodes) == 0:
        raise ValueError("a tree has no nodes")
    _check_children(branches["left"].astype(np.int64), at, len(nodes))
    _check_children(branches["right"].astype(np.int64), at, len(nodes))
    _check_columns(branches["feature_idx"], model.n_features_in_)
    by_category = branches[branches["is_categorical"] != 0]
    if len(by_category):
        is_category = model._bin_mapper.is_categorical_
        sets = predictor.raw_left_cat_bitsets
        if (
            len(is_category) != model.n_features_in_
            or not np.take(is_category, by_category["feature_idx"]).all()
            or by_category["bitset_idx"].max() >= len(sets)
            or sets.shape[1:] != (8,)
        ):
            raise ValueError("a tree asks for a category that is none")


def _check_children(children: Array, parents: Array, n_nodes: int) -> None:
    """Check that nodes lead to later ones, so that every way ends."""
    if bool(((children <= parents) | (children >= n_nodes)).any()):
        raise ValueError("a node of a tree leads to no node")


def _check_columns(columns: Array, n_features: int) -> None:
    """Check that nodes ask for columns that exist."""
    if bool(((columns < 0) | (columns >= n_features)).any()):
        raise ValueError("a node of a tree asks for no column")
