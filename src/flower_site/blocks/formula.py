"""The block `/// formula | slug`: a numbered formula, what its symbols mean, and whether its code
was seen to agree.

Reading and checking the formula is the work of `flower_site.sources` and `flower_site.formulas`;
this only draws it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from xml.etree import ElementTree as etree

from markdown import Markdown
from markdown.util import AtomicString
from pymdownx.blocks.block import type_any

from flower_site import context
from flower_site.blocks.declarations import parts_of
from flower_site.blocks.extension import FlowerBlock, FlowerExtension
from flower_site.blocks.page import Page
from flower_site.blocks.source import code_link
from flower_site.math import MathError, katex
from flower_site.problems import Problem
from flower_site.sources import FORMULA_OPTIONS, FormulaBlock, formula_blocks

if TYPE_CHECKING:
    from flower_site.formulas import Verdict

VERIFICATION_PAGE = "docs/verification.md"


def find_unreadable(page: Page, root: Path) -> Iterator[Problem]:
    """A block that `formula_blocks` can't read: Markdown would show it as plain text."""
    try:
        formula_blocks(page.text)
    except Problem as problem:
        yield problem


def find_problems(page: Page, root: Path) -> Iterator[Problem]:
    """Symbols under `where` that can't be drawn."""
    try:
        blocks = formula_blocks(page.text)
    except Problem:
        return  # whoever reads the formulas reports it
    for block in blocks:
        for key in block.where:
            start = block.option_starts[key]
            try:
                for latex in parts_of(key):
                    katex(root).html(latex)
            except MathError as error:
                yield page.problem(
                    f"符号 {key} 画不出来：{error}",
                    start,
                    start + len(key),
                    remedy="名字用 LaTeX 写",
                )


class FormulaFigure(FlowerBlock):
    """Draws one block."""

    NAME = "formula"
    ARGUMENT = True
    OPTIONS: ClassVar[dict[str, Any]] = dict.fromkeys(FORMULA_OPTIONS, (None, type_any))

    def on_create(self, parent: etree.Element) -> etree.Element:
        blocks = {block.slug: (number, block) for number, block in enumerate(self._of_page(), 1)}
        if self.argument not in blocks:
            raise self.problem(f"formula 块 {self.argument} 不在这一页的源文里", "直接写在页面里")
        self.number, self.block = blocks[self.argument]
        figure = etree.SubElement(
            parent, "figure", {"class": "flower-formula", "id": f"formula-{self.argument}"}
        )
        self.math = etree.SubElement(
            figure, "div", {"class": "flower-formula__math", "tabindex": "0", "role": "group"}
        )
        self.math.set("aria-label", f"式 ({self.number})")
        return figure

    def _of_page(self) -> list[FormulaBlock]:
        return formula_blocks(self.reader.page.text)

    def on_add(self, block: etree.Element) -> etree.Element:
        return self.math

    def on_end(self, block: etree.Element) -> None:
        for drawn in self.math.iter("div"):
            if drawn.get("class") == "arithmatex":
                drawn.set("data-bare", "true")  # the figure scrolls, not the formula in it
        number = etree.SubElement(block, "span", {"class": "flower-formula__number"})
        number.text = AtomicString(f"({self.number})")
        if self.block.where:
            self._where(block, self.block.where)
        self._status(block, self._verdict())

    def _where(self, figure: etree.Element, where: dict[str, str]) -> None:
        box = etree.SubElement(figure, "div", {"class": "flower-formula__where"})
        etree.SubElement(box, "p", {"class": "flower-formula__where-title"}).text = "其中"
        listing = etree.SubElement(box, "ul")
        for key, meaning in where.items():
            symbol, shape = parts_of(key)
            item = etree.SubElement(listing, "li")
            _math(item, "flower-formula__symbol", symbol)
            last = item[-1]
            if shape:
                last.tail = " "
                last = _math(item, "flower-formula__shape", shape)
            last.tail = f"：{meaning}" if meaning else ""

    def _verdict(self) -> Verdict:
        book = context.formula_book(self.reader.root)
        if self.argument not in book.blocks:
            raise self.problem(
                f"formula 块 {self.argument} 不在任何页面里", "块写在 docs 或 notebooks 里"
            )
        verdict = book.verdict(self.argument)
        if verdict.problem is not None:
            raise verdict.problem
        return verdict

    def _status(self, figure: etree.Element, verdict: Verdict) -> None:
        checked = verdict.status == "checked"
        line = etree.SubElement(figure, "p")
        line.set("class", f"flower-formula__status {'is-checked' if checked else 'is-unchecked'}")
        link = etree.SubElement(line, "a", {"href": context.link(VERIFICATION_PAGE, self.argument)})
        if not checked:
            link.text = AtomicString("未验证")
            link.tail = f"：{verdict.reason}"
            return
        link.text = AtomicString("✓ 已验证")
        if not verdict.call:
            link.tail = "：等式各边一致"
            return
        link.tail = "：与 "
        dotted = re.split(r"[(\[]", verdict.call, maxsplit=1)[0].strip()
        code = code_link(self.md, line, dotted)
        code.tail = " 一致"


def _math(parent: etree.Element, css: str, latex: str) -> etree.Element:
    """A span with a formula; `flower_site.blocks.math` draws it."""
    box = etree.SubElement(parent, "span", {"class": css})
    inner = etree.SubElement(box, "span", {"class": "arithmatex"})
    inner.text = AtomicString(f"\\({latex}\\)")
    return box


class FormulaExtension(FlowerExtension):
    """Reads formula blocks."""

    checks = (find_unreadable, find_problems)

    def install(self, md: Markdown) -> None:
        self.block_manager(md).register(FormulaFigure, self.getConfigs())


def makeExtension(**kwargs: Any) -> FormulaExtension:
    """Entry point of Python-Markdown."""
    return FormulaExtension(**kwargs)
