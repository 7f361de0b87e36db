"""What the site holds besides ``docs``: which files there are, their titles, who embeds what."""

from __future__ import annotations

import posixpath
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File
from mkdocs.utils import get_markdown_title, meta

from .index_pages import Entry
from .notebook_pages import NotebookPage, embedded_notebooks, read_notebook

ASSETS = Path(__file__).parent / "assets"
FOLDERS = {
    "papers": "论文总结",
    "cards": "知识点卡片",
    "topics": "专题",
    "notebooks": "实验",
    "api": "API",
}
TAGS_PAGE = "---\ntitle: 标签\nsearch:\n  exclude: true\n---\n\n# 标签\n\n<!-- material/tags -->\n"


@dataclass
class Contents:
    """The site's sources at one glance.

    Args:
        titles: page → title.
        entries: folder → what its index lists.
        notebooks: notebook page → the notebook, read.
    """

    titles: dict[str, str] = field(default_factory=dict)
    entries: dict[str, list[Entry]] = field(default_factory=lambda: {name: [] for name in FOLDERS})
    notebooks: dict[str, NotebookPage] = field(default_factory=dict)


def read_contents(root: Path, pages: Iterable[File]) -> Contents:
    """Read titles, front matter and notebooks.

    Args:
        root: the repository.
        pages: the Markdown files of ``docs``.

    Raises:
        Problem: a notebook can't be published (see :func:`read_notebook`).
    """
    contents = Contents()
    used_by: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for page in pages:
        text, matter = meta.get_data(page.content_string)
        title = str(matter.get("title") or get_markdown_title(text) or page.src_uri)
        contents.titles[page.src_uri] = title
        folder = posixpath.dirname(page.src_uri)
        if folder in contents.entries and page.name != "index":
            entry = Entry.from_matter(page.src_uri, {**matter, "title": title})
            contents.entries[folder].append(entry)
        for slug in embedded_notebooks(text):
            used_by[slug].append((page.src_uri, title))
    for path in notebook_paths(root):
        uri = path.relative_to(root).as_posix()
        slug = uri.removeprefix("notebooks/").removesuffix(".ipynb")
        notebook = read_notebook(path, uri, sorted(used_by[slug]))
        contents.notebooks[uri] = notebook
        contents.titles[uri] = notebook.title
        contents.entries["notebooks"].append(
            Entry(uri=uri, title=notebook.title, summary=notebook.summary)
        )
    return contents


def notebook_paths(root: Path) -> list[Path]:
    """Every notebook of the repository, without the copies that Jupyter keeps."""
    return sorted(
        path
        for path in (root / "notebooks").rglob("*.ipynb")
        if not any(part.startswith(".") for part in path.relative_to(root).parts)
    )


def asset_files(config: MkDocsConfig) -> Iterator[File]:
    """KaTeX's style sheet and fonts, and the diagrams' style sheet."""
    wanted = ["katex/katex.min.css", "diagrams.css"]
    wanted += [f"katex/fonts/{path.name}" for path in (ASSETS / "katex/fonts").glob("*.woff2")]
    for name in wanted:
        if (ASSETS / name).is_file():
            yield File.generated(config, f"assets/{name}", abs_src_path=str(ASSETS / name))


def missing_pages(config: MkDocsConfig, present: set[str]) -> Iterator[File]:
    """An index page for each folder and a page of tags, where ``docs`` has none."""
    for folder, title in FOLDERS.items():
        if f"{folder}/index.md" not in present:
            content = f"---\ntitle: {title}\n---\n\n# {title}\n"
            yield File.generated(config, f"{folder}/index.md", content=content)
    if "tags.md" not in present:
        yield File.generated(config, "tags.md", content=TAGS_PAGE)


def repository_address(environ: Mapping[str, str]) -> str | None:
    """The repository's https address: ``FLOWER_REPO_URL``, else what GitHub Actions says."""
    if address := environ.get("FLOWER_REPO_URL", "").strip().rstrip("/"):
        return address
    server, name = environ.get("GITHUB_SERVER_URL"), environ.get("GITHUB_REPOSITORY")
    return f"{server}/{name}" if server and name else None


def use_repository(config: MkDocsConfig, address: str | None, branch: str) -> None:
    """Set repository link and edit links, or none at all without an address."""
    config.repo_url = address
    config.repo_name = urlsplit(address).path.strip("/") if address else None
    config.edit_uri = f"edit/{branch}/docs/" if address else None


def has_history(root: Path) -> bool:
    """Whether git knows a commit of the repository; without one there are no dates of change."""
    command = ["git", "-C", str(root), "rev-parse", "--verify", "--quiet", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def without_plugin(config: MkDocsConfig, name: str) -> None:
    """Switch a plugin off and hide it from the theme, which tests for its presence."""
    plugin: Any = config.plugins.get(name)
    if plugin is not None:
        plugin.config["enabled"] = False
        del config.plugins[name]
