"""Images pasted into a notebook's Markdown cells become files of the page."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from nbformat.v4 import new_markdown_cell
from small_repo import write_notebook
from test_plugin import build, make_repository

from flower_site import notebooks
from flower_site.attachments import with_files
from flower_site.html_check import check_html
from flower_site.problems import Problem

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
URI = "notebooks/a.ipynb"
ATTACHED = {"image.png": {"image/png": base64.b64encode(PNG).decode()}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("![一个点](attachment:image.png)", "![一个点](a/cell-3-1.png)"),
        ('![一个点](attachment:image.png "题")', '![一个点](a/cell-3-1.png "题")'),
        ('<img src="attachment:image.png" alt="点">', '<img src="a/cell-3-1.png" alt="点">'),
        ("`![x](attachment:none.png)` 与 ![点](attachment:image.png)", None),
    ],
)
def test_a_pasted_image_becomes_a_file(before: str, after: str | None) -> None:
    markdown, files = with_files(f"甲\n\n{before}\n", ATTACHED, URI, 3)
    assert files == {"notebooks/a/cell-3-1.png": PNG}
    if after is None:
        after = "`![x](attachment:none.png)` 与 ![点](a/cell-3-1.png)"
    assert markdown == f"甲\n\n{after}\n"


def test_names_with_blanks_and_pictures_as_text() -> None:
    attached = {"我的 图 (1).svg": {"image/svg+xml": ["<svg>", "</svg>"]}}
    source = "![图](attachment:%E6%88%91%E7%9A%84%20%E5%9B%BE%20(1).svg)"
    markdown, files = with_files(source, attached, "notebooks/x/b.ipynb", 1)
    assert files == {"notebooks/x/b/cell-1-1.svg": b"<svg></svg>"}
    assert markdown == "![图](b/cell-1-1.svg)"


@pytest.mark.parametrize(
    ("source", "attached", "message", "column"),
    [
        ("看 ![](attachment:image.png)", ATTACHED, "图片 image.png 没有说明", 3),
        ("![image.png](attachment:image.png)", ATTACHED, "图片 image.png 没有说明", 1),
        ('<img src="attachment:image.png">', ATTACHED, "图片 image.png 没有说明", 1),
        ("![点](attachment:imaeg.png)", ATTACHED, "没有附件 imaeg.png", 6),
        ("[点](attachment:image.png)", ATTACHED, "这样引用附件，网页上看不到", 5),
        ("![点](attachment:a)", {"a": {"text/plain": "x"}}, "不是图片（text/plain）", 6),
        ("![点](attachment:a)", {"a": {"image/png": "=?="}}, "数据坏了", 6),
    ],
)
def test_a_fault_names_file_cell_and_place(
    source: str, attached: dict[str, dict[str, str]], message: str, column: int
) -> None:
    with pytest.raises(Problem) as caught:
        with_files(f"# 题\n\n{source}\n", attached, URI, 2)
    assert message in caught.value.message
    assert (caught.value.path, caught.value.line) == (f"{URI}, cell 2", 3)
    assert caught.value.column == column
    assert caught.value.remedy


def test_the_check_of_the_sources_finds_it(repo: Path) -> None:
    cell = new_markdown_cell("# 题\n\n![](attachment:image.png)", attachments=ATTACHED)
    write_notebook(repo / "notebooks/demo.ipynb", [cell])
    (problem,) = notebooks.find_problems(repo)
    assert "没有说明" in problem.message


def test_the_built_page_shows_it(tmp_path: Path) -> None:
    folder = make_repository(tmp_path / "repository")
    path = folder / "notebooks/scaled.ipynb"
    notebook = json.loads(path.read_text("utf-8"))
    notebook["cells"].append(
        {
            "cell_type": "markdown",
            "id": "pasted",
            "metadata": {},
            "source": "![一个点](attachment:image.png)",
            "attachments": ATTACHED,
        }
    )
    path.write_text(json.dumps(notebook), encoding="utf-8")
    done = build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    number = len(notebook["cells"])
    page = (folder / "site/notebooks/scaled/index.html").read_text("utf-8")
    assert f'<img alt="一个点" src="cell-{number}-1.png"' in page
    assert (folder / f"site/notebooks/scaled/cell-{number}-1.png").read_bytes() == PNG
    assert check_html(folder / "site").faults == []
