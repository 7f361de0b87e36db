"""Wrong versions of a formula: one root, sign, index, exponent, factor or name changed at a time.

The check must refuse every one of them that is not equal in value. A mutant is made in the tree,
not in the LaTeX, so that each is exactly one change of meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from flower_formula import ast
from flower_formula.names import spelled
from flower_formula.statements import Formula

FUNCTIONS = {
    "sin": "cos", "cos": "sin", "max": "min", "min": "max", "exp": "log", "log": "exp",
    "tanh": "sigmoid", "sigmoid": "tanh", "mean": "variance", "variance": "mean",
    "relu": "sigmoid", "erf": "tanh",
}  # fmt: skip
OPERATORS = {"+": "-", "-": "+", "/": "juxtaposed"}
RELATIONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "=": "!=", "!=": "="}


@dataclass(frozen=True)
class Mutant:
    """A changed formula and what was changed, in the terms of the text."""

    formula: Formula
    change: str


def mutants(formula: Formula) -> Iterator[Mutant]:
    """Every single change of every right side."""
    names = sorted({
        node.name
        for equation in formula.equations
        for side in equation.sides
        for node in side.walk()
        if isinstance(node, ast.Symbol)
    })  # fmt: skip
    for place, equation in enumerate(formula.equations):
        for number, side in enumerate(equation.sides):
            for changed, change in _changes(side, formula.latex, names):
                sides = (*equation.sides[:number], changed, *equation.sides[number + 1 :])
                equations = list(formula.equations)
                equations[place] = replace(equation, sides=sides)
                yield Mutant(replace(formula, equations=equations, warnings=[]), change)


def _changes(node: ast.Node, latex: str, names: list[str]) -> Iterator[tuple[ast.Node, str]]:
    """The node changed once, at itself or anywhere below."""
    text = " ".join(latex[node.span[0] : node.span[1]].split())
    for changed, what in _here(node, names):
        yield changed, f"{text}: {what}"
    for entry in fields(node):
        if entry.name == "span":
            continue
        for value, what in _inside(getattr(node, entry.name), latex, names):
            changes: dict[str, Any] = {entry.name: value}
            yield replace(node, **changes), what


def _inside(value: object, latex: str, names: list[str]) -> Iterator[tuple[object, str]]:
    if isinstance(value, ast.Node):
        yield from _changes(value, latex, names)
    elif isinstance(value, tuple):
        for place, element in enumerate(value):
            for changed, what in _inside(element, latex, names):
                yield (*value[:place], changed, *value[place + 1 :]), what


def _here(node: ast.Node, names: list[str]) -> Iterator[tuple[ast.Node, str]]:
    """Changes of this node itself."""
    if isinstance(node, ast.Root):
        yield node.body, "root dropped"
    elif isinstance(node, ast.Transpose):
        yield node.body, "transpose dropped"
    elif isinstance(node, ast.Negative):
        yield node.body, "sign dropped"
    elif isinstance(node, ast.Power):
        yield node.base, "exponent dropped"
        yield replace(node, exponent=ast.Negative(node.span, node.exponent)), "exponent negated"
    elif isinstance(node, ast.Binary):
        yield node.left, "right part dropped"
        yield node.right, "left part dropped"
        if node.operator in OPERATORS:
            other = OPERATORS[node.operator]
            yield replace(node, operator=other), f"{node.operator} made {other}"
        if node.operator in ("-", "/", "juxtaposed"):
            yield replace(node, left=node.right, right=node.left), "parts exchanged"
    elif isinstance(node, ast.Call):
        if node.name in FUNCTIONS:
            other = FUNCTIONS[node.name]
            yield replace(node, name=other, over=None), f"{node.name} made {other}"
        if len(node.arguments) == 1 and not isinstance(node.arguments[0], ast.Dots):
            yield node.arguments[0], f"{node.name} dropped"
        for place in range(len(node.arguments) - 1):
            moved = list(node.arguments)
            moved[place], moved[place + 1] = moved[place + 1], moved[place]
            yield (
                replace(node, arguments=tuple(moved)),
                f"arguments {place + 1} and {place + 2} exchanged",
            )
    elif isinstance(node, ast.Reduce):
        other = {"sum": "prod", "prod": "sum", "max": "min", "min": "max"}[node.operator]
        yield replace(node, operator=other), f"{node.operator} made {other}"
        if node.condition is not None:
            yield replace(node, condition=None), "condition dropped"
    elif isinstance(node, ast.Number):
        yield replace(node, value=node.value + 1), "number plus 1"
        if node.value not in (0.0,):
            yield replace(node, value=-node.value), "number negated"
    elif isinstance(node, ast.Compare):
        relation = RELATIONS[node.operators[0]]
        operators = (relation, *node.operators[1:])
        yield replace(node, operators=operators), f"{node.operators[0]} made {relation}"
    elif isinstance(node, ast.Symbol):
        for name in names:
            if name != node.name:
                yield replace(node, name=name), f"made {spelled(name)}"
    elif isinstance(node, ast.Cases) and len(node.branches) > 1:
        values = [value for value, _ in node.branches]
        turned = tuple(
            (values[(place + 1) % len(values)], condition)
            for place, (_, condition) in enumerate(node.branches)
        )
        yield replace(node, branches=turned), "cases exchanged"
