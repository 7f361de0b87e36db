r"""What the author declares: names, shapes, ranges and domains of symbols (the lines of ``where``).

======================================  ==========================================================
``Q [n, d_k]``                          a matrix; ``n`` and ``d_k`` become sizes that formulas may
use
``x [0..n-1, d]``                       its rows are counted from 0 (otherwise from 1)
``\epsilon`` ``T > 0`` ``p in (0, 1)``  numbers
``c > 1`` ``n >= 2``                    a size that is drawn no smaller (a number, if it is no size)
``p [m] in {0, 1}``                     flags; the code gets booleans, at least one of them true
``y [n] in 1..K``                       whole numbers; the code gets integers
``q [d_k] ~ N(0, 1)``                   a random vector
``W_i^Q [d_model, d_k] for i in 1..h``  a family; the code gets it stacked on a first axis
``pos in 0..n-1``                       an index and its range
``d_model = h d_k``                     a size made of others
======================================  ==========================================================
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from flower_formula import ast
from flower_formula.errors import DeclarationError, FormulaError
from flower_formula.items import Item, Items
from flower_formula.names import canonical_name, join_name, label, letters, spelled
from flower_formula.parser import parse_size
from flower_formula.tex import read_items


@dataclass(frozen=True)
class Axis:
    """One axis of a shape: its size, and the number that its first entry carries."""

    size: ast.Node
    first: ast.Node | None = None


@dataclass(frozen=True)
class Declaration:
    """One declared symbol.

    ``kind`` is ``tensor`` (``axes`` may be empty: a number), ``index`` (``ranges`` has its range),
    ``number`` (a whole number drawn from that range) or ``size`` (``value`` is what it equals, or
    None: drawn). ``family`` counts how many leading axes are family indices
    (``raised``: they stand in the superscript).
    ``domain`` is ``normal``, ``flag``, ``whole`` (``ranges`` has the range), ``between`` with its
    two ``bounds``, ``above`` or ``from`` (``>`` or ``>=`` the first of them).
    """

    name: str
    kind: str
    axes: tuple[Axis, ...] = ()
    family: int = 0
    ranges: tuple[ast.Range, ...] = ()
    domain: str = "normal"
    bounds: tuple[float, float] = (0.0, 1.0)
    value: ast.Node | None = None
    raised: bool = False
    source: str = ""

    @property
    def least(self) -> int:
        """The smallest number that a size may be: 1, unless ``c > 1`` or ``n >= 2`` says more."""
        if self.domain == "above":
            return max(1, math.floor(self.bounds[0]) + 1)
        return max(1, math.ceil(self.bounds[0])) if self.domain == "from" else 1


_HEAD = re.compile(
    r"^\s*(?P<name>[^\[\]=~<>≥]+?)\s*(?:\[(?P<shape>[^\]]*)\])?\s*"
    r"(?P<tail>(?:(?<=[\s\]])(?:for|in|\\(?:in|sim|gt|geq?|geqslant))(?![A-Za-z])|[~=>≥]).*)?$",
    re.S,
)
_RANGE = re.compile(r"^(?:in|\\in)\s+(?P<lower>.+?)\s*\.\.\s*(?P<upper>.+)$", re.S)
_FOR = re.compile(r"^for\s+(?P<list>.+)$", re.S)
MOST = 100  # the largest lower bound of a size: what has this many rows is still small
_NUMBER = r"[-+]?\d+(?:\.\d+)?"


def read_declaration(source: str) -> Declaration:
    """Reads one line of ``where`` (without its meaning).

    Raises:
        DeclarationError: saying what cannot be read, and what the line may look like.
    """
    match = _HEAD.match(source)
    if not match:
        raise DeclarationError(
            f"cannot read the declaration {source!r}",
            (0, len(source)),
            source,
            r"write for example `Q [n, d_k]`, `\epsilon`, `i in 1..n` or "
            "`W_i [d, d] for i in 1..h`",
        )
    tail = (match["tail"] or "").strip()
    axes = _axes(source, match["shape"])
    if found := _FOR.match(tail):
        return _family(source, _name_item(source, match["name"]), axes, found["list"])
    name = _plain_name(source, match["name"])
    if match["shape"] is None and (found := _RANGE.match(tail)):
        bounds = _bounds(source, found)
        return Declaration(name, "index", ranges=(ast.Range(name, *bounds),), source=source)
    if match["shape"] is None and tail.startswith("="):
        return Declaration(name, "size", value=_expression(source, tail[1:]), source=source)
    if found := _RANGE.match(tail):  # whole numbers
        bounds = _bounds(source, found)
        whole = ast.Range(name, *bounds)
        return Declaration(name, "tensor", axes, ranges=(whole,), domain="whole", source=source)
    domain, limits = _domain(source, name, tail)
    return Declaration(name, "tensor", axes, domain=domain, bounds=limits, source=source)


def _name_item(source: str, text: str) -> Item:
    try:
        item = letters(read_items(text))
    except FormulaError as error:
        raise DeclarationError(error.message, error.span, source, error.hint) from error
    if item is None:
        raise DeclarationError(f"{text!r} is no name of a symbol", (0, len(text)), source)
    return item


def _plain_name(source: str, text: str) -> str:
    try:
        return canonical_name(text)
    except FormulaError as error:
        raise DeclarationError(error.message, (0, len(text)), source, error.hint) from error


def _axes(source: str, shape: str | None) -> tuple[Axis, ...]:
    if shape is None:
        return ()
    axes = []
    for part in shape.split(","):
        if not part.strip():
            raise DeclarationError("an empty axis in the shape", _find(source, shape), source)
        if ".." in part:  # 0..n-1: counted from 0
            lower, upper = (_expression(source, side) for side in part.split("..", 1))
            one = ast.Number(lower.span, 1.0)
            size = ast.Binary(lower.span, "+", ast.Binary(lower.span, "-", upper, lower), one)
            axes.append(Axis(size, lower))
        else:
            axes.append(Axis(_expression(source, part)))
    return tuple(axes)


def _family(source: str, item: Item, axes: tuple[Axis, ...], ranges: str) -> Declaration:
    """``W_i^Q [...] for i in 1..h``: the index leaves the name, and becomes the first axis."""
    found = []
    for part in ranges.split(","):
        match = re.match(r"\s*(?P<variable>\S+)\s+(?P<range>.*)", part, re.S)
        bounds = _RANGE.match(match["range"].strip()) if match else None
        if not match or not bounds:
            raise DeclarationError(
                "cannot read the range after `for`",
                _find(source, ranges),
                source,
                "write `for i in 1..h`",
            )
        found.append(ast.Range(canonical_name(match["variable"]), *_bounds(source, bounds)))
    variables = [entry.variable for entry in found]
    for script in ("sub", "sup"):
        items = getattr(item, script)
        if items is None:
            continue
        kept, taken = _without(items, variables)
        if taken == variables:
            raised = script == "sup"
            item = replace(item, sup=kept) if raised else replace(item, sub=kept)
            break
    else:
        raise DeclarationError(
            f"the name does not carry the index {', '.join(variables)}",
            (0, len(source)),
            source,
            "write for example `W_i^Q [d, d_k] for i in 1..h`",
        )
    sub, sup = label(item.sub), label(item.sup)
    if (item.sub is not None and sub is None) or (item.sup is not None and sup is None):
        raise DeclarationError("cannot read the name", (0, len(source)), source)
    one = ast.Number((0, 0), 1.0)
    first = tuple(
        Axis(ast.Binary((0, 0), "+", ast.Binary((0, 0), "-", r.upper, r.lower), one), r.lower)
        for r in found
    )
    name = join_name(item.text, sub, sup)
    return Declaration(
        name, "tensor", first + axes, len(first), tuple(found), raised=raised, source=source
    )


def _without(items: Items, variables: list[str]) -> tuple[Items | None, list[str]]:
    """A script without the family's indices (they stand last, with or without a comma)."""
    flat = items[0].parts[0] if len(items) == 1 and items[0].kind == "group" else items
    kept = [item for item in flat if not item.is_(",", "(", ")")]
    taken: list[str] = []
    while kept and kept[-1].kind in ("letter", "word") and kept[-1].text in variables:
        taken.insert(0, kept.pop().text)
    return (tuple(kept) or None), taken


def _domain(source: str, name: str, tail: str) -> tuple[str, tuple[float, float]]:
    small = name.split("_")[0] in ("epsilon", "varepsilon")
    if not tail:
        return ("between", (0.05, 0.2)) if small else ("normal", (0.0, 1.0))
    if re.fullmatch(r"(?:~|\\sim)\s*(?:N|\\mathcal\{N\})\(\s*0\s*,\s*(?:1|I)\s*\)", tail):
        return "normal", (0.0, 1.0)
    if match := re.fullmatch(rf"(>=|≥|\\geq?|\\geqslant|>|\\gt)\s*({_NUMBER})", tail):
        return "above" if match[1] in (">", r"\gt") else "from", (float(match[2]), math.inf)
    if re.fullmatch(r"(?:in|\\in)\s*\\?\{\s*0\s*,\s*1\s*\\?\}", tail):
        return "flag", (0.0, 1.0)
    match = re.fullmatch(rf"(?:in|\\in)\s*\(\s*({_NUMBER})\s*,\s*({_NUMBER})\s*\)", tail)
    if match and float(match[1]) < float(match[2]):
        return "between", (float(match[1]), float(match[2]))
    raise DeclarationError(
        f"cannot read {tail!r}",
        _find(source, tail),
        source,
        "write `in 1..n`, `in {0, 1}`, `in (0, 1)`, `> 0`, `>= 2` or `~ N(0, 1)`",
    )


def _bounds(source: str, found: re.Match[str]) -> tuple[ast.Node, ast.Node]:
    """The two bounds of a range that ends the source or a part of it."""
    start = max(0, source.rfind(found.string))
    lower, upper = (
        _expression(source, found[name], start + found.start(name)) for name in ("lower", "upper")
    )
    return lower, upper


def _expression(source: str, text: str, start: int | None = None) -> ast.Node:
    """A size or a bound: arithmetic on sizes. The places of its nodes count in the source."""
    start = _find(source, text)[0] if start is None else start
    start += len(text) - len(text.lstrip())
    text = text.strip()
    try:
        return parse_size(" " * start + text)
    except FormulaError as error:
        raise DeclarationError(
            f"cannot read {text!r}: {error.message}", (start, start + max(1, len(text))), source,
            "sizes are numbers, names and + - * / of them",
        ) from error  # fmt: skip


def _find(source: str, part: str) -> tuple[int, int]:
    at = max(0, source.find(part))
    return at, at + max(1, len(part))


def read_declarations(sources: Iterable[str]) -> dict[str, Declaration]:
    """All declarations of a block by name; sizes that only shapes and ranges mention are added.

    Raises:
        DeclarationError: for a line that cannot be read, a name declared twice, or a size declared
            as a tensor or above 100.
    """
    table: dict[str, Declaration] = {}
    for source in sources:
        declaration = read_declaration(source)
        if declaration.name in table:
            raise DeclarationError(
                f"{spelled(declaration.name)} is declared twice",
                (0, len(source)),
                source,
                "delete one of the two lines",
            )
        table[declaration.name] = declaration
    for declaration in list(table.values()):
        for node in _size_nodes(declaration):
            for symbol in node.walk():
                if not isinstance(symbol, ast.Symbol):
                    continue
                known = table.setdefault(symbol.name, Declaration(symbol.name, "size"))
                if known.kind == "index" or (known.kind == "tensor" and known.axes):
                    raise DeclarationError(
                        f"{spelled(symbol.name)} is used as a size but declared as something else",
                        (0, len(declaration.source)),
                        declaration.source,
                        "use another name",
                    )
                if known.least > MOST:
                    raise DeclarationError(
                        f"no size above {MOST} is drawn",
                        (0, len(known.source)),
                        known.source,
                        "declare a smaller bound",
                    )
                if known.kind == "tensor":
                    table[symbol.name] = replace(known, kind="size")
    return table


def _size_nodes(declaration: Declaration) -> list[ast.Node]:
    nodes = [axis.size for axis in declaration.axes]
    nodes += [axis.first for axis in declaration.axes if axis.first is not None]
    nodes += [node for entry in declaration.ranges for node in (entry.lower, entry.upper)]
    if declaration.value is not None:
        nodes.append(declaration.value)
    return nodes
