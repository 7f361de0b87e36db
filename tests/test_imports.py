"""The import arrows: which package may import what, and that nothing evaluates strings as code."""

from __future__ import annotations

import ast
import json
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src"

# What each package may import besides the standard library and itself; for flower_site, besides
# these, what pyproject.toml declares for the site.
ARROWS = {
    "flower_transformer": {"torch"},
    "flower_formula": {"torch"},
    "flower_site": {"flower_formula"},
}
# Single files that may import more than their package.
EXTRA = {
    "flower_transformer/plots.py": {"matplotlib"},
    "flower_transformer/notebook.py": {"IPython"},
    "flower_transformer/training/checkpoint.py": {"safetensors"},
    "flower_transformer/training/progress.py": {"rich"},
    "flower_site/bindings.py": {"flower_transformer", "torch"},
    # which devices there are; what the formulas need, imported before they are asked for
    "flower_site/formula_worker.py": {"torch", "flower_transformer"},
}
NOTEBOOK_IMPORTS = {"flower_transformer", "matplotlib", "torch"}
CODE_FROM_STRINGS = {"eval", "exec", "compile", "__import__"}


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and top-level name of each absolute import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.lineno, (node.module or "").partition(".")[0]


def site_libraries() -> set[str]:
    """Import names of what pyproject.toml declares for the site and for notebooks."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    declared = {distribution_name(line) for line in extras["site"] + extras["notebooks"]}
    return {
        module
        for module, distributions in packages_distributions().items()
        if declared & {distribution_name(name) for name in distributions}
    } - {"flower_transformer", "flower_formula", "flower_site"}


def distribution_name(requirement: str) -> str:
    name = requirement
    for mark in "[<>=!~; ":
        name = name.partition(mark)[0]
    return name.strip().lower().replace("_", "-").replace(".", "-")


def violations(relative: str, source: str, libraries: set[str]) -> list[str]:
    """What ``source``, to lie at ``src/relative``, imports against the arrows or evaluates."""
    package = relative.partition("/")[0]
    allowed = {package} | ARROWS[package] | EXTRA.get(relative, set())
    if package == "flower_site":
        allowed |= libraries
    tree = ast.parse(source, relative)
    found = [
        f"{relative}:{line}: may not import {name}"
        for line, name in imports(tree)
        if name not in allowed and name not in sys.stdlib_module_names
    ]
    found += [
        f"{relative}:{node.lineno}: calls {node.func.id}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in CODE_FROM_STRINGS
    ]
    return found


def notebook_violations(relative: str, text: str) -> list[str]:
    """What a notebook imports that a reader of the notes would not expect."""
    found = []
    for number, cell in enumerate(json.loads(text)["cells"], start=1):
        if cell["cell_type"] != "code":
            continue
        source = "".join(cell["source"])
        found += [
            f"{relative}: cell {number}, line {line}: may not import {name}"
            for line, name in imports(ast.parse(source))
            if name not in NOTEBOOK_IMPORTS and name not in sys.stdlib_module_names
        ]
    return found


def test_arrows_hold() -> None:
    libraries = site_libraries()
    files = sorted(path for package in ARROWS for path in (SRC / package).rglob("*.py"))
    assert len(files) > 10
    found = [
        violation
        for path in files
        for violation in violations(
            path.relative_to(SRC).as_posix(), path.read_text("utf-8"), libraries
        )
    ]
    assert not found, "\n".join(found)


def test_notebooks_import_the_package_only() -> None:
    files = sorted((ROOT / "notebooks").rglob("*.ipynb"))
    assert files
    found = [
        violation
        for path in files
        for violation in notebook_violations(path.name, path.read_text("utf-8"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("relative", "source"),
    [
        ("flower_transformer/attention.py", "import matplotlib.pyplot as plt"),
        ("flower_transformer/attention.py", "from IPython.display import display"),
        ("flower_transformer/attention.py", "from flower_formula import check"),
        ("flower_transformer/attention.py", "import numpy"),
        ("flower_formula/parser.py", "from sympy import latex"),
        ("flower_formula/parser.py", "def f():\n    import flower_transformer.masks"),
        ("flower_formula/checker.py", "import mkdocs"),
        ("flower_site/plugin.py", "from flower_transformer import attention"),
        ("flower_site/blocks/formula.py", "import pandas"),
        ("flower_site/cli.py", "eval('1 + 1')"),
        ("flower_formula/evaluation.py", "def f(text):\n    return exec(text)"),
        ("flower_transformer/models/bert.py", "x = __import__('os')"),
    ],
)
def test_a_wrong_import_is_found(relative: str, source: str) -> None:
    assert len(violations(relative, source, site_libraries())) == 1


@pytest.mark.parametrize(
    ("relative", "source"),
    [
        ("flower_transformer/plots.py", "from matplotlib.figure import Figure\nimport torch"),
        ("flower_transformer/models/bert.py", "from ..attention import attention_weights"),
        ("flower_formula/parser.py", "import re\nfrom flower_formula import lexer"),
        ("flower_site/plugin.py", "import mkdocs, flower_formula, pydantic, markdown, yaml"),
        ("flower_site/bindings.py", "from flower_transformer import attention"),
        ("flower_site/formulas.py", "import re\nre.compile('a')\nmodel.eval()"),
    ],
)
def test_a_right_import_passes(relative: str, source: str) -> None:
    assert violations(relative, source, site_libraries()) == []


def test_a_wrong_import_in_a_notebook_is_found() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["import pandas"]},
        {"cell_type": "code", "source": ["import torch\n", "import pandas"]},
    ]
    assert notebook_violations("a.ipynb", json.dumps({"cells": cells})) == [
        "a.ipynb: cell 2, line 2: may not import pandas"
    ]
