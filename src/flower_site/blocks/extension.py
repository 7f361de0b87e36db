"""What all our extensions share: the repository, the page's source, and its check before anything
is rendered.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as etree

import yaml
from markdown import Markdown
from markdown.preprocessors import Preprocessor
from pymdownx.blocks import BlocksExtension, BlocksProcessor
from pymdownx.blocks.block import Block

from flower_site import context
from flower_site.blocks.page import Header, Page
from flower_site.problems import Problem, Problems, nearest
from flower_site.texts import Text

Check = Callable[[Page, Path], Iterable[Problem]]


class PageReader(Preprocessor):
    """Reads the page before any other extension changes it, and stops on its first problems."""

    def __init__(self, md: Markdown, root: Path, repository: str) -> None:
        super().__init__(md)
        self.root = root
        self.repository = repository
        self.checks: list[Check] = []
        self.page = Page(Text("", ""))

    def run(self, lines: list[str]) -> list[str]:
        self.page = Page(self._text("\n".join(lines)))
        problems = [problem for check in self.checks for problem in check(self.page, self.root)]
        if len(problems) == 1:
            raise problems[0]
        if problems:
            raise Problems(problems)
        return lines

    def _text(self, content: str) -> Text:
        """The text with its first line in the file: MkDocs hands over a page without its front
        matter.
        """
        path = context.page.get()
        if path is None:
            return Text(content, "<markdown>")
        file = self.root / path
        body = content.strip()
        if path.suffix == ".md" and body and file.is_file():
            whole = file.read_text(encoding="utf-8-sig")
            at = whole.find(body)
            if at >= 0:
                before = whole.count("\n", 0, at) - content[: content.index(body)].count("\n")
                return Text(content, path.as_posix(), before + 1)
        return Text(content, path.as_posix())


class FlowerExtension(BlocksExtension):
    """Base of our extensions: `root` and `repository` options, and one `PageReader` a document.

    A subclass sets ``checks``, what it looks for in the source text, and implements ``install``.
    """

    checks: tuple[Check, ...] = ()

    def __init__(self, **kwargs: Any) -> None:
        self.config = {
            "root": ["", "repository root; default: nearest parent holding mkdocs.yml"],
            "repository": [
                os.environ.get("FLOWER_REPOSITORY", ""),
                "address of the repository, for links to lines of code",
            ],
        }
        super().__init__(**kwargs)

    def extendMarkdown(self, md: Markdown) -> None:
        if "flower_page" not in md.preprocessors:
            root = Path(self.getConfig("root") or context.find_root()).resolve()
            reader = PageReader(md, root, str(self.getConfig("repository")).rstrip("/"))
            md.preprocessors.register(reader, "flower_page", 31)  # before whitespace and fences
        reader_of(md).checks.extend(self.checks)
        self.install(md)

    def install(self, md: Markdown) -> None:
        """Register processors."""

    def block_manager(self, md: Markdown) -> BlocksProcessor:
        return self.register_block_mgr(md)


class FlowerBlock(Block):
    """Base of our blocks: the page, and the header in the source that this block came from."""

    @property
    def reader(self) -> PageReader:
        return reader_of(self.md)

    def header(self) -> Header | None:
        """The source line of this block; `None` when the text was made by another extension."""
        for header in self.reader.page.headers:
            if header.name == self.NAME and header.argument == (self.argument or ""):
                return header
        return None

    def problem(self, message: str, remedy: str | None = None) -> Problem:
        """A problem at the block's header."""
        header = self.header()
        page = self.reader.page
        if header is None:
            return Problem(message, path=page.text.path, remedy=remedy)
        return page.problem(message, header.start, header.end, remedy=remedy)

    def store(
        self, parent: etree.Element, html: str, tag: str = "div", css: str = ""
    ) -> etree.Element:
        """An element below ``parent`` that holds ready HTML."""
        element = etree.SubElement(parent, tag, {"class": css} if css else {})
        element.text = self.md.htmlStash.store(html)
        return element


def reader_of(md: Markdown) -> PageReader:
    """The reader that the first of our extensions put into ``md``."""
    reader = md.preprocessors["flower_page"]
    assert isinstance(reader, PageReader)
    return reader


def text_option(value: object) -> str:
    """A block's option that is text, whatever YAML made of it."""
    return "" if value is None else str(value)


def unknown_options(page: Page, header: Header, known: Iterable[str]) -> Iterator[Problem]:
    """Options that a block does not have, or that are no YAML: Markdown would show the block as
    plain text.
    """
    try:
        yaml.safe_load(header.options_source)
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark.index if error.problem_mark else 0
        yield page.problem(
            f"块的选项不是合法的 YAML：{error.problem}",
            header.options_start + at,
            remedy="含“: ”或 #，或以特殊符号开头的值放进引号",
        )
        return
    names = tuple(known)
    for name, (_, start) in header.options.items():
        if name not in names:
            close = nearest(name, names)
            known_ones = f"可用的选项：{'、'.join(names)}" if names else "这个块没有选项"
            yield page.problem(
                f"{header.name} 块没有选项 {name}",
                start,
                start + len(name),
                remedy=f"是不是 {close}？" if close else known_ones,
            )


def unclosed(page: Page, header: Header) -> Iterator[Problem]:
    """A block without its closing `///`."""
    for line in page.prose[header.end :].split("\n")[1:]:
        if re.match(r"^[ \t>]*/{3,}[ ]*$", line):
            return
        if re.match(r"^[ \t>]*/{3,}[ ]*[\w-]", line):
            break
    yield page.problem(
        f"{header.name} 块没有结束", header.start, header.end, remedy="另起一行写 ///"
    )
