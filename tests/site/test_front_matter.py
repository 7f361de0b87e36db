"""Front matter: each fault is named on its line, with a remedy."""

from pathlib import Path

import pytest

from flower_site.front_matter import (
    NoteMatter,
    PaperMatter,
    check_front_matter,
    model_for,
    read_front_matter,
)

CARD = """---
title: 缩放点积注意力
status: published
tags: [注意力]
summary: 一句话。
---

# 缩放点积注意力
"""


def test_a_good_card() -> None:
    front, problems = read_front_matter(CARD, "docs/cards/a.md")
    assert problems == []
    assert front is not None
    assert isinstance(front.matter, NoteMatter)
    assert front.lines == {"title": 2, "status": 3, "tags": 4, "summary": 5}
    assert front.body_line == 7


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("docs/cards/a.md", "NoteMatter"),
        ("docs/papers/a.md", "PaperMatter"),
        ("docs/papers/index.md", "PageMatter"),
        ("docs/about.md", "PageMatter"),
    ],
)
def test_the_folder_chooses_the_model(path: str, name: str) -> None:
    assert model_for(path).__name__ == name


@pytest.mark.parametrize(
    ("old", "new", "line", "message", "remedy"),
    [
        ("status: published", "staus: published", 3, "没有 staus 这个键", "是不是 status？"),
        ("status: published", "status: done", 3, "应为 'draft' or 'published'", "改正 status"),
        ("tags: [注意力]", "tags: 注意力", 4, "应为列表", "改正 tags"),
        ("tags: [注意力]", "tags: []", 4, "已发布的页面必须有 tags", "draft"),
        ("summary: 一句话。", 'summary: ""', 5, "已发布的页面必须有 summary", "draft"),
        ("title: 缩放点积注意力\n", "", 1, "缺少 title", "补上 title:"),
        ("tags: [注意力]", "tags: [注意力", 5, "读不懂", None),
        ("---\ntitle", "title", 1, "没有文件头", "第一行写 ---"),
    ],
)
def test_a_fault_is_named_on_its_line(
    old: str, new: str, line: int, message: str, remedy: str | None
) -> None:
    assert old in CARD
    _, problems = read_front_matter(CARD.replace(old, new, 1), "docs/cards/a.md")
    assert [problem.line for problem in problems if message in problem.message] == [line]
    problem = next(problem for problem in problems if message in problem.message)
    assert str(problem.path) == "docs/cards/a.md"
    if remedy:
        assert remedy in (problem.remedy or "")


def test_a_draft_may_lack_its_summary() -> None:
    text = CARD.replace("published", "draft").replace("一句话。", '""').replace("[注意力]", "[]")
    assert read_front_matter(text, "docs/cards/a.md")[1] == []


def test_what_a_paper_names_must_exist(tmp_path: Path) -> None:
    page = tmp_path / "docs/papers/attention.md"
    page.parent.mkdir(parents=True)
    page.write_text(
        "---\ntitle: A\nstatus: draft\ntags: []\nsummary: ''\nauthors: [A]\nyear: 2017\n"
        "venue: ''\nbibkey: vaswani17\nnotebooks:\n  - attention\n  - atention\n---\n# A\n",
        encoding="utf-8",
    )
    (tmp_path / "docs/references.bib").write_text("@misc{vaswani2017,\n}\n", encoding="utf-8")
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks/attention.ipynb").write_text("{}", encoding="utf-8")
    problems, pages = check_front_matter(tmp_path)
    assert pages == 1
    assert [(problem.line, problem.column, problem.remedy) for problem in problems] == [
        (9, 9, "是不是 vaswani2017？"),
        (12, 5, "是不是 attention？"),
    ]
    assert issubclass(PaperMatter, NoteMatter)


@pytest.mark.parametrize(
    ("line", "message", "column"),
    [
        ("summary: 再乘 W^O。", "W^O 会原样显示", 13),
        ("title: 除以 \\sqrt{d_k}", "\\sqrt{d_k} 会原样显示", 11),
        ("title: 宽 d_{model}", "d_{model} 会原样显示", 10),
        ("summary: 除以 $\\frac{a$", "公式有误", 13),
    ],
)
def test_math_stands_in_dollars_and_is_right(
    tmp_path: Path, line: str, message: str, column: int
) -> None:
    rows = {"title": "title: 甲", "summary": "summary: 乙"} | {line.partition(":")[0]: line}
    page = tmp_path / "docs/cards/a.md"
    page.parent.mkdir(parents=True)
    (tmp_path / "notebooks").mkdir()
    head = "\n".join(rows.values())
    page.write_text(f"---\n{head}\nstatus: published\ntags: [x]\n---\n\n# 甲\n", "utf-8")
    ((problem,), _) = check_front_matter(tmp_path)
    assert message in problem.message
    assert (problem.line, problem.column) == (2 if "title" in line else 3, column)
    assert problem.remedy
    good = head.replace(line, line.partition(":")[0] + ": 除以 $\\sqrt{d_k}$ 与 d_k，100% 的 a_b")
    page.write_text(f"---\n{good}\nstatus: published\ntags: [x]\n---\n\n# 甲\n", "utf-8")
    assert check_front_matter(tmp_path)[0] == []
