"""Reads a whole display: equations, chains of them over several lines, and ranges given in
words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from flower_formula import ast
from flower_formula.errors import FormulaError, FormulaWarning, Span
from flower_formula.items import Item, Items, span_of, split
from flower_formula.names import join_name, label, letters
from flower_formula.parser import Parser
from flower_formula.scope import Scope
from flower_formula.segments import EQUALS, is_label, segments
from flower_formula.stated_ranges import take_ranges
from flower_formula.symbols import Declaration
from flower_formula.tex import read_items

REFUSED = {
    "approx": "≈ needs a stated tolerance",
    "sim": "~ states a distribution",
    "propto": "∝ leaves a factor open",
}


@dataclass
class Formula:
    """A display that was read.

    ``equations`` in the order of the text; ``ranges`` of indices stated in the display; ``used``
    the declared names that a right side mentions.
    """

    latex: str
    equations: list[ast.Equation]
    ranges: dict[str, ast.Range] = field(default_factory=dict)
    warnings: list[FormulaWarning] = field(default_factory=list)
    used: set[str] = field(default_factory=set)


@dataclass
class _Side:
    """A left side before its right side is read."""

    name: str | None
    parameters: tuple[str, ...] | None
    index_items: Items | None
    span: Span


def read_formula(
    latex: str,
    declarations: Mapping[str, Declaration],
    functions: Iterable[str] = (),
    tensors: Iterable[str] = (),
) -> Formula:
    """Reads a display in the light of its declarations.

    Args:
        latex: the display, without its dollars.
        declarations: what ``where`` declares.
        functions: names of functions that formulas of other blocks define.
        tensors: names of tensors that they define.

    Raises:
        FormulaError: if anything is left unread, undeclared or unclear; with its place.
    """
    try:
        return _Reader(latex, declarations, functions, tensors).run()
    except FormulaError as error:
        error.latex = error.latex or latex
        raise


def read_expression(latex: str, declarations: Mapping[str, Declaration]) -> Formula:
    """An expression without a left side, as a formula of one equation.

    Raises:
        FormulaError: as ``read_formula``.
    """
    reader = _Reader(latex, declarations)
    span = (0, len(latex))
    try:
        side = reader.parser.expression(read_items(latex), span)
    except FormulaError as error:
        error.latex = error.latex or latex
        raise
    reader.formula.equations.append(ast.Equation(span, None, None, (), (side,), span, None))
    return reader.formula


def names_defined(
    latex: str, declarations: Mapping[str, Declaration]
) -> tuple[list[str], list[str]]:
    """The functions and the tensors that a display defines; only its left sides are read.

    Raises:
        FormulaError: if the display cannot be taken apart.
    """
    try:
        lefts = _Reader(latex, declarations, any_parameters=True).lefts()
    except FormulaError as error:
        error.latex = error.latex or latex
        raise
    functions = [left.name for left in lefts if left.name and left.parameters is not None]
    return functions, [left.name for left in lefts if left.name and left.parameters is None]


class _Reader:
    def __init__(
        self,
        latex: str,
        declarations: Mapping[str, Declaration],
        functions: Iterable[str] = (),
        tensors: Iterable[str] = (),
        any_parameters: bool = False,
    ) -> None:
        self.latex = latex
        self.any_parameters = any_parameters
        self.declarations = declarations
        raised = {name for name, declared in declarations.items() if declared.raised}
        self.scope = Scope({*declarations, *tensors}, set(functions), raised=raised)
        self.parser = Parser(self.scope)
        self.formula = Formula(latex, [], warnings=self.scope.warnings, used=self.scope.used)

    def lefts(self) -> list[_Side]:
        """The left sides alone."""
        parts, _ = take_ranges(segments(read_items(self.latex)), self.parser)
        return [self._left(self._chain(part)[0][0]) for part in parts]

    def run(self) -> Formula:
        parts, self.formula.ranges = take_ranges(segments(read_items(self.latex)), self.parser)
        if not parts:
            raise FormulaError(
                "there is no equation here", (0, len(self.latex)), "write f(x) = ..."
            )
        chains = [self._chain(part) for part in parts]
        lefts = [self._left(sides[0]) for sides, _ in chains]
        for left in lefts:
            if left.name is not None:
                (self.scope.tensors if left.parameters is None else self.scope.functions).add(
                    left.name
                )
        for left, (sides, space) in zip(lefts, chains, strict=True):
            self.formula.equations.append(self._equation(left, sides, space))
        return self.formula

    # -- equations ------------------------------------------------------------------------------

    def _chain(self, segment: Items) -> tuple[list[Items], Item | None]:
        r"""The sides of one chain, and the ``\mathbb{R}^{n \times d}`` in which they are said to
        lie.
        """
        sides: list[list[Item]] = [[]]
        depth = 0
        relation: Item | None = None
        space: Item | None = None
        for place, item in enumerate(segment):
            if item.kind == "symbol":
                depth += item.text in "([{"
                depth -= item.text in ")]}"
            if depth == 0 and item.kind == "symbol" and item.text in REFUSED:
                raise FormulaError(
                    f"{REFUSED[item.text]}, which the reader cannot check yet",
                    item.span,
                    "state an equation, or mark the block unchecked with its reason",
                )
            if depth == 0 and item.is_("in"):
                space = self._space(segment[place + 1 :], item)
                break
            if depth == 0 and item.kind == "symbol" and item.text in EQUALS | {":"}:
                if item.text == ":" and not (
                    place + 1 < len(segment) and segment[place + 1].is_("=")
                ):
                    raise FormulaError("a colon that no = follows", item.span)
                if item.text != "=" or not (place and segment[place - 1].is_(":")):
                    sides.append([])
                    relation = item
            else:
                sides[-1].append(item)
        if relation is None:
            raise FormulaError(
                "this part of the formula states nothing: it has no =",
                span_of(segment),
                "write `name = ...`; a condition belongs into cases",
            )
        for side in sides:
            if not side:
                raise FormulaError("one side of = is empty", relation.span, "complete the formula")
        return [tuple(side) for side in sides], space

    def _space(self, items: Items, relation: Item) -> Item:
        if len(items) != 1 or items[0].text != "R" or items[0].font != "mathbb" or items[0].sub:
            raise FormulaError(
                r"only a space of real numbers can follow \in here",
                relation.span,
                r"write \in \mathbb{R}^{n \times d}",
            )
        return items[0]

    def _left(self, items: Items) -> _Side:
        span = span_of(items)
        head = self._head(items)
        if head is None:
            return _Side(None, None, None, span)
        item, inner, closing = head
        sub, sup = label(item.sub), label(item.sup)
        if item.sup is not None and (sup is None or sup.isdigit()):
            return _Side(None, None, None, span)
        if inner is not None and closing is not None:
            name = join_name(item.text, sub, sup)
            if name in self.declarations:  # x(y) is a product
                return _Side(None, None, None, span)
            parts = split(inner, ",")
            if self._are_indices(parts):
                return _Side(name, None, inner, span)
            names = tuple(self._parameter(part) for part in parts)
            return _Side(name, names, closing.sub, span)
        if join_name(item.text, sub, sup) in self.declarations:
            return _Side(None, None, None, span)
        if item.sub is not None and (
            is_label(item.sub)
            or self._names_tensor(item.sub)
            or item.text in self.declarations
            or self._is_step(sub)
        ):
            return _Side(join_name(item.text, sub, sup), None, None, span)
        return _Side(join_name(item.text, None, sup), None, item.sub, span)

    def _is_step(self, sub: str | None) -> bool:
        """``m_t`` where some ``m_{t-1}`` is declared: one step, whose t is a number, no index."""
        return sub is not None and any(
            name.partition("_")[2].startswith(f"{sub}-") for name in self.declarations
        )

    def _names_tensor(self, items: Items) -> bool:
        r"""``\mu_x`` where x is a declared tensor: a label, for x is no number to index with."""
        declared = self.declarations.get(label(items) or "")
        return declared is not None and declared.kind == "tensor"

    def _head(self, items: Items) -> tuple[Item, Items | None, Item | None] | None:
        """A name alone, or a name with brackets that reach to the end."""
        opening = next((k for k, item in enumerate(items) if item.is_("(", "[")), None)
        name = letters(items if opening is None else items[:opening])
        if name is None:
            return None
        if opening is None:
            return name, None, None
        depth = 0
        for place in range(opening, len(items)):
            depth += items[place].is_("(", "[")
            depth -= items[place].is_(")", "]")
            if depth == 0:
                if place != len(items) - 1 or items[place].sup is not None:
                    return None
                return name, items[opening + 1 : place], items[place]
        return None

    def _are_indices(self, parts: list[Items]) -> bool:
        """``PE(pos, 2i)`` indexes; ``f(x)`` is a function."""
        seen = False
        for part in parts:
            for item in part:
                if item.kind in ("letter", "word"):
                    known = self.declarations.get(item.text)
                    if known is None or known.kind == "tensor":
                        return False
                    seen = seen or known.kind == "index"
        return seen

    def _parameter(self, part: Items) -> str:
        item = letters(part)
        sub = None if item is None else label(item.sub)
        sup = None if item is None else label(item.sup)
        name = None if item is None else join_name(item.text, sub, sup)
        if self.any_parameters:
            return name or ""
        if name is None or name not in self.declarations:
            shown = self.latex[span_of(part)[0] : span_of(part)[1]] if part else ""
            raise FormulaError(
                f"undeclared parameter {shown}",
                span_of(part),
                f"add `{shown} [shape]` to the declarations",
            )
        return name

    def _equation(self, left: _Side, sides: list[Items], space: Item | None) -> ast.Equation:
        free = self._free_indices(left.index_items) if left.index_items else []
        with self.scope.bound(*free):
            indices: tuple[ast.Node, ...] = ()
            if left.index_items:
                indices = self.parser.indices(left.index_items, left.span)
            right = sides if left.name is None else sides[1:]
            parsed = tuple(self.parser.expression(side, span_of(side)) for side in right)
            shape = self._shape(space) if space is not None else None
        if left.name is not None and left.index_items and f"{left.name}_0" in self.declarations:
            self.scope.used.add(f"{left.name}_0")  # it starts the recurrence
        span = (left.span[0], span_of(sides[-1])[1])
        return ast.Equation(span, left.name, left.parameters, indices, parsed, left.span, shape)

    def _shape(self, space: Item) -> tuple[ast.Node, ...]:
        if space.sup is None:
            return ()
        dimensions = split(space.sup, "times")
        return tuple(self.parser.expression(part, space.span) for part in dimensions)

    def _free_indices(self, items: Items) -> list[str]:
        """The names of an index list that are not declared; letters that spell a declared name are
        one.
        """
        found: list[str] = []
        place = 0
        while place < len(items):
            for length in range(len(items) - place, 0, -1):
                run = letters(items[place : place + length])
                if run is not None and (length == 1 or run.text in self.declarations):
                    if run.text not in self.declarations:
                        found.append(run.text)
                    break
            else:
                length = 1
                for part in items[place].parts:
                    found += self._free_indices(part)
            place += length
        return list(dict.fromkeys(found))
