r"""Ranges that a display states: ``i = 1, \ldots, h`` and ``i \in [1, 2, ..., \frac{d}{2}]``."""

from __future__ import annotations

from flower_formula import ast
from flower_formula.commands import DOTS, OPENING
from flower_formula.errors import FormulaError
from flower_formula.items import Items, span_of, split
from flower_formula.names import label
from flower_formula.parser import Parser


def take_ranges(segments: list[Items], parser: Parser) -> tuple[list[Items], dict[str, ast.Range]]:
    """Takes the ranges out of the statements of a display.

    Returns:
        The statements that are left, and the ranges by index.

    Raises:
        FormulaError: for a range whose index or bounds cannot be read.
    """
    kept: list[Items] = []
    ranges: dict[str, ast.Range] = {}
    place = 0
    while place < len(segments):
        found = _listed(segments, place) or _in_brackets(segments[place])
        if found is None:
            kept.append(segments[place])
            place += 1
            continue
        name_items, lower, upper, length = found
        name = label(name_items)
        if name is None:
            raise FormulaError("cannot read this range", span_of(segments[place]))
        ranges[name] = ast.Range(
            name,
            parser.expression(lower, span_of(lower)),
            parser.expression(upper, span_of(upper)),
        )
        place += length
    return kept, ranges


def _listed(segments: list[Items], place: int) -> tuple[Items, Items, Items, int] | None:
    r"""``i = 1, (2,) \ldots, h``, which commas have cut into segments."""
    sides = split(segments[place], "=")
    if len(sides) != 2:
        return None
    for k in range(place + 1, min(place + 4, len(segments) - 1)):
        if _is_dots(segments[k]):
            return sides[0], sides[1], segments[k + 1], k + 2 - place
        if len(split(segments[k], "=")) > 1:
            return None
    return None


def _in_brackets(segment: Items) -> tuple[Items, Items, Items, int] | None:
    r"""``i \in [1, 2, ..., n]`` or ``i \in \{1, \ldots, n\}``."""
    sides = split(segment, "in")
    if len(sides) != 2 or len(sides[1]) < 3 or not sides[1][0].is_(*OPENING):
        return None
    members = split(sides[1][1:-1], ",")
    if len(members) < 3 or not _is_dots(members[-2]):
        return None
    return sides[0], members[0], members[-1], 1


def _is_dots(items: Items) -> bool:
    return len(items) == 1 and items[0].is_(*DOTS)
