"""Formulas: what `pymdownx.arithmatex` (generic) finds, drawn by KaTeX at build time.

Inline math becomes `span.flower-math`, display math `div.flower-math.flower-math--display`, which
scrolls by itself when it is wider than the page. No script is needed to read either.

Every display that the source holds must be found drawn in the HTML, in the same order: whatever
Markdown makes of a wrong indentation, a formula is never printed as plain text (`EachIsDrawn`, and
`math_check.find_undrawn` for a check that does not render).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as etree

from markdown import Markdown
from markdown.postprocessors import Postprocessor
from markdown.treeprocessors import Treeprocessor
from markdown.util import AtomicString

from flower_site.blocks.extension import FlowerExtension, reader_of
from flower_site.blocks.math_check import find_problems, undrawn
from flower_site.math import MathError, katex, tidy
from flower_site.plain_math import plain_text
from flower_site.problems import Problem

_HEADING = re.compile(r"h[1-6]")
_DRAWN = re.compile(r'class="katex-display">.*?<annotation[^>]*>(.*?)</annotation>', re.S)


class MathRenderer(Treeprocessor):
    """Replaces each element of class `arithmatex`.

    Headings are done in a second run, after `toc` took their names and ids from a plain spelling:
    a table of
    contents can hold no drawing.
    """

    def __init__(self, md: Markdown, root: Path) -> None:
        super().__init__(md)
        self.root = root
        self.headings: list[tuple[etree.Element, str]] = []

    def run(self, root: etree.Element) -> None:
        self.headings.clear()
        in_heading = {
            id(element)
            for heading in root.iter()
            if _HEADING.fullmatch(heading.tag)
            for element in heading.iter()
        }
        for element in list(root.iter()):
            if element.get("class") != "arithmatex":
                continue
            latex = _latex_of(element)
            if id(element) in in_heading:
                element.set("class", "flower-math")
                element.text = AtomicString(plain_text(latex))
                self.headings.append((element, latex))
            else:
                self.draw(element, latex, display=element.tag == "div")

    def draw(self, element: etree.Element, latex: str, *, display: bool) -> None:
        """Fill an element with the drawn formula."""
        try:
            html = katex(self.root).html(tidy(latex), display=display)
        except MathError as error:
            raise self._problem(latex, error) from error
        element.text = self.md.htmlStash.store(html)
        if element.get("data-bare"):
            del element.attrib["data-bare"]
            del element.attrib["class"]
        elif display:
            element.set("class", "flower-math flower-math--display")
            element.set("tabindex", "0")
            element.set("role", "group")
            element.set("aria-label", "公式")
        else:
            element.set("class", "flower-math")

    def _problem(self, latex: str, error: MathError) -> Problem:
        """For a formula that no source text holds (made by another extension)."""
        page = reader_of(self.md).page
        at = page.source.find(latex)
        if at >= 0:
            return page.problem(
                f"公式有误：{error}", at + min(error.position, max(len(latex) - 1, 0))
            )
        return Problem(f"公式有误：{error}：{latex}", path=page.text.path)


class HeadingMath(Treeprocessor):
    """The second run, after `toc`."""

    def __init__(self, md: Markdown, first: MathRenderer) -> None:
        super().__init__(md)
        self.first = first

    def run(self, root: etree.Element) -> None:
        for element, latex in self.first.headings:
            self.first.draw(element, latex, display=False)
        self.first.headings.clear()


class TreeIsDone(Treeprocessor):
    """The last treeprocessor: others send headings through the postprocessors before."""

    def __init__(self, md: Markdown, waiting: EachIsDrawn) -> None:
        super().__init__(md)
        self.waiting = waiting

    def run(self, root: etree.Element) -> None:
        self.waiting.whole_page = True


class EachIsDrawn(Postprocessor):
    """Looks for every display of the source in the finished HTML."""

    whole_page = False

    def run(self, text: str) -> str:
        if self.whole_page:
            self.whole_page = False
            page = reader_of(self.md).page
            for problem in undrawn(page, page.displays, _DRAWN.findall(text)):
                raise problem
        return text


def _latex_of(element: etree.Element) -> str:
    text = (element.text or "").strip()
    latex = text[2:-2]  # \( … \) or \[ … \]
    if element.tag == "div":  # arithmatex escapes in display math only
        for entity, char in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
            latex = latex.replace(entity, char)
    return latex


class MathExtension(FlowerExtension):
    """Draws formulas; needs `pymdownx.arithmatex` with the options `ARITHMATEX`."""

    checks = (find_problems,)

    def install(self, md: Markdown) -> None:
        first = MathRenderer(md, reader_of(md).root)
        md.treeprocessors.register(first, "flower_math", 15)  # after inline (20), before toc (5)
        md.treeprocessors.register(HeadingMath(md, first), "flower_heading_math", 4)
        each = EachIsDrawn(md)
        md.treeprocessors.register(TreeIsDone(md, each), "flower_tree_is_done", -1000)
        md.postprocessors.register(each, "flower_each_is_drawn", 0)


def makeExtension(**kwargs: Any) -> MathExtension:
    """Entry point of Python-Markdown."""
    return MathExtension(**kwargs)
