"""Where an index runs: as declared, as stated in the text, or over what it indexes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flower_formula import ast
from flower_formula.errors import DeclarationError, FormulaError, RangeError, ShapeError, Span
from flower_formula.names import spelled

if TYPE_CHECKING:
    from flower_formula.environment import Environment
    from flower_formula.evaluator import Evaluator
    from flower_formula.symbols import Axis, Declaration


def index_range(evaluator: Evaluator, name: str, body: ast.Node, span: Span) -> tuple[int, int]:
    """Where an index runs: as declared, as stated in the text, or over what it indexes."""
    declared = evaluator.env.declarations.get(name)
    if stated := evaluator.env.formula.ranges.get(name):
        return evaluator.integer(stated.lower), evaluator.integer(stated.upper)
    if declared is not None and declared.kind == "index":
        entry = declared.ranges[0]
        return (
            declared_number(evaluator, entry.lower, declared),
            declared_number(evaluator, entry.upper, declared),
        )
    found: dict[tuple[int, int], ast.Node] = {}
    for node in body.walk():
        if not isinstance(node, ast.Indexed):
            continue
        for place, index in enumerate(node.indices):
            if isinstance(index, ast.Symbol) and index.name == name:
                extent = _extent(evaluator, node.base, place)
                if extent is not None:
                    found.setdefault(extent, node)
    if len(found) == 1:
        return next(iter(found))
    if not found:
        beside = _beside(body, name)
        if beside is not None:
            left = spelled(beside.left.name)  # type: ignore[attr-defined]
            raise FormulaError(
                f"{spelled(name)} is multiplied here, and indexes nothing",
                beside.span,
                f"did you mean {left}_{spelled(name)}?",
            )
        raise FormulaError(
            f"nothing tells where the index {spelled(name)} runs",
            span,
            f"declare `{spelled(name)} in 1..n`, or give the sum its limits",
        )
    shown = ", ".join(f"{low}..{high}" for low, high in found)
    raise ShapeError(
        f"the index {spelled(name)} runs over axes of different sizes ({shown})",
        list(found.values())[1].span,
        "give the index its range, or check what it indexes",
    )


def first_number(evaluator: Evaluator, declared: Declaration | None, axis: Axis) -> int:
    """The number that the first entry on an axis carries: 1 unless its declaration says another."""
    if axis.first is None or declared is None:
        return 1
    return declared_number(evaluator, axis.first, declared)


def declared_number(evaluator: Evaluator, node: ast.Node, declared: Declaration) -> int:
    """The value of a bound or a size that a declaration states.

    Raises:
        DeclarationError: if it is no whole number; with the declaration, for ``node`` has its place
            there and not in the formula.
    """
    try:
        return evaluator.integer(node)
    except RangeError as error:
        hint = "declare the larger size as a product, for example `d = 2 k`"
        message = "a bound that is no whole number"
        found = DeclarationError(message, node.span, declared.source, hint)
        found.detail = error.detail
        raise found from error


def with_sizes(error: RangeError, env: Environment) -> RangeError:
    """The error, with the sizes at which it happened."""
    sizes = ", ".join(f"{spelled(name)}={size}" for name, size in env.sizes.items())
    error.detail = error.detail or (f"  sizes: {sizes}" if sizes else None)
    return error


def _beside(body: ast.Node, name: str) -> ast.Binary | None:
    """``xi`` where ``x_i`` was meant: the index beside a symbol."""
    for node in body.walk():
        if (
            isinstance(node, ast.Binary)
            and isinstance(node.left, ast.Symbol)
            and isinstance(node.right, ast.Symbol)
            and node.right.name == name
        ):
            return node
    return None


def _extent(evaluator: Evaluator, base: ast.Node, place: int) -> tuple[int, int] | None:
    """First and last number on an axis of an indexed thing, if that can be known yet."""
    if isinstance(base, ast.Symbol):
        declared = evaluator.env.declarations.get(base.name)
        if declared is not None and declared.kind == "tensor" and place < len(declared.axes):
            axis = declared.axes[place]
            lower = first_number(evaluator, declared, axis)
            return lower, lower + declared_number(evaluator, axis.size, declared) - 1
    try:
        family = evaluator.family(base)
    except FormulaError:
        return None
    if place >= family.value.rank:
        return None
    lower = family.first[place] if place < len(family.first) else 1
    return lower, lower + family.value.shape[place] - 1
