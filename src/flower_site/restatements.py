"""Displayed formulas outside of blocks: each must restate a block, word for word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from flower_formula.errors import FormulaError
from flower_formula.segments import statement_texts
from flower_site.problems import Problem
from flower_site.sources import DisplayMath, FormulaBlock, display_math
from flower_site.texts import docstring_texts, notebook_texts, page_texts


def loose_formulas(root: Path, blocks: Iterable[FormulaBlock]) -> list[Problem]:
    """Display math in pages, notebooks and docstrings that no block accounts for.

    A display may repeat a block's formula, one of its equations, or one side of an equation.
    """
    known: list[set[str]] = []
    for block in blocks:
        try:
            known.append(set(statement_texts(block.latex, sides=True)))
        except FormulaError:
            continue  # the block's own check reports it
    found = []
    for display in _displays(root):
        try:
            said = set(statement_texts(display.latex))
        except FormulaError as error:
            found.append(_unreadable(display, error))
            continue
        if not any(said and said <= statements for statements in known):
            found.append(_unaccounted(display))
    return found


def _displays(root: Path) -> Iterator[DisplayMath]:
    for text in (*page_texts(root), *notebook_texts(root), *docstring_texts(root)):
        try:
            yield from (display for display in display_math(text) if not display.in_block)
        except Problem:
            continue  # a broken block: the book of formulas reports it


def _unreadable(display: DisplayMath, error: FormulaError) -> Problem:
    start, end = (display.start + offset for offset in error.span)
    return display.text.problem(f"公式读不懂：{error.message}", start, end, remedy=error.hint)


def _unaccounted(display: DisplayMath) -> Problem:
    start = display.start + len(display.latex) - len(display.latex.lstrip())
    return display.text.problem(
        "这个独立公式没有经过验证：它不在 formula 块里，也不是某个块的重述",
        start,
        start + len(display.latex.strip().split("\n")[0]),
        remedy="放进 /// formula 块并写明 code；确实无法验证时写 unchecked: 原因",
    )
