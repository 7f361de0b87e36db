"""Wrong versions of a function: one operator, number or name of its source changed at a time.

The changed source is written to a file and imported as a module of its own, so that it runs like
any other module; nothing is executed from a string.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
import tempfile
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

BINARY: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.MatMult: ast.Add,
    ast.Pow: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
}  # fmt: skip
COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
METHODS = {
    "sin": "cos", "cos": "sin", "exp": "log", "log": "exp", "sqrt": "square", "square": "sqrt",
    "mean": "sum", "sum": "mean", "tanh": "sigmoid", "sigmoid": "tanh", "max": "min", "min": "max",
    "amax": "amin", "softmax": "log_softmax", "relu": "tanh", "floor": "ceil", "tril": "triu",
    "transpose": "clone",
}  # fmt: skip


@dataclass(frozen=True)
class CodeMutant:
    """A changed function and what was changed, with its line."""

    function: Callable[..., Any]
    change: str


def reached_lines(function: Callable[..., Any], run: Callable[[], object]) -> set[int]:
    """The lines of a function's file that its body goes through while ``run`` runs."""
    code = inspect.unwrap(function).__code__
    lines: set[int] = set()

    def trace(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code is not code:
            return None
        lines.add(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return lines


def code_mutants(
    function: Callable[..., Any], lines: set[int] | None = None
) -> Iterator[CodeMutant]:
    """The function changed at one place of its body, for every place.

    Checks of the arguments (statements that only raise) and the docstring are left alone: they do
    not compute. With ``lines`` only statements that touch one of these lines are changed: what a
    call does not reach, no formula can see.
    """
    function = inspect.unwrap(function)
    module = sys.modules[function.__module__]
    source = Path(inspect.getfile(module)).read_text(encoding="utf-8")
    tree = ast.parse(source)
    body = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == function.__name__]
    if not body:
        return
    places = [node for statement in body[-1].body for node in _computing(statement, lines)]
    with tempfile.TemporaryDirectory() as folder:
        count = 0
        for node in places:
            for change, what in _changes(node):
                count += 1
                changed = _with_change(tree, node, change)
                loaded = _load(changed, module.__name__, Path(folder), count)
                if loaded is not None:
                    text = ast.unparse(node)
                    yield CodeMutant(
                        getattr(loaded, function.__name__),
                        f"{module.__name__}:{getattr(node, 'lineno', 0)}: {text}: {what}",
                    )


def _computing(statement: ast.stmt, lines: set[int] | None) -> Iterator[ast.AST]:
    if isinstance(statement, ast.Expr):
        return  # the docstring, or a call that only checks
    if isinstance(statement, ast.If) and all(isinstance(s, ast.Raise) for s in statement.body):
        return
    if isinstance(statement, ast.If | ast.For | ast.While | ast.With):
        for inner in (*statement.body, *getattr(statement, "orelse", [])):
            yield from _computing(inner, lines)
        heads = [getattr(statement, name) for name in ("test", "iter") if hasattr(statement, name)]
        if lines is None or statement.lineno in lines:
            for head in heads:
                yield from ast.walk(head)
        return
    span = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
    if lines is None or lines & set(span):
        yield from ast.walk(statement)


def _changes(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
        new = deepcopy(node)
        new.op = BINARY[type(node.op)]()
        yield new, "operator changed"
        yield deepcopy(node.left), "right part dropped"
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
        yield deepcopy(node.operand), "sign dropped"  # of -1 as an axis, "number plus 1" makes -2
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARE:
        other = deepcopy(node)
        other.ops[0] = COMPARE[type(node.ops[0])]()
        yield other, "comparison changed"
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        if not isinstance(node.value, bool):
            yield ast.Constant(node.value + 1), "number plus 1"
    elif isinstance(node, ast.Attribute) and node.attr in METHODS:
        named = deepcopy(node)
        named.attr = METHODS[node.attr]
        yield named, f"made {named.attr}"
    elif isinstance(node, ast.Call) and len(node.args) > 1 and not _symmetric(node.func):
        swapped = deepcopy(node)
        swapped.args[0], swapped.args[1] = swapped.args[1], swapped.args[0]
        yield swapped, "arguments exchanged"


def _symmetric(called: ast.expr) -> bool:
    """Functions whose arguments may stand in any order."""
    return ast.unparse(called).split(".")[-1] in ("min", "max", "minimum", "maximum")


def _with_change(tree: ast.Module, node: ast.AST, change: ast.AST) -> str:
    """The source with one node replaced; the tree is left as it was."""
    parent = _parent(tree, node)
    assert parent is not None
    holder, name, place = parent
    old = getattr(holder, name)
    if place is None:
        setattr(holder, name, change)
    else:
        setattr(holder, name, [*old[:place], change, *old[place + 1 :]])
    try:
        return ast.unparse(ast.fix_missing_locations(tree))
    finally:
        setattr(holder, name, old)


def _parent(tree: ast.AST, node: ast.AST) -> tuple[ast.AST, str, int | None] | None:
    for holder in ast.walk(tree):
        for name, value in ast.iter_fields(holder):
            if value is node:
                return holder, name, None
            if isinstance(value, list):
                for place, element in enumerate(value):
                    if element is node:
                        return holder, name, place
    return None


def _load(source: str, name: str, folder: Path, number: int) -> Any:
    """The changed module, imported under a name of its own; None if it cannot even be imported."""
    path = folder / f"mutant_{number}.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"{name}__mutant_{number}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except Exception:
        return None
    finally:
        sys.modules.pop(spec.name, None)
    return module
