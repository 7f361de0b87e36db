"""Inline roles: `` {nb}`slug#name:.2f` `` is a value that a notebook recorded, `` {eq}`slug` `` a
link to a formula.

Both are read in the running text only: inside a code span (double backticks) they stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as etree

from markdown import Markdown
from markdown.inlinepatterns import InlineProcessor
from markdown.util import AtomicString

from flower_site import context, notebooks
from flower_site.blocks.equations import EquationError, equation
from flower_site.blocks.extension import FlowerExtension, reader_of
from flower_site.blocks.page import CODE_SPAN_OR_ROLE, Page
from flower_site.notebooks import NotebookError, Record
from flower_site.problems import Problem

_TARGET = re.compile(r"(?P<slug>[\w/-]+)#(?P<name>[\w-]+)(?::(?P<format>.+))?")


class RoleError(ValueError):
    """A role that is spelled wrongly; ``remedy`` says how to spell it."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


def read_value(target: str, root: Path) -> tuple[str, Record, str]:
    """The notebook's name, the record, and the value as it is shown, for `slug#name:format`.

    Raises:
        RoleError: for another spelling, or a format that does not suit the value.
        NotebookError: for an unknown notebook or record.
    """
    match = _TARGET.fullmatch(target.strip())
    if match is None:
        raise RoleError(f"看不懂 {{nb}}`{target}`", "写成 {nb}`笔记本#记录名:.2f`")
    record = notebooks.load(match["slug"], root).record(match["name"])
    try:
        shown = format(record.value, match["format"] or "")
    except ValueError as error:
        raise RoleError(
            f"{match['name']} 的值 {record.value!r} 不能按 {match['format']} 显示：{error}",
            "格式如 .2f（两位小数）、.3g（三位有效数字）、,（千分位）、.1%（百分数）",
        ) from error
    return match["slug"], record, shown


def find_problems(page: Page, root: Path) -> Iterator[Problem]:
    """Roles whose notebook, record, format or formula does not exist."""
    for role in page.roles:
        try:
            if role.name == "nb":
                read_value(role.target, root)
            else:
                equation(role.target.strip(), root)
        except (RoleError, NotebookError, EquationError) as error:
            yield page.problem(str(error), role.start, role.end, remedy=error.remedy)


class RolePattern(InlineProcessor):
    """Runs before code spans are taken out, and steps over them itself."""

    def __init__(self, md: Markdown, root: Path) -> None:
        super().__init__(CODE_SPAN_OR_ROLE.pattern, md)
        self.root = root

    def handleMatch(  # type: ignore[override]
        self, m: re.Match[str], data: str
    ) -> tuple[etree.Element | None, int | None, int | None]:
        if not m["role"]:
            return None, None, None
        make = self.value if m["role"] == "nb" else self.equation
        return make(m["target"]), m.start(), m.end()

    def value(self, target: str) -> etree.Element:
        slug, record, shown = read_value(target, self.root)
        element = etree.Element("a", {"class": "flower-value"})
        element.set("href", context.link(f"notebooks/{slug}.ipynb", record.label or ""))
        element.set("title", f"实验结果：{slug} 的 {record.name}")
        element.text = AtomicString(shown)
        return element

    def equation(self, target: str) -> etree.Element:
        found = equation(target.strip(), self.root)
        element = etree.Element("a", {"class": "flower-equation"})
        element.set("href", context.link(found.page, f"formula-{found.slug}"))
        here = context.page.get()
        if here is None or here.as_posix() != found.page:
            element.set("title", found.page_title)
        element.text = AtomicString(f"式 ({found.number})")
        return element


class InlineExtension(FlowerExtension):
    """Reads `{nb}` and `{eq}`."""

    checks = (find_problems,)

    def install(self, md: Markdown) -> None:
        pattern = RolePattern(md, reader_of(md).root)
        md.inlinePatterns.register(pattern, "flower_role", 195)  # before backticks (190)


def makeExtension(**kwargs: Any) -> InlineExtension:
    """Entry point of Python-Markdown."""
    return InlineExtension(**kwargs)
