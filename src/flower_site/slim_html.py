"""Small changes to finished HTML that a reader does not see: less of it, and safe for the theme."""

from __future__ import annotations

import re

# Names, blanks, operators and punctuation are drawn in (nearly) the colour of the code itself.
_PLAIN_TOKENS = re.compile(r'<span class="(?:n|w|o|p)">([^<]*)</span>')
_USE = re.compile(r"(<use\b[^>]*?\s)href=")
_VERBATIM = re.compile(r"(<(pre|textarea|script|style)\b.*?</\2>)", re.DOTALL)
_INDENTATION = re.compile(r"[ \t]*\n\s*")


def without_plain_tokens(html: str) -> str:
    """Drop Pygments' spans around the tokens that need no colour: half of a highlighted cell."""
    return _PLAIN_TOKENS.sub(r"\1", html)


def without_indentation(html: str) -> str:
    """Shorten every run of blanks with a line break to the line break, outside verbatim text."""
    parts = _VERBATIM.split(html)
    # split() yields text, verbatim element, its tag name, text, ...
    shortened = [_INDENTATION.sub("\n", text) for text in parts[0::3]]
    verbatim = [*parts[1::3], ""]
    return "".join(text + kept for text, kept in zip(shortened, verbatim, strict=True))


def safe_for_instant_navigation(html: str) -> str:
    """Write ``<use href>`` of drawings as ``xlink:href``, which means the same.

    Instant navigation sets ``href`` of every element that has one, and throws on this element.
    """
    return _USE.sub(r"\1xlink:href=", html)
