"""Mermaid to SVG at build time, by mmdr (its `merman` backend), for pages that are light or dark.

Everything that says how it looks is taken out: colours, fonts, style sheet. What is left is
shapes with a few class names (`node`, `cluster`, `edge`, `label`, ...), which
`assets/diagrams.css` colours by CSS variables.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as etree

import mmdr

from flower_site.blocks.svg import name_for_readers, parse_svg, prefix_ids, to_html
from flower_site.text_cache import TextCache

VERSION = f"mmdr {mmdr.__version__} 1"
KINDS = ("flowchart", "graph", "sequenceDiagram")
CLASSES = ("accent", "muted", "warn")
"""What authors may give a node (`A:::accent`); the style sheet knows their colours."""

SETTINGS = {
    "look": "classic",
    "flowchart": {
        "minNodeWidth": 30,
        "padding": 12,
        "wrappingWidth": 190,
        "nodeSpacing": 28,
        "rankSpacing": 36,
    },
    "sequence": {"mirrorActors": False},
}
SMALLEST = 0.72
"""A diagram shrinks to this share of its own width (text of 14 px to 10 px), then its figure
scrolls.
"""

_TITLE = re.compile(r"^\s*accTitle\s*:\s*(.*?)\s*$", re.M)
_OWN_LOOK = re.compile(r"^\s*(?:style|classDef|linkStyle)\b|%%\{|\A\s*---", re.M)
_UNKNOWN_CLASS = re.compile(rf":::(?!(?:{'|'.join(CLASSES)})\b)(\w+)")
_KEPT = {
    "cluster",
    "node",
    "edge",
    "dotted",
    "thick",
    "background",
    "marker",
    *CLASSES,
    "actor",
    "actor-line",
    "messageLine0",
    "messageLine1",
    "loopLine",
    "labelBox",
    "labelText",
    "loopText",
    "note",
    "noteText",
    "messageText",
    "activation0",
    "activation1",
    "activation2",
}
_RENAMED = {
    "flowchart-link": "edge",
    "edge-pattern-dotted": "dotted",
    "edge-thickness-thick": "thick",
    "arrowMarkerPath": "marker",
}
_DRAWN = {
    "x",
    "y",
    "x1",
    "y1",
    "x2",
    "y2",
    "cx",
    "cy",
    "r",
    "rx",
    "ry",
    "width",
    "height",
    "d",
    "points",
    "dx",
    "dy",
    "transform",
    "id",
    "class",
    "viewBox",
    "refX",
    "refY",
    "markerWidth",
    "markerHeight",
    "markerUnits",
    "orient",
    "marker-start",
    "marker-end",
    "text-anchor",
    "dominant-baseline",
    "href",
}


class DiagramError(ValueError):
    """A diagram that can't be drawn, or must not be drawn like this.

    Attributes:
        line: 1-based line within the source, where it is known.
        remedy: what to do.
    """

    def __init__(self, message: str, line: int = 1, remedy: str | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.remedy = remedy


class Diagrams:
    """Draws diagrams, remembering each.

    Args:
        folder: where results are kept between runs; ``None`` for memory only.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._cache = TextCache(folder, VERSION + json.dumps(SETTINGS))

    def svg(self, source: str, prefix: str) -> str:
        """The diagram as inline SVG whose ids start with ``prefix``.

        Raises:
            DiagramError: with the line, if it can be told.
        """
        _check(source)
        drawn = self._cache.get(source, lambda: _draw(source))
        return drawn.replace("PREFIX-", prefix)


@cache
def diagrams(root: Path) -> Diagrams:
    """The drawer of a repository, with its cache under `.cache/flower/diagrams`."""
    return Diagrams(root / ".cache" / "flower" / "diagrams")


def title_of(source: str) -> str:
    """What the diagram shows, from its `accTitle:` line."""
    match = _TITLE.search(source)
    return match[1] if match else ""


def _check(source: str) -> None:
    lines = [line.strip() for line in source.split("\n")]
    start = next((n for n, line in enumerate(lines) if line and not line.startswith("%%")), 0)
    kind = lines[start].split()[0].rstrip(";") if lines[start] else ""
    look = _OWN_LOOK.search(source)
    if look:
        raise DiagramError(
            "图的颜色和布局由网站决定，这样写在深色页面上会看不清",
            source.count("\n", 0, look.end()) + 1,
            f"删去这一行；突出一个节点写 A:::{CLASSES[0]}（可用：{'、'.join(CLASSES)}）",
        )
    if kind not in KINDS:
        raise DiagramError(f"不支持 {kind or '空的'} 图", start + 1, f"可用：{'、'.join(KINDS)}")
    if not title_of(source):
        raise DiagramError(
            "图没有标题，读屏软件读不出它", start + 1, "在第二行写 accTitle: 这张图说明什么"
        )
    unknown = _UNKNOWN_CLASS.search(source)
    if unknown:
        raise DiagramError(
            f"没有样式 {unknown[1]}",
            source.count("\n", 0, unknown.start()) + 1,
            f"可用：{'、'.join(CLASSES)}",
        )


def _draw(source: str) -> str:
    try:
        svg = _mmdr(source)
    except ValueError as error:
        message = re.sub(r"^Diagram parse error \([^)]*\): ", "", str(error))
        raise DiagramError(f"图有误：{message}", _faulty_line(source), "改好这一行") from error
    root = parse_svg(svg)
    _simplify(root, title_of(source))
    return to_html(root)


def _mmdr(source: str) -> str:
    svg: str = mmdr.render(
        f"%%{{init: {json.dumps(SETTINGS)}}}%%\n{source}", backend="merman"
    ).svg()
    return svg


def _faulty_line(source: str) -> int:
    """The parser names no line: it is the first one without which the rest can be drawn."""
    lines = source.split("\n")
    for number, line in enumerate(lines, 1):
        if number == 1 or not line.strip():
            continue
        try:
            _mmdr("\n".join([*lines[: number - 1], *lines[number:]]))
        except ValueError:
            continue
        return number
    return 1


def _simplify(root: etree.Element, title: str) -> None:
    """Leave shapes, text and the class names of the style sheet."""
    description = (root.findtext("desc") or "").strip()
    used = {
        name
        for element in root.iter()
        for name in re.findall(r"url\(#([^)]+)\)", " ".join(element.attrib.values()))
    }
    _remove(root, lambda e: e.tag in ("style", "title", "desc", "filter", "symbol"))
    _remove(root, lambda e: e.tag == "marker" and e.get("id") not in used)
    for group in root.iter("g"):
        if group.get("data-merman-foreignobject"):  # a label that stands on an edge, not in a node
            for behind in group.findall("rect"):
                behind.set("class", "background")
    for element in root.iter():
        _keep_shape(element, used)
    while _remove(root, lambda e: e.tag in ("g", "defs") and len(e) == 0):
        pass
    _unwrap(root)
    prefix_ids(root, "PREFIX-")
    name_for_readers(root, title)
    if description:
        root.insert(0, etree.Element("desc"))
        root[0].text = description
    _round(root)
    width = float(root.get("viewBox", "0 0 0 0").split()[2])
    root.set("class", "flower-diagram__svg")
    root.set("style", f"width:100%;max-width:{width:.0f}px;min-width:{width * SMALLEST:.0f}px")


def _keep_shape(element: etree.Element, used: set[str]) -> None:
    style = element.get("style", "")
    names = [_RENAMED.get(name, name) for name in element.get("class", "").split()]
    kept = [name for name in dict.fromkeys(names) if name in _KEPT]
    if element.tag == "text" and "text-anchor:middle" in style:
        element.set("text-anchor", "middle")
    for name in list(element.attrib):
        if name not in _DRAWN or (name == "id" and element.get("id") not in used):
            del element.attrib[name]
    if kept:
        element.set("class", " ".join(kept))
    else:
        element.attrib.pop("class", None)


def _remove(root: etree.Element, unwanted: Callable[[etree.Element], bool]) -> bool:
    found = False
    for parent in list(root.iter()):
        for child in list(parent):
            if unwanted(child):
                parent.remove(child)
                found = True
    return found


def _unwrap(parent: etree.Element) -> None:
    """Groups without a class or a shift hold nothing together."""
    for child in list(parent):
        _unwrap(child)
        if child.tag == "g" and not child.attrib:
            at = list(parent).index(child)
            parent.remove(child)
            for offset, grandchild in enumerate(list(child)):
                parent.insert(at + offset, grandchild)


def _round(root: etree.Element) -> None:
    for element in root.iter():
        for name in (
            "d",
            "points",
            "transform",
            "x",
            "y",
            "width",
            "height",
            "viewBox",
            "r",
            "cx",
            "cy",
        ):
            value = element.get(name)
            if value:
                element.set(
                    name,
                    re.sub(
                        r"-?\d+\.\d{2,}", lambda m: f"{float(m[0]):.1f}".removesuffix(".0"), value
                    ),
                )
