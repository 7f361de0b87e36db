"""SVG inside HTML: no clash of ids between two figures on one page, and a name for screen
readers.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as etree

SVG = "{http://www.w3.org/2000/svg}"
_REFERENCE = re.compile(r"url\(\s*['\"]?#([^)'\"]+)['\"]?\s*\)")
_ID_LISTS = ("aria-labelledby", "aria-describedby")


def parse_svg(source: str) -> etree.Element:
    """The SVG's root, without XML namespaces (HTML needs none); comments and metadata are dropped.

    Raises:
        ValueError: if it isn't well-formed.
    """
    try:
        root = etree.fromstring(source)
    except etree.ParseError as error:
        raise ValueError(f"不是合法的 SVG：{error}") from error
    for element in root.iter():
        element.tag = re.sub(r"^\{[^}]*\}", "", element.tag)
        for name in list(element.attrib):
            if name.startswith("{"):
                value = element.attrib.pop(name)
                if name.endswith("xlink}href"):
                    element.set("href", value)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == "metadata":
                parent.remove(child)
    return root


def prefix_ids(root: etree.Element, prefix: str) -> None:
    """Put ``prefix`` before every id and every reference to one."""
    known = {element.get("id") for element in root.iter()} - {None}

    def renamed(name: str) -> str:
        return prefix + name if name in known else name

    for element in root.iter():
        for name, value in element.attrib.items():
            if name == "id":
                element.set(name, prefix + value)
            elif name == "href" and value.startswith("#"):
                element.set(name, "#" + renamed(value[1:]))
            elif name in _ID_LISTS:
                element.set(name, " ".join(map(renamed, value.split())))
            elif "url(" in value:
                element.set(name, _REFERENCE.sub(lambda m: f"url(#{renamed(m[1])})", value))
        if element.tag == "style" and element.text:
            text = _REFERENCE.sub(lambda m: f"url(#{renamed(m[1])})", element.text)
            element.text = re.sub(r"#([\w-]+)(?=[^{}]*\{)", lambda m: "#" + renamed(m[1]), text)


def name_for_readers(root: etree.Element, title: str) -> None:
    """`role="img"` and an `aria-label`, in place of any other naming."""
    for name in (*_ID_LISTS, "aria-roledescription"):
        root.attrib.pop(name, None)
    root.set("role", "img")
    root.set("aria-label", title)


def to_html(root: etree.Element) -> str:
    """The SVG as it stands inside HTML."""
    for element in root.iter():
        if len(element) and not (element.text or "").strip():
            element.text = None
        if element.tag not in ("tspan", "a") and not (element.tail or "").strip():
            element.tail = None
    return etree.tostring(root, encoding="unicode", short_empty_elements=True)


def inline_svg(source: str, prefix: str, alt: str | None = None) -> str:
    """An SVG document made fit for an HTML page.

    Args:
        source: the document.
        prefix: put before its ids.
        alt: what it shows; by default its own `<title>`.

    Raises:
        ValueError: if it isn't well-formed, or has neither ``alt`` nor title.
    """
    root = parse_svg(source)
    title = root.find("title")
    name = alt or (title.text or "").strip() if title is not None else alt
    if not name:
        raise ValueError("没有文字说明")
    if title is not None:  # a <title> shows as a tooltip over the whole figure
        root.remove(title)
    prefix_ids(root, prefix)
    name_for_readers(root, name)
    return to_html(root)
