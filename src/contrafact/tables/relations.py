"""Relations between columns, such as "age >= years_employed"."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..validation import brief

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.GtE: operator.ge,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.Lt: operator.lt,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
ACCEPTED = (
    "a comparison of numeric columns and numbers with +, -, * and /, such as "
    "'age >= years_employed + 16'; names with spaces in backticks"
)


@dataclass(frozen=True)
class Relation:
    """Compare the values of a row, as every counterfactual has to keep them.

    Nothing of the text is run: it is read as a comparison of sums and products.

    Parameters
    ----------
    text : str
        The comparison, such as "age >= years_employed".
    columns : tuple of str
        The columns it speaks of.

    Examples
    --------
    >>> relation = Relation.parse("age >= years_employed + 16", ["age", "years_employed"])
    >>> relation.columns
    ('age', 'years_employed')
    """

    text: str
    columns: tuple[str, ...]

    @classmethod
    def parse(cls, text: Any, names: Sequence[str]) -> Relation:
        """Read a relation and check its columns.

        Parameters
        ----------
        text : str
            The comparison.
        names : sequence of str
            The columns there are.

        Returns
        -------
        Relation
            Ready to be evaluated.

        Raises
        ------
        ValueError
            If the text is not such a comparison, or names a column that is not there.
        """
        if not isinstance(text, str):
            raise ValueError(f"constraints.relations must be texts, got {brief(text)}.")
        tree, by_identifier = _parse(text)
        try:
            _evaluate(tree.body, text, {}, by_identifier, probe=True)
        except (OverflowError, RecursionError) as error:
            raise _refusal(text) from error
        used = []
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                name = by_identifier.get(node.id, node.id)
                if name not in names:
                    raise ValueError(
                        f"constraints.relations: {text!r} names {name!r}, which is not a column."
                    )
                used.append(name)
        if not used:
            raise _refusal(text)
        return cls(text, tuple(dict.fromkeys(used)))

    def holds(self, values: Mapping[str, Tensor]) -> Tensor:
        """Return which rows keep the relation; rows with a missing value do.

        Parameters
        ----------
        values : mapping of str to Tensor of shape (n,)
            The columns, NaN where missing.

        Returns
        -------
        Tensor of bool, shape (n,)
            True where it holds.
        """
        tree, by_identifier = _parse(self.text)
        kept: Tensor = _evaluate(tree.body, self.text, values, by_identifier)
        unknown = torch.stack([values[name].isnan() for name in self.columns]).any(0)
        return kept | unknown


def _parse(text: str) -> tuple[ast.Expression, dict[str, str]]:
    """Parse a text; names in backticks become identifiers that stand for them."""
    by_identifier: dict[str, str] = {}

    def stand_in(match: re.Match[str]) -> str:
        identifier = f"_column_{len(by_identifier)}"
        by_identifier[identifier] = match[1]
        return identifier

    try:
        tree = ast.parse(re.sub(r"`([^`]+)`", stand_in, text).strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _refusal(text) from error
    return tree, by_identifier


def _evaluate(
    node: ast.AST,
    text: str,
    values: Mapping[str, Any],
    by_identifier: Mapping[str, str],
    *,
    probe: bool = False,
    top: bool = True,
) -> Any:
    """Compute a part of a comparison; with `probe` only its form is checked."""

    def inner(child: ast.AST) -> Any:
        return _evaluate(child, text, values, by_identifier, probe=probe, top=False)

    if top:
        if not isinstance(node, ast.Compare):
            raise _refusal(text)
        sides = [inner(side) for side in (node.left, *node.comparators)]
        kept: Any = True
        for compare, left, right in zip(node.ops, sides, sides[1:], strict=False):
            if type(compare) not in _COMPARISONS:
                raise _refusal(text)
            kept = kept & _COMPARISONS[type(compare)](left, right)
        return kept
    if isinstance(node, ast.Name):
        return 1.0 if probe else values[by_identifier.get(node.id, node.id)]
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return float(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -inner(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        left, right = inner(node.left), inner(node.right)
        if probe:
            return 1.0
        return _OPERATIONS[type(node.op)](left, right)
    raise _refusal(text)


def _refusal(text: str) -> ValueError:
    """Make the error of a text that is no relation."""
    return ValueError(
        f"constraints.relations: {brief(text)} is not accepted. Accepted: {ACCEPTED}."
    )
