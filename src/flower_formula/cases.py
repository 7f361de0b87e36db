"""Comparisons, conditions and the values that depend on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from flower_formula import ast, values
from flower_formula.errors import FormulaError
from flower_formula.values import Misfit, Value, both

if TYPE_CHECKING:
    from flower_formula.evaluator import Evaluator

_COMPARE = {
    "=": torch.eq,
    "!=": torch.ne,
    "<": torch.lt,
    "<=": torch.le,
    ">": torch.gt,
    ">=": torch.ge,
}


def compare(evaluator: Evaluator, node: ast.Compare) -> Value:
    """Whether a chain of comparisons holds."""
    operands = [evaluator.value(operand) for operand in node.operands]
    result: Value | None = None
    for operator, left, right in zip(node.operators, operands, operands[1:], strict=False):
        if left.rank or right.rank:
            raise FormulaError("a comparison of something that is no number", node.span)
        (a, b), axes = values.align(left, right)
        link = Value(_COMPARE[operator](a, b), axes, 0)
        result = link if result is None else both(result, link)
    assert result is not None
    return result


def both_hold(evaluator: Evaluator, node: ast.Both) -> Value:
    """Whether two conditions hold."""
    return both(evaluator.value(node.left), evaluator.value(node.right))


def cases(evaluator: Evaluator, node: ast.Cases) -> Value:
    """The first case whose condition holds; indices may leave their axis where a condition
    excludes it.
    """
    taken: Value | None = None
    pairs: list[tuple[Value, Value]] = []
    for branch, condition in node.branches:
        holds = evaluator.value(condition) if condition is not None else Value(torch.tensor(True))
        mine = holds if taken is None else both(holds, _not(taken))
        taken = holds if taken is None else _or(taken, holds)
        evaluator.guards.append(mine)
        pairs.append((mine, evaluator.value(branch)))
        evaluator.guards.pop()
    assert taken is not None
    if not bool(taken.data.all()):
        raise FormulaError(
            "no case applies for some values of the indices", node.span, "add `otherwise`"
        )
    result = pairs[-1][1]
    for mine, value in reversed(pairs[:-1]):
        try:
            result = values.where(mine, value, result)
        except Misfit as error:
            raise evaluator.misfit(str(error), node, []) from error
    (data, _), axes = values.align(result, taken)
    return Value(data, axes, result.rank)


def _or(left: Value, right: Value) -> Value:
    (a, b), axes = values.align(left, right)
    return Value(a | b, axes, 0)


def _not(value: Value) -> Value:
    return values.apply(value, torch.logical_not)
