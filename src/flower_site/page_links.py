"""Links written as paths in the repository, which also work on a code host and in Jupyter.

On disk a card links to ``../../notebooks/a.ipynb`` and a notebook to ``../docs/cards/a.md``; on the
site both folders hang under one root. This Markdown extension rewrites the first into the second,
before MkDocs resolves and validates the link.
"""

from __future__ import annotations

import posixpath
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor

from . import context


def site_uri(path: str) -> str | None:
    """A path in the repository as a path in the site's sources; ``None`` for other files."""
    folder, _, rest = path.partition("/")
    if folder == "docs":
        return rest
    return path if folder == "notebooks" else None


def site_link(link: str, page: str) -> str:
    """``link`` as it must read on the site.

    Args:
        link: a link or image address from the page ``page``.
        page: the page's path in the repository, ``docs/cards/a.md`` or ``notebooks/a.ipynb``.
    """
    scheme, host, path, query, fragment = urlsplit(link)
    if scheme or host or not path or path.startswith("/"):
        return link
    target = site_uri(posixpath.normpath(posixpath.join(posixpath.dirname(page), path)))
    here = site_uri(page)
    if target is None or here is None:
        return link
    relative = posixpath.relpath(target, posixpath.dirname(here) or ".")
    return urlunsplit(("", "", relative, query, fragment))


class _SiteLinks(Treeprocessor):
    def run(self, root: Element) -> None:
        page = context.page.get(None)
        if page is None:
            return
        for element in root.iter():
            key = {"a": "href", "img": "src"}.get(str(element.tag))
            if key and (link := element.get(key)):
                element.set(key, site_link(link, Path(page).as_posix()))


class SiteLinksExtension(Extension):
    """Registers the rewriting after all inline processing and before MkDocs' own (priority 0)."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.treeprocessors.register(_SiteLinks(md), "flower-site-links", 1)
