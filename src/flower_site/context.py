"""What the Markdown extensions know about the page and the build they work for.

The MkDocs plugin sets `page` around each conversion and calls `start_build` once a build. Without
a plugin (Zensical, tests, a notebook) both have sensible defaults: no page, and indexes that are
compared with the disk.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Hashable, Iterable
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from flower_site.formulas import FormulaBook

page: ContextVar[Path | None] = ContextVar("page", default=None)
"""Path of the page being rendered, relative to the repository: ``docs/cards/a.md``,
``notebooks/a.ipynb``.
"""

_T = TypeVar("_T")
_build = 0
_indexes: dict[Hashable, tuple[Hashable, Any]] = {}


def start_build() -> None:
    """Begin a build: every index is read again once, then kept until the next build."""
    global _build
    _build += 1
    _indexes.clear()


def end_build() -> None:
    """Leave the build: indexes are compared with the disk again at each use."""
    global _build
    _build = 0
    _indexes.clear()


def index(key: Hashable, files: Callable[[], Iterable[Path]], read: Callable[[], _T]) -> _T:
    """``read()``, kept for the whole build, or outside of one as long as no file of ``files()``
    changes.
    """
    state: Hashable = _build if _build else _fingerprint(files())
    if key in _indexes and _indexes[key][0] == state:
        kept: _T = _indexes[key][1]
        return kept
    value = read()
    _indexes[key] = (state, value)
    return value


def _fingerprint(files: Iterable[Path]) -> tuple[tuple[str, int, int], ...]:
    states = ((str(file), file.stat()) for file in files if file.is_file())
    return tuple((name, state.st_mtime_ns, state.st_size) for name, state in states)


def find_root(start: Path | None = None) -> Path:
    """The repository: nearest parent of ``start`` (default: the working directory) holding
    mkdocs.yml.

    Raises:
        FileNotFoundError: if there is none.
    """
    start = (start or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        if (folder / "mkdocs.yml").is_file():
            return folder
    raise FileNotFoundError(
        f"no mkdocs.yml in {start} or above it; set the option root of the extension"
    )


def formula_book(root: Path) -> FormulaBook:
    """Every formula block of the site."""
    from flower_site.formulas import FormulaBook

    def sources() -> Iterable[Path]:
        yield from sorted((root / "docs").rglob("*.md"))
        yield from sorted((root / "notebooks").rglob("*.ipynb"))
        yield from sorted((root / "src").rglob("*.py"))

    return index(("formulas", root), sources, lambda: FormulaBook.load(root))


def site_path(path: Path | str) -> str:
    """Where a file of the repository lies in the site's own tree: docs/cards/a.md is cards/a.md."""
    name = path.as_posix() if isinstance(path, Path) else path
    return name.removeprefix("docs/")


def link(target: Path | str, anchor: str = "") -> str:
    """Relative link from the page being rendered to another page, as MkDocs wants it (`.md`,
    `.ipynb`).
    """
    here = page.get()
    start = posixpath.dirname(site_path(here)) if here is not None else ""
    there = site_path(target)
    hash_ = f"#{anchor}" if anchor else ""
    if here is not None and there == site_path(here):
        return hash_ or posixpath.basename(there)
    return posixpath.relpath(there, start or ".") + hash_
