"""Notebooks as pages quote them."""

from __future__ import annotations

from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_output
from small_repo import RECORD, notebook_cells, write_notebook

from flower_site import notebooks
from flower_site.notebooks import NotebookError


def test_labels_records_and_title(repo: Path) -> None:
    notebook = notebooks.load("demo", repo)
    assert notebook.title == "实验：示范"
    assert list(notebook.cells)[:2] == ["variance", "table"]
    assert notebook.cell("text").source == "x = 1"
    record = notebook.record("ratio")
    assert (record.value, record.label) == (3.98, "variance")
    assert not list(notebooks.find_problems(repo))


def test_notebooks_in_folders_have_their_path_as_name(repo: Path) -> None:
    write_notebook(repo / "notebooks/experiments/deep.ipynb", notebook_cells())
    assert notebooks.load("experiments/deep", repo).record("ratio").value == 3.98
    write_notebook(repo / "notebooks/.ipynb_checkpoints/x.ipynb", [])
    assert [path.stem for path in notebooks.all_files(repo)] == ["demo", "deep"]


def test_a_label_used_twice_is_reported_in_the_notebook(repo: Path) -> None:
    cells = [new_code_cell(f"#| label: same\nx = {n}") for n in range(2)]
    write_notebook(repo / "notebooks/demo.ipynb", cells)
    (problem,) = notebooks.find_problems(repo)
    assert problem.message == "标签 same 用了两次"
    lines = (repo / "notebooks/demo.ipynb").read_text(encoding="utf-8").split("\n")
    assert problem.line == max(n for n, line in enumerate(lines, 1) if "label: same" in line)
    assert lines[problem.line - 1][problem.column - 1 :].startswith("label: same")


def test_a_record_name_used_twice_is_reported_in_the_notebook(repo: Path) -> None:
    output = new_output("display_data", {RECORD: {"name": "r", "value": 1}})
    write_notebook(repo / "notebooks/demo.ipynb", [new_code_cell("x", outputs=[output, output])])
    (problem,) = notebooks.find_problems(repo)
    assert problem.message == "记录 r 用了两次"
    assert str(problem.path) == "notebooks/demo.ipynb"


def test_a_file_that_is_no_notebook_is_reported(repo: Path) -> None:
    (repo / "notebooks/demo.ipynb").write_text("{", encoding="utf-8")
    (problem,) = notebooks.find_problems(repo)
    assert "读不了" in problem.message
    with pytest.raises(NotebookError, match="读不了"):
        notebooks.load("demo", repo)
