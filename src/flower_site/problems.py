"""What an editor is told when something is wrong: where, what, and what to do."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(eq=False)
class Problem(Exception):
    """One fault in one place.

    ``str(problem)`` reads::

        docs/cards/a.md:12:5: 错误：没有名为 varience 的记录
          12 | 约为 {nb}`a#varience:.2f`
             |     ^^^^^^^^^^^^^^^^^^^^
          改法：是不是 variance？

    Args:
        message: what is wrong, one sentence.
        path: the file, as the editor should see it (relative to the repository where possible).
        line: 1-based line; ``None`` when the whole file is meant.
        column: 1-based column, counted in characters.
        text: the source line, for the caret.
        width: how many characters the caret underlines.
        remedy: what to do about it.
        detail: further lines (both values of a disagreement, for example).
    """

    message: str
    path: Path | str
    line: int | None = None
    column: int | None = None
    text: str | None = None
    width: int = 1
    remedy: str | None = None
    detail: str | None = None

    def __post_init__(self) -> None:
        super().__init__(self.message)

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.path, self.line, self.column) if part)
        lines = [f"{place}: 错误：{self.message}"]
        if self.text is not None and self.line is not None:
            number = str(self.line)
            lines.append(f"  {number} | {self.text}")
            if self.column is not None:
                lines.append(f"  {' ' * len(number)} | {self._caret()}")
        if self.detail:
            lines.extend(f"  {line}" for line in self.detail.splitlines())
        if self.remedy:
            lines.append(f"  改法：{self.remedy}")
        return "\n".join(lines)

    def _caret(self) -> str:
        """A caret under the place, two columns wide under each wide (Chinese) character."""
        assert self.text is not None
        assert self.column is not None
        before, marked = self.text[: self.column - 1], self.text[self.column - 1 :][: self.width]
        return " " * display_width(before) + "^" * max(1, display_width(marked))


class Problems(Exception):
    """Several faults found in one run."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("\n\n".join(str(problem) for problem in self.problems))


def display_width(text: str) -> int:
    """Columns that ``text`` takes in a terminal: wide characters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate most like ``name``, for “是不是 X？”; ``None`` when nothing is close."""
    matches = difflib.get_close_matches(name, list(candidates), n=1, cutoff=0.6)
    return matches[0] if matches else None
