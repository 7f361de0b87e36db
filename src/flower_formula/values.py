r"""Numbers with a shape: the textbook arithmetic of scalars, vectors and matrices, refusing
whatever does not fit.

A ``Value`` has mathematical axes (``rank`` 0, 1 or 2) and, before them, one axis for each index
that it depends on:
``\alpha_{ij}`` is a scalar with two index axes. Operations line the index axes up by identity;
sizes on mathematical axes must be equal, nothing is stretched in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from flower_formula.errors import ShapeError, Span

INDEX_AXIS_LIMIT = 2_000_000  # entries of one intermediate result


class Misfit(Exception):
    """Sizes that do not fit; the evaluator adds the place."""


class Unclear(Exception):
    """Several readings are possible."""

    def __init__(self, options: tuple[str, ...]) -> None:
        super().__init__(", ".join(options))
        self.options = options


@dataclass(frozen=True, eq=False)
class Value:
    r"""``data`` has ``len(axes)`` index axes, then ``rank`` mathematical ones.

    ``row``: a transposed vector. ``inner``: a number that ``\cdot`` made of two vectors; nobody
    adds such a number to a vector, so that reading of the dot is dropped where that happens.
    """

    data: Tensor
    axes: tuple[int, ...] = ()
    rank: int = 0
    row: bool = False
    inner: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.data.shape[len(self.axes) :])


def scalar(number: float) -> Value:
    """A number."""
    return Value(torch.tensor(number, dtype=torch.float64))


def common_shape(*shapes: Iterable[int]) -> tuple[int, ...]:
    """The shape to which all of these can be repeated.

    ``torch.broadcast_shapes`` says the same, but its first call imports torch._refs: half a second.
    """
    views = (torch.empty(()).expand(tuple(shape)) for shape in shapes)
    return tuple(torch.broadcast_tensors(*views)[0].shape)  # type: ignore[no-untyped-call]


def align(*values: Value) -> tuple[list[Tensor], tuple[int, ...]]:
    """The data of several values with a common set of index axes in front (size 1 where one does
    not depend).
    """
    axes: list[int] = []
    for value in values:
        axes += [axis for axis in value.axes if axis not in axes]
    result = []
    sizes: dict[int, int] = {}
    for value in values:
        for axis, size in zip(value.axes, value.data.shape, strict=False):
            sizes[axis] = size
    total = 1
    for axis in axes:
        total *= sizes[axis]
    if total > INDEX_AXIS_LIMIT:
        raise Misfit(f"too many index combinations ({total})")
    for value in values:
        if value.axes == tuple(axes):
            result.append(value.data)
            continue
        order = [value.axes.index(axis) for axis in axes if axis in value.axes]
        rest = list(range(len(value.axes), value.data.dim()))
        data = value.data.permute(order + rest)
        shape = [sizes[axis] if axis in value.axes else 1 for axis in axes]
        result.append(data.reshape(shape + list(value.shape)))
    return result, tuple(axes)


def expand(value: Value, axes: tuple[int, ...], sizes: dict[int, int]) -> Tensor:
    """The data with exactly these index axes, repeated where the value does not depend on one."""
    marker = Value(torch.zeros([sizes[axis] for axis in axes], dtype=torch.float64), axes, 0)
    (_, data), order = align(marker, value)
    if order != axes:
        raise Misfit("a value depends on an index that is not bound here")
    return data.expand([sizes[axis] for axis in axes] + list(value.shape))


def _elementwise(
    left: Value, right: Value, operation: Callable[[Tensor, Tensor], Tensor], what: str
) -> Value:
    if left.rank and right.rank and left.shape != right.shape:
        raise Misfit(what)
    if left.rank == right.rank == 1 and left.row != right.row:
        raise Misfit(f"{what}: one vector is transposed, the other is not")
    (a, b), axes = align(left, right)
    rank = max(left.rank, right.rank)
    a = a.reshape(a.shape + (1,) * (rank - left.rank)) if left.rank < rank else a
    b = b.reshape(b.shape + (1,) * (rank - right.rank)) if right.rank < rank else b
    inner = rank == 0 and (left.inner or right.inner)
    return Value(operation(a, b), axes, rank, left.row or right.row, inner)


def _broadcast_row(left: Value, right: Value) -> tuple[Value, Value]:
    """A vector beside a matrix whose rows have its length counts for every row (a bias, a gain)."""
    if {left.rank, right.rank} == {1, 2}:
        vector, matrix = (left, right) if left.rank == 1 else (right, left)
        if vector.shape[0] == matrix.shape[1]:
            (data, _), axes = align(vector, matrix)
            data = data.unsqueeze(-2).expand(*data.shape[:-1], matrix.shape[0], data.shape[-1])
            stretched = Value(data, axes, 2)
            return (stretched, right) if left.rank == 1 else (left, stretched)
    return left, right


def add(left: Value, right: Value, sign: int = 1) -> Value:
    """``a + b``: equal shapes, a number with anything, or a vector with each row of a matrix."""
    if (left.inner and right.rank) or (right.inner and left.rank):
        raise Misfit("an inner product added to something that is no number")
    left, right = _broadcast_row(left, right)
    return _elementwise(
        left, right, lambda a, b: a + sign * b if sign == 1 else a - b, "cannot add"
    )


def odot(left: Value, right: Value) -> Value:
    """The elementwise product."""
    left, right = _broadcast_row(left, right)
    return _elementwise(left, right, lambda a, b: a * b, "cannot multiply element by element")


def divide(left: Value, right: Value) -> Value:
    """By a number, or element by element when the shapes are equal."""
    if right.rank and left.rank != right.rank and left.rank:
        raise Misfit("cannot divide by something of this shape")
    if right.rank == 2 and left.rank != 2:
        raise Misfit("cannot divide by a matrix")
    return _elementwise(left, right, lambda a, b: a / b, "cannot divide")


def multiply(left: Value, right: Value) -> Value:
    """Juxtaposition: numbers scale; matrix products; ``u^T v`` inner; ``u v^T`` outer; rows left,
    columns right.
    """
    if left.rank == 0 or right.rank == 0:
        return _elementwise(left, right, lambda a, b: a * b, "cannot multiply")
    if left.rank == right.rank == 1:
        if left.row and not right.row:
            _same(left.shape[0], right.shape[0])
            (a, b), axes = align(left, right)
            return Value((a * b).sum(-1), axes, 0)
        if right.row and not left.row:
            (a, b), axes = align(left, right)
            return Value(a.unsqueeze(-1) * b.unsqueeze(-2), axes, 2)
        raise Misfit("two vectors side by side")
    _same(left.shape[-1], right.shape[0])
    (a, b), axes = align(left, right)
    if left.rank == 1:
        return Value((a.unsqueeze(-2) @ b).squeeze(-2), axes, 1, left.row)
    if right.rank == 1:
        if right.row:
            raise Misfit("a matrix times a transposed vector")
        return Value((a @ b.unsqueeze(-1)).squeeze(-1), axes, 1)
    return Value(a @ b, axes, 2)


def _same(left: int, right: int) -> None:
    if left != right:
        raise Misfit(f"cannot multiply: {left} is not {right}")


def product_readings(operator: str, left: Value, right: Value) -> dict[str, Callable[[], Value]]:
    r"""The meanings that ``\cdot``, ``\times`` or ``\otimes`` can have between these two, by
    name.
    """
    if left.rank == 0 or right.rank == 0:
        return {"scaling": lambda: multiply(left, right)}
    readings: dict[str, Callable[[], Value]] = {}
    if operator in ("cdot", "times"):
        if left.rank == right.rank == 1 and left.row == right.row and operator == "cdot":
            readings["inner product"] = lambda: replace(
                multiply(replace(left, row=True), replace(right, row=False)), inner=True
            )
        else:
            readings["matrix product"] = lambda: multiply(left, right)
    elif left.rank == right.rank == 1:
        readings["outer product"] = lambda: multiply(
            replace(left, row=False), replace(right, row=True)
        )
    readings["elementwise"] = lambda: odot(left, right)
    return readings


def power(base: Value, exponent: Value) -> Value:
    """Numbers, or each element of a vector; a matrix has no power here."""
    if exponent.rank:
        raise Misfit("an exponent that is no number")
    if base.rank == 2:
        raise Misfit(
            "the power of a matrix is not defined here: write a product, or index the elements"
        )
    return _elementwise(base, exponent, lambda a, b: a**b, "cannot raise to this power")


def transpose(value: Value) -> Value:
    """A matrix with its axes exchanged; a vector as a row, or back as a column."""
    if value.rank == 0:
        raise Misfit("a number cannot be transposed")
    if value.rank == 1:
        return replace(value, row=not value.row)
    return replace(value, data=value.data.transpose(-1, -2))


def apply(value: Value, function: Callable[[Tensor], Tensor]) -> Value:
    """A function of numbers on every element."""
    return replace(value, data=function(value.data))


def where(condition: Value, yes: Value, no: Value) -> Value:
    """``yes`` where the condition holds, ``no`` elsewhere; shapes must be equal."""
    if yes.rank != no.rank and yes.rank and no.rank:
        raise Misfit("the cases have different shapes")
    rank = max(yes.rank, no.rank)
    (c, a, b), axes = align(condition, yes, no)
    c = c.reshape(c.shape + (1,) * rank)
    a = a.reshape(a.shape + (1,) * (rank - yes.rank))
    b = b.reshape(b.shape + (1,) * (rank - no.rank))
    return Value(torch.where(c.bool(), a, b), axes, rank)


def both(left: Value, right: Value) -> Value:
    """Two conditions that must both hold."""
    (a, b), axes = align(left, right)
    return Value(a & b, axes, 0)


def softmax(value: Value, dim: int | None) -> Value:
    """``exp(x) / sum exp(x)`` over one dimension of the data, by default the last."""
    dim = value.data.dim() - 1 if dim is None else dim
    exponentials = value.data.exp()
    return replace(value, data=exponentials / exponentials.sum(dim, keepdim=True))


def describe(shape: tuple[int, ...], names: dict[int, str]) -> str:
    """``[n=3, d_k=4]``."""
    if not shape:
        return "a number"
    return "[" + ", ".join(f"{names[s]}={s}" if s in names else str(s) for s in shape) + "]"


def shape_error(
    message: str, span: Span, shapes: list[tuple[str, tuple[int, ...]]], names: dict[int, str]
) -> ShapeError:
    """A shape error that names both sub-expressions and their shapes."""
    detail = "\n".join(f"  {what}: {describe(shape, names)}" for what, shape in shapes)
    return ShapeError(
        message, span, "check transposes, the order of the factors and the declared shapes", detail
    )
