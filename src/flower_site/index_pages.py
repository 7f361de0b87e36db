"""Index pages of cards, papers, topics and notebooks, and the navigation, from what is there."""

from __future__ import annotations

import html
import posixpath
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .blocks.page import INLINE

STATUS = {"published": "已发布", "draft": "草稿"}
MARKER = "<!-- flower-index -->"


@dataclass(frozen=True)
class Entry:
    """One line of an index.

    Args:
        uri: the page inside the site's sources, ``cards/layer-norm.md``.
        title: its title.
        summary: one sentence, or nothing.
        tags: its tags.
        status: ``published``, ``draft`` or nothing (notebooks).
        order: place in the list; equal places go by title.
        note: a short addition after the title (authors and year of a paper).
    """

    uri: str
    title: str
    summary: str = ""
    tags: tuple[str, ...] = ()
    status: str = ""
    order: int = 1000
    note: str = ""

    @classmethod
    def from_matter(cls, uri: str, matter: dict[str, Any]) -> Entry:
        """An entry from a page's front matter."""
        authors = matter.get("authors") or []
        people = "、".join(authors[:2]) + (" 等" if len(authors) > 2 else "")
        facts = (people, str(matter.get("year") or ""), matter.get("venue") or "")
        note = "，".join(fact for fact in facts if fact)
        return cls(
            uri=uri,
            title=str(matter.get("title") or posixpath.basename(uri)),
            summary=str(matter.get("summary") or ""),
            tags=tuple(matter.get("tags") or ()),
            status=str(matter.get("status") or ""),
            order=int(matter.get("order", 1000)),
            note=note,
        )


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Entries as a reader meets them: by ``order``, then title."""
    return sorted(entries, key=lambda entry: (entry.order, entry.title, entry.uri))


def index_markdown(entries: Iterable[Entry], folder: str) -> str:
    """The list as Markdown, to stand on the page ``folder/index.md``.

    Args:
        entries: the notes of the folder.
        folder: the folder's path in the site's sources, for relative links.
    """
    ordered = in_order(entries)
    if not ordered:
        return "这里还没有内容。\n"
    lines = ['<ul class="flower-index" markdown="1">']
    for entry in ordered:
        link = posixpath.relpath(entry.uri, folder)
        lines.append('<li markdown="block">')
        lines.append(f"**[{_escape(entry.title)}]({link})** {_status(entry.status)}")
        if entry.note:
            lines.append(f'<span class="flower-index__note">{_escape(entry.note)}</span>')
        lines.append("")
        if entry.summary:
            lines += [entry.summary, ""]
        if entry.tags:
            tags = " ".join(f"<span>{_escape(tag)}</span>" for tag in entry.tags)
            lines += [f'<p class="flower-index__tags">{tags}</p>', ""]
        lines.append("</li>")
    lines += ["</ul>", ""]
    return "\n".join(lines)


def with_index(markdown: str, listing: str) -> str:
    """Put ``listing`` where the page says ``<!-- flower-index -->``, otherwise at its end."""
    if MARKER in markdown:
        return markdown.replace(MARKER, listing, 1)
    return f"{markdown.rstrip()}\n\n{listing}"


def expand_navigation(nav: list[Any], folders: dict[str, list[Entry]]) -> list[Any]:
    """Replace each folder of ``nav`` (``cards/``) by its index page and its notes in order."""
    expanded: list[Any] = []
    for item in nav:
        if isinstance(item, dict) and len(item) == 1:
            ((title, target),) = item.items()
            if isinstance(target, str) and target.endswith("/"):
                entries = in_order(folders.get(target.rstrip("/"), []))
                pages = [f"{target}index.md", *(entry.uri for entry in entries)]
                expanded.append({title: pages})
                continue
        expanded.append(item)
    return expanded


def _status(status: str) -> str:
    if status not in STATUS:
        return ""
    return f'<span class="flower-status flower-status--{status}">{STATUS[status]}</span>'


def _escape(text: str) -> str:
    """Text for the Markdown of an index; its formulas (``$a < b$``) stay as they are."""
    parts: list[str] = []
    end = 0
    for match in INLINE.finditer(text):
        parts += [html.escape(text[end : match.start()], quote=False), match[0]]
        end = match.end()
    return "".join(parts) + html.escape(text[end:], quote=False)
