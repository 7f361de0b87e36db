"""What of a page the search reads: words, once each, without drawings, code cells and BibTeX;
formulas as plain text with their signs (√d_k).

The theme's own ``data-search-exclude`` ends at the first closing tag of the same name, so it can't
leave out KaTeX's nested spans; and a reader doesn't search for the labels on a figure's axes.
"""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser

from flower_site.plain_math import plain_text

LEFT_OUT = (
    "[data-search-exclude], .katex-html, svg, script, style, "
    ".flower-references__bibtex, .flower-cell .highlight"
)


def searchable(html: str) -> str:
    """A page's content for the search index.

    Args:
        html: the content as MkDocs rendered it.
    """
    tree = LexborHTMLParser(f"<!doctype html><body>{html}</body>")
    for node in tree.css(".katex"):
        source = node.css_first("annotation")
        if source is not None:
            node.replace_with(plain_text(source.text()))
    for node in tree.css(LEFT_OUT):
        node.decompose()
    body = tree.body
    return (body.inner_html or "") if body is not None else ""
