"""Citations and their list: `[@key; @other]` in the text, `/// references` where the list stands.

The list holds what the page cites, in order of first mention, and what the block's header adds
(`/// references | vaswani2017attention`), each with its BibTeX to copy.
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

from flower_site import bibliography
from flower_site.bibliography import Work
from flower_site.blocks.code import highlighted
from flower_site.blocks.extension import (
    FlowerBlock,
    FlowerExtension,
    reader_of,
    unclosed,
    unknown_options,
)
from flower_site.blocks.page import CITATION, Page
from flower_site.problems import Problem, nearest


def find_problems(page: Page, root: Path) -> Iterator[Problem]:
    """Unknown keys, entries that are incomplete, a page that cites but has no list, a list of
    nothing.
    """
    library = bibliography.load(root)
    lists = [header for header in page.headers if header.name == "references"]
    if page.citations and library.faults and not library.works:
        yield from library.faults
        return
    for citation in page.citations:
        if citation.key in library.works:
            continue
        fault = next((f for f in library.faults if citation.key in f.message.split()), None)
        close = nearest(citation.key, library.works)
        yield fault or page.problem(
            f"文献库里没有 {citation.key}",
            citation.start,
            citation.end,
            remedy=f"是不是 {close}？" if close else f"先把它加进 {bibliography.FILE.as_posix()}",
        )
    if page.citations and not lists:
        first = page.citations[0]
        yield page.problem(
            "这一页引用了文献，却没有参考列表",
            first.start,
            first.end,
            remedy="在“参考”一节写 /// references 和 /// 两行",
        )
    for header in lists:
        yield from unknown_options(page, header, ())
        yield from unclosed(page, header)
        if not page.citations:
            yield page.problem("参考列表是空的", header.start, header.end, remedy="引用文献：[@键]")


class CitationPattern(InlineProcessor):
    """`[@key]` as a link to the entry in the page's list."""

    def __init__(self, md: Markdown, root: Path) -> None:
        super().__init__(CITATION.pattern, md)
        self.root = root

    def handleMatch(  # type: ignore[override]
        self, m: re.Match[str], data: str
    ) -> tuple[etree.Element, int, int]:
        works = bibliography.load(self.root).works
        numbers = reader_of(self.md).page.cited_keys
        span = etree.Element("span", {"class": "flower-citations"})
        keys = re.findall(r"@([^;\s,]+)", m["keys"])
        span.text = AtomicString("[")
        for place, key in enumerate(keys):
            link = etree.SubElement(span, "a", {"class": "flower-citation", "href": f"#ref-{key}"})
            link.set("title", f"{works[key].byline}，{works[key].year}：{works[key].title}")
            link.text = AtomicString(str(numbers.index(key) + 1))
            link.tail = AtomicString("]" if place == len(keys) - 1 else ", ")
        return span, m.start(), m.end()


class ReferencesBlock(FlowerBlock):
    """The list."""

    NAME = "references"
    ARGUMENT = None

    def on_create(self, parent: etree.Element) -> etree.Element:
        listing = etree.SubElement(parent, "ol", {"class": "flower-references"})
        works = bibliography.load(self.reader.root).works
        for key in self.reader.page.cited_keys:
            self._entry(listing, works[key])
        return listing

    def _entry(self, listing: etree.Element, work: Work) -> None:
        item = etree.SubElement(listing, "li", {"id": f"ref-{work.key}"})
        item.text = AtomicString(f"{work.byline}. ")
        title = etree.SubElement(item, "a" if work.url else "cite")
        if work.url:
            title.set("href", work.url)
        title.text = AtomicString(work.title)
        title.tail = AtomicString(
            f". {work.venue}, {work.year}." if work.venue else f". {work.year}."
        )
        details = etree.SubElement(item, "details", {"class": "flower-references__bibtex"})
        etree.SubElement(details, "summary").text = AtomicString("BibTeX")
        self.store(details, highlighted(self.md, work.bibtex, "bibtex"))


class ReferencesExtension(FlowerExtension):
    """Reads citations and the block of references."""

    checks = (find_problems,)

    def install(self, md: Markdown) -> None:
        self.block_manager(md).register(ReferencesBlock, self.getConfigs())
        pattern = CitationPattern(md, reader_of(md).root)
        md.inlinePatterns.register(pattern, "flower_citation", 175)  # after code, before links


def makeExtension(**kwargs: Any) -> ReferencesExtension:
    """Entry point of Python-Markdown."""
    return ReferencesExtension(**kwargs)
