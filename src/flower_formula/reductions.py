r"""Sums, products, maxima and minima over an index: ``\sum_{j=1}^{m}``, ``\max_j``, ``\sum_{j \neq
t}``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flower_formula import ast
from flower_formula.commands import RELATIONS
from flower_formula.conditions import condition as read_condition
from flower_formula.errors import FormulaError
from flower_formula.items import Item, Items, comma, span_of, split, strip_brackets
from flower_formula.names import label

if TYPE_CHECKING:
    from flower_formula.parser import Cursor, Parser


def reduction(parser: Parser, cursor: Cursor, operator: str, head: Item | None = None) -> ast.Node:
    r"""``\sum_{j=1}^{m}``, ``\sum_j``, ``\sum_{j \neq t}``, ``\max_j``: limits, then the product
    that follows.
    """
    item = cursor.take() if head is None else head
    if item.sub is None:
        raise FormulaError(
            rf"\{item.text} without an index", item.span, rf"write \{item.text}_{{j=1}}^{{m}}"
        )
    variable, lower, condition_items = _limits(parser, item)
    upper = parser.expression(item.sup, item.span) if item.sup is not None else None
    with parser.scope.bound(variable):
        condition = (
            read_condition(parser, condition_items, span_of(item.sub)) if condition_items else None
        )
        body = parser.product(cursor)
    span = (item.span[0], body.span[1])
    return ast.Reduce(span, operator, variable, lower, upper, condition, body)


def _limits(parser: Parser, item: Item) -> tuple[str, ast.Node | None, Items]:
    """The index of a sum, its lower limit, and its condition."""
    sub = strip_brackets(item.sub or ())
    parts = split(sub, ",")
    first = parts[0]
    place = span_of(sub) if sub else item.span
    rest: list[Item] = [entry for part in parts[1:] for entry in (*part, comma(place))][:-1]
    at = next(
        (k for k, entry in enumerate(first) if entry.kind == "symbol" and entry.text in RELATIONS),
        None,
    )
    name = label(first if at is None else first[:at])
    if at is not None and name is not None and first[at].is_("="):
        return name, parser.expression(first[at + 1 :], place), tuple(rest)
    if at is not None and name is not None and len(first[:at]) == 1:
        return name, None, (*first, *((comma(place), *rest) if rest else ()))
    if at is None and name is not None:
        return name, None, tuple(rest)
    raise FormulaError(
        "cannot read the index of this sum", place, "write \\sum_{j=1}^{m} or \\sum_{j \\neq t}"
    )
