r"""Reads tokens into TeX's own structure: items with subscript and superscript, groups, fractions,
rows.

Nothing here knows what a symbol means. TeX's rules hold: the argument of ``^``, ``_``, ``\frac``
and ``\sqrt`` is one token or one group, whatever the author may have meant; ``parser`` warns where
the two differ.
"""

from __future__ import annotations

from dataclasses import replace

from flower_formula.commands import (
    ACCENTS,
    ENVIRONMENTS,
    FUNCTION_COMMANDS,
    GREEK,
    LETTER_FONTS,
    SYMBOL_COMMANDS,
    WORD_FONTS,
)
from flower_formula.errors import FormulaError, Span
from flower_formula.items import Item, Items, as_word, join_numbers
from flower_formula.lexer import Token, tokenize

MAX_DEPTH = 60


def read_items(latex: str) -> Items:
    r"""The whole formula as items; rows of a bare ``\\`` are kept as ``\`` symbols.

    Raises:
        FormulaError: for anything unknown or unbalanced, by name and place. Every token is
            consumed.
    """
    try:
        reader = _Reader(latex, tokenize(latex))
        items = reader.items_until(None)
    except FormulaError as error:
        error.latex = latex
        raise
    return items


class _Reader:
    def __init__(self, latex: str, tokens: list[Token]) -> None:
        self.latex = latex
        self.tokens = tokens
        self.at = 0
        self.depth = 0

    def peek(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def next(self, what: str) -> Token:
        token = self.peek()
        if token is None:
            end = len(self.latex)
            raise FormulaError(f"the formula ends where {what} was expected", (end - 1, end))
        self.at += 1
        return token

    def items_until(self, closing: str | None, opening: Span = (0, 1)) -> Items:
        r"""Items up to ``}`` (consumed), or to the end when ``closing`` is None. Reads
        ``\over``.
        """
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise FormulaError(f"nested deeper than {MAX_DEPTH} levels", opening)
        items: list[Item] = []
        over: tuple[list[Item], Token] | None = None
        while True:
            token = self.peek()
            if token is None:
                if closing is not None:
                    raise FormulaError("this brace is never closed", opening, "add }")
                break
            if token.is_("char", "}"):
                if closing is None:
                    raise FormulaError("a closing brace without its opening one", token.span)
                self.at += 1
                break
            if token.is_("command", "over"):
                if over is not None:
                    raise FormulaError(r"a second \over in the same group", token.span)
                self.at += 1
                over, items = (items, token), []
                continue
            items.append(self.item())
        self.depth -= 1
        result = join_numbers(items)
        if over is not None:
            above, token = join_numbers(over[0]), over[1]
            if not above or not result:
                raise FormulaError(r"\over needs something on both sides", token.span)
            span = (above[0].span[0], result[-1].span[1])
            return (Item("frac", "over", span, parts=(above, result), nucleus=span),)
        return result

    def _here(self) -> Span:
        token = self.peek()
        if token is not None:
            return token.span
        return max(0, len(self.latex) - 1), len(self.latex)

    def item(self) -> Item:
        """A nucleus and its scripts."""
        token = self.peek()
        if token is not None and token.is_("char", "^", "_"):
            raise FormulaError(
                f"a script {token.text} with nothing before it", token.span, "write the base first"
            )
        nucleus = self.nucleus()
        sub: Items | None = None
        sup: Items | None = None
        end = nucleus.span[1]
        while (token := self.peek()) is not None:
            if token.is_("char", "'"):
                self.at += 1
                prime = Item("symbol", "prime", token.span, nucleus=token.span)
                sup = (*(sup or ()), prime)
            elif token.is_("char", "_") and sub is None:
                self.at += 1
                sub = self.argument("a subscript")
            elif token.is_("char", "^") and (not sup or sup[-1].is_("prime")):
                self.at += 1
                sup = (*(sup or ()), *self.argument("a superscript"))
            elif token.is_("char", "^", "_"):
                raise FormulaError(
                    f"a second {token.text} on the same symbol", token.span, "use braces"
                )
            else:
                break
            end = self.tokens[self.at - 1].end
        if nucleus.sub is not None or nucleus.sup is not None:  # \mathrm{head_1}
            if (sub and nucleus.sub) or (sup and nucleus.sup):
                raise FormulaError("a second script on the same symbol", nucleus.span, "use braces")
            sub, sup = sub or nucleus.sub, sup or nucleus.sup
        return replace(
            nucleus, sub=sub, sup=sup, span=(nucleus.span[0], end), nucleus=nucleus.nucleus
        )

    def argument(self, what: str) -> Items:
        """TeX's argument: one group, or one token."""
        token = self.peek()
        if token is None:
            raise FormulaError(f"the formula ends where {what} was expected", self._here())
        if token.is_("char", "{"):
            self.at += 1
            return self.items_until("}", token.span)
        if token.is_("char", "}", "^", "_", "&"):
            raise FormulaError(f"{what} is missing before {token.text}", token.span)
        return (self.nucleus(),)

    def nucleus(self) -> Item:
        token = self.next("a symbol")
        if token.kind == "word":
            return Item("word", token.text, token.span, nucleus=token.span)
        if token.kind == "char":
            return self._char(token)
        return self._command(token)

    def _char(self, token: Token) -> Item:
        char, span = token.text, token.span
        if char == "{":
            inner = self.items_until("}", span)
            span = (token.start, self.tokens[self.at - 1].end)
            if (
                len(inner) == 1
                and inner[0].kind in ("letter", "word")
                and inner[0] == inner[0].bare()
            ):
                return replace(inner[0], span=span, nucleus=span)  # {h}_i is h_i
            return Item("group", "", span, parts=(inner,), nucleus=span)
        if char.isdigit() and char.isascii():
            return Item("number", char, span, nucleus=span)
        if char.isalpha():
            return Item("letter", char, span, nucleus=span)
        if char == "." and self._dots():
            return Item(
                "symbol", "ldots", (token.start, self.tokens[self.at - 1].end), nucleus=span
            )
        if char in "+-*/=<>()[]|,;:.!&。，；：、…−∈·":
            char = {
                "−": "-",
                "，": ",",
                "。": ".",
                "；": ";",
                "：": ":",
                "…": "ldots",
                "、": ",",
            }.get(char, char)
            return Item("symbol", char, span, nucleus=span)
        raise FormulaError(f"unknown character {char!r}", span, "use its LaTeX command")

    def _dots(self) -> bool:
        """Three full stops typed as dots."""
        following = self.tokens[self.at : self.at + 2]
        if len(following) == 2 and all(t.is_("char", ".") for t in following):
            self.at += 2
            return True
        return False

    def _command(self, token: Token) -> Item:
        name, span = token.text, token.span
        if name in GREEK:
            return Item("letter", name, span, nucleus=span)
        if name in FUNCTION_COMMANDS:
            return Item("word", name, span, font="command", nucleus=span)
        if name in WORD_FONTS | LETTER_FONTS:
            return self._font(name, token)
        if name in ("frac", "dfrac", "tfrac", "cfrac"):
            above, below = self.argument("the numerator"), self.argument("the denominator")
            span = (token.start, self.tokens[self.at - 1].end)
            if not above or not below:
                raise FormulaError("a fraction with an empty part", span)
            return Item("frac", name, span, parts=(above, below), nucleus=span)
        if name == "sqrt":
            return self._sqrt(token)
        if name in ("underset", "overset", "stackrel"):
            under, body = self.argument("what is set under"), self.argument("what it is set under")
            span = (token.start, self.tokens[self.at - 1].end)
            return Item("under", name, span, parts=(body, under), nucleus=span)
        if name in ("underbrace", "overbrace"):  # the label under the brace is its subscript
            body = self.argument("what is braced")
            span = (token.start, self.tokens[self.at - 1].end)
            return Item("brace", name, span, parts=(body,), nucleus=span)
        if name in ACCENTS:
            body = self.argument("what carries the accent")
            span = (token.start, self.tokens[self.at - 1].end)
            if len(body) != 1 or body[0].kind not in ("letter", "word"):
                raise FormulaError(rf"\{name} over something that is no name", span)
            return replace(
                body[0], kind="word", text=f"{name}({body[0].text})", span=span, nucleus=span
            )
        if name == "begin":
            return self._environment(token)
        if name == "|":
            return Item("symbol", "Vert", span, nucleus=span)
        if name in SYMBOL_COMMANDS or name == "\\":
            return Item("symbol", name, span, nucleus=span)
        raise FormulaError(
            f"unknown command \\{name}", span, "use a command that the reader knows, or \\text{...}"
        )

    def _font(self, name: str, token: Token) -> Item:
        inner = self.argument(f"the argument of \\{name}")
        span = (token.start, self.tokens[self.at - 1].end)
        if name in WORD_FONTS:
            word = as_word(inner)
            if word is not None:
                return replace(word, span=span, nucleus=span, font=name)
        if len(inner) == 1 and inner[0].kind in ("letter", "number", "word"):
            font = "mathbb" if name == "mathbb" else ""
            return replace(inner[0], span=span, nucleus=span, font=font)
        return Item("group", "", span, parts=(inner,), nucleus=span)

    def _sqrt(self, token: Token) -> Item:
        degree: Items = ()
        following = self.peek()
        if following is not None and following.is_("char", "["):
            self.at += 1
            found: list[Item] = []
            while not self.next("]").is_("char", "]"):
                self.at -= 1
                found.append(self.item())
            degree = join_numbers(found)
        body = self.argument("the argument of \\sqrt")
        span = (token.start, self.tokens[self.at - 1].end)
        if not body:
            raise FormulaError("an empty root", span)
        return Item("sqrt", "", span, parts=(body, degree), nucleus=span)

    def _environment(self, begin: Token) -> Item:
        name = self._environment_name()
        if name not in ENVIRONMENTS:
            raise FormulaError(f"unknown environment {name!r}", begin.span)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise FormulaError(f"nested deeper than {MAX_DEPTH} levels", begin.span)
        if name in ("array", "alignedat"):
            self.argument("the column layout")
        rows: list[tuple[Items, ...]] = []
        cells: list[Items] = []
        cell: list[Item] = []

        def end_cell() -> None:
            cells.append(join_numbers(cell))
            cell.clear()

        def end_row() -> None:
            end_cell()
            if any(cells):
                rows.append(tuple(cells))
            cells.clear()

        while True:
            token = self.peek()
            if token is None:
                raise FormulaError(f"\\begin{{{name}}} is never closed", begin.span)
            if token.is_("command", "end"):
                self.at += 1
                closing = self._environment_name()
                if closing != name:
                    raise FormulaError(
                        f"\\begin{{{name}}} is closed by \\end{{{closing}}}", token.span
                    )
                break
            if token.is_("char", "&"):
                self.at += 1
                end_cell()
            elif token.is_("command", "\\"):
                self.at += 1
                end_row()
            elif token.is_("char", "}"):
                raise FormulaError("a closing brace without its opening one", token.span)
            else:
                cell.append(self.item())
        end_row()
        self.depth -= 1
        span = (begin.start, self.tokens[self.at - 1].end)
        return Item("rows", name, span, rows=tuple(rows), nucleus=span)

    def _environment_name(self) -> str:
        opening = self.next("{")
        letters = []
        if not opening.is_("char", "{"):
            raise FormulaError("an environment needs a name in braces", opening.span)
        while not (token := self.next("}")).is_("char", "}"):
            letters.append(token.text)
        return "".join(letters)
