"""Cells of notebooks in pages."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from selectolax.lexbor import LexborHTMLParser as HTMLParser
from small_repo import notebook_cells

from flower_site.blocks.check import check_text
from flower_site.blocks.notebook import render_outputs
from flower_site.problems import Problem, Problems

PAGE = "docs/cards/a.md"


def block(argument: str, *options: str) -> str:
    lines = [f"/// notebook | {argument}", *(f"    {option}" for option in options), "///", ""]
    return "\n".join(lines)


def test_a_figure_is_inlined_with_its_text_and_a_link_to_the_cell(render) -> None:
    html = render(block("demo#variance", "caption: 方差随 $d_k$ 增长"), page=PAGE)
    figure = HTMLParser(html).css_first("figure.flower-notebook")
    assert figure.id == "nb-demo-variance"
    svg = figure.css_first("svg")
    assert svg.attributes["role"] == "img"
    assert svg.attributes["aria-label"] == "方差随维数增长"
    assert 'id="nb-demo-variance-0-clip"' in html
    assert 'clip-path="url(#nb-demo-variance-0-clip)"' in html
    link = figure.css_first("figcaption a.flower-notebook__link")
    assert link.attributes["href"] == "../notebooks/demo.ipynb#variance"
    assert link.text() == "实验：示范"
    assert figure.css("figcaption .katex")
    assert "ratio" not in html  # a record is not shown beside the figure


def test_the_same_figure_twice_has_different_ids(render) -> None:
    html = render(block("demo#variance") * 2, page=PAGE)
    ids = [node.attributes["id"] for node in HTMLParser(html).css("[id]")]
    assert len(ids) == len(set(ids)) == 4


def test_alt_replaces_the_text_of_a_figure(render) -> None:
    assert 'aria-label="一张图"' in render(block("demo#unnamed", "alt: 一张图"))


def test_tables_and_texts(render) -> None:
    assert '<div class="flower-notebook__table" tabindex="0"><table><tr><td>1' in render(
        block("demo#table")
    )
    html = render(block("demo#text"))
    assert '<pre tabindex="0">a &lt; b</pre>\n<pre tabindex="0">7</pre>' in html


@pytest.mark.parametrize(
    ("show", "code", "output"), [("code", 1, 0), ("both", 1, 1), ("output", 0, 1)]
)
def test_show(render, show: str, code: int, output: int) -> None:
    figure = HTMLParser(render(block("demo#text", f"show: {show}"))).css_first("figure")
    assert len(figure.css(".highlight")) == code
    assert len(figure.css(".flower-notebook__output")) == output
    assert "label:" not in figure.text()


def test_code_of_a_silent_cell_can_be_shown(render) -> None:
    assert "highlight" in render(block("demo#silent", "show: code"))


@pytest.mark.parametrize(
    ("text", "line", "column", "width", "message", "remedy"),
    [
        (block("demos#variance"), 1, 16, 14, "没有笔记本 notebooks/demos.ipynb", "是不是 demo？"),
        (block("demo#varience"), 1, 16, 13, "没有标签 varience", "是不是 variance？"),
        (block("demo#silent"), 1, 16, 11, "没有可显示的输出", "make notebooks"),
        (block("demo#broken"), 1, 16, 11, "ValueError: no", "make notebooks"),
        (block("demo#unnamed"), 1, 16, 12, "没有文字说明", "alt"),
        (block("demo"), 1, 16, 4, "看不懂 demo", "笔记本#标签"),
        (block("demo#text", "show: outputs"), 2, 11, 7, "show 不能是 outputs", "是不是 output？"),
        (block("demo#text", "captoin: x"), 2, 5, 7, "没有选项 captoin", "是不是 caption？"),
        (block("demo#text", "caption: 图: 一"), 2, 15, 1, "YAML", "引号"),
        ("文\n\n/// notebook | demo#text\n", 3, 1, 24, "没有结束", "///"),
        ("- 项\n\n    /// notebook | demo#x\n    ///\n", 3, 20, 6, "没有标签 x", "有这些标签"),
    ],
)
def test_a_fault_is_reported_at_its_place(
    repo: Path, render, text: str, line: int, column: int, width: int, message: str, remedy: str
) -> None:
    found = check_text(text, Path(PAGE), repo)
    assert [(p.line, p.column, p.width) for p in found] == [(line, column, width)], [
        str(p) for p in found
    ]
    assert message in found[0].message
    assert remedy in (found[0].remedy or "")
    with pytest.raises((Problem, Problems)):
        render(text)


def test_the_notebooks_own_page_shows_what_it_has() -> None:
    cells = {cell.source.split()[2]: cell for cell in notebook_cells()[1:]}

    def shown(label: str) -> str:
        return render_outputs(SimpleNamespace(label=label, outputs=cells[label].outputs))

    assert 'id="cell-variance-0-clip"' in shown("variance")
    assert 'aria-label="unnamed"' in shown("unnamed")
    assert shown("silent") == ""
