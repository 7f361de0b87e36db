"""The YAML block at the top of a page: what must stand in it, and where it is wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .blocks.page import INLINE
from .math import MathError, katex
from .problems import Problem, nearest

NOTE_FOLDERS = ("cards", "papers", "topics")
_BARE_TEX = re.compile(r"\\[a-zA-Z]+(?:\{[^{}]*\})*|\w+(?:[_^]\{[^{}]*\}|\^\w)+")
_BLOCK = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*$\n?", re.DOTALL | re.MULTILINE)


class PageMatter(BaseModel):
    """Any page: MkDocs' and Material's own keys, nothing else."""

    model_config = ConfigDict(extra="forbid", strict=True)

    title: str = ""
    description: str = ""
    tags: list[str] = []
    hide: list[Literal["navigation", "toc", "path", "tags", "footer", "feedback"]] = []
    search: dict[str, float | bool] = {}
    template: str | None = None
    icon: str | None = None


class ApiMatter(PageMatter):
    """A page of the API, made from docstrings."""

    title: str = Field(min_length=1)
    summary: str
    order: int = 1000


class NoteMatter(PageMatter):
    """A card or a topic. ``order`` places it in the navigation; the others follow by title."""

    title: str = Field(min_length=1)
    status: Literal["draft", "published"]
    tags: list[str]
    summary: str
    order: int = 1000


class PaperMatter(NoteMatter):
    """A paper summary."""

    authors: list[str] = Field(min_length=1)
    year: int = Field(ge=1900, le=2100)
    venue: str
    arxiv: str | None = Field(default=None, pattern=r"^(\d{4}\.\d{4,5}|[a-z-]+/\d{7})$")
    bibkey: str
    notebooks: list[str] = []


@dataclass(frozen=True)
class FrontMatter:
    """What was read from one page.

    Args:
        data: the YAML mapping.
        matter: the same, validated by the model of the page's folder.
        lines: key → 1-based line in the file.
        body_line: 1-based line on which the page's text begins.
    """

    data: dict[str, Any]
    matter: PageMatter
    lines: dict[str, int] = field(default_factory=dict)
    body_line: int = 1


def model_for(path: Path | str) -> type[PageMatter]:
    """The model for a page, by its folder; index pages are plain pages."""
    place = Path(path)
    if place.parent.name == "api" and place.stem != "index":
        return ApiMatter
    if place.stem == "index" or place.parent.name not in NOTE_FOLDERS:
        return PageMatter
    return PaperMatter if place.parent.name == "papers" else NoteMatter


def read_front_matter(text: str, path: Path | str) -> tuple[FrontMatter | None, list[Problem]]:
    """Read and check the front matter of one page.

    Args:
        text: the whole file.
        path: the file's path relative to the repository; its folder chooses the model.

    Returns:
        The front matter (``None`` when it can't be used) and every fault in it.
    """
    model = model_for(path)
    found = _BLOCK.match(text)
    source = found.group(1) if found else ""
    rows = text.splitlines()
    if found is None and model is not PageMatter:
        return None, [
            Problem(
                "这一页没有文件头（front matter）",
                path=path,
                line=1,
                column=1,
                text=rows[0] if rows else "",
                remedy="第一行写 ---，再写 title、status、tags、summary，以 --- 结束",
            )
        ]
    try:
        data = yaml.safe_load(source) if source.strip() else {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 2 if mark else 2
        column = mark.column + 1 if mark else 1
        reason = getattr(error, "problem", None) or "不是合法的 YAML"
        return None, [_at(f"文件头读不懂：{reason}", path, rows, line, column)]
    if not isinstance(data, dict):
        return None, [_at("文件头应为“键: 值”的列表", path, rows, 2, 1)]

    lines = _lines_of_keys(source)
    try:
        matter = model.model_validate(data)
    except ValidationError as error:
        return None, [_explain(fault, model, path, rows, lines) for fault in error.errors()]
    problems = _published_is_complete(matter, path, rows, lines)
    body_line = text[: found.end()].count("\n") + 1 if found else 1
    return FrontMatter(data, matter, lines, body_line), problems


def check_front_matter(root: Path) -> tuple[list[Problem], int]:
    """Check every page under ``root/docs``: faults, and how many pages were read.

    Beyond one page: the notebooks and the bibliography key that a paper names must exist.
    """
    problems: list[Problem] = []
    pages = sorted((root / "docs").rglob("*.md"))
    keys = _bibliography_keys(root)
    notebooks = {
        path.relative_to(root / "notebooks").with_suffix("").as_posix()
        for path in (root / "notebooks").rglob("*.ipynb")
        if ".ipynb_checkpoints" not in path.parts
    }
    for page in pages:
        text = page.read_text(encoding="utf-8")
        path = page.relative_to(root)
        front, faults = read_front_matter(text, path)
        problems += faults
        if front is not None:
            problems += _unreadable_math(front, path, text.splitlines(), root)
        if front is None or not isinstance(front.matter, PaperMatter):
            continue
        rows = text.splitlines()
        matter = front.matter
        if matter.bibkey not in keys:
            problems.append(_unknown("文献键", matter.bibkey, keys, path, rows, front, "bibkey"))
        problems += [
            _unknown("笔记本", name, notebooks, path, rows, front, "notebooks")
            for name in matter.notebooks
            if name not in notebooks
        ]
    return problems, len(pages)


def _unreadable_math(
    front: FrontMatter, path: Path, rows: list[str], root: Path
) -> Iterator[Problem]:
    """Formulas in what index pages typeset: each must stand in dollars and be one."""
    for key in ("title", "summary", "description"):
        text = str(front.data.get(key) or "")
        for match in INLINE.finditer(text):
            try:
                katex(root).html(match[3] or "")
            except MathError as error:
                yield _math_fault(f"公式有误：{error}", key, match[0], path, rows, front, "改公式")
        outside = INLINE.sub(lambda match: " " * len(match[0]), text)
        if (bare := _BARE_TEX.search(outside)) is not None:
            yield _math_fault(
                f"{bare[0]} 会原样显示", key, bare[0], path, rows, front, f"写成 ${bare[0]}$"
            )


def _math_fault(
    message: str,
    key: str,
    found: str,
    path: Path,
    rows: list[str],
    front: FrontMatter,
    remedy: str,
) -> Problem:
    line = _line_of(found, rows, front.lines[key])
    row = rows[line - 1]
    return Problem(
        f"文件头 {key}：{message}",
        path=path,
        line=line,
        column=row.find(found) + 1 or 1,
        text=row,
        width=len(found),
        remedy=remedy,
    )


def _line_of(found: str, rows: list[str], first: int) -> int:
    """The line with some text; a value may stand some lines below its key."""
    for number in range(first, len(rows) + 1):
        if found in rows[number - 1]:
            return number
    return first


def _lines_of_keys(source: str) -> dict[str, int]:
    """Top-level key → line in the file (the block's first line is line 2)."""
    node = yaml.compose(source)
    if not isinstance(node, yaml.MappingNode):
        return {}
    return {str(key.value): key.start_mark.line + 2 for key, _ in node.value}


def _explain(
    fault: Any, model: type[PageMatter], path: Path | str, rows: list[str], lines: dict[str, int]
) -> Problem:
    """One pydantic fault as a problem on the line of its key."""
    key = str(fault["loc"][0])
    line = lines.get(key, 1)
    text = rows[line - 1] if line <= len(rows) else ""
    kind = fault["type"]
    if kind == "missing":
        return Problem(
            f"文件头缺少 {key}", path=path, line=1, column=1, text=rows[0], remedy=f"补上 {key}:"
        )
    if kind == "extra_forbidden":
        guess = nearest(key, model.model_fields)
        remedy = f"是不是 {guess}？" if guess else f"可用的键：{'、'.join(model.model_fields)}"
        return Problem(
            f"文件头没有 {key} 这个键",
            path=path,
            line=line,
            column=1,
            text=text,
            width=len(key),
            remedy=remedy,
        )
    expected = {
        "literal_error": f"应为 {fault.get('ctx', {}).get('expected', '')}",
        "list_type": "应为列表，例如 [注意力, 基础]",
        "string_type": "应为文字",
        "int_type": "应为整数",
        "too_short": "不能为空",
        "string_too_short": "不能为空",
        "string_pattern_mismatch": "形如 1706.03762",
    }.get(kind, fault["msg"])
    value = fault["input"]
    return Problem(
        f"文件头 {key} 的值 {value!r} 不对：{expected}",
        path=path,
        line=line,
        column=1,
        text=text,
        width=max(1, len(text)),
        remedy=f"改正 {key}",
    )


def _published_is_complete(
    matter: PageMatter, path: Path | str, rows: list[str], lines: dict[str, int]
) -> list[Problem]:
    """A published note has a summary and a tag; a draft need not."""
    if not isinstance(matter, NoteMatter) or matter.status != "published":
        return []
    return [
        _at(f"已发布的页面必须有 {key}", path, rows, lines[key], 1, remedy="补上，或改为 draft")
        for key in ("summary", "tags")
        if not getattr(matter, key)
    ]


def _at(
    message: str,
    path: Path | str,
    rows: list[str],
    line: int,
    column: int,
    remedy: str | None = None,
) -> Problem:
    text = rows[line - 1] if line <= len(rows) else ""
    return Problem(message, path=path, line=line, column=column, text=text, remedy=remedy)


def _unknown(
    what: str,
    name: str,
    known: set[str],
    path: Path,
    rows: list[str],
    front: FrontMatter,
    key: str,
) -> Problem:
    guess = nearest(name, known)
    line = _line_of(name, rows, front.lines[key])
    text = rows[line - 1]
    return Problem(
        f"没有名为 {name} 的{what}",
        path=path,
        line=line,
        column=text.find(name) + 1 or 1,
        text=text,
        width=len(name),
        remedy=f"是不是 {guess}？" if guess else f"先添加{what} {name}，或删去这一项",
    )


def _bibliography_keys(root: Path) -> set[str]:
    bibliography = root / "docs" / "references.bib"
    if not bibliography.is_file():
        return set()
    return set(re.findall(r"^@\w+\{\s*([^,\s]+)\s*,", bibliography.read_text("utf-8"), re.M))
