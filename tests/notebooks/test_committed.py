"""What every committed notebook must be; its outputs themselves are compared by nbval."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from flower_site.run_notebooks import MAX_BYTES, find_notebooks, label, normalise
from flower_transformer.notebook import RECORD_MIME

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = find_notebooks(ROOT)


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


@pytest.fixture
def notebook(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) >= 3


def test_written_by_the_runner(path: Path, notebook: NotebookNode) -> None:
    nbformat.validate(notebook)
    normalise(notebook, path.name)
    assert nbformat.writes(notebook).rstrip("\n") + "\n" == path.read_text(encoding="utf-8")
    assert path.stat().st_size <= MAX_BYTES


def test_every_cell_ran_and_none_complained(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.execution_count, cell.source
            for output in cell.outputs:
                assert output.output_type != "error"
                assert output.get("name") != "stderr"


def test_begins_with_a_title(notebook: NotebookNode) -> None:
    assert re.match(r"# 实验：\S", notebook.cells[0].source)


def test_labels_and_records(notebook: NotebookNode) -> None:
    labels = [name for cell in notebook.cells if (name := label(cell))]
    records = [
        output.data[RECORD_MIME]["name"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if RECORD_MIME in output.get("data", {})
    ]
    assert labels
    for name in labels + records:
        assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name)
    assert len(set(labels)) == len(labels)
    assert len(set(records)) == len(records)
    for cell in notebook.cells:
        if label(cell):
            assert cell.outputs, f"{label(cell)} shows nothing"


def test_shows_a_figure_and_asserts_what_it_says(notebook: NotebookNode) -> None:
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    figures = [o for cell in code for o in cell.outputs if "image/svg+xml" in o.get("data", {})]
    assert figures
    asserts = [
        node
        for cell in code
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Assert)
    ]
    assert len(asserts) >= 10
