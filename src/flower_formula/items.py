r"""The items of a formula, and how to take rows of them apart."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from flower_formula.commands import CLOSING, GREEK, OPENING
from flower_formula.errors import Span


@dataclass(frozen=True)
class Item:
    r"""One nucleus with its scripts.

    ``kind`` and what it uses:

    * ``letter``: ``text`` is one letter, or a Greek command's name
    * ``number``: ``text`` is an unsigned decimal number
    * ``word``: ``text`` from ``\text``, ``\operatorname`` or letters set upright together
    * ``symbol``: ``text`` is an operator, bracket, punctuation mark or command
    * ``group``: ``parts[0]``; ``frac``: ``parts`` are numerator and denominator; ``sqrt``:
    radicand and degree
    * ``under``: what is set, and what stands under it
    * ``rows``: ``text`` is the environment's name, ``rows`` its cells
    """

    kind: str
    text: str
    span: Span
    parts: tuple[tuple[Item, ...], ...] = ()
    rows: tuple[tuple[tuple[Item, ...], ...], ...] = ()
    sub: tuple[Item, ...] | None = None
    sup: tuple[Item, ...] | None = None
    font: str = ""
    nucleus: Span = field(default=(0, 0))

    def is_(self, *texts: str) -> bool:
        """Whether this is one of these symbols."""
        return self.kind == "symbol" and self.text in texts

    def bare(self) -> Item:
        """The same item without its scripts."""
        return replace(self, sub=None, sup=None, span=self.nucleus)


Items = tuple[Item, ...]


def as_word(items: Items) -> Item | None:
    r"""``\mathrm{head_1}``: letters and digits set together, the last one with scripts."""
    if not items or any(item.kind not in ("letter", "number", "word") for item in items):
        return None
    if any(item.sub or item.sup for item in items[:-1]) or items[0].kind == "number":
        return None
    if any(len(item.text) > 1 and item.text in GREEK for item in items):
        return None
    text = "".join(item.text for item in items)
    kind = "letter" if len(text) == 1 else "word"
    return replace(items[-1], kind=kind, text=text)


def join_numbers(items: list[Item]) -> Items:
    """Digits side by side are one number; scripts stay on the last digit's place."""
    joined: list[Item] = []
    for place, item in enumerate(items):
        last = joined[-1] if joined else None
        is_point = (
            item.is_(".")
            and item.sub is None
            and item.sup is None
            and place + 1 < len(items)
            and items[place + 1].kind == "number"
            and items[place + 1].span[0] == item.span[1]
        )
        extends = (
            last is not None
            and last.kind == "number"
            and last.sub is None
            and last.sup is None
            and last.span[1] == item.span[0]
        )
        if extends and last is not None and item.kind == "number":
            span = (last.span[0], item.span[1])
            nucleus = (last.span[0], item.nucleus[1])
            joined[-1] = replace(item, text=last.text + item.text, span=span, nucleus=nucleus)
        elif is_point and extends and last is not None and "." not in last.text:
            span = (last.span[0], item.span[1])
            joined[-1] = replace(last, text=last.text + ".", span=span, nucleus=span)
        else:
            joined.append(item)
    return tuple(joined)


def split(items: Items, separator: str) -> list[Items]:
    """Splits at a separator that stands outside all brackets."""
    parts: list[list[Item]] = [[]]
    depth = 0
    for item in items:
        if item.kind == "symbol":
            depth += item.text in OPENING
            depth -= item.text in CLOSING
        if depth == 0 and item.is_(separator):
            parts.append([])
        else:
            parts[-1].append(item)
    return [tuple(part) for part in parts]


def bracket_end(items: Items) -> int:
    """How many items the bracket in front takes, itself included; 0 if it is never closed."""
    depth = 0
    for place, item in enumerate(items, start=1):
        depth += item.kind == "symbol" and item.text in OPENING
        depth -= item.kind == "symbol" and item.text in CLOSING
        if depth == 0:
            return place
    return 0


def strip_brackets(items: Items) -> Items:
    """Without brackets or braces that enclose all of it."""
    if (
        len(items) == 1
        and items[0].kind == "group"
        and items[0].sub is None
        and items[0].sup is None
    ):
        return strip_brackets(items[0].parts[0])
    if len(items) >= 3 and items[0].is_("(") and items[-1].is_(")") and items[-1].sup is None:
        return items[1:-1]
    return items


def without_punctuation(items: Items) -> Items:
    """Without punctuation marks at the end."""
    while items and items[-1].is_(",", ".", ";", ":"):
        items = items[:-1]
    return items


def span_of(items: Items) -> Span:
    """From the first item to the last."""
    return (items[0].span[0], items[-1].span[1]) if items else (0, 0)


def comma(span: Span) -> Item:
    """A comma, to join what was split."""
    return Item("symbol", ",", span, nucleus=span)
