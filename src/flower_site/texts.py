"""The site's pieces of Markdown and where they come from: pages, notebook cells, docstrings."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flower_site.problems import Problem


@dataclass(frozen=True)
class Text:
    """A piece of Markdown and where it comes from.

    ``first_line`` is the line of the file on which the piece starts (1 for a page). A notebook
    cell is named in
    ``path`` (``notebooks/a.ipynb, cell 3``), and its lines are counted within the cell.
    """

    content: str
    path: str
    first_line: int = 1

    def place(self, offset: int) -> tuple[int, int]:
        """1-based line in the file and 1-based column of an offset."""
        start = self.content.rfind("\n", 0, offset) + 1
        return self.content.count("\n", 0, offset) + self.first_line, offset - start + 1

    def problem(
        self, message: str, start: int, end: int | None = None, **more: str | None
    ) -> Problem:
        """A problem at an offset of this text."""
        line, column = self.place(start)
        text = self.content.split("\n")[line - self.first_line]
        width = max(1, (end or start + 1) - start)
        return Problem(
            message, path=self.path, line=line, column=column, text=text, width=width, **more
        )


def page_texts(root: Path) -> Iterator[Text]:
    """Every page under ``docs``."""
    for path in sorted((root / "docs").rglob("*.md")):
        yield Text(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix())


def notebook_texts(root: Path) -> Iterator[Text]:
    """Every Markdown cell of every notebook."""
    for path in sorted((root / "notebooks").rglob("*.ipynb")):
        if ".ipynb_checkpoints" in path.parts:
            continue
        name = path.relative_to(root).as_posix()
        for number, cell in enumerate(read_cells(path, name), start=1):
            if cell["cell_type"] == "markdown":
                yield Text(cell["source"], f"{name}, cell {number}")


def read_cells(path: Path, name: str) -> list[dict[str, Any]]:
    """The cells of a notebook file, their texts as plain strings (see `read_notebook`)."""
    cells: list[dict[str, Any]] = read_notebook(path.read_text(encoding="utf-8"), name)["cells"]
    return cells


def read_notebook(content: str, name: str) -> dict[str, Any]:
    """A notebook file, the texts of its cells as plain strings.

    ``nbformat`` is not used here: importing it takes longer than all else that the check does.

    Raises:
        Problem: if the file is no notebook of format 4.
    """
    try:
        notebook = json.loads(content)
        if notebook["nbformat"] != 4:
            raise ValueError(f"nbformat {notebook['nbformat']}")
        return {
            "metadata": {},
            **notebook,
            "cells": [_joined(cell) for cell in notebook["cells"]],
        }
    except (ValueError, KeyError, TypeError) as error:
        raise Problem(
            f"读不了这个笔记本：{error!r}", path=name, line=1, remedy="用 Jupyter 打开并重新保存"
        ) from error


def _joined(cell: dict[str, Any]) -> dict[str, Any]:
    """A cell whose texts are strings; on disk they are strings or lists of lines."""
    outputs = [
        {
            **output,
            "text": "".join(output.get("text", "")),
            "data": {
                kind: "".join(value) if isinstance(value, list) and "json" not in kind else value
                for kind, value in output.get("data", {}).items()
            },
        }
        for output in cell.get("outputs", [])
    ]
    source = "".join(cell["source"])
    return {**cell, "cell_type": cell["cell_type"], "source": source, "outputs": outputs}


def docstring_texts(root: Path, package: str = "flower_transformer") -> Iterator[Text]:
    """Every docstring of the package that displays a formula."""
    for path in sorted((root / "src" / package).rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            if not isinstance(
                node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            ):
                continue
            docstring = ast.get_docstring(node, clean=False)
            if docstring and ("$$" in docstring or r"\[" in docstring):
                first = node.body[0]
                yield Text(docstring, path.relative_to(root).as_posix(), first.lineno)
