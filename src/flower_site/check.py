"""Everything that can be checked from the sources, in seconds: what ``flower check`` does, and
every build does first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from flower_site import bibliography, formula_worker, notebooks
from flower_site.blocks.check import check_text
from flower_site.formulas import FormulaBook
from flower_site.front_matter import check_front_matter
from flower_site.problems import Problem
from flower_site.texts import notebook_texts, page_texts


@dataclass
class CheckReport:
    """``counts`` says how many things of each kind were looked at."""

    problems: list[Problem] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        return bool(self.problems)


def check_site(root: Path) -> CheckReport:
    """Checks formulas, references, labels, bibliography keys and front matter of the repository at
    ``root``.
    """
    report = CheckReport()
    formula_worker.start()
    book = FormulaBook.load(root)
    report.problems += book.problems()
    verdicts = {slug: book.verdict(slug) for slug in book.blocks}
    report.counts["公式块"] = len(verdicts)
    report.counts["已验证的公式"] = sum(v.status == "checked" for v in verdicts.values())
    report.counts["注明未验证的公式"] = sum(v.status == "unchecked" for v in verdicts.values())
    texts = [*page_texts(root), *notebook_texts(root)]
    for text in texts:
        report.problems += check_text(text.content, Path(text.path), root)
    report.counts["页面与笔记单元"] = len(texts)
    report.problems += notebooks.find_problems(root)
    report.counts["不核对输出的单元"] = len(notebooks.uncompared_cells(root))
    report.problems += bibliography.find_problems(root)
    problems, pages = check_front_matter(root)
    report.problems += problems
    report.counts["页首信息"] = pages
    return report
