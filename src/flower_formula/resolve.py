"""Finds out what a name means: a symbol, a member of a family, a function call, or nothing
known.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from flower_formula import ast
from flower_formula.errors import FormulaError, FormulaWarning, Span, UndeclaredSymbol
from flower_formula.functions import function_name
from flower_formula.items import Item, Items
from flower_formula.names import join_name, label, letters, spelled
from flower_formula.reductions import reduction

if TYPE_CHECKING:
    from flower_formula.parser import Cursor, Parser


@dataclass
class Scope:
    """The names that may be used.

    ``tensors`` are declared or defined symbols, ``functions`` defined functions (here or in
    another block);
    ``indices`` are the index variables bound at this place. With ``open`` every name is taken as a
    number.
    """

    tensors: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    indices: list[str] = field(default_factory=list)
    open: bool = False
    used: set[str] = field(default_factory=set)
    warnings: list[FormulaWarning] = field(default_factory=list)

    def knows(self, name: str) -> bool:
        return self.open or name in self.tensors or name in self.functions or name in self.indices

    @contextmanager
    def bound(self, *names: str) -> Iterator[None]:
        """Index variables that exist while a sum's body or an equation's right side is read."""
        self.indices.extend(names)
        try:
            yield
        finally:
            del self.indices[len(self.indices) - len(names) :]


class Resolver:
    """Reads names in a scope; expressions inside their scripts and brackets go back to the
    parser.
    """

    def __init__(self, scope: Scope, parser: Parser) -> None:
        self.scope = scope
        self.parser = parser

    def name(self, cursor: Cursor) -> ast.Node:
        """The name at the cursor, with its scripts and, for a function, its arguments."""
        item = self._word(cursor)
        if not self.scope.open and (function := self._function(item)) is not None:
            return self._call(cursor, item, function)
        return self._symbol(item)

    def under(self, cursor: Cursor) -> ast.Node:
        r"""``\underset{j}{\max}`` is ``\max_j``; under softmax, E and Var stands their axis."""
        item = cursor.take()
        name = letters(item.parts[0])
        if name is None or item.text != "underset" or item.sub is not None:
            raise FormulaError(rf"the reader cannot give a meaning to \{item.text} here", item.span)
        named = replace(name, sub=item.parts[1], sup=item.sup, span=item.span)
        function = self._function(named)
        if function is None:
            raise FormulaError("something is set under what is no function", item.span)
        return self._call(cursor, named, function, remark=True)

    def spells_one_name(self, items: Items) -> bool:
        """Whether letters side by side are one declared name (``pos``), not several indices."""
        return self.scope.knows("".join(item.text for item in items)) and not self.scope.open

    # -- words ----------------------------------------------------------------------------------

    def _word(self, cursor: Cursor) -> Item:
        """The next name; letters side by side are one name when they spell one (``pos``,
        ``softmax``).
        """
        first = cursor.peek()
        assert first is not None
        if first.kind == "word":
            return cursor.take()
        if self.scope.open:
            return self._size_word(cursor)
        run = self._run(cursor)
        for length in range(len(run), 1, -1):
            text = "".join(item.text for item in run[:length])
            if not self.scope.knows(text) and function_name(text) is None:
                continue
            last = run[length - 1]
            span = (first.span[0], last.span[1])
            if all(self.scope.knows(item.text) for item in run[:length]):
                raise FormulaError(
                    f"{text} can be read as one name or as a product of declared letters",
                    span,
                    rf"write \mathrm{{{text}}} for the name, or put \cdot between the letters",
                )
            cursor.at += length
            return replace(
                last, kind="word", text=text, span=span, nucleus=(first.span[0], last.nucleus[1])
            )
        cursor.take()
        return self._unbraced_subscript(cursor, first)

    def _run(self, cursor: Cursor) -> list[Item]:
        """Single letters (and escaped underscores) side by side; only the last may carry
        scripts.
        """
        run: list[Item] = []
        while (item := cursor.peek(len(run))) is not None:
            plain = item.kind == "letter" and len(item.text) == 1
            if not plain and not (run and item.is_("_")):
                break
            run.append(item)
            if item.sub is not None or item.sup is not None:
                break
        while run and run[-1].is_("_"):
            run.pop()
        return run

    def _size_word(self, cursor: Cursor) -> Item:
        """In a shape, letters without a space between them are one name: ``vocab``, ``d_model``."""
        item = cursor.take()
        while (after := cursor.peek()) is not None and after.span[0] == item.span[1]:
            if after.kind not in ("letter", "number") or item.sup is not None:
                break
            cursor.take()
            bare = replace(after, sub=None, sup=None)
            if item.sub is not None:
                item = replace(item, sub=(*item.sub, bare), sup=after.sup)
            else:
                item = replace(item, text=item.text + after.text, sub=after.sub, sup=after.sup)
            item = replace(item, span=(item.span[0], after.span[1]))
        return item

    def _unbraced_subscript(self, cursor: Cursor, item: Item) -> Item:
        r"""``d_model``: TeX sets only m as the subscript; the author meant all of it."""
        if (
            item.sub is None
            or len(item.sub) != 1
            or item.sub[0].kind != "letter"
            or item.sup is not None
        ):
            return item
        following = self._run(cursor)
        for length in range(len(following), 0, -1):
            script = (
                item.sub[0],
                *(replace(entry, sub=None, sup=None) for entry in following[:length]),
            )
            name = join_name(item.text, label(script), None)
            if name in self.scope.tensors:
                last = following[length - 1]
                cursor.at += length
                self.parser.warn(
                    f"TeX sets only {item.sub[0].text} as the subscript",
                    (item.span[0], last.span[1]),
                    f"write {item.text}_{{{label(script)}}}",
                )
                return replace(item, sub=script, sup=last.sup, span=(item.span[0], last.span[1]))
        return item

    # -- functions ------------------------------------------------------------------------------

    def _function(self, item: Item) -> str | None:
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

    def _call(self, cursor: Cursor, item: Item, function: str, *, remark: bool = False) -> ast.Node:
        own_sub = "_" in function
        sub = None if own_sub or item.sub is None else item.sub
        if function in ("max", "min") and sub is not None:
            return reduction(self.parser, cursor, function, item)
        over = self._axis(item, sub, remark) if sub is not None else None
        following = cursor.peek()
        if following is not None and following.is_("(", "["):
            opening, inner, closing = self.parser.bracketed(cursor)
            span = (item.span[0], closing.nucleus[1])
            arguments = self.parser.arguments(inner, (opening.span[0], closing.nucleus[1]))
            call: ast.Node = ast.Call(span, function, arguments, over)
            scripted = closing
        elif following is not None and following.kind == "group":
            cursor.take()
            span = (item.span[0], following.nucleus[1])
            call = ast.Call(span, function, (self.parser._inner(following),), over)
            scripted = following
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
                f"{name} under {item.text} is read as a remark: no index or size has this name",
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
        r"""``\log p_k``: one factor is the argument; a second one beside it would be a guess."""
        following = cursor.peek()
        if following is None or not self.parser.starts_factor(cursor, following):
            raise FormulaError(
                f"the function {item.text} has no argument", item.span, f"write {item.text}(...)"
            )
        argument = self.parser.factor(cursor)
        after = cursor.peek()
        if after is not None and self.parser.starts_factor(cursor, after):
            names_function = after.kind in ("letter", "word") and self._function(after) is not None
            if not names_function and not after.is_("sum", "prod"):
                raise FormulaError(
                    f"it is not clear how far {item.text} reaches",
                    (item.span[0], after.span[1]),
                    f"write {item.text}(...) with brackets",
                )
        call: ast.Node = ast.Call((item.span[0], argument.span[1]), function, (argument,), over)
        return self._power_of_call(item, call) if item.sup is not None else call

    # -- symbols --------------------------------------------------------------------------------

    def _symbol(self, item: Item) -> ast.Node:
        sub, sup = label(item.sub), label(item.sup)
        if self.scope.open:
            name = join_name(item.text, sub, None)
            if item.sub is not None and sub is None:
                raise FormulaError("cannot read this subscript", item.span)
            node: ast.Node = ast.Symbol(item.span, name)
            return node if item.sup is None else self.parser.superscript(item.sup, item.span, node)
        found = self._match(item, sub, sup)
        if found is None:
            constant = self._constant(item)
            if constant is not None:
                return constant
            raise self._unknown(item, sub, sup)
        name, rest_sub, rest_sup = found
        self.scope.used.add(name)
        node = ast.Symbol(item.span, name)
        if rest_sub:
            node = ast.Indexed(item.span, node, self.parser.indices(rest_sub, item.span))
        if rest_sup:
            node = self.parser.superscript(rest_sup, item.span, node)
        return node

    def _constant(self, item: Item) -> ast.Node | None:
        """Euler's number and π, where no symbol of that name is declared."""
        if item.sub is not None:
            if item.text == "e" and item.sup is not None and not self.scope.knows("e"):
                raise FormulaError(
                    "the subscript stands on e, not on its exponent", item.span, "write e^{x_i}"
                )
            return None
        if item.text == "e" and item.sup is not None:
            exponent = self.parser.expression(item.sup, item.span)
            return ast.Call(item.span, "exp", (exponent,))
        if item.text in ("e", "pi"):
            node: ast.Node = ast.Number(item.span, math.e if item.text == "e" else math.pi)
            return node if item.sup is None else self.parser.superscript(item.sup, item.span, node)
        return None

    def _match(
        self, item: Item, sub: str | None, sup: str | None
    ) -> tuple[str, Items | None, Items | None] | None:
        """The declared name that the item begins with, and the scripts that are left for index and
        power.
        """
        base = item.text
        known = self.scope.tensors | set(self.scope.indices)
        full = join_name(base, sub, sup)
        readable = (item.sub is None or sub is not None) and (item.sup is None or sup is not None)
        if readable and full in known:
            return full, None, None
        transposed = None
        if item.sup is not None and len(item.sup) > 1 and self.parser.is_transpose(item.sup[-1:]):
            transposed, inner = item.sup[-1:], label(item.sup[:-1])
            if inner is not None and join_name(base, sub, inner) in known:
                return join_name(base, sub, inner), None, transposed
            if inner is not None and join_name(base, None, inner) in known:
                return join_name(base, None, inner), item.sub, transposed
        by_sup = sup is not None and item.sub is not None and join_name(base, None, sup) in known
        by_sub = sub is not None and item.sup is not None and join_name(base, sub, None) in known
        if by_sup and by_sub:
            raise FormulaError(
                f"{full} can be read as {spelled(join_name(base, None, sup))} with an index "
                f"or as {spelled(join_name(base, sub, None))} with a power",
                item.span,
                "rename one of the two symbols",
            )
        if by_sup:
            return join_name(base, None, sup), item.sub, None
        if by_sub:
            return join_name(base, sub, None), None, item.sup
        split = self._label_and_index(item, sup, known)
        if split is not None:
            return split
        if base in known:
            return base, item.sub, item.sup
        if item.sub is not None and len(base) == 1 and base.upper() in self.scope.tensors:
            return base.upper(), item.sub, item.sup  # x_i is row i of X
        return None

    def _label_and_index(
        self, item: Item, sup: str | None, known: set[str]
    ) -> tuple[str, Items, Items | None] | None:
        """``W_{q,i}``: the first part of the subscript belongs to the name, the rest is an
        index.
        """
        if item.sub is None or len(item.sub) < 2:
            return None
        for length in range(len(item.sub) - 1, 0, -1):
            first = label(item.sub[:length])
            rest = item.sub[length:]
            if rest[0].is_(","):
                rest = rest[1:]
            if first is None or not rest:
                continue
            for script, left in ((sup, None), (None, item.sup)):
                name = join_name(item.text, first, script)
                if name in known:
                    return name, rest, left
        return None

    def _unknown(self, item: Item, sub: str | None, sup: str | None) -> FormulaError:
        name = join_name(item.text, sub, None if item.sup is None else sup)
        shown = spelled(join_name(item.text, sub, None))
        known = sorted(self.scope.tensors | self.scope.functions | set(self.scope.indices))
        close = difflib.get_close_matches(name, known, n=1) or difflib.get_close_matches(
            item.text, known, n=1
        )
        span: Span = item.span
        hint = f"add `{shown} [shape]` to the declarations"
        if close:
            hint = f"did you mean {spelled(close[0])}? Otherwise {hint}"
        return UndeclaredSymbol(f"undeclared symbol {shown}", span, hint, item.text)
