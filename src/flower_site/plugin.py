"""The MkDocs adapter: checks first, then adds what ``docs`` does not hold.

Added to the site: the notebooks, KaTeX's style sheet and fonts, index pages, the page 公式验证.
What a page needs while it is rendered lives in Markdown extensions, which work without it.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import sys
from contextvars import Token
from pathlib import Path
from typing import Any, Literal

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import Abort, PluginError
from mkdocs.livereload import LiveReloadServer
from mkdocs.plugins import BasePlugin, CombinedEvent, event_priority, get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils.templates import TemplateContext

from . import context
from .check import check_site
from .index_pages import expand_navigation, index_markdown, with_index
from .landmarks import with_unique_landmarks
from .notebook_pages import NotebookFile, download_uri, fill_cells
from .notebooks import uncompared_cells
from .page_links import SiteLinksExtension
from .plain_math import plain_sentence
from .problems import Problem, Problems
from .search_text import searchable
from .search_words import write_words
from .search_worker import repair_search_worker
from .site_files import (
    FOLDERS,
    Contents,
    asset_files,
    has_history,
    missing_pages,
    read_contents,
    repository_address,
    use_repository,
    without_plugin,
)
from .slim_html import (
    safe_for_instant_navigation,
    without_indentation,
    without_plain_tokens,
)
from .verification import environment, rows_of, verification_json, verification_markdown

log = get_plugin_logger(__name__)

# Imported by the formula check; forgotten when their sources change under `mkdocs serve`.
RELOADED = ("flower_transformer", "flower_site.bindings")

# A card explains a term and comes before what only uses it.
SEARCH_BOOST = {"cards": 4.0, "papers": 2.0, "topics": 1.5, "notebooks": 0.1, "api": 0.1}


class FlowerPlugin(BasePlugin):  # type: ignore[type-arg]
    """Hooks in the order in which MkDocs calls them."""

    def __init__(self) -> None:
        self.root = Path()
        self.contents = Contents()
        self.stamps: dict[Path, int] = {}
        self.shown: str | None = None
        self.token: Token[Path | None] | None = None

    def on_startup(self, *, command: Literal["build", "gh-deploy", "serve"], dirty: bool) -> None:
        if command == "serve":
            # Byte code written under src would look like an edit and start another build.
            sys.dont_write_bytecode = True

    @event_priority(100)
    def on_config(self, config: MkDocsConfig) -> None:
        self.root = Path(str(config.config_file_path)).resolve().parent
        if importlib.util.find_spec("jieba") is None:
            raise PluginError("没有 jieba，中文搜索会什么也找不到。改法：pip install jieba")
        logging.getLogger("jieba").setLevel(logging.WARNING)
        if words := write_words(self.root):
            config.plugins["material/search"].config["jieba_dict_user"] = str(words)
        address = repository_address(os.environ)
        use_repository(config, address, os.environ.get("FLOWER_REPO_BRANCH", "main"))
        for name in config.markdown_extensions:
            if name.startswith("flower_site.blocks."):
                options = config.mdx_configs.setdefault(name, {})
                options.setdefault("root", str(self.root))
                options.setdefault("repository", address or "")
        config.markdown_extensions.append(SiteLinksExtension())  # type: ignore[arg-type]
        dated = has_history(self.root)
        if not dated:
            without_plugin(config, "git-revision-date-localized")
        if not dated or not config.site_url:
            without_plugin(config, "rss")  # a feed needs dates and absolute addresses
        if config.plugins["material/offline"].config["enabled"]:
            config.extra["flower_offline"] = True
            # Our copy; the theme would load it from another host.
            config.extra["polyfills"] = ["assets/iframe-worker.js"]
            config.theme["features"].remove("navigation.instant")  # it fetches pages

    def on_pre_build(self, *, config: MkDocsConfig) -> None:
        self._forget_changed_code()
        context.start_build()
        report = check_site(self.root)
        for problem in report.problems:
            log.error("%s", problem)
        if report.problems:
            raise Abort(f"检查发现 {len(report.problems)} 处错误，没有生成网站")

    @event_priority(100)
    def on_files(self, files: Files, *, config: MkDocsConfig) -> Files:
        self.contents = read_contents(self.root, list(files.documentation_pages()))
        for uri, notebook in self.contents.notebooks.items():
            files.append(self._notebook_file(uri, config))
            source = str(self.root / uri)
            files.append(File.generated(config, download_uri(uri), abs_src_path=source))
            for place, content in notebook.images.items():
                files.append(File.generated(config, place, content=content))
        for file in asset_files(config):
            files.append(file)
        for file in missing_pages(config, set(files.src_uris)):
            files.append(file)
        rows = rows_of(context.formula_book(self.root), self.contents.titles)
        facts, uncompared = environment(), uncompared_cells(self.root)
        for name, text in (
            ("verification.md", verification_markdown(rows, facts, uncompared)),
            ("verification.json", verification_json(rows, facts, uncompared)),
        ):
            files.append(File.generated(config, name, content=text))
        if config.nav:
            config.nav = expand_navigation(config.nav, self.contents.entries)
        return files

    def on_page_read_source(self, *, page: Page, config: MkDocsConfig) -> str | None:
        notebook = self.contents.notebooks.get(page.file.src_uri)
        return notebook.markdown if notebook else None

    @event_priority(-100)
    def on_page_markdown(
        self, markdown: str, *, page: Page, config: MkDocsConfig, files: Files
    ) -> str:
        uri = page.file.src_uri
        page.meta.setdefault("description", page.meta.get("summary") or "")
        page.meta.setdefault("title", self.contents.titles.get(uri) or page.title)
        for key in ("title", "description"):  # tab, navigation, feed: plain text only
            page.meta[key] = plain_sentence(str(page.meta[key]))
        if page.meta.get("status") == "draft":
            page.meta["draft"] = True  # the feed leaves drafts out
        in_notebooks = uri in self.contents.notebooks
        self.token = context.page.set(Path(uri) if in_notebooks else Path("docs") / uri)
        folder, _, name = uri.rpartition("/")
        if name == "index.md" and folder in FOLDERS:
            page.meta.setdefault("search", {"exclude": True})  # it repeats what the notes say
            return with_index(markdown, index_markdown(self.contents.entries[folder], folder))
        if folder in SEARCH_BOOST:
            page.meta.setdefault("search", {"boost": SEARCH_BOOST[folder]})
        return markdown

    @event_priority(100)
    def on_page_content(self, html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
        if self.token is not None:
            context.page.reset(self.token)
            self.token = None
        notebook = self.contents.notebooks.get(page.file.src_uri)
        if notebook is not None:
            html = fill_cells(html, notebook)
        return safe_for_instant_navigation(without_plain_tokens(html))

    @event_priority(100)
    def _before_search(self, context: TemplateContext, *, page: Page, **_: Any) -> None:
        self.shown = page.content
        page.content = searchable(page.content or "")

    @event_priority(-100)
    def _after_search(self, context: TemplateContext, *, page: Page, **_: Any) -> None:
        page.content = self.shown

    # mypy: MkDocs declares self as positional-only
    on_page_context = CombinedEvent(_before_search, _after_search)  # type: ignore[arg-type]

    def on_post_page(self, output: str, *, page: Page, config: MkDocsConfig) -> str:
        return without_indentation(with_unique_landmarks(output))

    def on_post_build(self, *, config: MkDocsConfig) -> None:
        try:
            repair_search_worker(Path(config.site_dir))
        except LookupError as error:
            raise PluginError(f"{error}。改法：见 src/flower_site/search_worker.py") from error
        context.end_build()

    def on_build_error(self, *, error: Exception) -> None:
        """A fault in a note is a message, not a traceback."""
        context.end_build()
        if isinstance(error, Problem | Problems):
            raise Abort(f"{error}\n\n没有生成网站") from None

    def on_serve(
        self, server: LiveReloadServer, *, config: MkDocsConfig, builder: Any
    ) -> LiveReloadServer:
        for name in ("notebooks", "src"):
            if (self.root / name).is_dir():
                server.watch(str(self.root / name))
        return server

    def _notebook_file(self, uri: str, config: MkDocsConfig) -> NotebookFile:
        file = NotebookFile(uri, str(self.root), config.site_dir, config.use_directory_urls)
        file.edit_uri = f"../{uri}"  # edit links start in docs
        return file

    def _forget_changed_code(self) -> None:
        """Let the next import read changed sources, so that `serve` checks what is on disk."""
        stamps = {path: path.stat().st_mtime_ns for path in (self.root / "src").rglob("*.py")}
        if self.stamps and stamps != self.stamps:
            importlib.invalidate_caches()
            for name in list(sys.modules):
                if any(name == top or name.startswith(f"{top}.") for top in RELOADED):
                    del sys.modules[name]
        self.stamps = stamps
