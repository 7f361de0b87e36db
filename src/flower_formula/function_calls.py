"""Reads a function applied to its arguments, with or without brackets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from flower_formula import ast, reach
from flower_formula.errors import FormulaError
from flower_formula.functions import function_name
from flower_formula.items import Item, Items
from flower_formula.names import join_name, label, letters
from flower_formula.reductions import reduction
from flower_formula.scope import Scope

if TYPE_CHECKING:
    from flower_formula.parser import Cursor, Parser


class FunctionReader:
    """Reads calls in a scope; arguments go back to the parser."""

    def __init__(self, scope: Scope, parser: Parser) -> None:
        self.scope = scope
        self.parser = parser

    def function_of(self, item: Item) -> str | None:
        """The function that an item names: one defined in a block, or one that mathematics
        knows.
        """
        for sub, sup in ((label(item.sub), label(item.sup)), (label(item.sub), None), (None, None)):
            name = join_name(item.text, sub, sup)
            if name in self.scope.functions:
                self.scope.used.add(name)
                return name
        if item.font == "mathbb":
            return "mean" if item.text == "E" else None
        if self.scope.knows(item.text) or any(
            name.split("_")[0].split("^")[0] == item.text for name in self.scope.tensors
        ):
            return None
        return function_name(item.text)

    def call(self, cursor: Cursor, item: Item, function: str, *, remark: bool = False) -> ast.Node:
        own_sub = "_" in function
        sub = None if own_sub or item.sub is None else item.sub
        if function in ("max", "min") and sub is not None:
            return reduction(self.parser, cursor, function, item)
        over = self._axis(item, sub, remark) if sub is not None else None
        is_angle = function in reach.ANGLE_FUNCTIONS
        if is_angle:
            reach.open_braces(cursor)
        following = cursor.peek()
        if following is not None and following.is_("(", "["):
            read_as = reach.bracket(self.parser, cursor, item) if is_angle else ""
            if read_as == reach.PRODUCT:
                return self._bare_argument(cursor, item, function, over)
            opening, inner, closing = self.parser.bracketed(cursor)
            span = (item.span[0], closing.nucleus[1])
            arguments = self.parser.arguments(inner, (opening.span[0], closing.nucleus[1]))
            call: ast.Node = ast.Call(span, function, arguments, over, read_as)
            scripted = closing
        elif following is not None and following.kind == "group":
            cursor.take()
            span = (item.span[0], following.nucleus[1])
            call = ast.Call(span, function, (self.parser._inner(following),), over)
            scripted = following
            after = cursor.peek()
            if is_angle and after is not None and reach.continues(self.parser, cursor):
                hint = f"braces do not show on the page: write {item.text}(...) with brackets"
                raise reach.unclear(item, after, hint)
        else:
            return self._bare_argument(cursor, item, function, over)
        if item.sup is not None and "^" not in function:
            call = self._power_of_call(item, call)
        return self.parser.with_scripts(scripted, call)

    def _axis(self, item: Item, sub: Items, remark: bool) -> str | None:
        """The index or the size that stands beside a function's name; a remark may be any word."""
        name = label(sub)
        if name is not None and (name in self.scope.indices or name in self.scope.tensors):
            self.scope.used.add(name)
            return name
        if remark and name is not None:
            self.parser.warn(
                f"{name} under {item.text} is read as a remark: no index or size is called so",
                item.span,
                "name the index or the size that is meant",
            )
            return None
        raise FormulaError(
            f"the subscript of {item.text} is no index or size that is known here",
            item.span,
            "name an index of the argument, or the size of one of its axes",
        )

    def _power_of_call(self, item: Item, call: ast.Node) -> ast.Node:
        r"""``\sin^2 x`` is the square of the sine."""
        assert item.sup is not None
        if self.parser.is_transpose(item.sup):
            return ast.Transpose(call.span, call)
        exponent = self.parser.expression(item.sup, item.span)
        if isinstance(exponent, ast.Negative):
            raise FormulaError("a negative power on a function's name", item.span, "write 1/f(x)")
        return ast.Power(call.span, call, exponent)

    def _bare_argument(
        self, cursor: Cursor, item: Item, function: str, over: str | None
    ) -> ast.Node:
        r"""``\log p_k``: one factor is the argument; a second one beside it would be a guess.

        Of sine, cosine and tangent see ``reach``.
        """
        following = cursor.peek()
        if following is None or not self.parser.starts_factor(cursor, following):
            raise FormulaError(
                f"the function {item.text} has no argument", item.span, f"write {item.text}(...)"
            )
        read_as = ""
        if function in reach.ANGLE_FUNCTIONS:
            argument, read_as = reach.product(self.parser, cursor, item)
        else:
            argument = self.parser.factor(cursor)
        after = cursor.peek()
        if after is not None and reach.continues(self.parser, cursor):
            raise reach.unclear(item, after, f"write {item.text}(...) with brackets")
        span = (item.span[0], argument.span[1])
        call: ast.Node = ast.Call(span, function, (argument,), over, read_as)
        return self._power_of_call(item, call) if item.sup is not None else call

    def under(self, cursor: Cursor) -> ast.Node:
        r"""``\underset{j}{\max}`` is ``\max_j``; under softmax, E and Var stands their axis."""
        item = cursor.take()
        name = letters(item.parts[0])
        if name is None or item.text != "underset" or item.sub is not None:
            raise FormulaError(rf"the reader cannot give a meaning to \{item.text} here", item.span)
        named = replace(name, sub=item.parts[1], sup=item.sup, span=item.span)
        function = self.function_of(named)
        if function is None:
            raise FormulaError("something is set under what is no function", item.span)
        return self.call(cursor, named, function, remark=True)
