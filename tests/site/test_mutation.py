"""``flower mutate`` over the formulas of a repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from flower_site.mutation import mutation_report
from flower_site.problems import Problem

PAGE = r"""/// formula | row
    code: flower_transformer.attention.masked_softmax(z)
    where:
      z [m]: 一行分数
$$
y_i = \frac{\exp(z_i)}{\sum_{j=1}^{m} \exp(z_j)}
$$
///
"""


@pytest.mark.parametrize("slugs", [[], ["all"], ["row"]])
def test_none_and_all_are_every_formula(tmp_path: Path, slugs: list[str]) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "docs/a.md").write_text(PAGE, encoding="utf-8")
    lines = list(mutation_report(tmp_path, slugs))
    assert lines[0].text.startswith("row: 公式 拒绝 ")
    assert "漏过 0" in lines[0].text
    assert lines[-1].text.startswith("合计：代码")


def test_an_unknown_formula_is_named(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    with pytest.raises(Problem, match="没有名为 rwo 的公式"):
        list(mutation_report(tmp_path, ["rwo"]))
