"""Finds out what a name means: a symbol, a member of a family, a function call, or nothing
known.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import replace
from typing import TYPE_CHECKING

from flower_formula import ast
from flower_formula.errors import FormulaError, Span, UndeclaredSymbol
from flower_formula.function_calls import FunctionReader
from flower_formula.functions import function_name
from flower_formula.items import Item, Items
from flower_formula.names import join_name, label, spelled
from flower_formula.scope import Scope

if TYPE_CHECKING:
    from flower_formula.parser import Cursor, Parser


class Resolver:
    """Reads names in a scope; expressions inside their scripts and brackets go back to the
    parser.
    """

    def __init__(self, scope: Scope, parser: Parser) -> None:
        self.scope = scope
        self.parser = parser
        self.functions = FunctionReader(scope, parser)

    def name(self, cursor: Cursor) -> ast.Node:
        """The name at the cursor, with its scripts and, for a function, its arguments."""
        item = self._word(cursor)
        if not self.scope.open and (function := self.functions.function_of(item)) is not None:
            return self.functions.call(cursor, item, function)
        return self._symbol(item)

    def starts_function(self, cursor: Cursor) -> bool:
        """Whether the next name is a function's, perhaps in letters side by side (``sin``)."""
        first = cursor.peek()
        if first is None or first.kind not in ("letter", "word") or self.scope.open:
            return False
        run = self._run(cursor)
        for length in range(len(run), 1, -1):
            text = "".join(item.text for item in run[:length])
            if self.scope.knows(text) or function_name(text) is not None:
                word = replace(run[length - 1], kind="word", text=text)
                return self.functions.function_of(word) is not None
        return self.functions.function_of(first) is not None

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

    def whole_radicand(self, item: Item) -> Item:
        r"""``\sqrt d_k``: TeX sets the root over d alone; the author meant all of d_k."""
        radicand = item.parts[0] if item.kind == "sqrt" else ()
        if item.sub is None or len(radicand) != 1 or radicand[0].kind not in ("letter", "word"):
            return item
        if join_name(radicand[0].text, label(item.sub), None) not in self.scope.tensors:
            return item
        written = rf"\sqrt{{{radicand[0].text}_{{{label(item.sub)}}}}}"
        self.parser.warn(
            f"TeX sets the root over {radicand[0].text} alone", item.span, f"write {written}"
        )
        inner = replace(radicand[0], sub=item.sub, span=item.span)
        return replace(item, parts=((inner,), *item.parts[1:]), sub=None)

    # -- symbols --------------------------------------------------------------------------------

    def _symbol(self, item: Item) -> ast.Node:
        sub, sup = label(item.sub, steps=True), label(item.sup)
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
        if rest_sup and name in self.scope.raised:
            node = ast.Indexed(item.span, node, self.parser.indices(rest_sup, item.span))
            rest_sup = None
        if rest_sub:
            node = ast.Indexed(item.span, node, self.parser.indices(rest_sub, item.span))
        if rest_sup:
            node = self.parser.superscript(rest_sup, item.span, node)
        return node

    def _constant(self, item: Item) -> ast.Node | None:
        """Euler's number and π, where no symbol of that name is declared."""
        if item.sub is not None:
            if item.text == "delta" and (parts := self.parser.indices(item.sub, item.span))[1:]:
                return self._kronecker(item, parts)
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

    def _kronecker(self, item: Item, parts: tuple[ast.Node, ...]) -> ast.Node:
        r"""``\delta_{ij}``, undeclared: 1 where the indices are equal, 0 elsewhere."""
        equal = ast.Compare(item.span, ("=",) * (len(parts) - 1), parts)
        one, zero = ast.Number(item.span, 1.0), ast.Number(item.span, 0.0)
        node: ast.Node = ast.Cases(item.span, ((one, equal), (zero, None)))
        return node if item.sup is None else self.parser.superscript(item.sup, item.span, node)

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
