"""Where a formula block stands: its page, that page's title, and its number on it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import yaml

from flower_site import context
from flower_site.problems import nearest


class EquationError(LookupError):
    """No formula block has this name; ``remedy`` names the nearest."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


@dataclass(frozen=True)
class Equation:
    """A formula block as other text refers to it; ``page`` is relative to the repository."""

    slug: str
    page: str
    page_title: str
    number: int


def equation(slug: str, root: Path) -> Equation:
    """The formula block of this name.

    Raises:
        EquationError: if no page defines it.
    """
    blocks = context.formula_book(root).blocks
    if slug not in blocks:
        close = nearest(slug, blocks)
        raise EquationError(
            f"没有名为 {slug} 的公式",
            f"是不是 {close}？" if close else "先在某一页用 formula 块写出它",
        )
    block = blocks[slug]
    page = _file_of(block.path)
    here = [
        name for name, other in blocks.items() if _file_of(other.path) == page
    ]  # in reading order
    return Equation(slug, page, page_title(root / page), here.index(slug) + 1)


def _file_of(path: str) -> str:
    """The file of a text: a notebook cell is named `notebooks/a.ipynb, cell 3`."""
    return path.split(", cell ")[0]


def page_title(file: Path) -> str:
    """The title of a page: from its front matter, else its first heading, else its name."""
    if file.suffix != ".md" or not file.is_file():
        return file.stem
    text = file.read_text(encoding="utf-8")
    front = re.match(r"\A---[ \t]*\n(.*?)\n---[ \t]*\n", text, re.S)
    if front:
        data = yaml.safe_load(front[1])
        if isinstance(data, dict) and data.get("title"):
            return str(data["title"])
    heading = re.search(r"^#[ \t]+(.+?)[ \t]*$", text, re.M)
    return heading[1] if heading else file.stem
