"""Math in pages: what KaTeX draws, where, and where a fault in it is reported."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from flower_site.blocks import math, math_check
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


@pytest.mark.parametrize(
    "text",
    [
        "甲\n\n\\[\nx\n\\]\n\n乙\n",
        "\\[ x \\]\n",
        "- 项\n\n    \\[\n    x\n    \\]\n",
        "- 项\n    - 子项\n\n        \\[\n        x\n        \\]\n",
        "> 引\n>\n> \\[\n> x\n> \\]\n",
        "!!! note\n    \\[\n    x\n    \\]\n",
        "甲[^1]\n\n[^1]: 注\n\n    $$\n    x\n    $$\n\n乙\n",
    ],
)
def test_brackets_are_displays_too_and_both_are_drawn(repo: Path, render, text: str) -> None:
    assert check_text(text, Path("docs/a.md"), repo) == []
    html = render(text)
    assert annotations(html) == ["x"]
    assert "katex-display" in html


def test_footnotes_are_drawn_last_wherever_they_stand(render) -> None:
    html = render("甲[^1]\n\n[^1]: 注\n\n    $$\n    x\n    $$\n\n乙\n\n$$\ny\n$$\n")
    assert annotations(html) == ["y", "x"]


@pytest.mark.parametrize("marks", [("$$", "$$"), ("\\[", "\\]")])
@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("- 项\n(\nx\n)\n", 2, 1),
        ("- 项\n    (\n    x\n    )\n", 2, 5),
        ("- 项\n\n  (\n  x\n  )\n", 3, 3),
        ("- 项\n\n      (\n      x\n      )\n", 3, 7),
        ("- 项\n    - 子项\n\n      (\n      x\n      )\n", 4, 7),
        ("甲\n\n   (\n   x\n   )\n", 3, 4),
        ("甲\n\n      (\n      x\n      )\n", 3, 7),
        ("好\n\n(\ny\n)\n\n- 项\n\n   (\n   x\n   )\n", 9, 4),
        ("<div>\n\n(\nx\n)\n\n</div>\n", 3, 1),
    ],
)
def test_a_display_that_markdown_would_print_as_text_is_an_error(
    repo: Path, render, text: str, line: int, column: int, marks: tuple[str, str]
) -> None:
    text = text.replace("(", marks[0]).replace(")", marks[1])
    (found,) = check_text(text, Path("docs/a.md"), repo)
    assert (found.line, found.column) == (line, column)
    assert "原样显示" in found.message
    assert found.remedy
    with pytest.raises((Problem, Problems), match="原样显示"):
        render(text)


def test_what_is_drawn_is_compared_in_number_and_order(repo: Path, render, monkeypatch) -> None:
    """The gate of the finished HTML by itself: formulas lost or exchanged after the checks."""
    text = "$$\na\n$$\n\n$$\nb\n$$\n"
    assert annotations(render(text)) == ["a", "b"]
    drawn = math._DRAWN.findall
    for lost in (lambda found: found[:1], lambda found: found[::-1], lambda found: []):
        fake = SimpleNamespace(findall=lambda html, lost=lost: lost(drawn(html)))
        monkeypatch.setattr(math, "_DRAWN", fake)
        with pytest.raises(Problem, match="原样显示"):
            render(text)


def test_a_bare_environment_is_an_error(repo: Path) -> None:
    text = "甲\n\n\\begin{align}\nx\n\\end{align}\n"
    (found,) = check_text(text, Path("docs/a.md"), repo)
    assert (found.line, found.column) == (3, 1)
    assert "begin{aligned}" in (found.remedy or "")
    assert check_text("$$\n\\begin{align}\nx\n\\end{align}\n$$\n", Path("docs/a.md"), repo) == []


def test_escaped_brackets_in_a_sentence_are_text(repo: Path, render) -> None:
    text = "数组 \\[n\\] 与 \\[m\\]。\n"
    assert check_text(text, Path("docs/a.md"), repo) == []
    assert "数组 [n] 与 [m]。" in render(text)


def test_the_structure_is_that_of_the_site() -> None:
    configuration = (Path(__file__).parents[2] / "mkdocs.yml").read_text("utf-8")
    extensions = configuration[configuration.index("markdown_extensions:") :]
    for name in math_check.STRUCTURE:
        assert re.search(rf"^  - {re.escape(name)}:?$", extensions, re.M), name
    for option in ("generic: true", "inline_syntax: [dollar]", "block_syntax: [dollar, square]"):
        assert f"      {option}\n" in extensions


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
        ("除以 $\\sqrt d_k$\n", 1, 5, "没有盖住下标"),
        ("除以 $\\sqrt{d}_k$\n", 1, 5, "没有盖住下标"),
        ("除以 $\\sqrt \\alpha_t$\n", 1, 5, "没有盖住下标"),
        ("宽 $d_model$\n", 1, 5, "只有 m 排成下标"),
        ("宽 $d_ff$\n", 1, 5, "只有 f 排成下标"),
        ("/// formula | a\n    unchecked: 无\n$$\n\\sqrt d_k\n$$\n///\n", 4, 1, "没有盖住下标"),
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


def test_what_is_printed_as_it_is_meant_is_no_fault(repo: Path) -> None:
    text = r"$\sqrt{d_k}$、$\sqrt{a}\,b_k$、$\sqrt 2 x_k$、$d_{model}$、$a_ib_j$、"
    text += r"$x_{\max}$、$\text{a\_bcd}$"
    assert check_text(f"{text}\n", Path("docs/a.md"), repo) == []


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
