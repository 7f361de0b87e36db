r"""Lists with dots: ``head_1, \ldots, head_h`` becomes one member for each index."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, cast

from flower_formula import ast
from flower_formula.errors import FormulaError
from flower_formula.items import Item

VARIABLE = "…"  # no author can write this name


def join_dots(parts: list[ast.Node | Item]) -> tuple[ast.Node, ...]:
    r"""Replaces ``first, (second,) \ldots, last`` by a ``Dots`` node.

    Raises:
        FormulaError: if dots do not stand between two members that differ in one index, or if a
            second member shown
            is not the next one.
    """
    places = [k for k, part in enumerate(parts) if isinstance(part, Item)]
    if not places:
        return tuple(cast(list[ast.Node], parts))
    dots = cast(Item, parts[places[0]])
    if len(places) > 1:
        raise FormulaError("dots twice in the same list", cast(Item, parts[places[1]]).span)
    at = places[0]
    before, after = cast(list[ast.Node], parts[:at]), cast(list[ast.Node], parts[at + 1 :])
    if not before or len(after) != 1:
        raise FormulaError(
            "dots need a member before them and the last member after them",
            dots.span,
            r"write a_1, \ldots, a_n",
        )
    last = after[0]
    start = next((k for k, part in enumerate(before) if _difference(part, last)), None)
    if start is None:
        raise FormulaError(
            "the members around the dots do not differ in exactly one index",
            (before[0].span[0], last.span[1]),
            r"write a_1, \ldots, a_n",
        )
    apart, before = before[:start], before[start:]  # [x; a_1; \ldots; a_n] begins with another part
    first = before[0]
    found = _difference(first, last)
    assert found is not None
    lower, upper, body = found
    for step, member in enumerate(before[1:], start=1):
        shown = _difference(first, member)
        expected = isinstance(lower, ast.Number) and lower.value + step
        if shown is None or not isinstance(shown[1], ast.Number) or shown[1].value != expected:
            raise FormulaError("this is not the member that follows the one before", member.span)
    return (*apart, ast.Dots((first.span[0], last.span[1]), VARIABLE, lower, upper, body))


def _difference(a: ast.Node, b: ast.Node) -> tuple[ast.Node, ast.Node, ast.Node] | None:
    """Where two trees differ in one index: that index in ``a``, in ``b``, and ``a`` with a
    variable there.
    """
    if isinstance(a, ast.Indexed) and isinstance(b, ast.Indexed) and same(a.base, b.base):
        pairs = list(zip(a.indices, b.indices, strict=False))
        differing = [k for k, (x, y) in enumerate(pairs) if not same(x, y)]
        if len(a.indices) != len(b.indices) or len(differing) != 1:
            return None
        k = differing[0]
        variable = ast.Symbol(a.indices[k].span, VARIABLE)
        indices = (*a.indices[:k], variable, *a.indices[k + 1 :])
        return a.indices[k], b.indices[k], replace(a, indices=indices)
    if type(a) is not type(b):
        return None
    result: tuple[ast.Node, ast.Node, ast.Node] | None = None
    for entry in fields(a):
        if entry.name == "span":
            continue
        x, y = getattr(a, entry.name), getattr(b, entry.name)
        if same(x, y):
            continue
        if isinstance(x, tuple) and isinstance(y, tuple) and len(x) == len(y):
            differing = [k for k in range(len(x)) if not same(x[k], y[k])]
            if (
                result is not None
                or len(differing) != 1
                or not isinstance(x[differing[0]], ast.Node)
            ):
                return None
            inner = _difference(x[differing[0]], y[differing[0]])
            if inner is None:
                return None
            value = (*x[: differing[0]], inner[2], *x[differing[0] + 1 :])
            result = inner[0], inner[1], _with(a, entry.name, value)
        elif isinstance(x, ast.Node) and isinstance(y, ast.Node) and result is None:
            inner = _difference(x, y)
            if inner is None:
                return None
            result = inner[0], inner[1], _with(a, entry.name, inner[2])
        else:
            return None
    return result


def _with(node: ast.Node, name: str, value: object) -> ast.Node:
    """The node with one field replaced."""
    changes: dict[str, Any] = {name: value}
    return replace(node, **changes)


def same(a: object, b: object) -> bool:
    """Whether two trees read the same, wherever they stand."""
    if isinstance(a, ast.Node) and isinstance(b, ast.Node):
        return type(a) is type(b) and all(
            same(getattr(a, entry.name), getattr(b, entry.name))
            for entry in fields(a)
            if entry.name != "span"
        )
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return a == b
