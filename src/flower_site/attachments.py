"""Images pasted into a notebook's Markdown cells: Jupyter keeps them in the cell, a page in files.

A picture stands in the text as ``![what it shows](attachment:image.png)``; its data is under
``attachments`` of the cell. Each becomes a file beside the notebook's page.
"""

from __future__ import annotations

import base64
import binascii
import posixpath
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from flower_site.blocks.page import page_of
from flower_site.problems import nearest
from flower_site.texts import Text

_NAME = r"attachment:(?P<name>(?:[^()\s<>\"']|\([^()\s]*\))+)"
_IMAGE = re.compile(rf"!\[(?P<alt>[^\]]*)\]\(<?(?P<link>{_NAME})>?[^)\n]*\)")
_TAG = re.compile(rf"<img\b[^>]*?\bsrc=[\"'](?P<link>{_NAME})[\"'][^>]*>")
_ALT = re.compile(r"\balt=[\"'](?P<alt>[^\"']*)[\"']")
_ANY = re.compile(r"\battachment:")


def with_files(
    source: str, attachments: Mapping[str, Mapping[str, Any]], uri: str, number: int
) -> tuple[str, dict[str, bytes]]:
    """A Markdown cell whose attached images are files, and those files.

    Args:
        source: the cell's Markdown.
        attachments: name → media type → data, as in the file.
        uri: the notebook inside the site's sources, ``notebooks/a.ipynb``.
        number: of the cell, from 1.

    Returns:
        The Markdown, with links relative to the notebook; and place inside the site → content.

    Raises:
        Problem: an image has no words that say what it shows, or its data is missing.
    """
    text = Text(source, f"{uri}, cell {number}")
    folder = uri.removesuffix(".ipynb")
    prose = page_of(text).prose
    files: dict[str, bytes] = {}
    replaced: list[tuple[int, int, str]] = []
    for pattern in (_IMAGE, _TAG):
        for match in pattern.finditer(prose):
            name = unquote(match["name"])
            words = match if pattern is _IMAGE else _ALT.search(match[0])
            alt = words["alt"].strip() if words else ""
            if not alt or alt == name:
                raise text.problem(
                    f"图片 {name} 没有说明",
                    *match.span(),
                    remedy=f"写成 ![图里是什么](attachment:{match['name']})",
                )
            kind, content = _content(text, attachments, name, match.span("link"))
            place = f"{folder}/cell-{number}-{[*attachments].index(name) + 1}.{kind}"
            files[place] = content
            link = posixpath.relpath(place, posixpath.dirname(uri))
            replaced.append((*match.span("link"), link))
    starts = {start for start, _, _ in replaced}
    for match in _ANY.finditer(prose):
        if match.start() not in starts:
            raise text.problem(
                "这样引用附件，网页上看不到",
                *match.span(),
                remedy="写成 ![图里是什么](attachment:文件名)",
            )
    for start, end, link in sorted(replaced, reverse=True):
        source = source[:start] + link + source[end:]
    return source, files


def _content(
    text: Text, attachments: Mapping[str, Mapping[str, Any]], name: str, place: tuple[int, int]
) -> tuple[str, bytes]:
    """The suffix of the file and what it holds."""
    if name not in attachments:
        close = nearest(name, attachments)
        raise text.problem(
            f"这个单元里没有附件 {name}",
            *place,
            remedy=f"是不是 {close}？" if close else "把图片重新粘贴进来",
        )
    images = {kind: data for kind, data in attachments[name].items() if kind.startswith("image/")}
    if not images:
        raise text.problem(
            f"附件 {name} 不是图片（{'、'.join(attachments[name])}）",
            *place,
            remedy="换成 PNG 或 SVG",
        )
    kind, data = next(iter(images.items()))
    suffix = kind.removeprefix("image/").partition("+")[0]
    data = "".join(data)
    if suffix == "svg" and data.lstrip().startswith("<"):
        return suffix, data.encode()  # kept as text
    try:
        return suffix, base64.b64decode("".join(data.split()), validate=True)
    except binascii.Error:
        raise text.problem(f"附件 {name} 的数据坏了", *place, remedy="把图片重新粘贴进来") from None
