"""The errors of the reader: each has a place in the LaTeX, and says what to do."""

from __future__ import annotations

from dataclasses import dataclass, field

Span = tuple[int, int]


class FormulaError(ValueError):
    """A formula that cannot be read, does not fit, or disagrees with its code.

    Args:
        message: what is wrong, in one sentence.
        span: start and end offset in the LaTeX text.
        hint: what the author can do about it.
        detail: further lines, such as both values of a disagreement.

    ``latex`` is filled in by the reader, so that ``str(error)`` can show line, column and a caret.
    """

    def __init__(
        self, message: str, span: Span, hint: str | None = None, detail: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.hint = hint
        self.detail = detail
        self.latex: str | None = None

    def __reduce__(self) -> tuple[object, ...]:
        """Errors cross from the process that evaluates to the one that reports."""
        return _copy, (type(self), self.args, self.__dict__)

    def __str__(self) -> str:
        parts = [self.message]
        if self.latex is not None:
            parts.append(show_place(self.latex, self.span))
        if self.detail:
            parts.append(self.detail)
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)


def _copy(
    kind: type[FormulaError], arguments: tuple[object, ...], state: dict[str, object]
) -> FormulaError:
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    error.__dict__.update(state)
    return error


class UndeclaredSymbol(FormulaError):
    """A symbol that ``where`` does not declare; ``name`` is its one spelling."""

    def __init__(self, message: str, span: Span, hint: str, name: str) -> None:
        super().__init__(message, span, hint)
        self.name = name


class RangeError(FormulaError):
    """An index that leaves its axis or is no whole number, at the sizes that ``detail`` names."""


class ShapeError(FormulaError):
    """Sizes that do not fit together."""


class Disagreement(FormulaError):
    """The formula was read and evaluated, and the code gives something else."""


class DeclarationError(FormulaError):
    """A line of ``where`` that cannot be read. ``span`` counts in that line's text."""

    def __init__(self, message: str, span: Span, declaration: str, hint: str | None = None) -> None:
        super().__init__(message, span, hint)
        self.declaration = declaration
        self.latex = declaration


class CallError(FormulaError):
    """A ``code:`` line that cannot be read or does not exist. ``span`` counts in that line."""

    def __init__(self, message: str, span: Span, call: str, hint: str | None = None) -> None:
        super().__init__(message, span, hint)
        self.call = call
        self.latex = call


@dataclass(frozen=True)
class FormulaWarning:
    """Something that reads differently from what the author evidently meant."""

    message: str
    span: Span
    hint: str | None = field(default=None)

    def describe(self, latex: str) -> str:
        """The warning with its place, ready to print."""
        text = f"{self.message}\n{show_place(latex, self.span)}"
        return f"{text}\nhint: {self.hint}" if self.hint else text


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """1-based line and column of an offset."""
    offset = max(0, min(offset, len(text)))
    line_start = text.rfind("\n", 0, offset) + 1
    return text.count("\n", 0, offset) + 1, offset - line_start + 1


def show_place(text: str, span: Span) -> str:
    """The line of ``text`` that holds ``span``, with a caret line under it."""
    line, column = line_and_column(text, span[0])
    content = text.split("\n")[line - 1]
    width = max(1, min(span[1] - span[0], len(content) - column + 1))
    prefix = f"{line}:{column}: "
    return f"{prefix}{content}\n{' ' * (len(prefix) + column - 1)}{'^' * width}"
