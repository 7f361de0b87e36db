r"""Sizes at which a formula has no value: ``\epsilon / (c - 1)`` where c = 1.

Such a draw says nothing about the formula, so it is drawn again and the report says at which sizes
that was. It is done only if

* the formula has no value there; where it has one and the function has none, they differ, and the
  author has to declare ``c > 1``; entries that both have must agree there too;
* the sizes are the reason, not the values: other tensors of the same sizes have no value either,
  and among many draws a size (or two that are equal) tells which have one;
* enough of those draws have a value to make up for the ones without.

Otherwise it is the error that it is at any other size.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from flower_formula.agreement import Comparison
from flower_formula.draw import Draw, draws, free_sizes, same_sizes
from flower_formula.names import spelled
from flower_formula.symbols import Declaration

MORE = 60  # draws among which those without a value are told from the others
AGAIN = 4  # draws of other tensors with the same sizes

MOST = 3  # conditions that may be needed to say which draws have no value

Sizes = Mapping[str, int]
Compare = Callable[[Draw], Sequence[Comparison]]


def has_value(comparisons: Sequence[Comparison]) -> bool:
    """Whether both sides of every comparison have a value."""
    return not any(comparison.undefined for comparison in comparisons)


def drawn_again(
    without: Sequence[Draw], compare: Compare, declarations: Mapping[str, Declaration]
) -> tuple[list[Draw], str]:
    """Other draws for those without a value, and what to say about it.

    Args:
        without: the draws without a value.
        compare: what is compared on a draw.
        declarations: the symbols of the formula.

    Raises:
        FormulaError: if only the function has no value, or the sizes are not the reason.
        Disagreement: if the sides differ.
    """
    at: tuple[str, str] | None = None
    fine: list[Draw] = []
    same = (other for draw in without for other in same_sizes(declarations, draw, AGAIN))
    if not any(has_value(compare(draw)) for draw in same):
        lacking = [draw.sizes for draw in without]
        for draw in draws(declarations, MORE, seed=MORE):
            if has_value(compare(draw)):
                fine.append(draw)
            else:
                lacking.append(draw.sizes)
        if len(fine) >= len(without):
            at = _reason(lacking, [draw.sizes for draw in fine], declarations)
    for comparison in (found for draw in without for found in compare(draw)):
        if at is not None and comparison.undefined:
            comparison.require_defined_rest(*at)
        else:
            comparison.require_agreement()
    assert at is not None
    return fine[: len(without)], f"no value at {at[0]}: drawn again"


def _reason(
    lacking: Sequence[Sizes], fine: Sequence[Sizes], declarations: Mapping[str, Declaration]
) -> tuple[str, str] | None:
    """At which sizes there is no value, and what the author can do; None if they do not tell."""
    free = free_sizes(declarations)
    shared = [name for name in lacking[0] if all(name in sizes for sizes in (*lacking, *fine))]
    names = sorted(shared, key=lambda name: name not in free)
    conditions: dict[str, Callable[[Sizes], bool]] = {}
    for name in names:
        for size in sorted({sizes[name] for sizes in lacking}):
            conditions[f"{spelled(name)} = {size}"] = partial(_is, name, size)
    for one, other in itertools.combinations(names, 2):
        conditions[f"{spelled(one)} = {spelled(other)}"] = partial(_equal, one, other)
    conditions = {at: holds for at, holds in conditions.items() if not any(map(holds, fine))}
    found: list[str] = []
    left = list(lacking)
    while left:
        covered = {at: sum(map(holds, left)) for at, holds in conditions.items()}
        best = max(covered, key=lambda at: covered[at], default=None)
        if best is None or not covered[best] or len(found) == MOST:
            return None
        found.append(best)
        left = [sizes for sizes in left if not conditions[best](sizes)]
    bounds = []
    for name in free:
        wrong = [n for n in {s[name] for s in lacking} if f"{spelled(name)} = {n}" in found]
        if wrong and max(wrong) < min((sizes[name] for sizes in fine), default=0):
            bounds.append(f"`{spelled(name)} > {max(wrong)}`")
    todo = f"declare {' and '.join(bounds)}" if bounds else "restrict these sizes"
    return " or ".join(found), f"{todo}, or define this case"


def _is(name: str, size: int, sizes: Sizes) -> bool:
    return sizes[name] == size


def _equal(one: str, other: str, sizes: Sizes) -> bool:
    return sizes[one] == sizes[other]
