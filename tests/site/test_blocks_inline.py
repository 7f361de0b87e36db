"""Values of notebooks and links to formulas in running text."""

from __future__ import annotations

from pathlib import Path

import pytest

from flower_site import context
from flower_site.blocks.check import check_text
from flower_site.problems import Problem

PAGE = "docs/cards/a.md"


@pytest.mark.parametrize(
    ("role", "shown"),
    [("demo#ratio", "3.98"), ("demo#ratio:.1f", "4.0"), ("demo#ratio:.0%", "398%")],
)
def test_a_value_is_formatted_and_linked_to_its_cell(render, role: str, shown: str) -> None:
    html = render(f"约 {{nb}}`{role}` 倍", page=PAGE)
    assert 'href="../notebooks/demo.ipynb#variance"' in html
    assert f">{shown}</a> 倍" in html
    assert 'class="flower-value"' in html


def test_a_formula_of_another_page_is_linked_with_that_pages_title(render) -> None:
    html = render("见{eq}`second`。", page=PAGE)
    assert 'class="flower-equation" href="attention.md#formula-second"' in html
    assert 'title="缩放点积注意力">式 (2)</a>' in html


def test_a_formula_of_the_same_page_is_linked_within_it(render) -> None:
    html = render("见{eq}`first`。", page="docs/cards/attention.md")
    assert '<a class="flower-equation" href="#formula-first">式 (1)</a>' in html


def test_the_title_of_the_front_matter_comes_first(repo: Path, render) -> None:
    path = repo / "docs/cards/attention.md"
    path.write_text(
        f"---\ntitle: 另一题\n---\n{path.read_text(encoding='utf-8')}", encoding="utf-8"
    )
    assert 'title="另一题"' in render("{eq}`first`", page=PAGE)


def test_roles_work_in_tables_lists_and_emphasis_but_not_in_code(render) -> None:
    html = render(
        "- **{nb}`demo#ratio`**\n\n`` {nb}`demo#nothing` `` 与 `{eq}`\n\n```\n{nb}`a#b`\n```\n"
    )
    assert html.count("flower-value") == 1
    assert "<code>{nb}`demo#nothing`</code>" in html
    assert "<code>{eq}</code>" in html


@pytest.mark.parametrize(
    ("text", "line", "column", "width", "message", "remedy"),
    [
        ("约 {nb}`demo#ratoi` 倍", 1, 3, 16, "没有名为 ratoi 的记录", "是不是 ratio？"),
        ("一\n\n- {nb}`demi#ratio`", 3, 3, 16, "没有笔记本", "是不是 demo？"),
        ("{nb}`demo`", 1, 1, 10, "看不懂", "笔记本#记录名"),
        ("{nb}`demo#ratio:.2q`", 1, 1, 20, "不能按 .2q 显示", ".2f"),
        ("见 {eq}`fisrt`", 1, 3, 11, "没有名为 fisrt 的公式", "是不是 first？"),
        ("`` {nb}`a#b` `` {eq}`x`", 1, 17, 7, "没有名为 x 的公式", "formula 块"),
    ],
)
def test_a_fault_is_reported_at_its_place(
    repo: Path, render, text: str, line: int, column: int, width: int, message: str, remedy: str
) -> None:
    found = check_text(text, Path(PAGE), repo)
    assert [(p.line, p.column, p.width) for p in found] == [(line, column, width)]
    assert message in found[0].message
    assert remedy in (found[0].remedy or "")
    with pytest.raises(Problem):
        render(text)


def test_a_notebook_that_changes_is_read_again_except_within_a_build(repo: Path, render) -> None:
    path = repo / "notebooks/demo.ipynb"
    try:
        context.start_build()
        assert "3.98" in render("{nb}`demo#ratio`")
        path.write_text(path.read_text(encoding="utf-8").replace("3.98", "4.02"), encoding="utf-8")
        assert "3.98" in render("{nb}`demo#ratio`")
        context.start_build()
        assert "4.02" in render("{nb}`demo#ratio`")
    finally:
        context.end_build()
    path.write_text(path.read_text(encoding="utf-8").replace("4.02", "4.0155"), encoding="utf-8")
    assert "4.0155" in render("{nb}`demo#ratio`")


@pytest.mark.parametrize(
    ("here", "target", "link"),
    [
        ("docs/cards/a.md", "notebooks/x.ipynb", "../notebooks/x.ipynb#l"),
        ("docs/index.md", "docs/cards/a.md", "cards/a.md#l"),
        ("notebooks/x.ipynb", "docs/cards/a.md", "../cards/a.md#l"),
        ("docs/cards/a.md", "docs/cards/a.md", "#l"),
    ],
)
def test_links_are_relative_within_the_site(here: str, target: str, link: str) -> None:
    token = context.page.set(Path(here))
    try:
        assert context.link(target, "l") == link
    finally:
        context.page.reset(token)


def test_the_root_is_the_nearest_folder_with_a_configuration(repo: Path) -> None:
    assert context.find_root(repo / "docs" / "cards") == repo.resolve()
    with pytest.raises(FileNotFoundError, match=r"mkdocs\.yml"):
        context.find_root(Path("/"))
