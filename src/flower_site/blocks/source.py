"""The block `/// source | flower_transformer.attention.scaled_dot_product_attention`: code quoted
from the package.

Only packages below `src` are looked at, and only read: nothing is imported or run.
"""

from __future__ import annotations

import ast
import os
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from xml.etree import ElementTree as etree

from markdown import Markdown
from markdown.util import AtomicString

from flower_site import context
from flower_site.blocks.code import highlighted
from flower_site.blocks.extension import (
    FlowerBlock,
    FlowerExtension,
    reader_of,
    text_option,
    unclosed,
    unknown_options,
)
from flower_site.blocks.page import Page
from flower_site.problems import Problem, nearest

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class SourceError(LookupError):
    """A dotted path leads nowhere; ``remedy`` names the nearest."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


@dataclass(frozen=True)
class Excerpt:
    """A piece of source: ``path`` relative to the repository, lines counted from 1, both ends
    included.
    """

    path: str
    first: int
    last: int
    code: str


def excerpt(dotted: str, root: Path) -> Excerpt:
    """The source of a function, class, method or module of our packages.

    Raises:
        SourceError: for a path that leads nowhere.
    """
    for _ in range(10):
        file = _module_file(dotted, root / "src")
        if file is None:
            break
        definitions, passed_on = _module(file, root)
        if dotted in definitions:
            return definitions[dotted]
        if dotted not in passed_on:
            break
        dotted = passed_on[dotted]
    known = [name for file in _files(root / "src") for name in _module(file, root)[0]]
    packages = sorted({name.split(".")[0] for name in known})
    close = nearest(dotted, known)
    if not close and dotted.split(".")[0] not in packages:
        remedy = f"只能引用 {'、'.join(packages)} 里的代码" if packages else "src 下没有包"
    else:
        remedy = f"是不是 {close}？" if close else "检查模块和函数的名字"
    raise SourceError(f"找不到代码 {dotted}", remedy)


def _files(src: Path) -> list[Path]:
    return [file for package in _packages(src) for file in sorted(package.rglob("*.py"))]


def _module_file(dotted: str, src: Path) -> Path | None:
    """The file of the longest beginning of a dotted path that is a module of our packages."""
    parts = dotted.split(".")
    if not all(part.isidentifier() for part in parts):
        return None
    for length in range(len(parts), 0, -1):
        place = src.joinpath(*parts[:length])
        for file in (place / "__init__.py", place.with_suffix(".py")):
            if file.is_file() and (src / parts[0] / "__init__.py").is_file():
                return file
    return None


def _module(file: Path, root: Path) -> tuple[dict[str, Excerpt], dict[str, str]]:
    """What a module defines, and what it passes on (``from .x import name``), by dotted path."""

    def read() -> tuple[dict[str, Excerpt], dict[str, str]]:
        parts = list(file.relative_to(root / "src").with_suffix("").parts)
        module = ".".join(parts).removesuffix(".__init__")
        text = file.read_text(encoding="utf-8")
        lines = text.split("\n")
        path = file.relative_to(root).as_posix()
        found = {module: Excerpt(path, 1, len(lines), text.rstrip("\n"))}
        tree = ast.parse(text)
        for name, node in _walk(tree, module):
            decorators = [decorator.lineno for decorator in node.decorator_list]
            first, last = min([node.lineno, *decorators]), node.end_lineno or node.lineno
            code = textwrap.dedent("\n".join(lines[first - 1 : last]))
            found[name] = Excerpt(path, first, last, code)
        passed_on = {}
        for statement in tree.body:
            if isinstance(statement, ast.ImportFrom):
                base = parts[: len(parts) - statement.level] if statement.level else []
                source = ".".join([*base, *([statement.module] if statement.module else [])])
                for alias in statement.names:
                    passed_on[f"{module}.{alias.asname or alias.name}"] = f"{source}.{alias.name}"
        return found, passed_on

    return context.index(("module", file), lambda: [file], read)


def _packages(src: Path) -> list[Path]:
    return sorted(folder.parent for folder in src.glob("*/__init__.py"))


def _walk(node: ast.AST, prefix: str) -> Iterator[tuple[str, _Definition]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Definition):
            yield f"{prefix}.{child.name}", child
            if isinstance(child, ast.ClassDef):
                yield from _walk(child, f"{prefix}.{child.name}")


def find_problems(page: Page, root: Path) -> Iterator[Problem]:
    """Paths that lead nowhere, unknown options, blocks without end."""
    for header in page.headers:
        if header.name != "source":
            continue
        yield from unknown_options(page, header, ("caption",))
        yield from unclosed(page, header)
        try:
            excerpt(header.argument, root)
        except SourceError as error:
            start = header.argument_start
            end = max(start + len(header.argument), start + 1)
            yield page.problem(str(error), start, end, remedy=error.remedy)


class SourceFigure(FlowerBlock):
    """Draws one excerpt."""

    NAME = "source"
    ARGUMENT = True
    OPTIONS: ClassVar[dict[str, Any]] = {"caption": ("", text_option)}

    def on_create(self, parent: etree.Element) -> etree.Element:
        found = excerpt(self.argument, self.reader.root)
        figure = etree.SubElement(
            parent, "figure", {"class": "flower-source", "id": f"source-{self.argument}"}
        )
        title = f"{found.path}:{found.first}"
        self.store(figure, highlighted(self.md, found.code, "python", title=title))
        caption = etree.SubElement(figure, "figcaption")
        if self.options["caption"]:
            etree.SubElement(caption, "span").text = self.options["caption"]
            caption[-1].tail = " "
        where = f"{found.path} 第 {found.first}–{found.last} 行"
        url = line_address(self.reader.repository, found)
        place = etree.SubElement(caption, "a" if url else "span", {"class": "flower-source__place"})
        if url:
            place.set("href", url)
        place.text = AtomicString(where)
        return figure


def line_address(repository: str, found: Excerpt) -> str | None:
    """Where the code host shows these lines; ``None`` without a repository."""
    if not repository:
        return None
    branch = os.environ.get("FLOWER_REPO_BRANCH", "main")
    return f"{repository}/blob/{branch}/{found.path}#L{found.first}-L{found.last}"


def code_link(md: Markdown, parent: etree.Element, dotted: str) -> etree.Element:
    """The dotted path as code below ``parent``: a link to its excerpt on this page, else to the
    repository.
    """
    reader = reader_of(md)
    shown = any(h.name == "source" and h.argument == dotted for h in reader.page.headers)
    url = f"#source-{dotted}" if shown else None
    if url is None:
        try:
            url = line_address(reader.repository, excerpt(dotted, reader.root))
        except SourceError:
            url = None
    outer = (
        etree.SubElement(parent, "a", {"href": url}) if url else etree.SubElement(parent, "span")
    )
    etree.SubElement(outer, "code").text = AtomicString(dotted)
    return outer


class SourceExtension(FlowerExtension):
    """Reads source blocks."""

    checks = (find_problems,)

    def install(self, md: Markdown) -> None:
        self.block_manager(md).register(SourceFigure, self.getConfigs())


def makeExtension(**kwargs: Any) -> SourceExtension:
    """Entry point of Python-Markdown."""
    return SourceExtension(**kwargs)
