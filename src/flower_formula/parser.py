"""Reads items into meaning: expressions, sums, cases, conditions and index lists. See
``statements`` for equations.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from flower_formula import ast
from flower_formula.commands import BARS, CLOSING, DOTS, OPENING, PRODUCTS, REDUCTIONS
from flower_formula.conditions import AND_WORDS, CONDITION_WORDS, OTHERWISE, condition
from flower_formula.dots import join_dots
from flower_formula.errors import FormulaError, FormulaWarning, Span
from flower_formula.items import (
    Item,
    Items,
    span_of,
    split,
    strip_brackets,
    without_punctuation,
)
from flower_formula.names import label
from flower_formula.reductions import reduction
from flower_formula.resolve import Resolver
from flower_formula.scope import Scope
from flower_formula.tex import read_items


@dataclass
class Cursor:
    """A place in a row of items, and the scope in which they are read."""

    items: Items
    scope: Scope
    end: Span
    at: int = 0
    bars: list[str] = field(default_factory=list)

    def peek(self, ahead: int = 0) -> Item | None:
        place = self.at + ahead
        return self.items[place] if place < len(self.items) else None

    def take(self) -> Item:
        item = self.items[self.at]
        self.at += 1
        return item


def parse_size(text: str) -> ast.Node:
    """Arithmetic on sizes, as in a shape: every name is taken as a number.

    Raises:
        FormulaError: if the text is no arithmetic.
    """
    scope = Scope(open=True)
    return Parser(scope).expression(read_items(text), (0, len(text)))


class Parser:
    """Reads expressions in a scope."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.resolver = Resolver(scope, self)

    # -- entry points ---------------------------------------------------------------------------

    def expression(self, items: Items, place: Span) -> ast.Node:
        """The whole row of items as one expression; anything left over is an error."""
        cursor = Cursor(items, self.scope, place)
        node = self.sum(cursor)
        self._finish(cursor)
        return node

    def indices(self, items: Items, place: Span) -> tuple[ast.Node, ...]:
        """An index list: ``ij``, ``i,j``, ``(pos, 2i)``, ``2j+1``, ``t-1``."""
        items = strip_brackets(items)
        parts = split(items, ",")
        found: list[ast.Node] = []
        for part in parts:
            part = strip_brackets(part)
            if not part:
                raise FormulaError("an empty index", place)
            separate = len(part) > 1 and all(
                item.kind == "letter" and item.sub is None and item.sup is None for item in part
            )
            if separate and not self.resolver.spells_one_name(part):
                found.extend(self.expression((item,), item.span) for item in part)
            else:
                found.append(self.expression(part, span_of(part)))
        return tuple(found)

    # -- sums and products ----------------------------------------------------------------------

    def sum(self, cursor: Cursor) -> ast.Node:
        sign = cursor.peek()
        if sign is not None and sign.is_("+", "-"):
            cursor.take()
            node = self.product(cursor)
            if sign.text == "-":
                node = ast.Negative((sign.span[0], node.span[1]), node)
        else:
            node = self.product(cursor)
        while (item := cursor.peek()) is not None and item.is_("+", "-"):
            if item.sub is not None or item.sup is not None:
                raise FormulaError(f"a script on {item.text}", item.span, "write 2^{-3} in braces")
            cursor.take()
            right = self.product(cursor)
            node = ast.Binary((node.span[0], right.span[1]), item.text, node, right)
        return node

    def product(self, cursor: Cursor) -> ast.Node:
        r"""Factors with operators between them; what stands side by side binds tighter:
        ``a \odot xV`` is ``a \odot (xV)``.
        """
        node = self.side_by_side(cursor)
        while (item := cursor.peek()) is not None:
            if item.kind == "symbol" and item.text in PRODUCTS:
                cursor.take()
                right = self.side_by_side(cursor)
                operator = PRODUCTS[item.text]
            elif item.is_("/", "div"):
                cursor.take()
                right, operator = self.factor(cursor), "/"
                after = cursor.peek()
                if after is not None and self.starts_factor(cursor, after):
                    raise FormulaError(
                        "it is not clear how far the division reaches",
                        (item.span[0], after.span[1]),
                        r"use \frac{...}{...} or brackets",
                    )
            elif item.is_("bmod", "mod") or (item.kind == "word" and item.text.strip() == "mod"):
                cursor.take()
                right = self.factor(cursor)
                node = ast.Call((node.span[0], right.span[1]), "mod", (node, right))
                continue
            else:
                break
            node = ast.Binary((node.span[0], right.span[1]), operator, node, right)
        return node

    def side_by_side(self, cursor: Cursor) -> ast.Node:
        """Factors without an operator between them, multiplied from left to right."""
        node = self.factor(cursor)
        while (item := cursor.peek()) is not None and self.starts_factor(cursor, item):
            right = self.factor(cursor)
            node = ast.Binary((node.span[0], right.span[1]), "juxtaposed", node, right)
        return node

    def starts_factor(self, cursor: Cursor, item: Item) -> bool:
        """Whether a factor can begin here (so that what stands side by side is multiplied)."""
        if item.kind == "word":
            return item.text.strip() not in CONDITION_WORDS | OTHERWISE | AND_WORDS | {"mod"}
        if item.kind != "symbol":
            return True
        if item.text in BARS:
            return not (cursor.bars and cursor.bars[-1] == item.text)
        return item.text in OPENING or item.text in REDUCTIONS or item.text == "infty"

    # -- factors --------------------------------------------------------------------------------

    def factor(self, cursor: Cursor) -> ast.Node:
        item = cursor.peek()
        if item is None:
            raise FormulaError("something is missing here", _after(cursor), "complete the formula")
        if item.kind in ("letter", "word"):
            return self.resolver.name(cursor)
        if item.kind == "symbol":
            return self._symbol(cursor, item)
        if item.kind == "under":
            return self.resolver.functions.under(cursor)
        cursor.take()
        item = self.resolver.whole_radicand(item)
        return self.with_scripts(item, self._inner(item))

    def _inner(self, item: Item) -> ast.Node:
        """The nucleus of an item that carries its own parts."""
        if item.kind == "number":
            return ast.Number(item.nucleus, float(item.text))
        if item.kind in ("group", "brace"):
            return self.expression(item.parts[0], item.nucleus)
        if item.kind == "frac":
            above, below = (self.expression(part, item.nucleus) for part in item.parts)
            return ast.Binary(item.nucleus, "/", above, below)
        if item.kind == "sqrt":
            degree = self.expression(item.parts[1], item.nucleus) if item.parts[1] else None
            return ast.Root(item.nucleus, self.expression(item.parts[0], item.nucleus), degree)
        if item.kind == "rows":
            return self._rows(item)
        raise FormulaError(rf"the reader cannot give a meaning to \{item.text} here", item.span)

    def _symbol(self, cursor: Cursor, item: Item) -> ast.Node:
        if item.text in OPENING:
            return self._brackets(cursor)
        if item.text in BARS:
            return self._bars(cursor)
        if item.text in REDUCTIONS:
            return reduction(self, cursor, REDUCTIONS[item.text])
        if item.is_("infty"):
            cursor.take()
            return self.with_scripts(item, ast.Number(item.nucleus, float("inf")))
        shown = item.text if len(item.text) == 1 else rf"\{item.text}"
        hint = "complete the formula" if item.text in "+-*/=,;" else None
        raise FormulaError(f"unexpected {shown}", item.span, hint)

    def _brackets(self, cursor: Cursor) -> ast.Node:
        opening, inner, closing = self.bracketed(cursor)
        span = (opening.span[0], closing.nucleus[1])
        parts = split(inner, ";")
        if len(parts) > 1 or len(split(inner, ",")) > 1:
            if len(parts) > 1 and all(len(split(row, ",")) == 1 for row in parts):
                cells = [(cell,) for cell in self.arguments(inner, span)]
                return self.with_scripts(closing, ast.Matrix(span, tuple(cells)))
            rows = [[self.expression(cell, span) for cell in split(row, ",")] for row in parts]
            return self.with_scripts(closing, ast.Matrix(span, tuple(map(tuple, rows))))
        return self.with_scripts(closing, self.expression(inner, span))

    def bracketed(self, cursor: Cursor) -> tuple[Item, Items, Item]:
        """The opening bracket, what it encloses, and the closing one (which carries the
        scripts).
        """
        opening = cursor.take()
        if opening.sub is not None or opening.sup is not None:
            raise FormulaError("a script on an opening bracket", opening.span)
        start, open_brackets = cursor.at, [opening]
        while (item := cursor.peek()) is not None:
            cursor.take()
            if item.kind == "symbol" and item.text in OPENING:
                open_brackets.append(item)
            elif item.kind == "symbol" and item.text in CLOSING:
                expected = OPENING[open_brackets[-1].text]
                if item.text != expected:
                    raise FormulaError(
                        f"{open_brackets[-1].text} is closed by {item.text}",
                        (open_brackets[-1].span[0], item.span[1]),
                        f"close it with {expected}",
                    )
                open_brackets.pop()
                if not open_brackets:
                    inner = cursor.items[start : cursor.at - 1]
                    if not inner:
                        raise FormulaError("empty brackets", (opening.span[0], item.span[1]))
                    return opening, inner, item
        raise FormulaError("this bracket is never closed", open_brackets[-1].span, "close it")

    def _bars(self, cursor: Cursor) -> ast.Node:
        opening = cursor.take()
        closing, kind = BARS[opening.text]
        cursor.bars.append(closing)
        body = self.sum(cursor)
        cursor.bars.pop()
        item = cursor.peek()
        if item is None or not item.is_(closing):
            raise FormulaError("these bars are never closed", opening.span)
        cursor.take()
        if kind == "norm" and label(item.sub) in ("2", None):
            item = replace(item, sub=None)
        return self.with_scripts(item, ast.Bars((opening.span[0], item.nucleus[1]), kind, body))

    def _rows(self, item: Item) -> ast.Node:
        if not item.rows:
            raise FormulaError(f"an empty {item.text}", item.span, "fill it, or delete it")
        if item.text in ("cases", "dcases", "rcases"):
            branches = []
            for row in item.rows:
                place = (
                    row[0][0].span[0] if row[0] else item.span[0],
                    span_of(row[-1])[1] if row[-1] else item.span[1],
                )
                if len(row) != 2:
                    raise FormulaError(
                        "a case needs a value and a condition",
                        place,
                        "write `value & condition \\\\`",
                    )
                value = self.expression(without_punctuation(row[0]), place)
                branches.append((value, condition(self, row[1], place)))
            return ast.Cases(item.nucleus, tuple(branches))
        if item.text.endswith("matrix"):
            rows = tuple(
                tuple(self.expression(cell, item.span) for cell in row) for row in item.rows
            )
            return ast.Matrix(item.nucleus, rows)
        raise FormulaError(f"an environment {item.text} inside an expression", item.span)

    # -- scripts --------------------------------------------------------------------------------

    def with_scripts(self, item: Item, node: ast.Node) -> ast.Node:
        """A subscript is an index, a superscript a transpose or a power."""
        if item.sub is not None:
            node = ast.Indexed(item.span, node, self.indices(item.sub, item.span))
        if item.sup is not None:
            node = self.superscript(item.sup, item.span, node)
        return node

    def superscript(self, sup: Items, span: Span, node: ast.Node) -> ast.Node:
        if self.is_transpose(sup):
            return ast.Transpose(span, node)
        if len(sup) == 1 and sup[0].is_("-", "+"):
            raise FormulaError(
                "only the sign is the exponent", sup[0].span, "put the whole exponent in braces"
            )
        return ast.Power(span, node, self.expression(sup, span_of(sup)))

    def is_transpose(self, sup: Items) -> bool:
        r"""``^T``, ``^\top``, ``^{\intercal}``, ``^{\mathsf T}``, unless T is declared."""
        if len(sup) == 1 and sup[0].kind == "group":
            return self.is_transpose(sup[0].parts[0])
        if len(sup) != 1:
            return False
        return sup[0].is_("top", "intercal") or (
            sup[0].kind in ("letter", "word")
            and sup[0].text in ("T", "t_")
            and not self.scope.knows("T")
        )

    # -- helpers --------------------------------------------------------------------------------

    def arguments(self, inner: Items, span: Span) -> tuple[ast.Node, ...]:
        r"""The arguments of a call; ``a_1, \ldots, a_h`` becomes one ``Dots``."""
        parts = split(inner, ",") if len(split(inner, ";")) == 1 else split(inner, ";")
        parsed: list[ast.Node | Item] = []
        for part in parts:
            if len(part) == 1 and part[0].kind == "symbol" and part[0].text in DOTS:
                parsed.append(part[0])
            elif not part:
                raise FormulaError("an empty argument", span)
            else:
                parsed.append(self.expression(part, span_of(part)))
        return join_dots(parsed)

    def warn(self, message: str, span: Span, hint: str | None = None) -> None:
        self.scope.warnings.append(FormulaWarning(message, span, hint))

    def _finish(self, cursor: Cursor) -> None:
        item = cursor.peek()
        if item is not None:
            shown = item.text if item.kind != "symbol" or len(item.text) == 1 else f"\\{item.text}"
            raise FormulaError(f"cannot read on from {shown!r}", item.span)


def _after(cursor: Cursor) -> Span:
    if cursor.items:
        last = cursor.items[-1].span[1]
        return max(0, last - 1), last
    return cursor.end
