r"""Names that are defined by their own earlier members: ``h_t = \tanh(W h_{t-1} + U x_t)``.

They are computed step by step from their first member, which the display gives (``m_0 = -\infty``)
or the declarations (``h_0 [d]``). Several names may feed each other, as in online softmax.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from flower_formula import ast
from flower_formula.errors import FormulaError
from flower_formula.indexing import Family
from flower_formula.names import spelled
from flower_formula.ranges import index_range
from flower_formula.values import Value, align

if TYPE_CHECKING:
    from flower_formula.evaluator import Evaluator


def group_of(evaluator: Evaluator, name: str) -> list[str]:
    """The names that ``name`` is computed from and that are computed from it; empty if none are."""
    uses: dict[str, set[str]] = {}
    for equation in evaluator.env.formula.equations:
        if equation.name is not None and equation.parameters is None:
            mentioned = {
                node.name
                for side in equation.sides
                for node in side.walk()
                if isinstance(node, ast.Symbol)
            }
            uses.setdefault(equation.name, set()).update(mentioned)

    def reached(start: str) -> set[str]:
        found: set[str] = set()
        waiting = list(uses.get(start, ()))
        while waiting:
            other = waiting.pop()
            if other in uses and other not in found:
                found.add(other)
                waiting += uses[other]
        return found

    forward = reached(name)
    return [other for other in uses if other in forward and name in reached(other)]


def unroll(evaluator: Evaluator, names: list[str]) -> None:
    """Computes all members of a group of names and leaves them in ``env.defined``.

    Raises:
        FormulaError: if a first member is missing, or a step needs one that is not there yet.
    """
    env = evaluator.env
    steps: dict[str, ast.Equation] = {}
    for name in names:
        steps[name] = _step(evaluator, name)
        _start(evaluator, name, steps[name])
    first = steps[names[0]]
    variable = first.indices[0]
    assert isinstance(variable, ast.Symbol)
    body = ast.Matrix(first.span, (tuple(step.sides[0] for step in steps.values()),))
    env.computing += names
    lower, upper = index_range(evaluator, variable.name, body, first.left)
    for member in range(lower, upper + 1):
        waiting = list(names)
        while waiting:
            waiting = _advance_some(evaluator, waiting, steps, member)
    for name in names:
        env.computing.remove(name)


def _advance_some(
    evaluator: Evaluator, waiting: list[str], steps: dict[str, ast.Equation], member: int
) -> list[str]:
    """Computes those of the names whose parts are there; gives the names that still wait."""
    left: list[str] = []
    failed: FormulaError | None = None
    for name in waiting:
        try:
            _advance(evaluator, name, steps[name], member)
        except FormulaError as error:
            failed = failed or error
            left.append(name)
    if failed is not None and len(left) == len(waiting):
        raise failed
    return left


def _step(evaluator: Evaluator, name: str) -> ast.Equation:
    """The equation of one step: the one whose left side has an index variable."""
    steps = [
        equation
        for equation in evaluator.env.formula.equations
        if equation.name == name and any(isinstance(i, ast.Symbol) for i in equation.indices)
    ]
    if len(steps) != 1 or len(steps[0].indices) != 1:
        place = next(e for e in evaluator.env.formula.equations if e.name == name).left
        raise FormulaError(
            f"{spelled(name)} is defined by itself",
            place,
            f"write one step with one index, such as {spelled(name)}_t = ...",
        )
    return steps[0]


def _start(evaluator: Evaluator, name: str, step: ast.Equation) -> None:
    """Puts the first member where the steps look for it."""
    env = evaluator.env
    if any(equation.name == f"{name}_0" for equation in env.formula.equations):
        start = evaluator.defined(f"{name}_0").value
        env.defined[name] = Family(_stacked([start]), (0,), 1)
        return
    if f"{name}_0" in env.tensors:
        env.defined[name] = Family(_stacked([env.tensors[f"{name}_0"]]), (0,), 1)
        return
    raise FormulaError(
        f"{spelled(name)} is defined by itself and has no first member",
        step.left,
        f"write {spelled(name)}_0 = ..., or declare `{spelled(name)}_0 [shape]`",
    )


def _advance(evaluator: Evaluator, name: str, step: ast.Equation, member: int) -> None:
    env = evaluator.env
    variable = step.indices[0]
    assert isinstance(variable, ast.Symbol)
    before = dict(env.indices)
    env.indices[variable.name] = Value(torch.tensor(float(member), dtype=torch.float64))
    try:
        value = evaluator.value(step.sides[0])
    finally:
        env.indices = before
    known = env.defined[name]
    if known.first[0] + known.value.data.shape[0] != member:
        raise FormulaError(
            f"{spelled(name)} begins at {known.first[0]}, its steps at {member}",
            step.left,
            "the steps must follow the first member",
        )
    data = torch.cat([known.value.data, value.data.unsqueeze(0)])
    env.defined[name] = Family(Value(data, (), data.dim()), known.first, known.given)


def _stacked(values: list[Value]) -> Value:
    aligned, _ = align(*values)
    data = torch.stack(aligned)
    return Value(data, (), data.dim())
