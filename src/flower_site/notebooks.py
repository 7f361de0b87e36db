"""Committed notebooks as pages quote them: labelled cells, recorded values, outputs as HTML.

A cell that pages embed starts with ``#| label: kebab-case``; a value that pages quote was
published by ``record(name, value)`` as an output of type ``application/vnd.flower.record+json``.
Outputs are read, never run: nbval proves them elsewhere.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flower_site import context, notebook_rules
from flower_site.attachments import with_files
from flower_site.blocks.svg import inline_svg
from flower_site.notebook_rules import Uncompared
from flower_site.problems import Problem, nearest
from flower_site.seals import broken_seal
from flower_site.texts import read_notebook

RECORD = "application/vnd.flower.record+json"
_LABEL = re.compile(r"^#\|[ \t]*label:[ \t]*(\S*)[ \t]*$", re.M)
_DIRECTIVES = re.compile(r"\A(?:#\|[^\n]*(?:\n|\Z))+")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


class NotebookError(LookupError):
    """Something that a page asked of a notebook isn't there.

    Attributes:
        remedy: what to do about it.
    """

    def __init__(self, message: str, remedy: str | None = None) -> None:
        super().__init__(message)
        self.remedy = remedy


@dataclass(frozen=True)
class Record:
    """A value that a cell published; ``label`` is that cell's label, if it has one."""

    name: str
    value: float | int | str
    label: str | None
    uncompared: Uncompared | None = None


@dataclass(frozen=True)
class Cell:
    """A code cell: its source without the ``#|`` lines, and its outputs as in the file.

    ``uncompared`` says why nobody compares its outputs with a new run, if so.
    """

    label: str | None
    source: str
    outputs: list[dict[str, Any]]
    uncompared: Uncompared | None = None


@dataclass(frozen=True)
class Notebook:
    """One notebook; ``slug`` is its path below ``notebooks`` without suffix."""

    slug: str
    path: Path
    title: str
    cells: dict[str, Cell]
    records: dict[str, Record]
    faults: list[Problem] = field(default_factory=list)
    uncompared: dict[str, Uncompared] = field(default_factory=dict)

    def cell(self, label: str) -> Cell:
        """The cell with this label.

        Raises:
            NotebookError: naming the nearest label.
        """
        if label not in self.cells:
            raise NotebookError(
                f"笔记本 {self.slug} 里没有标签 {label}", _suggest(label, self.cells, "标签")
            )
        return self.cells[label]

    def shown(self, label: str) -> Cell:
        """The cell with this label, which has something to show.

        Raises:
            NotebookError: for a cell without output, with only records, or with an error, and
                for one whose outputs nobody compares.
        """
        cell = self.cell(label)
        self._require_compared(f"单元 {label}", cell.uncompared)
        for output in cell.outputs:
            if output["output_type"] == "error":
                raise NotebookError(
                    f"笔记本 {self.slug} 的单元 {label} 以错误结束："
                    f"{output.get('ename')}: {output.get('evalue')}",
                    "改好这个单元，重新运行笔记本（make notebooks）",
                )
        if not any(_kind(output) for output in cell.outputs):
            raise NotebookError(
                f"笔记本 {self.slug} 的单元 {label} 没有可显示的输出",
                "重新运行笔记本（make notebooks），或用 show: code 只展示代码",
            )
        return cell

    def record(self, name: str) -> Record:
        """The value recorded under this name.

        Raises:
            NotebookError: naming the nearest name; or if nobody compares the value.
        """
        if name not in self.records:
            raise NotebookError(
                f"笔记本 {self.slug} 里没有名为 {name} 的记录", _suggest(name, self.records, "记录")
            )
        self._require_compared(f"记录 {name}", self.records[name].uncompared)
        return self.records[name]

    def _require_compared(self, what: str, uncompared: Uncompared | None) -> None:
        if uncompared is not None:
            raise NotebookError(
                f"笔记本 {self.slug} 的{what} 没有人核对（{uncompared.tag}），不能引用",
                "引用会被核对的单元；或删去那个标签，让输出在每台机器上都一样",
            )


def load(slug: str, root: Path) -> Notebook:
    """The notebook of this name.

    Raises:
        NotebookError: if it doesn't exist or isn't a notebook.
    """
    path = root / "notebooks" / f"{slug}.ipynb"
    if not path.is_file():
        names = [
            file.relative_to(root / "notebooks").with_suffix("").as_posix()
            for file in all_files(root)
        ]
        raise NotebookError(f"没有笔记本 notebooks/{slug}.ipynb", _suggest(slug, names, "笔记本"))
    return context.index(("notebook", path), lambda: [path], lambda: _read(slug, path, root))


def all_files(root: Path) -> list[Path]:
    """Every notebook of the repository."""
    found = sorted((root / "notebooks").rglob("*.ipynb"))
    return [path for path in found if ".ipynb_checkpoints" not in path.parts]


def find_problems(root: Path) -> Iterator[Problem]:
    """What is wrong with the notebooks themselves: labels or record names used twice, files that
    can't be read.
    """
    for path in all_files(root):
        slug = path.relative_to(root / "notebooks").with_suffix("").as_posix()
        try:
            yield from load(slug, root).faults
        except NotebookError as error:
            yield Problem(str(error), path=path.relative_to(root), line=1, remedy=error.remedy)


def uncompared_cells(root: Path) -> list[tuple[str, str, Uncompared]]:
    """Notebook, cell and reason of every cell whose outputs nobody compares."""
    found = []
    for path in all_files(root):
        slug = path.relative_to(root / "notebooks").with_suffix("").as_posix()
        with suppress(NotebookError):  # find_problems reports it
            found += [(slug, name, why) for name, why in load(slug, root).uncompared.items()]
    return found


def _read(slug: str, path: Path, root: Path) -> Notebook:
    content = path.read_text(encoding="utf-8")
    uri = f"notebooks/{slug}.ipynb"
    try:
        notebook = read_notebook(content, uri)
    except Problem as problem:
        raise NotebookError(f"{uri}：{problem.message}", problem.remedy) from problem
    cells: dict[str, Cell] = {}
    records: dict[str, Record] = {}
    uncompared: dict[str, Uncompared] = {}
    faults = list(notebook_rules.faults(uri, notebook, content))
    title = slug
    raw = content.split("\n")

    def fault(message: str, needle: str, count: int, remedy: str = "换一个名字") -> None:
        lines = [number for number, line in enumerate(raw, 1) if needle in line]
        line = lines[min(count, len(lines)) - 1] if lines else 1
        at = raw[line - 1].find(needle)
        faults.append(
            Problem(
                message,
                path=path.relative_to(root),
                line=line,
                column=max(at, 0) + 1,
                text=raw[line - 1],
                width=len(needle),
                remedy=remedy,
            )
        )

    for number, cell in enumerate(notebook["cells"], start=1):
        heading = re.search(r"^#[ \t]+(.+)$", cell["source"], re.M)
        if cell["cell_type"] == "markdown" and title == slug and heading:
            title = heading[1].strip()
        if cell["cell_type"] == "markdown":
            try:
                with_files(cell["source"], cell.get("attachments", {}), uri, number)
            except Problem as problem:
                faults.append(problem)
        if cell["cell_type"] != "code":
            continue
        label = _label_of(cell["source"])
        outputs = cell["outputs"]
        why = notebook_rules.uncompared(cell)
        if why is not None:
            uncompared[notebook_rules.cell_name(cell, number)] = why
        if (wrong := broken_seal(cell)) is not None:
            identity = f'"id": "{cell.get("id", "")}"'
            fault(
                f"单元 {label or cell.get('id', '')}：{wrong}", identity, 1, "运行 make notebooks"
            )
        if label is not None:
            if label in cells:
                fault(f"标签 {label} 用了两次", f"label: {label}", 2)
            else:
                code = _DIRECTIVES.sub("", cell["source"]).strip("\n")
                cells[label] = Cell(label, code, outputs, why)
        for output in outputs:
            published = output.get("data", {}).get(RECORD)
            if published is None:
                continue
            name = published["name"]
            if name in records:
                fault(f"记录 {name} 用了两次", f'"name": "{name}"', 2)
            else:
                records[name] = Record(name, published["value"], label, why)
    return Notebook(slug, path, title, cells, records, faults, uncompared)


def _label_of(source: str) -> str | None:
    head = _DIRECTIVES.match(source)
    match = _LABEL.search(head[0]) if head else None
    return match[1] if match else None


def _suggest(name: str, candidates: dict[str, Any] | list[str], noun: str) -> str:
    close = nearest(name, candidates)
    if close:
        return f"是不是 {close}？"
    known = "、".join(list(candidates)[:8])
    return f"有这些{noun}：{known}" if known else f"还没有任何{noun}"


def _kind(output: dict[str, Any]) -> str | None:
    """What to show of an output: its richest type, None for a record or an empty text."""
    if output["output_type"] == "stream":
        return "stream" if output.get("text", "").strip() else None
    data = output.get("data", {})
    if RECORD in data:
        return None
    return next(
        (kind for kind in ("image/svg+xml", "text/html", "text/plain") if kind in data), None
    )


def outputs_html(cell: Cell, *, id_prefix: str, alt: str | None = None) -> str:
    """The outputs of a cell as HTML: SVG inline with ids of its own, tables as they are, text in
    `<pre>`.

    Args:
        cell: the cell.
        id_prefix: put before every id inside the SVGs.
        alt: replaces the title that a figure carries.

    Raises:
        NotebookError: for a figure that has neither title nor ``alt``.
    """
    parts: list[str] = []
    for number, output in enumerate(cell.outputs):
        kind = _kind(output)
        if kind == "image/svg+xml":
            try:
                parts.append(inline_svg(output["data"][kind], f"{id_prefix}-{number}-", alt))
            except ValueError as error:
                raise NotebookError(
                    f"单元 {cell.label} 的图：{error}",
                    "给 show(fig, alt=…) 一句说明，或在块里写 alt: 图的内容",
                ) from error
        elif kind == "text/html":
            parts.append(
                f'<div class="flower-notebook__table" tabindex="0">{output["data"][kind]}</div>'
            )
        elif kind == "text/plain":
            parts.append(_pre(output["data"][kind]))
        elif kind == "stream":
            parts.append(_pre(output["text"]))
    return "\n".join(parts)


def _pre(text: str) -> str:
    return f'<pre tabindex="0">{html.escape(_ANSI.sub("", text).rstrip(), quote=False)}</pre>'
