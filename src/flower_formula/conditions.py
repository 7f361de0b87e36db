r"""Conditions in symbols and in words: ``j \le i``, ``i \text{ mod } 2 = 0``, ``otherwise``,
否则.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flower_formula import ast
from flower_formula.commands import CLOSING, OPENING, RELATIONS
from flower_formula.errors import FormulaError, Span
from flower_formula.items import Item, Items, span_of, without_punctuation

if TYPE_CHECKING:
    from flower_formula.parser import Parser

OTHERWISE = {"otherwise", "else", "否则", "其他", "其它", "其余"}
CONDITION_WORDS = {"if", "for", "when", "where", "with", "若", "如果", "当", "对"}
AND_WORDS = {"and", "且", "并且"}
PARITY = {
    "is even": 0.0,
    "even": 0.0,
    "为偶数": 0.0,
    "是偶数": 0.0,
    "is odd": 1.0,
    "odd": 1.0,
    "为奇数": 1.0,
    "是奇数": 1.0,
}


def condition(parser: Parser, items: Items, place: Span) -> ast.Node | None:
    """A condition, in symbols or words; ``None`` for *otherwise*."""
    items = without_punctuation(items)
    while items and items[0].kind == "word" and items[0].text.strip("，,:： ") in CONDITION_WORDS:
        items = items[1:]
    if len(items) == 1 and items[0].kind == "word" and items[0].text.strip() in OTHERWISE:
        return None
    if not items:
        raise FormulaError("an empty condition", place, "write the condition, or `otherwise`")
    parts: list[list[Item]] = [[]]
    for item in items:
        is_and = item.is_(",", "land", "wedge") or (
            item.kind == "word" and item.text.strip() in AND_WORDS
        )
        if is_and:
            parts.append([])
        else:
            parts[-1].append(item)
    node: ast.Node | None = None
    for part in parts:
        if not part:
            raise FormulaError("an empty part of a condition", place)
        compare = _comparison(parser, tuple(part), place)
        node = compare if node is None else ast.Both(place, node, compare)
    return node


def _comparison(parser: Parser, items: Items, place: Span) -> ast.Node:
    """``a < b <= c``, or ``i is even`` in words."""
    if len(items) > 1 and items[-1].kind == "word" and items[-1].text.strip() in PARITY:
        body = parser.expression(items[:-1], place)
        two, rest = ast.Number(place, 2.0), ast.Number(place, PARITY[items[-1].text.strip()])
        return ast.Compare(place, ("=",), (ast.Call(place, "mod", (body, two)), rest))
    operators: list[str] = []
    pieces: list[list[Item]] = [[]]
    depth = 0
    for item in items:
        depth += item.kind == "symbol" and item.text in OPENING
        depth -= item.kind == "symbol" and item.text in CLOSING
        if item.kind == "symbol" and item.text in RELATIONS and depth == 0:
            operators.append(RELATIONS[item.text])
            pieces.append([])
        else:
            pieces[-1].append(item)
    if not operators:
        raise FormulaError(
            "this is no condition: it compares nothing", place, "write for example j \\le i"
        )
    operands = tuple(parser.expression(tuple(piece), place) for piece in pieces)
    return ast.Compare(span_of(items), tuple(operators), operands)
