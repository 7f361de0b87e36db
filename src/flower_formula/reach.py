r"""How far sine, cosine and tangent reach: ``\cos m\theta``, ``\cos (m-n)\theta``.

* Without brackets they take the numbers side by side that follow: ``\sin 2\pi f t`` is sin(2πft).
  A sign, a relation, a closing bracket, a comma, an operator such as ``\cdot``, a sum and another
  function end the argument.
* A bracket right behind the name is the whole argument: ``\cos(m\theta) x`` is cos(mθ) times x.
* A sum in that bracket, with something beside it, is the argument or a factor of it. The angle
  tells, which is a Greek letter: where it stands in the bracket alone, the bracket is the argument
  (``\cos(\alpha + \beta) r``); where it stands beside it alone, the bracket is a factor
  (``\cos (m - n)\theta``, the cosine of (m−n)θ). An angle in both or in neither is an error.
* A bracket further on (``\cos\theta (a + b)``), a division after several numbers
  (``\sin 2\pi k / n``), and something after an argument in braces, which do not show on the page
  (``\cos{m\theta} x``), are errors as well.

Spaces and the size of brackets make no difference. Every other function takes one factor.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from flower_formula import ast
from flower_formula.commands import CLOSING, GREEK, OPENING
from flower_formula.errors import FormulaError
from flower_formula.items import Item, Items, bracket_end

if TYPE_CHECKING:
    from flower_formula.evaluator import Evaluator
    from flower_formula.parser import Cursor, Parser

ANGLE_FUNCTIONS = ("sin", "cos", "tan")
PRODUCT, BRACKET = "the whole product", "the bracket alone"  # what the reader of a page is told

_NUMBERS = ("letter", "word", "number", "frac", "sqrt", "group")


def unclear(item: Item, after: Item, hint: str) -> FormulaError:
    """The error for an argument whose end cannot be told."""
    span = (item.span[0], after.span[1])
    return FormulaError(f"it is not clear how far {item.text} reaches", span, hint)


def continues(parser: Parser, cursor: Cursor) -> bool:
    """Whether something follows side by side that could belong to a function's argument."""
    item = cursor.peek()
    return (
        item is not None
        and parser.starts_factor(cursor, item)
        and not item.is_("sum", "prod")
        and not parser.resolver.starts_function(cursor)
    )


def product(parser: Parser, cursor: Cursor, item: Item) -> tuple[ast.Node, str]:
    """The numbers side by side at the cursor, and how that is read.

    Raises:
        FormulaError: if a division follows several numbers.
    """
    extends = not parser.resolver.starts_function(cursor)
    first = cursor.peek()
    extends = extends and first is not None and (first.kind in _NUMBERS or first.is_(*OPENING))
    argument, reading = parser.factor(cursor), ""
    while extends and continues(parser, cursor):
        after = cursor.peek()
        if after is None or after.kind not in _NUMBERS:
            break
        right = parser.factor(cursor)
        argument = ast.Binary((argument.span[0], right.span[1]), "juxtaposed", argument, right)
        reading = PRODUCT
    after = cursor.peek()
    divides = after is not None and (
        after.is_("/", "div", "bmod", "mod")
        or (after.kind == "word" and after.text.strip() == "mod")
    )
    if reading and after is not None and divides:
        raise unclear(item, after, rf"write {item.text}(...) with brackets, or use \frac")
    return argument, reading


def open_braces(cursor: Cursor) -> None:
    r"""Braces around a bracket are dropped: ``\cos{\left(x\right)}`` is ``\cos(x)``."""
    group = cursor.peek()
    if group is None or group.kind != "group" or group.sub is not None or group.sup is not None:
        return
    inner = group.parts[0]
    if inner and inner[0].is_("(", "[") and bracket_end(inner) == len(inner):
        cursor.items = (*cursor.items[: cursor.at], *inner, *cursor.items[cursor.at + 1 :])


def bracket(parser: Parser, cursor: Cursor, item: Item) -> str:
    r"""What the bracket behind a function's name is: ``PRODUCT`` if it is a factor of the argument,
    ``BRACKET`` if a sum in it is the argument in spite of what stands beside it; otherwise empty.

    Raises:
        FormulaError: if that cannot be told.
    """
    start = cursor.at
    end = start + bracket_end(cursor.items[start:])
    if end == start:
        return ""
    inner, closing = cursor.items[start + 1 : end - 1], cursor.items[end - 1]
    try:
        cursor.at = end
        after = cursor.peek()
        if not _is_sum(inner) or after is None or after.kind == "rows":
            return ""
        if not continues(parser, cursor):
            return ""
        beside = any(map(_holds_angle, _beside(parser, cursor)))
    finally:
        cursor.at = start
    inside = any(map(_holds_angle, inner))
    if inside and not beside:
        return BRACKET
    if beside and not inside and closing.sub is None and closing.sup is None:
        return PRODUCT
    raise unclear(
        item,
        after,
        f"write {item.text}((...) ...) if what stands beside the bracket belongs to the argument; "
        rf"otherwise put it before {item.text}, or \cdot between them",
    )


def _beside(parser: Parser, cursor: Cursor) -> Iterator[Item]:
    """What stands side by side with a bracket, as far as an argument could reach."""
    depth = 0
    while (item := cursor.peek()) is not None:
        depth += item.kind == "symbol" and item.text in OPENING
        depth -= item.kind == "symbol" and item.text in CLOSING
        closes = depth == 0 and item.is_(*CLOSING)
        if depth < 0 or (depth == 0 and not closes and not continues(parser, cursor)):
            return
        yield item
        cursor.at += 1


def _is_sum(items: Items) -> bool:
    depth = 0
    for place, item in enumerate(items):
        depth += item.kind == "symbol" and item.text in OPENING
        depth -= item.kind == "symbol" and item.text in CLOSING
        if place and depth == 0 and item.is_("+", "-"):
            return True
    return False


def _holds_angle(item: Item) -> bool:
    r"""A Greek letter, perhaps with an accent, or in a part: ``\hat\omega``, ``\frac{\pi}{4}``."""
    if item.kind in ("letter", "word"):
        letter = item.text.rpartition("(")[2].rstrip(")")
        is_greek = len(letter) == 1 and "Α" <= letter <= "ω"
        return is_greek or letter in GREEK - {"ell", "hbar"}
    return any(_holds_angle(inner) for part in item.parts for inner in part)


def require_numbers(evaluator: Evaluator, node: ast.Call) -> None:
    r"""Notes how far a function's argument was taken to reach, where that is not plain to see.

    Raises:
        FormulaError: if a factor of an argument without brackets is no number (``\cos m x`` with a
            vector x).
    """
    if node.reach:
        evaluator.notes[evaluator.place(node)] = f"{node.name} of {node.reach}"
    if node.reach != PRODUCT:
        return
    for factor in _factors(node.arguments[0]):
        value = evaluator.value(factor)
        if value.rank:
            start, end = factor.span
            shown = evaluator.env.formula.latex[start:end].strip()
            raise FormulaError(
                f"it is not clear how far {node.name} reaches: "
                f"{shown} is no number, but {evaluator.show(value)}",
                node.span,
                f"write {node.name}(...) with brackets",
            )


def _factors(node: ast.Node) -> Iterator[ast.Node]:
    if isinstance(node, ast.Binary) and node.operator == "juxtaposed":
        yield from _factors(node.left)
        yield from _factors(node.right)
    else:
        yield node
