"""Mutation testing of all published formulas, for ``flower mutate``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from flower_formula.mutation_score import MutationTest, Score
from flower_site.formula_worker import PACKAGES
from flower_site.formulas import FormulaBook
from flower_site.problems import Problem, nearest

CODE_GOAL = 0.95


@dataclass(frozen=True)
class Line:
    """One line of the report; ``failed``: a goal is missed."""

    text: str
    failed: bool = False


def mutation_report(root: Path, slugs: Sequence[str]) -> Iterator[Line]:
    """One line a formula, its survivors below, and the totals; all formulas for ``all`` or none.

    Raises:
        Problem: for a formula that does not exist or does not pass its own check.
    """
    book = FormulaBook.load(root)
    slugs = [] if list(slugs) == ["all"] else slugs
    for slug in slugs:
        if slug not in book.blocks:
            close = nearest(slug, book.blocks)
            raise Problem(
                f"没有名为 {slug} 的公式",
                path=root,
                remedy=f"是不是 {close}？" if close else "flower check 列出所有公式",
            )
    formulas, codes = Score(), Score()
    for slug in slugs or book.blocks:
        block = book.blocks[slug]
        if block.unchecked or not block.code:
            continue
        verdict = book.verdict(slug)
        if verdict.problem is not None:
            raise verdict.problem
        test = MutationTest(
            block.latex, block.code, block.where, packages=PACKAGES, library=book.library(slug)
        )
        of_formula, of_code = test.of_formula(), test.of_code()
        _add(formulas, of_formula)
        _add(codes, of_code)
        yield Line(f"{slug}: 公式 {_counts(of_formula)}；代码 {_counts(of_code)}")
        for change in of_formula.survivors:
            yield Line(f"    公式改错而未被发现：{change}", failed=True)
        for change in of_code.survivors:
            yield Line(f"    代码改动未被发现：{change}")
    yield Line(
        f"合计：公式 {_counts(formulas)}，得分 {formulas.share:.1%}", bool(formulas.survivors)
    )
    yield Line(f"合计：代码 {_counts(codes)}，得分 {codes.share:.1%}", codes.share < CODE_GOAL)


def _counts(score: Score) -> str:
    equal = f"，等值 {score.equal}" if score.equal else ""
    return f"拒绝 {score.refused}{equal}，漏过 {len(score.survivors)}"


def _add(total: Score, score: Score) -> None:
    total.refused += score.refused
    total.equal += score.equal
    total.survivors += score.survivors
