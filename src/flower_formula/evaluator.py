"""Computes a formula on given numbers, the way a reader would by hand: naively, term by term."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor

from flower_formula import ast, calls, cases, lists, ranges, recurrence, values
from flower_formula.environment import Environment, NeedsReading
from flower_formula.errors import FormulaError, RangeError, ShapeError, Span
from flower_formula.indexing import Family, IndexRange, gather, scatter, whole
from flower_formula.names import spelled
from flower_formula.statements import Formula
from flower_formula.symbols import Declaration
from flower_formula.target import Definition
from flower_formula.values import Misfit, Value, scalar


class Evaluator:
    """Evaluates the equations of a formula.

    Args:
        formula: what ``read_formula`` gave.
        declarations: the symbols of the formula.
        tensors: a tensor for every declared symbol that is not a size or an index.
        sizes: a number for every size.
        library: formulas of other blocks by the name that they define.
        readings: the reading chosen for each operator that has several, by its place.
    """

    def __init__(
        self,
        formula: Formula,
        declarations: Mapping[str, Declaration],
        tensors: Mapping[str, Tensor],
        sizes: Mapping[str, int],
        library: Mapping[str, Definition] | None = None,
        readings: Mapping[tuple[str, Span], str] | None = None,
    ) -> None:
        self.library = library or {}
        self.readings = readings or {}
        given = {
            name: Value(tensor.to(torch.float64), (), tensor.dim())
            for name, tensor in tensors.items()
        }
        self.env = Environment(formula, declarations, given, dict(sizes))
        self.size_names = {
            size: spelled(name) for name, size in sizes.items() if declarations[name].kind == "size"
        }
        self.guards: list[Value] = []
        self.calls: list[str] = []
        self.notes: dict[tuple[str, Span], str] = {}
        self.axis_ids = itertools.count()

    # -- whole equations ------------------------------------------------------------------------

    def side(self, equation: ast.Equation, number: int) -> Family:
        """One right side of an equation, its left side's indices turned into axes."""
        return self.part([(equation, equation.sides[number])])

    def defined(self, name: str) -> Family:
        """The value of a name that the formula defines without parameters (all its equations
        together).
        """
        env = self.env
        if name in env.defined:
            return env.defined[name]
        if name in env.computing:
            raise FormulaError(
                f"{spelled(name)} is needed before it is there", self._equations(name)[0].left
            )
        if group := recurrence.group_of(self, name):
            recurrence.unroll(self, group)
            return env.defined[name]
        env.computing.append(name)
        parts = [(equation, equation.sides[0]) for equation in self._equations(name)]
        family = self.part(parts)
        env.computing.pop()
        env.defined[name] = family
        return family

    def _equations(self, name: str) -> list[ast.Equation]:
        return [e for e in self.env.formula.equations if e.name == name and e.parameters is None]

    def part(self, parts: list[tuple[ast.Equation, ast.Node]]) -> Family:
        """``p_{i,2j} = ..., p_{i,2j+1} = ...``: every part fills its places; together they fill
        all, none twice.
        """
        filled: list[tuple[list[Value], Value, list[IndexRange]]] = []
        for equation, body in parts:
            names = list(dict.fromkeys(
                node.name for index in equation.indices for node in index.walk()
                if isinstance(node, ast.Symbol) and self._is_index(node.name)
            ))  # fmt: skip
            with self._bound(names, body, equation) as entries:
                value = self.value(body)
                places = [self.value(index) for index in equation.indices]
            filled.append((places, value, entries))
        if not parts[0][0].indices:
            return Family(filled[0][1], ())
        try:
            return scatter([equation for equation, _ in parts], filled)
        except RangeError as error:
            raise ranges.with_sizes(error, self.env) from None

    # -- index ranges ---------------------------------------------------------------------------

    def _is_index(self, name: str) -> bool:
        declared = self.env.declarations.get(name)
        return declared is None or declared.kind == "index"

    @contextmanager
    def _bound(
        self, names: list[str], body: ast.Node, equation: ast.Equation
    ) -> Iterator[list[IndexRange]]:
        """Gives every free index of an equation an axis while its right side is computed."""
        found = []
        for name in names:
            lower, upper = ranges.index_range(self, name, body, equation.left)
            found.append(IndexRange(lower, upper, next(self.axis_ids)))
        with self.index_values(dict(zip(names, found, strict=True))):
            yield found

    @contextmanager
    def index_values(self, ranges: dict[str, IndexRange]) -> Iterator[None]:
        env = self.env
        before_values, before_ranges = dict(env.indices), dict(env.ranges)
        for name, entry in ranges.items():
            counted = torch.arange(entry.lower, entry.lower + entry.size, dtype=torch.float64)
            env.indices[name] = Value(counted, (entry.axis,), 0)
            env.ranges[name] = (entry.lower, entry.upper)
        try:
            yield
        finally:
            env.indices, env.ranges = before_values, before_ranges

    def family(self, base: ast.Node) -> Family:
        """What stands before an index, with the numbers at which its axes begin."""
        if isinstance(base, ast.Symbol):
            if base.name in self.env.tensors:
                declared = self.env.declarations.get(base.name)
                axes = declared.axes if declared is not None else ()
                first = tuple(ranges.first_number(self, declared, axis) for axis in axes)
                return Family(self.env.tensors[base.name], first)
            if any(
                e.name == base.name and e.parameters is None for e in self.env.formula.equations
            ):
                return self.defined(base.name)
            if base.name in self.library and base.name not in self.env.indices:
                return calls.imported(self, base)
        return Family(self.value(base), ())

    def integer(self, node: ast.Node) -> int:
        value = self.value(node)
        if value.axes or value.rank:
            raise FormulaError("this must be one number", node.span)
        try:
            return int(whole(value.data.reshape(1), node.span)[0])
        except RangeError as error:
            raise ranges.with_sizes(error, self.env) from None

    # -- expressions ----------------------------------------------------------------------------

    def value(self, node: ast.Node) -> Value:
        """The value of any node."""
        method = getattr(self, f"_{type(node).__name__.lower()}")
        try:
            result: Value = method(node)
        except RangeError as error:
            raise ranges.with_sizes(error, self.env) from None
        return result

    def _number(self, node: ast.Number) -> Value:
        return scalar(node.value)

    def _symbol(self, node: ast.Symbol) -> Value:
        env, name = self.env, node.name
        if name in env.indices:
            return env.indices[name]
        if name in env.tensors:
            declared = env.declarations.get(name)
            if declared is not None and declared.family:
                variables = ",".join(spelled(entry.variable) for entry in declared.ranges)
                raise FormulaError(
                    f"{spelled(name)} is a family: it needs its index {variables}", node.span
                )
            return env.tensors[name]
        if name in env.sizes:
            return scalar(env.sizes[name])
        declared = env.declarations.get(name)
        if declared is not None and declared.kind == "index":
            raise FormulaError(
                f"the index {spelled(name)} has no value here",
                node.span,
                "put it on the left side, or bind it by a sum",
            )
        if self._equations(name):
            return self.defined(name).value
        if name in self.library:
            return calls.imported(self, node).value
        raise FormulaError(f"{spelled(name)} has no value here", node.span)

    def _indexed(self, node: ast.Indexed) -> Value:
        family = self.family(node.base)
        places = [self.value(index) for index in node.indices]
        base = family.value
        if len(places) > base.rank:
            raise ShapeError(
                f"{len(places)} indices on something of shape {self.show(base)}",
                node.span,
                "check the declared shape",
            )
        try:
            return gather(node, base, family.first, places, self.guards)
        except Misfit as error:
            raise self.misfit(str(error), node, [(node.base, base)]) from error

    def _negative(self, node: ast.Negative) -> Value:
        return values.apply(self.value(node.body), torch.neg)

    def _call(self, node: ast.Call) -> Value:
        return calls.call(self, node)

    def _reduce(self, node: ast.Reduce) -> Value:
        return calls.reduce(self, node)

    def _compare(self, node: ast.Compare) -> Value:
        return cases.compare(self, node)

    def _both(self, node: ast.Both) -> Value:
        return cases.both_hold(self, node)

    def _cases(self, node: ast.Cases) -> Value:
        return cases.cases(self, node)

    def _matrix(self, node: ast.Matrix) -> Value:
        return lists.matrix(self, node)

    def _dots(self, node: ast.Dots) -> Value:
        raise FormulaError("dots can stand only in a list of arguments", node.span)

    def _binary(self, node: ast.Binary) -> Value:
        left, right = self.value(node.left), self.value(node.right)
        try:
            if node.operator in "+-":
                return values.add(left, right, 1 if node.operator == "+" else -1)
            if node.operator == "/":
                return values.divide(left, right)
            if node.operator == "odot":
                return values.odot(left, right)
            return self._product(node, left, right)
        except Misfit as error:
            raise self.misfit(str(error), node, [(node.left, left), (node.right, right)]) from error

    def _product(self, node: ast.Binary, left: Value, right: Value) -> Value:
        if node.operator == "juxtaposed":
            try:
                return values.multiply(left, right)
            except Misfit as first:
                if left.rank == right.rank == 2:
                    raise
                try:
                    result = values.odot(left, right)  # a gain beside a vector: \gamma x
                except Misfit:
                    raise first from None
                self.notes[self.place(node)] = "elementwise"
                return result
        options: dict[str, Value] = {}
        first_misfit: Misfit | None = None
        for name, compute in values.product_readings(node.operator, left, right).items():
            try:
                options[name] = compute()
            except Misfit as error:
                first_misfit = first_misfit or error
        if not options:
            raise first_misfit or Misfit("cannot multiply")
        return self.choose(node, options)

    def place(self, node: ast.Node) -> tuple[str, Span]:
        """What tells this node from all others: its formula, and where it stands."""
        return self.env.formula.latex, node.span

    def choose(self, node: ast.Node, options: dict[str, Value]) -> Value:
        """The reading chosen for a place; with several and none chosen, the caller has to try
        them.
        """
        if len(options) == 1:
            return next(iter(options.values()))
        place = self.place(node)
        chosen = self.readings.get(place)
        if chosen is None:
            raise NeedsReading(place, tuple(options))
        if chosen not in options:
            raise Misfit(f"the reading “{chosen}” does not fit")
        return options[chosen]

    def _power(self, node: ast.Power) -> Value:
        base, exponent = self.value(node.base), self.value(node.exponent)
        try:
            return values.power(base, exponent)
        except Misfit as error:
            raise self.misfit(str(error), node, [(node.base, base)]) from error

    def _transpose(self, node: ast.Transpose) -> Value:
        body = self.value(node.body)
        try:
            return values.transpose(body)
        except Misfit as error:
            raise self.misfit(str(error), node, [(node.body, body)]) from error

    def _root(self, node: ast.Root) -> Value:
        body = self.value(node.body)
        if body.rank == 2:
            self.notes[self.place(node)] = "elementwise"
        degree = 2.0 if node.degree is None else float(self.integer(node.degree))
        return values.apply(body, torch.sqrt if degree == 2 else lambda x: x ** (1 / degree))

    def _bars(self, node: ast.Bars) -> Value:
        body = self.value(node.body)
        if node.kind == "norm":
            if body.rank != 1:
                raise self.misfit(
                    "the norm of something that is no vector", node, [(node.body, body)]
                )
            return Value(body.data.square().sum(-1).sqrt(), body.axes, 0)
        if node.kind == "abs" and body.rank:
            raise self.misfit(
                "the absolute value of something that is no number", node, [(node.body, body)]
            )
        return values.apply(
            body, {"abs": torch.abs, "floor": torch.floor, "ceiling": torch.ceil}[node.kind]
        )

    # -- helpers --------------------------------------------------------------------------------

    def show(self, value: Value) -> str:
        return values.describe(value.shape, self.size_names)

    def misfit(
        self, message: str, node: ast.Node, shapes: list[tuple[ast.Node, Value]]
    ) -> FormulaError:
        latex = self.env.formula.latex
        named = [(latex[n.span[0] : n.span[1]].strip(), v.shape) for n, v in shapes]
        return values.shape_error(message, node.span, named, self.size_names)
