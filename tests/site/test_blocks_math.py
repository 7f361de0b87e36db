"""Math in pages: what KaTeX draws, where, and where a fault in it is reported."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flower_site.blocks.check import check_text
from flower_site.problems import Problem, Problems


def annotations(html: str) -> list[str]:
    return re.findall(r"<annotation[^>]*>(.*?)</annotation>", html, re.S)


def test_inline_and_display_math_are_drawn_and_can_be_copied_as_latex(render) -> None:
    html = render("行内 $a_1$。\n\n$$\n\\begin{aligned} x &= 1 \\\\ y &< 2 \\end{aligned}\n$$\n")
    assert '<span class="flower-math"><span class="katex">' in html
    assert 'class="flower-math flower-math--display"' in html
    assert 'tabindex="0"' in html
    assert annotations(html) == [
        "a_1",
        "\\begin{aligned} x &amp;= 1 \\\\ y &amp;&lt; 2 \\end{aligned}",
    ]
    assert "$" not in re.sub(r"<annotation.*?</annotation>", "", html, flags=re.S)


@pytest.mark.parametrize(
    "text",
    [
        "- 项\n\n    $$\n    x\n    $$\n",
        "> $$\n> x\n> $$\n",
        "!!! note\n    $$\n    x\n    $$\n",
        "| a |\n| --- |\n| $x$ |\n",
        "- $x$\n- y\n",
        "## 为什么 $x$\n",
    ],
)
def test_math_is_drawn_wherever_it_stands(render, text: str) -> None:
    assert annotations(render(text)) == ["x"]


def test_dollars_in_code_and_in_prices_stay(render) -> None:
    html = render("`$x$`，$5 和 $6。\n\n```\n$y$\n```\n")
    assert "<code>$x$</code>" in html
    assert "$5 和 $6" in html
    assert "katex" not in html


def test_chinese_in_text_is_drawn(render) -> None:
    assert "<mtext>注意力</mtext>" in render("$\\text{注意力}$")


def test_a_heading_gets_its_name_and_anchor_from_plain_text(render) -> None:
    html = render("# 一\n\n## Why $\\sqrt{d_k}$\n\n[TOC]\n")
    assert '<a href="#why-d_k">Why √d_k</a>' in html
    assert '<h2 id="why-d_k">Why <span class="flower-math"><span class="katex">' in html


def test_the_drawing_and_the_source_stay_out_of_the_search_index(render) -> None:
    html = render("$x$")
    assert 'class="katex-html" data-search-exclude' in html
    assert "<annotation data-search-exclude" in html


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("一\n\n坏的 $a + \\foo$ 式\n", 3, 9, "Undefined control sequence: \\foo"),
        ("$$\na\n\\frac{a\n$$\n", 3, 7, "Unexpected end of input"),
        ("$x中$\n", 1, 3, "中"),
        ("文\n$$\nx\n$$\n", 2, 1, "没有自成一段"),
        ("$$\nx\n$$\n文\n", 1, 1, "没有自成一段"),
        ("文 $$x$$ 字\n", 1, 3, "没有自成一段"),
        ("$$\na\n\nb\n$$\n", 3, 1, "空行"),
        ("| a |\n| --- |\n| $|x|$ |\n", 3, 4, "分列符"),
        ("见 \\(x_1\\)\n", 1, 3, "不被当作公式"),
        ("> 引\n>\n> 坏 $\\foo$\n", 3, 6, "\\foo"),
        ("- 甲\n\n    坏 $\\foo$\n", 3, 8, "\\foo"),
        ("/// formula | a\n    unchecked: 无\n$$\n\\foo\n$$\n///\n", 4, 1, "\\foo"),
        ("`$\\foo$` 好，$\\bar$ 坏\n", 1, 16, "Unexpected end"),
    ],
)
def test_a_fault_is_reported_at_its_place(
    repo: Path, render, text: str, line: int, column: int, message: str
) -> None:
    found = check_text(text, Path("docs/a.md"), repo)
    assert [(p.line, p.column) for p in found] == [(line, column)], [str(p) for p in found]
    assert message in found[0].message
    assert found[0].remedy
    with pytest.raises((Problem, Problems)):
        render(text)


def test_the_place_counts_the_front_matter_that_mkdocs_takes_away(repo: Path, render) -> None:
    body = "# 题\n\n坏 $\\foo$\n"
    (repo / "docs/cards/a.md").write_text(
        f"---\ntitle: 题\ntags: [a]\n---\n\n{body}", encoding="utf-8"
    )
    with pytest.raises(Problem) as caught:
        render(body, page="docs/cards/a.md")
    assert (caught.value.path, caught.value.line, caught.value.column) == ("docs/cards/a.md", 8, 4)
    assert str(caught.value).startswith("docs/cards/a.md:8:4: 错误：")


def test_all_faults_of_a_page_are_raised_together(render) -> None:
    with pytest.raises(Problems) as caught:
        render("$\\foo$ 与 $\\bar$")
    assert len(caught.value.problems) == 2
