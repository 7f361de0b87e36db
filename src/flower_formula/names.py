"""Names of symbols: one spelling for what authors write in many ways."""

from __future__ import annotations

import re
from dataclasses import replace

from flower_formula.commands import GREEK
from flower_formula.errors import FormulaError
from flower_formula.items import Item, Items
from flower_formula.tex import read_items


def label(items: Items | None, *, steps: bool = False) -> str | None:
    r"""A script as part of a name: ``model`` for ``{model}``, ``{\text{model}}`` and
    ``\mathrm{model}``. With ``steps`` also ``t-1``, as in the declared name ``m_{t-1}``.
    """
    if items is None:
        return None
    if len(items) == 1 and items[0].kind == "group" and _bare(items[0]):
        return label(items[0].parts[0], steps=steps)
    parts = []
    for item in items:
        if not _bare(item):
            return None
        if item.kind in ("letter", "word", "number") or item.is_("_", ",", "(", ")"):
            parts.append(item.text)
        elif item.is_("*", "prime", "ast"):
            parts.append("*" if item.text == "ast" else item.text)
        elif steps and parts and item.is_("+", "-"):
            parts.append(item.text)
        else:
            return None
    return "".join(parts) or None


def _bare(item: Item) -> bool:
    return item.sub is None and item.sup is None


def join_name(base: str, sub: str | None, sup: str | None) -> str:
    """The name's one spelling: ``W_q^O``."""
    return base + (f"_{sub}" if sub else "") + (f"^{sup}" if sup else "")


def letters(items: Items) -> Item | None:
    r"""Items that spell one name (``pos``, ``step\_num``, ``Q``), as one item with the last one's
    scripts.
    """
    if len(items) == 1 and items[0].kind == "group" and _bare(items[0]):
        return letters(items[0].parts[0])
    if not items or items[0].kind not in ("letter", "word"):
        return None
    for item in items[:-1]:
        if not _bare(item) or not (item.kind in ("letter", "word") or item.is_("_")):
            return None
    if items[-1].kind not in ("letter", "word", "number"):
        return None
    if len(items) == 1:
        return items[0]
    text = "".join(item.text for item in items)
    span = (items[0].span[0], items[-1].span[1])
    nucleus = (items[0].span[0], items[-1].nucleus[1])
    return replace(items[-1], kind="word", text=text, span=span, nucleus=nucleus)


def canonical_name(latex: str) -> str:
    r"""The name of a symbol that stands alone, such as ``W^Q``, ``d_{\text{model}}`` (``d_model``)
    or ``\gamma``.

    A plain word (``gamma``, ``d_model``) is a name too, so that a call may leave the backslash out.

    Raises:
        FormulaError: if the text is no name.
    """
    text = latex.strip()
    if re.fullmatch(r"[A-Za-z]\w*", text) and "_" not in text.strip("_"):
        return text
    if match := re.fullmatch(r"([A-Za-z]+)_([A-Za-z0-9]+)", text):
        return join_name(match[1], match[2], None)
    item = letters(read_items(text))
    if item is None:
        raise FormulaError(f"{text!r} is no name of a symbol", (0, max(1, len(latex))))
    sub, sup = label(item.sub, steps=True), label(item.sup)
    if (item.sub is not None and sub is None) or (item.sup is not None and sup is None):
        raise FormulaError(f"{text!r} is no name of a symbol", (0, max(1, len(latex))))
    return join_name(item.text, sub, sup)


def spelled(name: str) -> str:
    """A name as its author would write it in LaTeX (for messages)."""
    base, rest = re.match(r"([^_^]*)(.*)", name, re.S).groups()  # type: ignore[union-attr]
    accented = re.fullmatch(r"(\w+)\((.+)\)", base)
    if accented is not None:
        return f"\\{accented[1]}{{{spelled(accented[2])}}}{rest}"
    return (f"\\{base}" if base in GREEK else base) + rest
