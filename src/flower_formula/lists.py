"""Lists and matrices: ``Concat``, ``max`` and ``min`` of several arguments, dots between them,
stacked rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from flower_formula import ast, values
from flower_formula.errors import RangeError, ShapeError
from flower_formula.indexing import RANGE_LIMIT, IndexRange
from flower_formula.values import Misfit, Value

if TYPE_CHECKING:
    from flower_formula.evaluator import Evaluator


def list_function(evaluator: Evaluator, node: ast.Call) -> Value:
    """``Concat``, ``max`` and ``min`` of a list that may hold dots."""
    if node.name == "concat":
        return _concat(evaluator, node)
    reducer = torch.maximum if node.name == "max" else torch.minimum
    result: Value | None = None
    for argument in node.arguments:
        if isinstance(argument, ast.Dots):
            value, axis = _members(evaluator, argument)
            dim = value.axes.index(axis)
            data = value.data.amax(dim) if node.name == "max" else value.data.amin(dim)
            value = Value(data, tuple(a for a in value.axes if a != axis), value.rank)
        else:
            value = evaluator.value(argument)
        if len(node.arguments) == 1 and value.rank == 1:
            data = value.data.amax(-1) if node.name == "max" else value.data.amin(-1)
            return Value(data, value.axes, 0)
        result = value if result is None else _extreme(node, reducer, result, value)
    assert result is not None
    return result


def _extreme(
    node: ast.Call, reducer: Callable[[Tensor, Tensor], Tensor], left: Value, right: Value
) -> Value:
    if left.rank and right.rank and left.shape != right.shape:
        raise ShapeError(f"{node.name} of different shapes", node.span)
    larger = max(left.rank, right.rank)
    (a, b), axes = values.align(left, right)
    a = a.reshape(a.shape + (1,) * (larger - left.rank))
    b = b.reshape(b.shape + (1,) * (larger - right.rank))
    return Value(reducer(a, b), axes, larger)


def _members(evaluator: Evaluator, node: ast.Dots) -> tuple[Value, int]:
    r"""``a_1, \ldots, a_n`` as one value with an axis for the members."""
    lower, upper = evaluator.integer(node.lower), evaluator.integer(node.upper)
    if upper < lower or upper - lower > RANGE_LIMIT:
        raise RangeError(
            f"a list from {lower} to {upper}", node.span, "check its first and last member"
        )
    entry = IndexRange(lower, upper, next(evaluator.axis_ids))
    with evaluator.index_values({node.variable: entry}):
        value = evaluator.value(node.body)
    data = values.expand(
        value,
        (entry.axis, *(a for a in value.axes if a != entry.axis)),
        {entry.axis: entry.size} | dict(zip(value.axes, value.data.shape, strict=False)),
    )
    return Value(
        data, (entry.axis, *(a for a in value.axes if a != entry.axis)), value.rank
    ), entry.axis


def _concat(evaluator: Evaluator, node: ast.Call) -> Value:
    """Side by side on the last axis."""
    pieces: list[Value] = []
    for argument in node.arguments:
        if isinstance(argument, ast.Dots):
            value, axis = _members(evaluator, argument)
            if value.rank:
                data = value.data.movedim(value.axes.index(axis), -2)  # (..., member, last)
                pieces.append(
                    Value(data.flatten(-2), tuple(a for a in value.axes if a != axis), value.rank)
                )
                continue
        else:
            value = evaluator.value(argument)
        if value.rank == 0:
            raise ShapeError("Concat of numbers", node.span, "it takes vectors or matrices")
        pieces.append(value)
    if len({(piece.rank, piece.shape[:-1]) for piece in pieces}) > 1:
        shown = ", ".join(evaluator.show(piece) for piece in pieces)
        raise ShapeError(f"Concat of shapes that do not fit: {shown}", node.span)
    aligned, axes = values.align(*pieces)
    leading = values.common_shape(*(data.shape[:-1] for data in aligned))
    joined = torch.cat([data.expand(*leading, data.shape[-1]) for data in aligned], -1)
    return Value(joined, axes, pieces[0].rank)


def _cells(evaluator: Evaluator, entries: tuple[ast.Node, ...]) -> list[list[Value]]:
    """One row of a matrix, or for dots one row for each member."""
    if len(entries) == 1 and isinstance(entries[0], ast.Dots):
        value, axis = _members(evaluator, entries[0])
        dim = value.axes.index(axis)
        rest = tuple(a for a in value.axes if a != axis)
        return [[Value(data, rest, value.rank)] for data in value.data.unbind(dim)]
    return [[evaluator.value(cell) for cell in entries]]


def matrix(evaluator: Evaluator, node: ast.Matrix) -> Value:
    """Numbers in rows and columns; ``[a; b]`` of vectors stacks them or sets them end to end,
    whichever fits.
    """
    if len({len(row) for row in node.rows}) > 1:
        raise ShapeError("the rows of this matrix have different lengths", node.span)
    cells = [row for entries in node.rows for row in _cells(evaluator, entries)]
    flat = [cell for row in cells for cell in row]
    if all(cell.rank == 0 for cell in flat):
        aligned, axes = values.align(*flat)
        leading = values.common_shape(*(data.shape for data in aligned))
        data = torch.stack([entry.expand(leading) for entry in aligned], -1)
        if len(cells) == 1 or len(cells[0]) == 1:
            return Value(data, axes, 1)
        return Value(data.reshape(*data.shape[:-1], len(cells), len(cells[0])), axes, 2)
    if all(cell.rank == 1 for cell in flat):
        aligned, axes = values.align(*flat)
        leading = values.common_shape(*(data.shape[:-1] for data in aligned))
        spread = [data.expand(*leading, data.shape[-1]) for data in aligned]
        options = {"end to end": Value(torch.cat(spread, -1), axes, 1)}
        if len(cells[0]) == 1 and len({data.shape[-1] for data in spread}) == 1:
            options["stacked as rows"] = Value(torch.stack(spread, -2), axes, 2)
        try:
            return evaluator.choose(node, options)
        except Misfit as error:
            raise ShapeError(str(error), node.span) from error
    raise ShapeError("a matrix of such parts is not defined here", node.span)
