"""The book of formulas: verdicts, definitions across blocks, the cache, and loose formulas."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flower_site import formula_worker
from flower_site.formula_worker import Job
from flower_site.formulas import FormulaBook

ATTENTION = r"""/// formula | attention
    code: flower_transformer.attention.scaled_dot_product_attention(Q, K, V)
    where:
      Q [n, d_k]: 查询
      K [m, d_k]: 键
      V [m, d_v]: 值
$$
\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\left(\frac{QK^{\top}}{\sqrt{d_k}}\right)V
$$
///
"""
SELF = r"""/// formula | self-attention
    code: flower_transformer.attention.scaled_dot_product_attention(X, X, X)
    where:
      X [n, d]: 输入
$$
Y = \mathrm{Attention}(X, X, X)
$$
///
"""
WEIGHTS = r"""/// formula | weights
    code: flower_transformer.attention.attention_weights(q, k)
    where:
      q [d]: 查询
      k_i [d] for i in 1..m: 键
$$
\alpha_i = \frac{\exp(q^\top k_i / \sqrt{d})}{\sum_{j=1}^{m} \exp(q^\top k_j / \sqrt{d})}
$$
///
"""
OUTPUT = r"""/// formula | output
    code: flower_transformer.attention.scaled_dot_product_attention(q, k, v)
    uses: weights
    where:
      q [d]: 查询
      k_i [d] for i in 1..m: 键
      v_i [w] for i in 1..m: 值
$$
o = \sum_{i=1}^{m} \alpha_i v_i
$$
///
"""


def book(tmp_path: Path, **pages: str) -> FormulaBook:
    for name, content in pages.items():
        path = tmp_path / f"docs/{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return FormulaBook.load(tmp_path)


def only_problem(tmp_path: Path, **pages: str) -> str:
    (problem,) = book(tmp_path, **pages).problems()
    assert problem.remedy
    return str(problem)


def test_right_formulas_have_no_problem(tmp_path: Path) -> None:
    found = book(tmp_path, a=ATTENTION + SELF, b=WEIGHTS, c=OUTPUT)
    assert found.problems() == []
    assert {slug: found.verdict(slug).status for slug in found.blocks} == dict.fromkeys(
        ["attention", "self-attention", "weights", "output"], "checked"
    )
    assert found.verdict("output").draws == 25


def test_a_disagreement_has_file_line_column_and_caret(tmp_path: Path) -> None:
    shown = only_problem(tmp_path, a="# 题\n\n" + ATTENTION.replace(r"\sqrt{d_k}", "d_k"))
    assert shown.startswith("docs/a.md:10:31: 错误：公式与代码不一致")
    assert re.search(r"^ +\| {31}\^+$", shown, re.M)
    assert "the formula gives" in shown


@pytest.mark.parametrize(
    ("old", "new", "message", "place"),
    [
        ("Q [n, d_k]: 查询", "Q [n, d_k: 查询", "声明读不懂", "docs/a.md:4:"),
        ("attention.scaled", "attention.scalde", "code 有误", "docs/a.md:2:40"),
        (r"\mathrm{softmax}", r"\foo", "unknown command", "docs/a.md:8:31"),
        ("QK^", "QP^", "undeclared symbol P", "docs/a.md:8:60"),
    ],
)
def test_problems_point_at_their_line(
    tmp_path: Path, old: str, new: str, message: str, place: str
) -> None:
    shown = only_problem(tmp_path, a=ATTENTION.replace(old, new))
    assert message in shown
    assert shown.startswith(place)


def test_a_wrong_definition_is_reported_once_for_each_block_it_breaks(tmp_path: Path) -> None:
    wrong = ATTENTION.replace(r"QK^{\top}", "QK")
    problems = book(tmp_path, a=wrong + SELF).problems()
    assert len(problems) == 2
    assert "in the formula of Attention (block attention)" in str(problems[1])


def test_a_tensor_of_another_block_needs_uses(tmp_path: Path) -> None:
    shown = only_problem(tmp_path, a=WEIGHTS + OUTPUT.replace("    uses: weights\n", ""))
    assert "undeclared symbol" in shown
    assert "uses: weights" in shown


def test_unknown_block_under_uses(tmp_path: Path) -> None:
    shown = only_problem(tmp_path, a=WEIGHTS + OUTPUT.replace("uses: weights", "uses: wieghts"))
    assert "是不是 weights" in shown


def test_a_function_defined_twice_needs_uses(tmp_path: Path) -> None:
    twice = ATTENTION + ATTENTION.replace("| attention", "| attention-again") + SELF
    assert "由几个公式定义" in only_problem(tmp_path, a=twice)
    chosen = twice.replace("(X, X, X)\n    where", "(X, X, X)\n    uses: attention\n    where")
    assert book(tmp_path, a=chosen).problems() == []


def test_circles(tmp_path: Path) -> None:
    one = "/// formula | f\n    where:\n      x [n]: 数\n$$\nf(x) = g(x)\n$$\n///\n"
    other = one.replace("| f", "| g").replace("f(x) = g(x)", "g(x) = f(x)")
    problems = book(tmp_path, a=one + other).problems()
    assert ["互相引用成环" in str(problem) for problem in problems] == [True, True]


def test_a_slug_used_twice(tmp_path: Path) -> None:
    assert "已经用在 docs/a.md:1" in only_problem(tmp_path, a=ATTENTION, b=ATTENTION)


def test_unchecked_shows_its_reason(tmp_path: Path) -> None:
    block = "/// formula | a\n    unchecked: 只是记号\n$$\nt < s\n$$\n///\n"
    verdict = book(tmp_path, a=block).verdict("a")
    assert (verdict.status, verdict.reason) == ("unchecked", "只是记号")


def test_nothing_to_compare_with_is_an_error(tmp_path: Path) -> None:
    block = "/// formula | a\n    where:\n      x [n]: 数\n$$\ny = 2x\n$$\n///\n"
    assert "nothing to compare" in only_problem(tmp_path, a=block)


@pytest.mark.parametrize(
    ("loose", "accounted"),
    [
        (r"$$\mathrm{Attention}(Q,K,V)=\mathrm{softmax}(\frac{QK^{\top}}{\sqrt{d_k}})V.$$", True),
        (r"$$\mathrm{softmax}\left(\frac{QK^{\top}}{\sqrt{d_k}}\right)V$$", True),
        (r"$$\mathrm{softmax}\left(\frac{QK^{\top}}{d_k}\right)V$$", False),
        ("$$E = mc^2$$", False),
        ("`$$E = mc^2$$`", True),
        (r"\[\mathrm{softmax}\left(\frac{QK^{\top}}{\sqrt{d_k}}\right)V\]", True),
        (r"\[\mathrm{softmax}\left(\frac{QK^{\top}}{d_k}\right)V\]", False),
        ("> $$\n> \\mathrm{softmax}\n> (\\frac{QK^{\\top}}{\\sqrt{d_k}})V\n> $$", True),
        ("> $$\n> \\mathrm{softmax}\n> (\\frac{QK^{\\top}}{d_k})V\n> $$", False),
    ],
)
def test_loose_formulas_restate_a_block_or_are_refused(
    tmp_path: Path, loose: str, accounted: bool
) -> None:
    problems = book(tmp_path, a=ATTENTION, b=f"文字\n\n{loose}\n").problems()
    assert [p.line for p in problems] == ([] if accounted else [3 + loose.startswith(">")])


def test_a_verdict_is_kept_until_something_it_depends_on_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    check_all = formula_worker.check_all

    def counted(jobs: list[Job]) -> list[object]:
        ran.extend(job.latex.strip()[:1] for job in jobs)
        return list(check_all(jobs))

    monkeypatch.setattr(formula_worker, "check_all", counted)

    def verdicts() -> int:
        ran.clear()
        found = book(tmp_path)
        for slug in found.blocks:
            assert found.verdict(slug).status == "checked"
        return len(ran)

    code = tmp_path / "code.py"
    code.write_text("# one\n")
    monkeypatch.setattr(formula_worker, "source_files", lambda: [code])
    book(tmp_path, a=ATTENTION, b=SELF, c=WEIGHTS)
    assert verdicts() == 3
    assert verdicts() == 0
    code.write_text("# two\n")
    assert verdicts() == 3
    book(tmp_path, a=ATTENTION.replace(r"\left(", "(").replace(r"\right)", ")"))
    assert verdicts() == 2  # self-attention uses it
