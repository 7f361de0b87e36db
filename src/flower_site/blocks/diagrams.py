"""Fences of `mermaid`, drawn at build time and put into the page as SVG; `accTitle:` names the
drawing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from markdown import Markdown
from pymdownx.superfences import SuperFencesCodeExtension, SuperFencesException

from flower_site.blocks.extension import FlowerExtension, reader_of
from flower_site.blocks.page import Page
from flower_site.diagrams import DiagramError, diagrams
from flower_site.problems import Problem

LANGUAGE = "mermaid"


def find_problems(page: Page, root: Path) -> Iterator[Problem]:
    """Diagrams that can't be drawn, at the line that stops them."""
    for fence in page.fences:
        if fence.language != LANGUAGE:
            continue
        try:
            diagrams(root).svg(_dedented(fence.body), "x-")
        except DiagramError as error:
            lines = fence.body.split("\n")
            number = min(error.line, len(lines)) - 1
            start = fence.body_start + sum(len(line) + 1 for line in lines[:number])
            blank = len(lines[number]) - len(lines[number].lstrip(" >"))
            end = start + max(len(lines[number]), 1)
            yield page.problem(str(error), min(start + blank, end - 1), end, remedy=error.remedy)


def _dedented(body: str) -> str:
    """Without the indentation and quote marks of the fence; Mermaid itself ignores indentation."""
    return "\n".join(line.lstrip(" \t>") for line in body.split("\n")).strip("\n")


class DiagramDrawer:
    """The formatter that `pymdownx.superfences` calls for each fence."""

    def __init__(self) -> None:
        self.count: dict[str, int] = {}

    def __call__(self, *, src: str, md: Markdown, **_: Any) -> str:
        text = _dedented(src)
        name = hashlib.sha256(text.encode()).hexdigest()[:8]
        count = self.count[name] = self.count.get(name, 0) + 1
        prefix = f"d{name}-" if count == 1 else f"d{name}-{count}-"
        try:
            svg = diagrams(reader_of(md).root).svg(text, prefix)
        except DiagramError as error:  # only this type gets through superfences
            raise SuperFencesException(str(error)) from error
        return f'<figure class="flower-diagram" tabindex="0">{svg}</figure>'

    def reset(self, md: Markdown) -> None:
        self.count.clear()


class DiagramExtension(FlowerExtension):
    """Draws Mermaid fences; stands after `pymdownx.superfences` in the list of extensions."""

    checks = (find_problems,)

    def install(self, md: Markdown) -> None:
        fences = next(
            (e for e in md.registeredExtensions if isinstance(e, SuperFencesCodeExtension)), None
        )
        if fences is None:
            raise ValueError("flower_site.blocks.diagrams needs pymdownx.superfences before it")
        drawer = DiagramDrawer()
        fences.extend_super_fences(LANGUAGE, drawer, lambda *_: True, drawer.reset)


def makeExtension(**kwargs: Any) -> DiagramExtension:
    """Entry point of Python-Markdown."""
    return DiagramExtension(**kwargs)
