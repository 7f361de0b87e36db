"""Compares a published formula with the function that it describes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from flower_formula import ast
from flower_formula.agreement import Comparison
from flower_formula.code import Code, NoValue
from flower_formula.draw import Draw, draws, free_sizes
from flower_formula.environment import NeedsReading
from flower_formula.errors import Disagreement, FormulaError, FormulaWarning, ShapeError, Span
from flower_formula.evaluator import Evaluator
from flower_formula.names import spelled
from flower_formula.statements import Formula, read_formula
from flower_formula.symbols import Declaration, read_declarations
from flower_formula.target import Definition, drawn_numbers, names
from flower_formula.undefined import drawn_again, has_value
from flower_formula.values import describe

Readings = dict[tuple[str, Span], str]

DRAWS = 25
MAX_UNCLEAR = 6  # notations with several readings in one formula


@dataclass(frozen=True)
class Report:
    """What a check that agrees found.

    ``errors`` maps ``float64``, ``float32`` and ``cuda float32`` to the largest error, relative to
    the largest value of the result; ``readings`` tells how notations with several meanings were
    read, and at which sizes the formula has no value.
    """

    draws: int
    errors: dict[str, float]
    readings: tuple[str, ...] = ()
    warnings: tuple[FormulaWarning, ...] = ()


def check(
    latex: str,
    function: str | Callable[..., Any] | None,
    symbols: Iterable[str],
    *,
    packages: Sequence[str] = ("flower_transformer", "flower_site.bindings"),
    library: Mapping[str, Definition] | None = None,
    count: int = DRAWS,
    seed: int = 0,
    devices: Sequence[str] = ("cpu",),
) -> Report:
    r"""Evaluates a formula on random tensors and compares it with a function.

    Args:
        latex: the display, without dollars.
        function: a call such as ``flower_transformer.attention.scaled_dot_product_attention(Q, K,
            V)``; or a Python
            function, which is called with the formula's parameters, then the other declared
            tensors, numbers and sizes, as many as it takes; or None for a formula whose sides
            are compared with each other.
        symbols: declarations, one a line (see ``symbols``).
        packages: where the function of a call may live.
        library: formulas that this one may use by name.
        count: how many draws; every free size is 1 in one of them.
        seed: of the draws.
        devices: ``cpu``, and ``cuda`` to compare there too.

    Raises:
        FormulaError: if the formula cannot be read, its sizes do not fit, or a symbol is
            undeclared or unused.
        Disagreement: if a side or the function gives other values; it shows both.
    """
    declarations = read_declarations(symbols)
    library = library or {}
    formula = read_formula(latex, declarations, *names(library))
    declarations = drawn_numbers(formula, declarations)
    try:
        code = Code(function, packages, declarations, formula)
        with _one_thread():
            drawn = draws(declarations, count, seed)
            return Checker(formula, declarations, code, library, drawn, devices).run()
    except FormulaError as error:
        error.latex = error.latex or latex
        raise


@contextmanager
def _one_thread() -> Iterator[None]:
    """The tensors are tiny: several threads would only wait for each other, and much longer."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass
class Checker:
    """One formula, its code and the draws on which they are compared."""

    formula: Formula
    declarations: dict[str, Declaration]
    code: Code
    library: Mapping[str, Definition]
    draws: list[Draw]
    devices: Sequence[str]
    notes: Readings = field(default_factory=dict)

    def run(self) -> Report:
        self._require_used()
        if not self.code.given and all(len(e.sides) < 2 for e in self.formula.equations):
            raise FormulaError(
                "there is nothing to compare this formula with",
                self.code.target.left,
                "name the function that computes it (code: ...)",
            )
        readings = self._choose_readings()
        precisions = ["float64", "float32", *(f"{d} float32" for d in self.devices if d != "cpu")]
        errors = dict.fromkeys(precisions, 0.0)
        notes: list[str] = []
        try:
            without = [draw for draw in self.draws if not self._measure(draw, readings, errors)]
            if without:
                others, *notes = drawn_again(
                    without,
                    lambda draw: self._comparisons(draw, "float64", readings),
                    self.declarations,
                )
                for draw in others:
                    self._measure(draw, readings, errors)
        except Disagreement as error:  # perhaps it was meant to be read otherwise
            lines = [f"  read as {note}" for note in self._said(readings)]
            error.detail = "\n".join([error.detail or "", *lines])
            raise
        said = (*self._said(readings), *notes)
        return Report(len(self.draws), errors, said, tuple(self.formula.warnings))

    def _measure(self, draw: Draw, readings: Readings, errors: dict[str, float]) -> bool:
        """Compares on one draw, and keeps the largest errors; False if a side has no value there.

        Raises:
            Disagreement: if the sides differ.
        """
        for precision in errors:
            comparisons = self._comparisons(draw, precision, readings)
            if precision == "float64" and not has_value(comparisons):
                return False
            for comparison in comparisons:
                errors[precision] = max(errors[precision], comparison.require_agreement())
        return True

    def _said(self, readings: Readings) -> tuple[str, ...]:
        """How notations with several meanings were read, each with its text."""
        return tuple(
            f"{self.formula.latex[span[0] : span[1]].strip()}: {reading}"
            for (latex, span), reading in (readings | self.notes).items()
            if latex == self.formula.latex
        )

    def _require_used(self) -> None:
        """Every declared symbol must occur on a right side (an index may stand on the left)."""
        on_the_left = {
            node.name
            for equation in self.formula.equations
            for index in equation.indices
            for node in index.walk()
            if isinstance(node, ast.Symbol)
        }
        used = set(self.formula.used)
        for name, definition in self.library.items():
            if name in self.formula.used:  # what the other formula takes from here
                used |= definition.formula.used
        for name, declared in self.declarations.items():
            if name in used or not declared.source or declared.kind == "size":
                continue
            if declared.kind == "index" and name in on_the_left:
                continue
            raise FormulaError(
                f"{spelled(name)} is declared but the formula does not use it",
                self.code.target.left,
                "delete its declaration, or complete the formula",
            )

    def _choose_readings(self) -> Readings:
        """Tries every reading of the notations that have several; exactly one may fit the whole
        formula.
        """
        fitting: list[Readings] = []
        first_error: FormulaError | None = None
        seen: dict[tuple[str, Span], tuple[str, ...]] = {}
        waiting: list[Readings] = [{}]
        while waiting:
            readings = waiting.pop(0)
            try:
                for comparison in self._comparisons(self.draws[0], "float64", readings):
                    comparison.require_shape()
            except NeedsReading as need:
                seen[need.place] = need.options
                if len(seen) > MAX_UNCLEAR:
                    raise FormulaError(
                        "too many notations with several readings",
                        need.place[1],
                        r"write u^T v for the inner product, \odot for the elementwise one",
                    ) from None
                waiting += [readings | {need.place: option} for option in need.options]
            except FormulaError as error:
                first_error = first_error or error
            else:
                fitting.append(readings)
        if len(fitting) == 1:
            return fitting[0]
        if not fitting:
            assert first_error is not None
            raise first_error
        place = next(p for p in seen if len({readings.get(p) for readings in fitting}) > 1)
        raise FormulaError(
            f"this can be read in two ways that both fit: {' or '.join(seen[place])}",
            place[1],
            r"write u^T v for the inner product, \odot for the elementwise one, "
            "plain juxtaposition for the matrix product",
        )

    def _comparisons(self, draw: Draw, precision: str, readings: Readings) -> list[Comparison]:
        """The sides of every chain with each other, and the target with the code, on one draw."""
        single = precision != "float64"
        dtype = torch.float32 if single else torch.float64
        tensors = {name: tensor.to(dtype) for name, tensor in draw.tensors.items()}
        evaluator = Evaluator(
            self.formula, self.declarations, tensors, draw.sizes, self.library, readings
        )
        axis_names = {draw.sizes[name]: spelled(name) for name in free_sizes(self.declarations)}
        goal = self.code.target
        expected: Tensor | None = None
        found: list[Comparison] = []
        for equation in self.formula.equations:
            sides = self._sides(evaluator, equation)
            for side, node in zip(sides[1:], equation.sides[1:], strict=True):
                found.append(
                    Comparison(
                        sides[0],
                        side,
                        "the other side",
                        node.span,
                        draw.sizes,
                        axis_names,
                        "float64",
                    )
                )
            if equation.shape is not None and sides:
                self._require_space(evaluator, equation, sides[0], axis_names)
            if equation is goal and sides:
                expected = sides[0]
        self.notes |= evaluator.notes
        if self.code.given:
            if expected is None:  # defined in several parts
                assert goal.name is not None
                expected = evaluator.defined(goal.name).members()
            device = precision.split()[0] if " " in precision else "cpu"
            failure: FormulaError | None = None
            try:
                result = self.code.run(tensors, draw.sizes, dtype, device)
            except NoValue as error:
                failure, result = error, torch.full_like(expected, torch.nan)
            found.append(
                Comparison(
                    expected,
                    result,
                    self.code.name,
                    goal.sides[0].span,
                    draw.sizes,
                    axis_names,
                    precision,
                    failure,
                    by_code=True,
                )
            )
        return found

    def _require_space(
        self, evaluator: Evaluator, equation: ast.Equation, side: Tensor, names: dict[int, str]
    ) -> None:
        stated = tuple(evaluator.integer(size) for size in equation.shape or ())
        if stated != tuple(side.shape):
            raise ShapeError(
                f"the text says {describe(stated, names)}, "
                f"the formula gives {describe(tuple(side.shape), names)}",
                equation.span,
                r"correct the space after \in",
            )

    def _sides(self, evaluator: Evaluator, equation: ast.Equation) -> list[Tensor]:
        """All sides of an equation; none for a part of a definition, whose parts are computed
        together.
        """
        parts = [
            e for e in self.formula.equations if e.name == equation.name and e.name is not None
        ]
        if len(parts) > 1:
            if any(len(e.sides) > 1 for e in parts):
                raise FormulaError("a chain of = in one part of a definition", equation.span)
            return []
        found = []
        for number, node in enumerate(equation.sides):
            value = evaluator.side(equation, number).value
            if value.axes:
                raise FormulaError(
                    "this depends on an index that is not on the left side", node.span
                )
            found.append(value.data)
        return found
