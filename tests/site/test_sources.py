"""Blocks and displayed formulas are found in the sources, each with its exact place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flower_site.blocks.page import page_of
from flower_site.problems import Problem
from flower_site.sources import display_math, formula_blocks
from flower_site.texts import Text, docstring_texts, notebook_texts

PAGE = """# 标题

```md
/// formula | shown-as-an-example
$$
x
$$
///
```

/// formula | softmax
    code: flower_transformer.attention.masked_softmax(z)
    uses: other-block
    where:
      z [m]: 一行分数，其中 `#` 与 $x$ 都可以写
      p [m] in {0, 1}: 开关
$$
y = z
$$
///

行内 $a$ 与 `$$ 代码 $$`，独立 $$ b = c $$。
<!-- $$ 注释 $$ -->
"""


def page(content: str) -> Text:
    return Text(content, "docs/cards/a.md")


def test_a_block_is_read_with_places() -> None:
    (block,) = formula_blocks(page(PAGE))
    assert block.slug == "softmax"
    assert block.code == "flower_transformer.attention.masked_softmax(z)"
    assert block.uses == ("other-block",)
    assert list(block.where) == ["z [m]", "p [m] in {0, 1}"]
    assert block.latex == "\ny = z\n"
    assert block.line == 11
    places = {key: block.text.place(at) for key, at in block.option_starts.items()}
    assert places["code"] == (12, 11)
    assert places["z [m]"] == (15, 7)
    assert places["p [m] in {0, 1}"] == (16, 7)
    assert block.text.place(block.latex_start + 1) == (18, 1)


def test_displays_outside_code_and_comments() -> None:
    found = display_math(page(PAGE))
    assert [(d.latex, d.in_block) for d in found] == [("\ny = z\n", True), (" b = c ", False)]


@pytest.mark.parametrize(
    ("content", "message", "place"),
    [
        ("/// formula | a\n$$x=y$$\n", "没有结束", (1, 1)),
        ("/// formula | a\n\n/// formula | b\n$$x=y$$\n///\n", "没有结束", (1, 1)),
        ("/// formula\n$$x=y$$\n///\n", "需要一个名字", (1, 1)),
        ("/// formula | Softmax!\n$$x=y$$\n///\n", "需要一个名字", (1, 1)),
        ("字\n/// formula | a\n///\n", "有 0 个独立公式", (2, 1)),
        ("/// formula | a\n$$x$$ $$y$$\n///\n", "有 2 个独立公式", (1, 1)),
        ("/// formula | a\n    cod: f(x)\n$$x=y$$\n///\n", "没有选项 cod", (2, 5)),
        ("/// formula | a\n    where:\n      x: 1\n      x: 2\n$$x$$\n///\n", "声明了两次", (4, 7)),
        ("/// formula | a\n    code: [1\n$$x=y$$\n///\n", "不是合法的 YAML", (3, 1)),
        ("/// formula | a\n    code:\n$$x=y$$\n///\n", "选项 code 需要一个值", (2, 5)),
        ("/// formula | a\n    where: x\n$$x=y$$\n///\n", "每行一个", (2, 5)),
    ],
)  # fmt: skip
def test_bad_blocks(content: str, message: str, place: tuple[int, int]) -> None:
    with pytest.raises(Problem) as caught:
        formula_blocks(page(content))
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == place
    assert caught.value.path == "docs/cards/a.md"


def test_blanking_keeps_every_offset() -> None:
    assert len(page_of(page(PAGE)).prose) == len(PAGE)
    assert page_of(page(PAGE)).prose.count("\n") == PAGE.count("\n")


@pytest.mark.parametrize("marks", [("$$", "$$"), ("\\[", "\\]")])
def test_the_marks_of_a_quotation_are_no_part_of_the_formula(marks: tuple[str, str]) -> None:
    (display,) = display_math(page(f"> 引\n>\n> {marks[0]}\n> x\n> + y\n> {marks[1]}\n"))
    assert display.latex.split() == ["x", "+", "y"]
    assert display.text.place(display.start + display.latex.index("x")) == (4, 3)


def test_cells_are_named_by_notebook_and_number(tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    cells = [
        {"cell_type": "code", "source": ["x = 1"]},
        {"cell_type": "markdown", "source": ["# 题\n", "$$a$$"]},
    ]
    content = json.dumps({"nbformat": 4, "cells": cells})
    (tmp_path / "notebooks/a.ipynb").write_text(content, encoding="utf-8")
    assert [(t.path, t.content) for t in notebook_texts(tmp_path)] == [
        ("notebooks/a.ipynb, cell 2", "# 题\n$$a$$")
    ]


@pytest.mark.parametrize("content", ["{", "{}", '{"nbformat": 3, "cells": []}', "[1]"])
def test_no_notebook(tmp_path: Path, content: str) -> None:
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks/a.ipynb").write_text(content)
    with pytest.raises(Problem, match="读不了这个笔记本"):
        list(notebook_texts(tmp_path))


def test_docstrings_with_formulas(tmp_path: Path) -> None:
    folder = tmp_path / "src/flower_transformer"
    folder.mkdir(parents=True)
    (folder / "a.py").write_text(
        '"""No formula."""\n\ndef f():\n    r"""Sum.\n\n    $$x = y$$\n    """\n'
    )
    (text,) = docstring_texts(tmp_path)
    (display,) = display_math(text)
    assert text.place(display.start) == (6, 7)
