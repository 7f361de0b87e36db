r"""Splits LaTeX into tokens and drops what is only layout.

One token is one character, one command, or one word in text mode (``\text{...}``). Numbers are
put together later, because TeX takes a single digit as an argument (``\frac12``).
"""

from __future__ import annotations

from dataclasses import dataclass

from flower_formula.commands import SIZES, SPACES, TEXT, WITH_ARGUMENT
from flower_formula.errors import FormulaError, Span


@dataclass(frozen=True)
class Token:
    """``kind`` is ``command`` (text without the backslash), ``char``, or ``word`` (text mode)."""

    kind: str
    text: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        return self.start, self.end

    def is_(self, kind: str, *texts: str) -> bool:
        return self.kind == kind and self.text in texts


MAX_LENGTH = 20_000


def tokenize(latex: str) -> list[Token]:
    r"""Tokens of a formula.

    Raises:
        FormulaError: for a character outside what formulas use, an unclosed ``\text{``, a lone
            backslash, or a
            formula longer than 20,000 characters.
    """
    if len(latex) > MAX_LENGTH:
        raise FormulaError(
            f"the formula has {len(latex)} characters; the limit is {MAX_LENGTH}", (0, 1)
        )
    return _Lexer(latex).run()


class _Lexer:
    def __init__(self, latex: str) -> None:
        self.latex = latex
        self.at = 0
        self.tokens: list[Token] = []

    def run(self) -> list[Token]:
        while self.at < len(self.latex):
            char = self.latex[self.at]
            if char == "%":
                end = self.latex.find("\n", self.at)
                self.at = len(self.latex) if end < 0 else end
            elif char.isspace() or char == "~":
                self.at += 1
            elif char == "\\":
                self._command()
            else:
                self._char(char)
        return self.tokens

    def _add(self, kind: str, text: str, start: int) -> None:
        self.tokens.append(Token(kind, text, start, self.at))

    def _char(self, char: str) -> None:
        start = self.at
        self.at += 1
        if not char.isprintable():
            raise FormulaError(f"unprintable character U+{ord(char):04X}", (start, self.at))
        self._add("char", char, start)

    def _command(self) -> None:
        start = self.at
        end = start + 1
        while end < len(self.latex) and self.latex[end].isascii() and self.latex[end].isalpha():
            end += 1
        if end == start + 1:  # a control symbol: one character that is no letter
            if end == len(self.latex):
                raise FormulaError("a backslash at the end", (start, end), "delete it")
            end += 1
        name = self.latex[start + 1 : end]
        if name in ("operatorname", "tag", "hspace") and self.latex[end : end + 1] == "*":
            name, end = name + "*", end + 1
        self.at = end
        if name.isspace() or name in SPACES:
            return
        if name in SIZES:
            self._null_delimiter()
        elif name in WITH_ARGUMENT:
            self._raw_argument(name, start)
        elif name in TEXT:
            content, inner = self._raw_argument(name, start)
            if text := _plain_text(content):  # \text{ } only makes room
                self.tokens.append(Token("word", text, inner, inner + len(content)))
        elif name in ("\\", "cr", "newline"):
            if self.latex[self.at : self.at + 1] == "[" and name == "\\":  # \\[4pt]
                close = self.latex.find("]", self.at)
                if close > 0 and self.latex[self.at + 1 : close].rstrip("ptemx. 0123456789") == "":
                    self.at = close + 1
            self._add("command", "\\", start)
        else:
            self._add("command", name, start)

    def _null_delimiter(self) -> None:
        r"""``\right.`` has no visible bracket: drop the dot."""
        if self.latex[self.at : self.at + 1] == ".":
            self.at += 1

    def _raw_argument(self, name: str, start: int) -> tuple[str, int]:
        """The text of ``{...}`` at this place, braces balanced, and where it begins."""
        while self.at < len(self.latex) and self.latex[self.at].isspace():
            self.at += 1
        if self.latex[self.at : self.at + 1] != "{":
            if name in TEXT and self.at < len(self.latex) and self.latex[self.at].isalnum():
                self.at += 1
                return self.latex[self.at - 1], self.at - 1
            raise FormulaError(
                f"\\{name} needs an argument in braces", (start, self.at), f"write \\{name}{{...}}"
            )
        depth, inner = 0, self.at + 1
        for place in range(self.at, len(self.latex)):
            char = self.latex[place]
            if char in "{}" and self.latex[place - 1] != "\\":
                depth += 1 if char == "{" else -1
                if depth == 0:
                    self.at = place + 1
                    return self.latex[inner:place], inner
        raise FormulaError(f"the brace of \\{name} is never closed", (start, inner), "add }")


def _plain_text(content: str) -> str:
    r"""``rotate\_half`` as ``rotate_half``; layout inside text is dropped."""
    for escaped, plain in (("\\_", "_"), ("\\ ", " "), ("\\,", " "), ("~", " "), ("\\-", "-")):
        content = content.replace(escaped, plain)
    return " ".join(content.split())
