"""Notebook → Markdown → page, without MkDocs: markers, labels, faults."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from flower_site.notebook_pages import (
    download_uri,
    embedded_notebooks,
    fill_cells,
    read_notebook,
)
from flower_site.problems import Problem

URI = "notebooks/a.ipynb"


def write(folder: Path, *cells: Any) -> Path:
    path = folder / "a.ipynb"
    notebook = new_notebook(cells=list(cells))
    path.write_text(nbformat.writes(notebook), encoding="utf-8")
    return path


def code(source: str, *outputs: Any) -> Any:
    return new_code_cell(source, outputs=list(outputs))


TITLE = new_markdown_cell("# 实验：缩放\n\n看[方差](../docs/cards/a.md)怎样\n增长。\n\n余下。")


def test_title_summary_and_bar(tmp_path: Path) -> None:
    page = read_notebook(write(tmp_path, TITLE), URI, [("cards/a.md", "卡片甲")])
    assert page.title == "实验：缩放"
    assert page.summary == "看方差怎样 增长。"
    heading, bar, *_ = page.markdown.split("---\n\n")[1].split("\n\n<div")
    assert heading == "# 实验：缩放"
    assert "[下载笔记本](download/a.ipynb)" in page.markdown
    assert "引用它的页面：[卡片甲](../cards/a.md)" in page.markdown
    assert "data-search-exclude" in bar


def test_cells_become_fences_between_markers(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        TITLE,
        code("#| label: one\n#| other: x\nprint('```')", new_output("stream", text="1\n")),
        code("x = 1"),
        code("   "),
    )
    page = read_notebook(path, URI)
    assert [cell.label for cell in page.cells] == ["one", None]
    assert page.cells[0].source == "print('```')"
    assert '<div class="flower-cell" id="one" data-cell="0"></div>' in page.markdown
    assert "````python\nprint('```')\n````" in page.markdown
    assert "#|" not in page.markdown


def test_filling_draws_label_and_outputs(tmp_path: Path) -> None:
    record = {
        "text/plain": "r = 2",
        "application/vnd.flower.record+json": {"name": "r", "value": 2},
    }
    path = write(
        tmp_path,
        TITLE,
        code("#| label: one\nprint(1)", new_output("stream", text="1 < 2\n")),
        code("record('r', 2)", new_output("display_data", data=record)),
    )
    page = read_notebook(path, URI)
    html = fill_cells(page.markdown, page)
    assert '<div class="flower-cell" id="one"><a class="flower-cell__label" href="#one"' in html
    assert "1 &lt; 2</pre></div></div>" in html
    assert "<code>r</code> = 2" in html
    assert "data-cell" not in html


def test_a_cell_that_the_page_swallowed_is_a_fault(tmp_path: Path) -> None:
    page = read_notebook(write(tmp_path, TITLE, code("x"), code("y")), URI)
    swallowed = page.markdown.replace(' data-cell="1"', "")
    with pytest.raises(Problem, match="第 2 个代码单元格没有出现"):
        fill_cells(swallowed, page)


def test_an_error_output_is_a_fault(tmp_path: Path) -> None:
    error = new_output("error", ename="ZeroDivisionError", evalue="division by zero", traceback=[])
    with pytest.raises(Problem, match="第 2 个单元格的输出是错误 ZeroDivisionError") as caught:
        read_notebook(write(tmp_path, TITLE, code("1/0", error)), URI)
    assert caught.value.path == URI


def test_a_figure_without_words_is_a_fault(tmp_path: Path) -> None:
    svg = new_output("display_data", data={"image/svg+xml": '<svg viewBox="0 0 1 1"></svg>'})
    page = read_notebook(write(tmp_path, TITLE, code("plot()", svg)), URI)
    with pytest.raises(Problem):
        fill_cells(page.markdown, page)


@pytest.mark.parametrize("cells", [[], [code("x = 1")], [new_markdown_cell("没有标题")]])
def test_a_notebook_needs_a_title(tmp_path: Path, cells: list[Any]) -> None:
    with pytest.raises(Problem, match="没有标题"):
        read_notebook(write(tmp_path, *cells), URI)


def test_a_broken_file_is_a_message(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text("{", encoding="utf-8")
    with pytest.raises(Problem, match="读不了这个笔记本"):
        read_notebook(path, URI)


def test_what_a_page_embeds() -> None:
    text = "/// notebook | one#a\n///\n约 {nb}`two#ratio:.2f`，{nb}`one#x`。"
    assert embedded_notebooks(text) == {"one", "two"}
    assert download_uri("notebooks/experiments/a.ipynb") == "notebooks/experiments/download/a.ipynb"
