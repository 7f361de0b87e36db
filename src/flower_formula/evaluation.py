"""The value of a formula for given tensors, usable on a formula of one's own."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from flower_formula import ast
from flower_formula.environment import NeedsReading
from flower_formula.errors import FormulaError, ShapeError
from flower_formula.evaluator import Evaluator
from flower_formula.statements import read_expression, read_formula
from flower_formula.symbols import read_declarations
from flower_formula.target import target


def evaluate(latex: str, symbols: Iterable[str] | None = None, **tensors: Tensor | float) -> Tensor:
    r"""The value of a formula (its right side) for given tensors.

    Args:
        latex: an expression, or an equation whose right side is wanted.
        symbols: declarations; without them every keyword argument is declared with the shape of
            its tensor.
        tensors: a value for every symbol, by its name (``gamma`` for ``\gamma``, ``d_k`` for
            ``d_k``).

    Raises:
        FormulaError: if the formula cannot be read or its sizes do not fit.
    """
    given = {name: torch.as_tensor(value, dtype=torch.float64) for name, value in tensors.items()}
    lines = list(symbols) if symbols is not None else [
        name + (f" [{', '.join(map(str, tensor.shape))}]" if tensor.dim() else "") for name, tensor
        in given.items()
    ]  # fmt: skip
    declarations = read_declarations(lines)
    read = read_formula if "=" in latex else read_expression
    formula = read(latex, declarations)
    sizes: dict[str, int] = {}
    for name, tensor in given.items():
        declared = declarations.get(name)
        if declared is None:
            raise FormulaError(
                f"{name} is given but not declared", (0, 1), "declare it, or leave it out"
            )
        if declared.kind == "size":
            sizes[name] = int(tensor)
        for axis, size in zip(declared.axes, tensor.shape, strict=True):
            if isinstance(axis.size, ast.Symbol) and sizes.setdefault(axis.size.name, size) != size:
                raise ShapeError(f"{axis.size.name} is {sizes[axis.size.name]} and {size}", (0, 1))
    tensors_only = {n: t for n, t in given.items() if declarations[n].kind == "tensor"}
    evaluator = Evaluator(formula, declarations, tensors_only, sizes)
    equation = target(formula)
    try:
        if equation.name is not None and equation.parameters is None:
            return evaluator.defined(equation.name).value.data
        return evaluator.side(equation, len(equation.sides) - 1).value.data
    except FormulaError as error:
        error.latex = error.latex or latex
        raise
    except NeedsReading as need:
        raise FormulaError(
            f"this can be read in several ways: {', '.join(need.options)}", need.place[1],
            "write u^T v for the inner product, \\odot for the elementwise one",
        ) from None  # fmt: skip
