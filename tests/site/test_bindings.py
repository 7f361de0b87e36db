"""Bindings only call the package: one that computes would check a formula against itself."""

from __future__ import annotations

import ast
import inspect
import re

import pytest

from flower_site import bindings

# What a binding may do besides calling the package: change axes, make a tensor of given numbers,
# turn a distance around (the code counts from the query to the key).
PLUMBING = {"unsqueeze", "squeeze", "flatten", "expand", "tensor", "tolist", "neg"}
MODULES = {
    name
    for name, module in vars(bindings).items()
    if inspect.ismodule(module) and module.__name__.startswith("flower_transformer.")
}


def computing(source: str) -> list[str]:
    """What a binding does that is neither a call of the package nor plumbing."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.BinOp) and re.fullmatch(r"\w+ - 1", ast.unparse(node)):
            continue  # texts count from 1, the code from 0
        if isinstance(
            node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Subscript | ast.For | ast.While
        ):
            found.append(ast.unparse(node))
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            package = called.split(".")[0] in MODULES
            if not package and called.split(".")[-1] not in PLUMBING:
                found.append(called)
    return found


def functions() -> list[str]:
    return [
        n
        for n, f in inspect.getmembers(bindings, inspect.isfunction)
        if f.__module__ == bindings.__name__
    ]


@pytest.mark.parametrize("name", functions())
def test_a_binding_computes_nothing(name: str) -> None:
    assert computing(inspect.getsource(getattr(bindings, name))) == []


@pytest.mark.parametrize(
    "body", ["q @ k", "torch.softmax(q, -1)", "q.exp()", "q[0]", "-q", "sum(x for x in q)"]
)
def test_a_binding_that_computes_is_noticed(body: str) -> None:
    assert computing(f"def f(q, k):\n    return {body}\n")
