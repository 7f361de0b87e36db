"""A notebook as a page: its Markdown goes through the site's own renderer, its cells through ours.

A notebook becomes one Markdown text: Markdown cells as they are, code cells as fences between two
empty marker elements. MkDocs renders that text like any page (same extensions, links, anchors,
contents list, highlighting), and afterwards the markers become the cell's box and its saved
outputs. Nothing is executed here.
"""

from __future__ import annotations

import html
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from mkdocs.structure.files import File

from .attachments import with_files
from .notebook_rules import LABEL, uncompared
from .notebooks import RECORD, Cell, NotebookError, outputs_html
from .problems import Problem

_DIRECTIVES = re.compile(r"\A(?:#\|[^\n]*(?:\n|\Z))+")
_MARKER = re.compile(r'<div class="flower-(cell|end)"(?: id="[^"]*")? data-cell="(\d+)"></div>')
_EMBEDS = re.compile(r"^[ \t]*/{3,}[ \t]*notebook[ \t]*\|[ \t]*([\w/-]+)#|\{nb\}`([\w/-]+)#", re.M)


class NotebookFile(File):
    """A notebook, which lies outside ``docs``, as a page: ``notebooks/a/`` on the site."""

    def is_documentation_page(self) -> bool:
        return True


@dataclass(frozen=True)
class NotebookPage:
    """One notebook, read.

    Args:
        uri: its place in the site's sources, ``notebooks/a.ipynb``.
        title: its first heading.
        summary: the first paragraph after the heading.
        markdown: the page's Markdown, code cells as markers.
        cells: the code cells in order; a marker holds the index.
        images: the pictures pasted into Markdown cells, place inside the site → content.
    """

    uri: str
    title: str
    summary: str
    markdown: str
    cells: tuple[Cell, ...]
    images: Mapping[str, bytes] = field(default_factory=dict)


def read_notebook(path: Path, uri: str, used_by: Sequence[tuple[str, str]] = ()) -> NotebookPage:
    """Read a notebook into a page.

    Args:
        path: the file.
        uri: its place in the site's sources.
        used_by: ``(page's uri, title)`` of each page that embeds something of it.

    Raises:
        Problem: the file is no notebook, has no title, or a cell's saved output is an error.
    """
    try:
        notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
    except (ValueError, nbformat.ValidationError) as error:
        raise Problem(
            f"读不了这个笔记本：{error}", path=uri, remedy="用 Jupyter 打开并另存，或恢复上一版"
        ) from error
    parts: list[str] = []
    cells: list[Cell] = []
    images: dict[str, bytes] = {}
    for number, cell in enumerate(notebook.cells, start=1):
        if cell.cell_type == "markdown":
            source, files = with_files(cell.source, cell.get("attachments", {}), uri, number)
            parts.append(source)
            images.update(files)
        elif cell.cell_type == "code" and cell.source.strip():
            _refuse_errors(cell, number, uri)
            label = LABEL.match(cell.source)
            code = _DIRECTIVES.sub("", cell.source).strip("\n")
            parts.append(_cell_markdown(len(cells), label[1] if label else None, code))
            outputs = cell.get("outputs", [])
            cells.append(Cell(label[1] if label else None, code, outputs, uncompared(cell)))
    title, summary, parts = _with_bar(parts, uri, used_by)
    front = f"---\ndescription: {_quoted(summary or title)}\n---\n\n"
    markdown = front + "\n\n".join(parts) + "\n"
    return NotebookPage(uri, title, summary, markdown, tuple(cells), images)


def fill_cells(content: str, page: NotebookPage) -> str:
    """Put the cells' boxes and outputs in place of their markers in the rendered page.

    Args:
        content: the HTML that MkDocs rendered from ``page.markdown``.
        page: the notebook.

    Raises:
        Problem: a marker is gone, because a fence or tag above it was never closed; or a figure
            says nowhere what it shows.
    """
    seen: list[tuple[str, int]] = []

    def draw(marker: re.Match[str]) -> str:
        number = int(marker[2])
        seen.append((marker[1], number))
        cell = page.cells[number]
        if marker[1] == "end":
            return f"{_outputs(cell, number, page.uri)}</div>"
        if not cell.label:
            return '<div class="flower-cell">'
        label = html.escape(cell.label)
        return (
            f'<div class="flower-cell" id="{label}"><a class="flower-cell__label" '
            f'href="#{label}" data-search-exclude>{label}</a>'
        )

    filled = _MARKER.sub(draw, content)
    expected = [(kind, number) for number in range(len(page.cells)) for kind in ("cell", "end")]
    if seen != expected:
        lost = next(item for item in expected if item not in seen)
        raise Problem(
            f"第 {lost[1] + 1} 个代码单元格没有出现在页面上",
            path=page.uri,
            remedy="它上面的 Markdown 单元格里有没有闭合的代码围栏、块或 HTML 标签，请闭合",
        )
    return filled


def _outputs(cell: Cell, number: int, uri: str) -> str:
    try:
        shown = outputs_html(cell, id_prefix=f"cell-{number}")
    except NotebookError as error:
        raise Problem(str(error), path=uri, remedy=error.remedy) from error
    drawn = f'<div class="flower-notebook__output">{shown}</div>' if shown else ""
    records = [
        output["data"][RECORD] for output in cell.outputs if RECORD in output.get("data", {})
    ]
    values = "".join(
        f"<li><code>{html.escape(record['name'])}</code> = {html.escape(str(record['value']))}</li>"
        for record in records
    )
    warning = ""
    if cell.uncompared is not None:
        reason = html.escape(cell.uncompared.reason)
        warning = f'<p class="flower-uncompared">输出未核对：{reason}</p>'
    return drawn + (f'<ul class="flower-records">{values}</ul>' if values else "") + warning


def embedded_notebooks(markdown: str) -> set[str]:
    """Slugs of the notebooks that a page embeds, by block or by value."""
    return {block or value for block, value in _EMBEDS.findall(markdown)}


def download_uri(uri: str) -> str:
    """Where the notebook itself lies on the site, to be downloaded."""
    folder, name = posixpath.split(uri)
    return posixpath.join(folder, "download", name)


def _cell_markdown(number: int, label: str | None, code: str) -> str:
    place = f' id="{html.escape(label)}"' if label else ""
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in re.findall(r"`+", code))])
    shown = f"{fence}python\n{code}\n{fence}\n\n" if code else ""
    return (
        f'<div class="flower-cell"{place} data-cell="{number}"></div>\n\n'
        f'{shown}<div class="flower-end" data-cell="{number}"></div>'
    )


def _refuse_errors(cell: nbformat.NotebookNode, number: int, uri: str) -> None:
    for output in cell.get("outputs", []):
        if output.output_type == "error":
            raise Problem(
                f"第 {number} 个单元格的输出是错误 {output.ename}: {output.evalue}",
                path=uri,
                text=None,
                remedy="改正这个单元格，再运行 make notebooks",
            )


def _with_bar(
    parts: list[str], uri: str, used_by: Sequence[tuple[str, str]]
) -> tuple[str, str, list[str]]:
    """Title, first paragraph, and the parts with the bar of links put under the title."""
    first = parts[0].lstrip() if parts else ""
    heading, _, rest = first.partition("\n")
    if not heading.startswith("# "):
        raise Problem("笔记本没有标题", path=uri, remedy="第一个单元格写 # 实验：…")
    folder = posixpath.dirname(uri)
    links = [
        f"[下载笔记本]({posixpath.relpath(download_uri(uri), folder)})",
        f"本地运行：`make lab`，打开 `{uri}`",
    ]
    if used_by:
        pages = "、".join(
            f"[{title}]({posixpath.relpath(page, folder)})" for page, title in used_by
        )
        links.append(f"引用它的页面：{pages}")
    items = "\n".join(f"- {link}" for link in links)
    bar = f'<div class="flower-notebook-bar" data-search-exclude markdown="1">\n\n{items}\n\n</div>'
    paragraphs = [text.strip() for text in re.split(r"\n\s*\n", rest) if text.strip()]
    plain = paragraphs[0] if paragraphs and paragraphs[0][0] not in "#$!/|<-*>`" else ""
    summary = " ".join(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", plain).split())
    return heading[2:].strip(), summary, [heading, bar, rest.strip("\n"), *parts[1:]]


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
