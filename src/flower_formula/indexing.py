"""Elements by index: taking them out of a tensor, and putting a definition's parts in their
places.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from flower_formula import ast, values
from flower_formula.errors import FormulaError, RangeError, Span
from flower_formula.values import Misfit, Value

RANGE_LIMIT = 100_000  # values of one index


@dataclass(frozen=True)
class IndexRange:
    """The values that an index takes, and the axis on which they lie."""

    lower: int
    upper: int
    axis: int

    @property
    def size(self) -> int:
        return max(0, self.upper - self.lower + 1)


@dataclass
class Family:
    """A value with the number that the first entry on each of its axes carries.

    ``given`` counts the leading entries that only start a recurrence.
    """

    value: Value
    first: tuple[int, ...]
    given: int = 0

    def members(self) -> Tensor:
        """The entries that the definition makes."""
        return self.value.data[self.given :] if self.given else self.value.data


def gather(
    node: ast.Indexed, base: Value, first: tuple[int, ...], places: list[Value], guards: list[Value]
) -> Value:
    """``base[places]``: the places may depend on indices; each is counted from ``first`` (1 where
    not given).

    Raises:
        RangeError: for an index outside the axis, unless a condition in ``guards`` excludes that
            case.
    """
    if any(place.rank for place in places):
        raise FormulaError("an index that is no number", node.span)
    usable = [guard for guard in guards if guard.data.numel() > 1 or not bool(guard.data)]
    (data, *spots), axes = values.align(base, *places)
    guard = _guard(axes, usable)
    shapes = [spot.shape for spot in spots] + [data.shape[: len(axes)]]
    grid_shape = values.common_shape(*shapes)
    grids: list[Tensor] = []
    for dim, size in enumerate(grid_shape):
        count = torch.arange(size) if data.shape[dim] > 1 else torch.zeros(size, dtype=torch.long)
        grids.append(count.reshape([-1 if k == dim else 1 for k in range(len(axes))]))
    for place, spot in enumerate(spots):
        lower = first[place] if place < len(first) else 1
        span, size = node.indices[place].span, base.shape[place]
        counted = whole(spot, span, guard) - lower
        outside = (counted < 0) | (counted >= size)
        if guard is not None:
            outside = outside & guard
        if bool(outside.any()):
            wrong = int(counted.broadcast_to(outside.shape)[outside][0]) + lower
            raise RangeError(
                f"the index {wrong} is outside {lower}..{lower + size - 1}",
                span,
                "check the range; if this axis counts from 0, declare it as `x [0..n-1]`",
            )
        grids.append(counted.clamp(0, size - 1))
    return Value(data[tuple(grids)], axes, base.rank - len(places))


def _guard(axes: tuple[int, ...], guards: list[Value]) -> Tensor | None:
    """Where the conditions hold, on these axes; a condition on other axes holds where it holds for
    any of them.
    """
    result: Tensor | None = None
    for guard in guards:
        data = guard.data
        for dim in reversed(range(len(guard.axes))):
            if guard.axes[dim] not in axes:
                data = data.any(dim)
        kept = [axis for axis in guard.axes if axis in axes]
        order = [kept.index(axis) for axis in axes if axis in kept]
        data = data.permute(order)
        sizes = iter(data.shape)
        data = data.reshape([next(sizes) if axis in kept else 1 for axis in axes])
        result = data if result is None else result & data
    return result


def scatter(
    equations: list[ast.Equation], filled: list[tuple[list[Value], Value, list[IndexRange]]]
) -> Family:
    """Puts the parts of a definition (``p_{i,2j} = ...``, ``p_{i,2j+1} = ...``) in their places.

    Raises:
        RangeError: if the parts leave an entry undefined or define one twice.
        FormulaError: if they have different shapes.
    """
    span = equations[0].left
    count = len(equations[0].indices)
    outer: dict[int, int] = {}
    for _, value, ranges in filled:
        own = {entry.axis for entry in ranges}
        outer |= {
            axis: size
            for axis, size in zip(value.axes, value.data.shape, strict=False)
            if axis not in own
        }
    flat: list[tuple[list[Tensor], Tensor]] = []
    for equation, (places, value, ranges) in zip(equations, filled, strict=True):
        if len(equation.indices) != count:
            raise FormulaError("the same name with another number of indices", equation.left)
        axes = tuple(entry.axis for entry in ranges)
        sizes = {entry.axis: entry.size for entry in ranges} | outer
        if any(entry.size == 0 for entry in ranges):
            continue
        try:
            data = values.expand(value, (*axes, *outer), sizes)
            spots = [
                whole(values.expand(place, axes, sizes).reshape(-1), index.span)
                for place, index in zip(places, equation.indices, strict=True)
            ]
        except Misfit as error:
            raise FormulaError(str(error), equation.span) from error
        data = data.reshape(-1, *outer.values(), *value.shape)
        flat.append((spots, data))
    if not flat:
        raise RangeError("the range of the index is empty", span)
    if len({data.shape[1:] for _, data in flat}) > 1:
        raise FormulaError("the parts of this definition have different shapes", span)
    first = tuple(min(int(spots[k].min()) for spots, _ in flat) for k in range(count))
    last = tuple(max(int(spots[k].max()) for spots, _ in flat) for k in range(count))
    shape = [b - a + 1 for a, b in zip(first, last, strict=True)]
    result = torch.zeros([*shape, *flat[0][1].shape[1:]], dtype=torch.float64)
    hits = torch.zeros(shape, dtype=torch.int64)
    for spots, data in flat:
        where = tuple(spot - a for spot, a in zip(spots, first, strict=True))
        result[where] = data.to(torch.float64)
        hits.index_put_(where, torch.ones((), dtype=torch.int64), accumulate=True)
    if int(hits.min()) == 0 or int(hits.max()) > 1:
        what = "defines an entry twice" if int(hits.max()) > 1 else "leaves entries undefined"
        raise RangeError(
            f"this definition {what}", span, "check the indices on the left and their ranges"
        )
    result = result.movedim(tuple(range(count, count + len(outer))), tuple(range(len(outer))))
    return Family(Value(result, tuple(outer), result.dim() - len(outer)), first)


def whole(data: Tensor, span: Span, guard: Tensor | None = None) -> Tensor:
    """Index values as integers.

    Raises:
        RangeError: for a fraction or an infinite value, unless the guard excludes it.
    """
    rounded = data.round()
    wrong = ~((data - rounded).abs() <= 1e-9)
    if guard is not None:
        wrong = wrong & guard
    if bool(wrong.any()):
        raise RangeError("an index that is no whole number", span, "check the index arithmetic")
    return torch.nan_to_num(rounded, 0.0, 0.0, 0.0).to(torch.int64)
