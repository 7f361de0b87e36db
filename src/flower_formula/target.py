"""What a display defines, and which of its equations the code computes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from flower_formula import ast
from flower_formula.errors import FormulaError
from flower_formula.statements import Formula, read_formula
from flower_formula.symbols import Declaration, read_declarations


@dataclass(frozen=True)
class Definition:
    """A formula that other formulas may use by name, with what it declares."""

    formula: Formula
    declarations: Mapping[str, Declaration]
    slug: str = ""


def define(
    latex: str,
    symbols: Iterable[str],
    *,
    library: Mapping[str, Definition] | None = None,
    slug: str = "",
) -> Definition:
    """Reads a formula so that others can use the names it defines.

    Raises:
        FormulaError: if the formula or a declaration cannot be read.
    """
    declarations = read_declarations(symbols)
    return Definition(read_formula(latex, declarations, *names(library)), declarations, slug)


def names(library: Mapping[str, Definition] | None) -> tuple[list[str], list[str]]:
    """The functions and the tensors in a library."""
    functions: list[str] = []
    tensors: list[str] = []
    for name, definition in (library or {}).items():
        is_function = any(
            e.name == name and e.parameters is not None for e in definition.formula.equations
        )
        (functions if is_function else tensors).append(name)
    return functions, tensors


def drawn_numbers(formula: Formula, declarations: dict[str, Declaration]) -> dict[str, Declaration]:
    r"""``\ell in 1..m`` that is no index of the formula is a whole number: it is drawn from its
    range.
    """
    indices = {
        node.name
        for equation in formula.equations
        for index in equation.indices
        for node in index.walk()
        if isinstance(node, ast.Symbol)
    } | {
        node.variable
        for equation in formula.equations
        for side in equation.sides
        for node in side.walk()
        if isinstance(node, ast.Reduce)
    }
    return {
        name: replace(declared, kind="number")
        if declared.kind == "index" and name not in indices
        else declared
        for name, declared in declarations.items()
    }


def target(formula: Formula) -> ast.Equation:
    """The equation that the code computes: the one whose name no other equation uses.

    Raises:
        FormulaError: if there is no such equation or there are several.
    """
    mentioned: set[str] = set()
    for equation in formula.equations:
        for side in equation.sides:
            for node in side.walk():
                if isinstance(node, ast.Symbol | ast.Call) and node.name != equation.name:
                    mentioned.add(node.name)
    mentioned |= {f"{e.name}_0" for e in formula.equations if e.name and e.indices}  # starts
    ends = [e for e in formula.equations if e.name is None or e.name not in mentioned]
    names = {e.name for e in ends}
    if len(ends) == 1 or (len(names) == 1 and None not in names):
        return ends[0]
    if not ends:
        raise FormulaError("the equations use each other in a circle", formula.equations[0].left)
    raise FormulaError(
        "this display defines several things of which none uses the other",
        ends[1].left,
        "split it into one block each",
    )
