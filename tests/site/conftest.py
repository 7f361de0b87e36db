"""A small repository, and our Markdown on top of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import small_repo
from markdown import Markdown

from flower_site import context
from flower_site.blocks.math_check import ARITHMATEX, STRUCTURE


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {
        "mkdocs.yml": "",
        "docs/references.bib": small_repo.BIB,
        "docs/cards/attention.md": small_repo.FORMULA_PAGE,
        "src/flower_demo/__init__.py": "",
        "src/flower_demo/attention.py": small_repo.CODE,
        "src/flower_demo/inner.py": "def deep():\n    return 1\n",
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    small_repo.write_notebook(tmp_path / "notebooks/demo.ipynb", small_repo.notebook_cells())
    monkeypatch.setattr(context, "formula_book", small_repo.formula_book)
    return tmp_path


Render = Callable[..., str]


@pytest.fixture
def render(repo: Path) -> Render:
    """`render(text, page=..., repository=...)`: the text as HTML, as a page of `repo`."""
    names = ("math", "diagrams", "formula", "notebook", "source", "inline", "references")

    def run(text: str, page: str | None = None, repository: str = "") -> str:
        ours = [f"flower_site.blocks.{name}" for name in names]
        extensions = [*STRUCTURE, "toc", "pymdownx.highlight", *ours]
        options: dict[str, dict[str, Any]] = {
            name: {"root": str(repo), "repository": repository} for name in ours
        }
        options["pymdownx.arithmatex"] = ARITHMATEX
        md = Markdown(extensions=extensions, extension_configs=options)
        token = context.page.set(Path(page) if page else None)
        try:
            return md.convert(text)
        finally:
            context.page.reset(token)

    return run
