"""The block `/// notebook | slug#label`: what a notebook's cell printed or drew, its code, or
both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol
from xml.etree import ElementTree as etree

from markdown import Markdown
from markdown.util import AtomicString
from pymdownx.blocks.block import type_string_in

from flower_site import context, notebooks
from flower_site.blocks.code import highlighted
from flower_site.blocks.extension import (
    FlowerBlock,
    FlowerExtension,
    text_option,
    unclosed,
    unknown_options,
)
from flower_site.blocks.page import Header, Page
from flower_site.notebooks import Cell, Notebook, NotebookError, outputs_html
from flower_site.problems import Problem, nearest

OPTIONS = ("show", "caption", "alt")
SHOW = ("output", "code", "both")


def resolve(argument: str, root: Path, show: str = "output") -> tuple[Notebook, Cell]:
    """The notebook and the cell of `slug#label`.

    Raises:
        NotebookError: if either is missing, or the cell has nothing to show.
    """
    slug, hash_, label = argument.partition("#")
    if not hash_ or not slug or not label:
        raise NotebookError(f"看不懂 {argument or '空的名字'}", "写成 /// notebook | 笔记本#标签")
    notebook = notebooks.load(slug, root)
    return notebook, notebook.cell(label) if show == "code" else notebook.shown(label)


def find_problems(page: Page, root: Path) -> Iterator[Problem]:
    """Missing notebooks, labels and outputs; unknown options and values; figures without a text;
    blocks without end.
    """
    for header in page.headers:
        if header.name == "notebook":
            yield from unknown_options(page, header, OPTIONS)
            yield from unclosed(page, header)
            yield from _target_problems(page, header, root)


def _target_problems(page: Page, header: Header, root: Path) -> Iterator[Problem]:
    show, start = header.options.get("show", ("output", 0))
    if show not in SHOW:
        close = nearest(show, SHOW)
        at = start + len("show: ")
        yield page.problem(
            f"show 不能是 {show}",
            at,
            at + len(show),
            remedy=f"是不是 {close}？" if close else f"可用的值：{'、'.join(SHOW)}",
        )
        show = "output"
    try:
        _, cell = resolve(header.argument, root, show)
        if show != "code":
            outputs_html(cell, id_prefix="x", alt=header.options.get("alt", ("", 0))[0] or None)
    except NotebookError as error:
        at = header.argument_start
        end = max(at + len(header.argument), at + 1)
        yield page.problem(str(error), at, end, remedy=error.remedy)


class NotebookFigure(FlowerBlock):
    """Draws one cell."""

    NAME = "notebook"
    ARGUMENT = True
    OPTIONS: ClassVar[dict[str, Any]] = {
        "show": ("output", type_string_in(SHOW)),
        "caption": ("", text_option),
        "alt": ("", text_option),
    }

    def on_create(self, parent: etree.Element) -> etree.Element:
        show = self.options["show"]
        notebook, cell = resolve(self.argument, self.reader.root, show)
        name = f"nb-{notebook.slug.replace('/', '-')}-{cell.label}"
        figure = etree.SubElement(
            parent, "figure", {"class": "flower-notebook", "id": self._unique(name)}
        )
        if show != "output":
            self.store(figure, highlighted(self.md, cell.source, "python"))
        if show != "code":
            drawn = outputs_html(
                cell, id_prefix=figure.get("id", name), alt=self.options["alt"] or None
            )
            self.store(figure, drawn, css="flower-notebook__output")
        caption = etree.SubElement(figure, "figcaption")
        if self.options["caption"]:
            etree.SubElement(caption, "span").text = self.options["caption"]
            caption[-1].tail = " "
        link = etree.SubElement(caption, "a", {"class": "flower-notebook__link"})
        link.set("href", context.link(f"notebooks/{notebook.slug}.ipynb", cell.label or ""))
        link.text = AtomicString(notebook.title)
        return figure

    def _unique(self, name: str) -> str:
        """The same cell may be shown twice on a page; ids may not."""
        count = self.tracker[name] = self.tracker.get(name, 0) + 1
        return name if count == 1 else f"{name}-{count}"


class PageCell(Protocol):
    """A cell of a notebook page (`flower_site.notebook_pages.Cell`)."""

    @property
    def label(self) -> str | None: ...
    @property
    def outputs(self) -> Sequence[Any]: ...


def render_outputs(cell: PageCell) -> str:
    """The outputs of a cell on the notebook's own page; a figure without a text is shown all the
    same.
    """
    digest = hashlib.sha256(repr(cell.outputs).encode()).hexdigest()[:8]
    name = f"cell-{cell.label or digest}"
    copy = Cell(cell.label, "", list(cell.outputs))
    try:
        drawn = outputs_html(copy, id_prefix=name)
    except NotebookError:
        drawn = outputs_html(copy, id_prefix=name, alt=cell.label or "图")
    return f'<div class="flower-notebook__output">{drawn}</div>' if drawn else ""


class NotebookExtension(FlowerExtension):
    """Reads notebook blocks."""

    checks = (find_problems,)

    def install(self, md: Markdown) -> None:
        self.block_manager(md).register(NotebookFigure, self.getConfigs())


def makeExtension(**kwargs: Any) -> NotebookExtension:
    """Entry point of Python-Markdown."""
    return NotebookExtension(**kwargs)
