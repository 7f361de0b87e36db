"""The formula block as HTML."""

from __future__ import annotations

from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser as HTMLParser
from small_repo import FORMULA_PAGE

from flower_site.blocks.check import check_text
from flower_site.blocks.declarations import parts_of
from flower_site.math import Katex
from flower_site.problems import Problem

PAGE = "docs/cards/attention.md"


def text(node, selector: str) -> str:
    return node.css_first(selector).text().strip()


def test_a_block_is_a_numbered_figure_with_its_symbols_and_its_status(render) -> None:
    page = HTMLParser(render(FORMULA_PAGE, page=PAGE))
    first, second = page.css("figure.flower-formula")
    assert first.id == "formula-first"
    assert text(first, ".flower-formula__number") == "(1)"
    assert text(second, ".flower-formula__number") == "(2)"
    math = first.css_first("div.flower-formula__math")
    assert math.attributes["tabindex"] == "0"
    assert math.attributes["aria-label"] == "式 (1)"
    assert math.css_first(".katex-display") is not None
    assert not first.css(".flower-math--display")  # one box that scrolls, not two
    items = first.css(".flower-formula__where li")
    meanings = [item.text().split("：", 1)[1] for item in items]
    assert meanings[1] == "很小的数：防止除以 0"
    assert items[0].css("annotation")[-1].text() == "q"  # math inside a meaning
    assert [node.text() for node in items[0].css("annotation")][:2] == [
        "q",
        r"\in \mathbb{R}^{d_k}",
    ]
    assert not items[1].css(".flower-formula__shape")
    status = first.css_first("p.flower-formula__status")
    assert status.attributes["class"] == "flower-formula__status is-checked"
    assert status.text() == "✓ 已验证：与 flower_demo.attention.scaled 一致"
    assert status.css_first("a").attributes["href"] == "../verification.md#first"


def test_a_block_without_code_says_that_the_sides_agree(repo: Path, render) -> None:
    sides = FORMULA_PAGE.replace("    code: flower_demo.attention.scaled(q, k)\n", "")
    (repo / PAGE).write_text(sides, encoding="utf-8")
    status = HTMLParser(render(sides, page=PAGE)).css_first("p.flower-formula__status")
    assert status.text() == "✓ 已验证：等式各边一致"


def test_an_unchecked_formula_says_so(render) -> None:
    page = HTMLParser(render(FORMULA_PAGE, page=PAGE))
    status = page.css("p.flower-formula__status")[1]
    assert status.attributes["class"] == "flower-formula__status is-unchecked"
    assert status.text() == "未验证：只是记号"


def test_the_code_is_linked_to_its_excerpt_on_the_page_or_to_the_repository(render) -> None:
    def link(html: str) -> str | None:
        found = HTMLParser(html).css_first("p.flower-formula__status a:has(code)")
        return found.attributes["href"] if found else None

    assert link(render(FORMULA_PAGE, page=PAGE)) is None
    repository = "https://example.org/o/r"
    assert link(render(FORMULA_PAGE, page=PAGE, repository=repository)) == (
        f"{repository}/blob/main/src/flower_demo/attention.py#L6-L11"
    )
    excerpt = f"{FORMULA_PAGE}\n/// source | flower_demo.attention.scaled\n///\n"
    assert link(render(excerpt, page=PAGE)) == "#source-flower_demo.attention.scaled"


def test_a_formula_that_disagrees_with_its_code_stops_the_page(repo: Path, render) -> None:
    wrong = FORMULA_PAGE.replace("| first", "| wrong")
    (repo / PAGE).write_text(wrong, encoding="utf-8")
    with pytest.raises(Problem, match="不一致") as caught:
        render(wrong, page=PAGE)
    assert caught.value.line == 3


def test_a_block_that_cannot_be_read_stops_the_page(render) -> None:
    for text_, message in [
        (FORMULA_PAGE.replace("    code:", "    cod:"), "没有选项 cod"),
        (FORMULA_PAGE.replace("查询，", "查询: "), "YAML"),
        (FORMULA_PAGE.replace("///\n\n/// formula | second", "/// formula | second"), "没有结束"),
    ]:
        with pytest.raises(Problem, match=message):
            render(text_, page=PAGE)


def test_a_symbol_that_cannot_be_drawn_is_reported_at_its_place(repo: Path) -> None:
    broken = FORMULA_PAGE.replace("q [d_k]", "\\foo [d_k]")
    found = check_text(broken, Path(PAGE), repo)
    assert [(p.line, p.column, p.width) for p in found] == [(6, 7, 10)]
    assert "\\foo" in found[0].message


@pytest.mark.parametrize(
    ("declaration", "symbol", "shape"),
    [
        ("Q [n, d_k]", "Q", r"\in \mathbb{R}^{n \times d_k}"),
        ("W [a, p + r]", "W", r"\in \mathbb{R}^{a \times (p + r)}"),
        ("y [N] in 1..K", "y", r"\in \{1, \ldots, K\}^{N}"),
        ("v [d] > 0", "v", r"\in \mathbb{R}^{d},\ > 0"),
        (r"\epsilon", r"\epsilon", ""),
        ("q [d_k] ~ N(0,1)", "q", r"\in \mathbb{R}^{d_k},\ \sim \mathcal{N}(0,1)"),
        ("p [m] in {0, 1}", "p", r"\in \{0, 1\}^{m}"),
        ("T > 0", "T", "> 0"),
        ("d_model = h d_k", r"d_{\text{model}}", "= h d_k"),
        ("j in 1..m", "j", r"= 1, \ldots, m"),
        ("pos in 0..n-1", r"\mathit{pos}", r"= 0, \ldots, n-1"),
        (
            "W_i^Q [d_model, d_k] for i in 1..h",
            "W_i^Q",
            r"\in \mathbb{R}^{d_{\text{model}} \times d_k},\ i = 1, \ldots, h",
        ),
        ("x [0..n-1, d]", "x", r"\in \mathbb{R}^{n \times d}"),
        ("W^O [h d_v, d_model]", "W^O", r"\in \mathbb{R}^{h d_v \times d_{\text{model}}}"),
    ],
)
def test_declarations_are_drawn_as_math(declaration: str, symbol: str, shape: str) -> None:
    assert parts_of(declaration) == (symbol, shape)
    for latex in (symbol, shape):
        Katex().html(latex)
