"""What a committed notebook must be: each fault is named by file and cell, with its remedy."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from small_repo import RECORD, write_notebook

from flower_site import notebooks
from flower_site.blocks.check import check_text
from flower_site.notebook_rules import WIDGET
from flower_site.notebooks import NotebookError

Edit = Callable[[dict[str, Any]], object]
PRINTED = [new_output("stream", text="1\n")]


def edited(repo: Path, edit: Edit) -> list[str]:
    """The problems of a sound notebook of three code cells after an edit of its JSON."""
    record = [new_output("display_data", {RECORD: {"name": "speed", "value": 1.5}})]
    cells = [
        new_markdown_cell("# 实验：甲"),
        new_code_cell("#| label: one\nprint(1)", outputs=PRINTED),
        new_code_cell("2"),
        new_code_cell("#| label: three\n3", outputs=record),
    ]
    path = repo / "notebooks/demo.ipynb"
    write_notebook(path, cells)
    notebook = json.loads(path.read_text("utf-8"))
    edit(notebook)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False), encoding="utf-8")
    found = list(notebooks.find_problems(repo))
    for problem in found:
        assert str(problem.path) == "notebooks/demo.ipynb"
        assert problem.line
        assert problem.remedy
    return [problem.message for problem in found]


def tag(number: int, *tags: str, **metadata: str) -> Edit:
    return lambda book: book["cells"][number]["metadata"].update(tags=list(tags), **metadata)


def test_a_sound_notebook_has_no_fault(repo: Path) -> None:
    assert edited(repo, lambda book: None) == []
    assert edited(repo, tag(1, "hide_code")) == []


TAGS = ["nbval-ignore-output", "nbval-skip", "raises-exception", "nbval-raises-exception"]


@pytest.mark.parametrize("name", TAGS)
def test_a_tag_that_keeps_outputs_from_being_compared_needs_a_reason(repo: Path, name: str) -> None:
    (message,) = edited(repo, tag(1, name))
    assert message == f"单元 one：带 {name}，它的输出没有人核对，也没有写原因"
    assert edited(repo, tag(1, name, flower_reason="耗时随机器而变")) == []
    ((_, cell, why),) = notebooks.uncompared_cells(repo)
    assert (cell, why.tag, why.reason) == ("one", name, "耗时随机器而变")


@pytest.mark.parametrize("comment", ["# NBVAL_IGNORE_OUTPUT", "  #NBVAL_SKIP"])
def test_a_comment_that_nbval_obeys_is_such_a_tag(repo: Path, comment: str) -> None:
    def edit(book: dict[str, Any]) -> None:
        book["cells"][2]["source"] = f"x = 1\n{comment}"

    messages = edited(repo, edit)
    assert f"单元 3：带 {comment.strip().replace('#N', '# N')}" in messages[0]


def test_a_reason_without_a_tag_and_a_cell_that_never_runs(repo: Path) -> None:
    (message,) = edited(repo, tag(1, flower_reason="为什么"))
    assert "没有不核对输出的标签" in message
    (message,) = edited(repo, tag(1, "skip-execution"))
    assert "它的输出不是运行出来的" in message


@pytest.mark.parametrize(
    "text", ["/// notebook | demo#one\n///\n", "约 {nb}`demo#speed:.1f`\n"], ids=["cell", "record"]
)
def test_an_output_that_nobody_compares_is_embedded_nowhere(
    repo: Path, text: str, render: Callable[..., str]
) -> None:
    edited(repo, lambda book: None)
    assert check_text(text, Path("docs/a.md"), repo) == []
    for number in (1, 3):
        edited(repo, tag(number, "nbval-ignore-output", flower_reason="耗时随机器而变"))
        found = [problem.message for problem in check_text(text, Path("docs/a.md"), repo)]
        assert len(found) == (("one" in text) == (number == 1))
        assert all("没有人核对（nbval-ignore-output），不能引用" in message for message in found)
    edited(repo, tag(1, "nbval-ignore-output", flower_reason="耗时随机器而变"))
    with pytest.raises(NotebookError, match="不能引用"):
        notebooks.load("demo", repo).shown("one")
    code = "/// notebook | demo#one\n    show: code\n///\n"
    assert check_text(code, Path("docs/a.md"), repo) == []


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ((1, 7, 3), "单元 3：是第 7 个运行的，应当是第 2 个"),
        ((2, 3, 4), "单元 one：是第 2 个运行的，应当是第 1 个"),
        ((1, None, 2), "单元 3：没有运行过"),
    ],
)
def test_cells_that_were_not_run_in_order(
    repo: Path, counts: tuple[int | None, ...], message: str
) -> None:
    def edit(book: dict[str, Any]) -> None:
        for cell, count in zip(book["cells"][1:], counts, strict=True):
            cell["execution_count"] = count

    assert edited(repo, edit) == [message]


def without_ids(book: dict[str, Any]) -> None:
    book["nbformat_minor"] = 4
    for cell in book["cells"]:
        del cell["id"]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (without_ids, "格式早于 4.5"),
        (lambda book: book["cells"][2].pop("id"), "单元 3：没有编号（id）"),
        (lambda book: book["cells"][2].update(id=book["cells"][1]["id"]), "用了两次"),
        (lambda book: book["metadata"].update(kernelspec={"name": "ir"}), "内核是 ir"),
        (lambda book: book["metadata"].update(widgets={"x": {}}), "小部件（widget）的状态"),
    ],
)
def test_what_would_break_later(repo: Path, edit: Edit, message: str) -> None:
    (found,) = edited(repo, edit)
    assert message in found


def test_a_dead_widget_is_named_by_its_cell(repo: Path) -> None:
    widget = {"output_type": "display_data", "data": {WIDGET: {}}, "metadata": {}}
    found = edited(repo, lambda book: book["cells"][2].update(outputs=[widget]))
    assert any(message.startswith("单元 3：输出是小部件") for message in found)


def test_the_line_is_that_of_the_cell(repo: Path) -> None:
    edited(repo, tag(3, "nbval-skip"))
    (problem,) = notebooks.find_problems(repo)
    lines = (repo / "notebooks/demo.ipynb").read_text("utf-8").split("\n")
    cells = [number for number, line in enumerate(lines, 1) if '"cell_type"' in line]
    assert problem.line == cells[3]
    assert "^^^" in str(problem)
