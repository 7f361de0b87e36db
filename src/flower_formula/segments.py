"""Takes a display apart into its statements: rows of ``aligned``, lines, and parts between
commas.
"""

from __future__ import annotations

from flower_formula.conditions import CONDITION_WORDS
from flower_formula.items import Item, Items, span_of, split
from flower_formula.lexer import tokenize
from flower_formula.names import label
from flower_formula.tex import read_items

EQUALS = {"=", "coloneqq", "equiv"}
ALIGNED = {
    "aligned",
    "align",
    "align*",
    "split",
    "gathered",
    "gather",
    "gather*",
    "equation",
    "equation*",
} | {
    "alignedat",
    "multline",
    "array",
}


def segments(items: Items) -> list[Items]:
    r"""The statements of a display: rows of ``aligned``, lines of ``\\``, parts between commas."""
    rows: list[Items] = []
    line: list[Item] = []
    for item in items:
        if item.kind == "rows" and item.text in ALIGNED:
            rows.append(tuple(line))
            line = []
            rows.extend(tuple(entry for cell in row for entry in cell) for row in item.rows)
        elif item.is_("\\"):
            rows.append(tuple(line))
            line = []
        elif not item.is_("&"):
            line.append(item)
    rows.append(tuple(line))
    joined: list[Items] = []
    for row in rows:
        if not row:
            continue
        continues = row[0].kind == "symbol" and row[0].text in EQUALS | {"+", "-", "cdot", "times"}
        if joined and continues:
            joined[-1] = (*joined[-1], *row)
        else:
            joined.append(row)
    parts = [part for row in joined for piece in split(row, ",") for part in split(piece, ";")]
    parts = [part for part in map(without_words, parts) if part]
    return [part for whole in parts for part in _opened(whole)]


def _opened(part: Items) -> list[Items]:
    r"""``\Theta = {\theta_i = ..., i \in [1, ..., n]}``: what the braces hold, and its name."""
    if len(part) != 3 or not part[1].is_("=") or part[2].kind != "group":
        return [part]
    inner = segments(part[2].parts[0])
    if len(split(inner[0], "=")) != 2:
        return [part]
    return [*inner, (part[0], part[1], split(inner[0], "=")[0][0].bare())]


def without_words(items: Items) -> Items:
    """Without linking words in front (where, 其中) and punctuation at the end."""
    words = CONDITION_WORDS | {
        "其中",
        "这里",
        "即",
        "where",
        "and",
        "so",
        "故",
        "因此",
        "于是",
        "以及",
    }
    while items and items[0].kind == "word" and items[0].text.strip("，,:： ") in words:
        items = items[1:]
    while items and items[-1].is_(",", ".", ";", ":"):
        items = items[:-1]
    return items


def is_label(items: Items) -> bool:
    """A subscript that is part of the name: a word, or digits; single letters are indices."""
    flat = items[0].parts[0] if len(items) == 1 and items[0].kind == "group" else items
    return label(flat) is not None and all(item.kind in ("word", "number") for item in flat)


def statement_texts(latex: str, *, sides: bool = False) -> list[str]:
    """Each statement of a display without its layout: equal texts are the same formula spelled the
    same way.

    With ``sides`` each side of an equation is listed too.
    """
    texts = []
    for segment in segments(read_items(latex)):
        parts = [segment]
        if sides:
            parts += [part for part in split(segment, "=") if part and part != segment]
        for part in parts:
            start, end = span_of(part)
            tokens = tokenize(latex[start:end])
            texts.append(" ".join(token.text for token in tokens if token.text != "&"))
    return texts
