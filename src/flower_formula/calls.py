"""Functions, sums over an index, lists and matrices: the parts of a formula that bind names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from flower_formula import ast, lists, ranges, reach, values
from flower_formula.environment import Environment
from flower_formula.errors import DeclarationError, FormulaError, RangeError, ShapeError, Span
from flower_formula.indexing import RANGE_LIMIT, Family, IndexRange
from flower_formula.names import spelled
from flower_formula.target import Definition
from flower_formula.values import Value, both, scalar

if TYPE_CHECKING:
    from flower_formula.evaluator import Evaluator


ELEMENTWISE: dict[str, Callable[[Tensor], Tensor]] = {
    "exp": torch.exp,
    "log": torch.log,
    "sin": torch.sin,
    "cos": torch.cos,
    "tan": torch.tan,
    "tanh": torch.tanh,
    "sinh": torch.sinh,
    "cosh": torch.cosh,
    "sigmoid": lambda x: 1 / (1 + torch.exp(-x)),
    "erf": torch.erf,
    "relu": lambda x: torch.where(x > 0, x, torch.zeros_like(x)),
    "sign": torch.sign,
}


def call(evaluator: Evaluator, node: ast.Call) -> Value:
    """A function applied: one that a formula defines, or one that mathematics knows."""
    own = [
        e
        for e in evaluator.env.formula.equations
        if e.name == node.name and e.parameters is not None
    ]
    if own or node.name in evaluator.library:
        return _defined(evaluator, node, own)
    if node.name in ("concat", "max", "min"):
        return lists.list_function(evaluator, node)
    reach.require_numbers(evaluator, node)
    arguments = [evaluator.value(argument) for argument in node.arguments]
    if node.name == "mod":
        _count(node, 2)
        (a, b), axes = values.align(*arguments)
        return Value(torch.remainder(a, b), axes, 0)
    _count(node, 1)
    argument = arguments[0]
    if node.name == "softmax":
        return _softmax(evaluator, node, argument)
    if node.name in ("mean", "variance"):
        return _moment(evaluator, node, argument)
    if node.over is not None:
        raise FormulaError(f"{node.name} has no index", node.span)
    return values.apply(argument, ELEMENTWISE[node.name])


def _count(node: ast.Call, number: int) -> None:
    if len(node.arguments) != number:
        raise FormulaError(
            f"{node.name} takes {number} argument{'s' * (number > 1)}, not {len(node.arguments)}",
            node.span,
        )


def _axis_of(evaluator: Evaluator, node: ast.Call, argument: Value) -> int | None:
    """The dimension that a subscript names: an index, or the size of a mathematical axis."""
    if node.over is None:
        return None
    bound = evaluator.env.indices.get(node.over)
    if bound is not None and bound.axes and bound.axes[0] in argument.axes:
        return argument.axes.index(bound.axes[0])
    if bound is None and node.over in evaluator.env.sizes:
        places = [k for k, n in enumerate(argument.shape) if n == evaluator.env.sizes[node.over]]
        if len(places) == 1 or (places and max(argument.shape) == 1):
            return len(argument.axes) + places[-1]
        if places:  # sizes of 1 beside each other: the last axis, as without a subscript
            return len(argument.axes) + places[-1]
    raise FormulaError(f"the argument has no axis {spelled(node.over)}", node.span)


def _moment(evaluator: Evaluator, node: ast.Call, argument: Value) -> Value:
    """Mean and (biased) variance over a vector, an index, or a named axis (repeated along it)."""
    dim = _axis_of(evaluator, node, argument)
    if dim is None:
        if argument.rank != 1:
            raise FormulaError(
                f"{node.name} of something that is no vector: over which axis?",
                node.span,
                r"write \underset{d}{...} with the size of the axis",
            )
        dim = argument.data.dim() - 1
    mean = argument.data.mean(dim, keepdim=True)
    data = mean if node.name == "mean" else (argument.data - mean).square().mean(dim, keepdim=True)
    if dim < len(argument.axes):
        axes = tuple(axis for k, axis in enumerate(argument.axes) if k != dim)
        return Value(data.squeeze(dim), axes, argument.rank)
    if argument.rank == 1:
        return Value(data.squeeze(dim), argument.axes, 0)
    return Value(data.expand(argument.data.shape), argument.axes, argument.rank)


def _softmax(evaluator: Evaluator, node: ast.Call, argument: Value) -> Value:
    dim = _axis_of(evaluator, node, argument)
    if dim is not None:
        return values.softmax(argument, dim)
    if argument.rank == 0:
        raise FormulaError(
            "softmax of a number: it is not clear over which index it runs",
            node.span,
            "write softmax_j(e_{ij}), or softmax(e)_j on a vector",
        )
    return values.softmax(argument, None)


# -- functions that formulas define ------------------------------------------------------------


def _defined(evaluator: Evaluator, node: ast.Call, own: list[ast.Equation]) -> Value:
    """Computes the other formula with its parameters bound; its sizes follow from the shapes of
    the arguments.
    """
    outer = evaluator.env
    definition = (
        Definition(outer.formula, outer.declarations) if own else evaluator.library[node.name]
    )
    equations = own or [e for e in definition.formula.equations if e.name == node.name]
    parameters = equations[0].parameters or ()
    if len(parameters) != len(node.arguments):
        raise FormulaError(
            f"{node.name} takes {len(parameters)} arguments "
            f"({', '.join(map(spelled, parameters))}), "
            f"not {len(node.arguments)}",
            node.span,
        )
    bound = {
        name: evaluator.value(argument)
        for name, argument in zip(parameters, node.arguments, strict=True)
    }
    sizes = _sizes(evaluator, node, definition, bound)
    tensors = bound | _other_symbols(evaluator, node, definition, bound)
    inner = Environment(definition.formula, definition.declarations, tensors, sizes)
    return _inside(evaluator, node, node.name, definition, inner, equations).value


def _inside(
    evaluator: Evaluator,
    node: ast.Node,
    name: str,
    definition: Definition,
    inner: Environment,
    equations: list[ast.Equation],
) -> Family:
    """Computes equations of another formula in an environment of its own."""
    outer = evaluator.env
    if name in evaluator.calls:
        circle = " → ".join([*evaluator.calls, name])
        raise FormulaError(f"formulas that use each other in a circle: {circle}", node.span)
    evaluator.env, evaluator.calls = inner, [*evaluator.calls, name]
    try:
        return evaluator.part([(equation, equation.sides[0]) for equation in equations])
    except FormulaError as error:
        if definition.formula is outer.formula:
            raise
        place = f"in the formula of {spelled(name)}"
        place += f" (block {definition.slug})" if definition.slug else ""
        kind = RangeError if isinstance(error, DeclarationError) else type(error)
        raise kind(f"{place}: {error.message}", node.span, error.hint, error.detail) from error
    finally:
        evaluator.env, evaluator.calls = outer, evaluator.calls[:-1]


def imported(evaluator: Evaluator, node: ast.Symbol) -> Family:
    """A tensor that another block defines; what that block declares must be declared here under
    the same names.
    """
    definition = evaluator.library[node.name]
    equations = [e for e in definition.formula.equations if e.name == node.name]
    outer = evaluator.env
    tensors = _other_symbols(evaluator, node, definition, {})
    sizes = {name: size for name, size in outer.sizes.items() if name in definition.declarations}
    inner = Environment(definition.formula, definition.declarations, tensors, sizes)
    return _inside(evaluator, node, node.name, definition, inner, equations)


def _sizes(
    evaluator: Evaluator, node: ast.Call, definition: Definition, bound: dict[str, Value]
) -> dict[str, int]:
    """The callee's sizes, read off the shapes of the arguments."""
    sizes: dict[str, int] = {}
    later: list[tuple[ast.Node, int, str]] = []
    for name, value in bound.items():
        axes = definition.declarations[name].axes
        if len(axes) != value.rank:
            raise ShapeError(
                f"{node.name} expects {spelled(name)} with {len(axes)} axes, "
                f"not {evaluator.show(value)}",
                node.span,
                "check the arguments",
            )
        for axis, size in zip(axes, value.shape, strict=True):
            if isinstance(axis.size, ast.Symbol):
                known = sizes.setdefault(axis.size.name, size)
                if known != size:
                    raise ShapeError(
                        f"{node.name} needs {spelled(axis.size.name)} to be one size; "
                        f"the arguments give {known} and {size}",
                        node.span,
                        "check the arguments",
                    )
            else:
                later.append((axis.size, size, name))
    for name, declared in definition.declarations.items():
        if declared.kind == "size" and name not in sizes and name in evaluator.env.sizes:
            sizes[name] = evaluator.env.sizes[name]
    for expression, size, name in later:
        if (expected := arithmetic(expression, sizes)) not in (None, size):
            raise ShapeError(
                f"{node.name} expects an axis of {spelled(name)} to be {expected}, not {size}",
                node.span,
                "check the arguments",
            )
    return sizes


def arithmetic(node: ast.Node, sizes: dict[str, int]) -> int | None:
    """The value of size arithmetic; None while a size in it is unknown or it is no whole number."""
    if isinstance(node, ast.Number):
        return int(node.value) if node.value.is_integer() else None
    if isinstance(node, ast.Symbol):
        return sizes.get(node.name)
    if isinstance(node, ast.Binary):
        left, right = arithmetic(node.left, sizes), arithmetic(node.right, sizes)
        if left is None or right is None:
            return None
        if node.operator == "/":
            return left // right if right and left % right == 0 else None
        return {"+": left + right, "-": left - right}.get(node.operator, left * right)
    if isinstance(node, ast.Power):
        base, exponent = arithmetic(node.base, sizes), arithmetic(node.exponent, sizes)
        if base is None or exponent is None or not 0 <= exponent <= 16:
            return None
        return int(base**exponent)
    return None


def _other_symbols(
    evaluator: Evaluator,
    node: ast.Call | ast.Symbol,
    definition: Definition,
    bound: dict[str, Value],
) -> dict[str, Value]:
    """What the other formula uses besides its parameters (weights, a mask): the same names here."""
    found: dict[str, Value] = {}
    for name, declared in definition.declarations.items():
        if declared.kind != "tensor" or name in bound or name not in definition.formula.used:
            continue
        if name not in evaluator.env.tensors:
            raise FormulaError(
                f"the formula of {node.name} also uses {spelled(name)}",
                node.span,
                f"declare `{declared.source}` here too",
            )
        found[name] = evaluator.env.tensors[name]
    return found


# -- sums over an index ------------------------------------------------------------------------


def reduce(evaluator: Evaluator, node: ast.Reduce) -> Value:
    """A sum, product, maximum or minimum over an index; limits may depend on other indices."""
    limits = [
        evaluator.value(limit) if limit is not None else None for limit in (node.lower, node.upper)
    ]
    for limit, place in zip(limits, (node.lower, node.upper), strict=True):
        if limit is not None and place is not None and limit.rank:
            raise FormulaError("a limit that is no number", place.span)
    low, high = limits
    if low is None and high is None:
        lower, upper = ranges.index_range(evaluator, node.variable, node.body, _head(node))
    elif high is None:
        raise FormulaError("this sum has no upper limit", _head(node), "write \\sum_{j=1}^{m}")
    else:
        low = low if low is not None else scalar(1)
        start, end = (_head(node) if n is None else n.span for n in (node.lower, node.upper))
        lower, upper = _bound(low, start, min), _bound(high, end, max)
    if upper - lower > RANGE_LIMIT:
        raise RangeError(f"a sum over {upper - lower + 1} terms", _head(node))
    entry = IndexRange(lower, upper, next(evaluator.axis_ids))
    with evaluator.index_values({node.variable: entry}):
        counted = evaluator.env.indices[node.variable]
        condition = evaluator.value(node.condition) if node.condition is not None else None
        for limit, compare in ((low, torch.ge), (high, torch.le)):
            if limit is not None and limit.axes:
                (a, b), axes = values.align(counted, limit)
                inside = Value(compare(a, b), axes, 0)
                condition = inside if condition is None else both(condition, inside)
        if condition is not None:
            evaluator.guards.append(condition)
        body = evaluator.value(node.body)
        if condition is not None:
            evaluator.guards.pop()
            neutral = {"sum": 0.0, "prod": 1.0, "max": -torch.inf, "min": torch.inf}[node.operator]
            body = values.where(condition, body, scalar(neutral))
    others = tuple(axis for axis in body.axes if axis != entry.axis)
    sizes = dict(zip(body.axes, body.data.shape, strict=False)) | {entry.axis: entry.size}
    data = values.expand(body, (entry.axis, *others), sizes)
    if entry.size == 0 and node.operator in ("max", "min"):
        raise RangeError(f"the {node.operator} over an empty range", _head(node))
    reducers: dict[str, Callable[[Tensor], Tensor]] = {
        "sum": lambda x: x.sum(0),
        "prod": lambda x: x.prod(0),
        "max": lambda x: x.amax(0),
        "min": lambda x: x.amin(0),
    }
    return Value(reducers[node.operator](data), others, body.rank, body.row)


def _head(node: ast.Reduce) -> Span:
    """The place of a sum without what it sums."""
    start, end = node.span
    return start, node.body.span[0] if start < node.body.span[0] < end else end


def _bound(limit: Value, span: Span, extreme: Callable[..., float]) -> int:
    numbers = limit.data.reshape(-1).tolist()
    found = extreme(numbers)
    if abs(found) > 1e15 or found != int(found):
        raise RangeError(f"a limit of {found:g} is no whole number", span)
    return int(found)
