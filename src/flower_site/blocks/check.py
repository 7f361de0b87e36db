"""Everything that can be wrong with a page's blocks, roles, citations, math and diagrams, found
in its source text.

Takes milliseconds a page: formulas and diagrams that were drawn before come from the cache.
"""

from __future__ import annotations

from pathlib import Path

from flower_site.blocks import diagrams, formula, inline, math_check, notebook, references, source
from flower_site.blocks.page import page_of
from flower_site.problems import Problem
from flower_site.texts import Text

CHECKS = (
    math_check.find_problems,
    math_check.find_undrawn,
    diagrams.find_problems,
    formula.find_problems,
    notebook.find_problems,
    source.find_problems,
    inline.find_problems,
    references.find_problems,
)


def check_text(text: str, path: Path, root: Path) -> list[Problem]:
    """The problems of one page or one notebook cell, in order of their places.

    Whether a formula block can be read and agrees with its code is `FormulaBook.problems`, not
    asked again here.

    Args:
        text: the Markdown, front matter included.
        path: named in the problems; relative to the repository.
        root: the repository.
    """
    page = page_of(Text(text, path.as_posix()))
    found: dict[tuple[int, int], Problem] = {}
    for check in CHECKS:
        for problem in check(page, root):  # of two that name one place the first says more
            found.setdefault((problem.line or 0, problem.column or 0), problem)
    return [found[place] for place in sorted(found)]
