"""The runner: same bytes twice, nothing written on failure, nothing run without need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from flower_site import run_notebooks as runner
from flower_site.notebook_rules import faults
from flower_site.problems import Problems
from flower_site.run_notebooks import run_notebooks
from flower_site.seals import KEY, seal
from flower_site.texts import read_notebook


def write(root: Path, *sources: str, name: str = "a") -> Path:
    """A notebook as an editor saves it: random cell ids, a kernel of its own, no outputs."""
    cells = [new_markdown_cell("# 实验"), *map(new_code_cell, sources)]
    notebook = new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": "other", "display_name": "My kernel"}
    notebook.metadata["widgets"] = {}
    notebook.cells[1].metadata.update({"collapsed": True, "tags": ["kept"]})
    path = root / "notebooks" / f"{name}.ipynb"
    path.parent.mkdir(exist_ok=True)
    nbformat.write(notebook, path)
    return path


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def run(root: Path, *paths: Path, **options: bool) -> list[str]:
    """Run and return the names of what was run."""
    return [path.name for path in run_notebooks(paths, root=root, report=lambda _: None, **options)]


def test_runs_in_place_and_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    path = write(tmp_path, "#| label: sum\nprint('一', flush=True)\nprint('二')", "1 + 1")
    assert run(tmp_path) == ["a.ipynb"]
    first = path.read_bytes()
    assert run(tmp_path) == []
    assert path.read_bytes() == first
    assert run(tmp_path, force=True) == ["a.ipynb"]
    assert path.read_bytes() == first

    notebook = read(path)
    nbformat.validate(notebook)
    _, summed, value = notebook.cells
    assert [output.text for output in summed.outputs] == ["一\n二\n"]
    assert summed.id == "sum", "a labelled cell is found by its label"
    assert summed.metadata == {"tags": ["kept"], KEY: seal(summed.source, summed.outputs)}
    assert value.outputs[0].data["text/plain"] == "2"
    assert [summed.execution_count, value.execution_count] == [1, 2]
    assert notebook.metadata == {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }


def test_what_makes_a_notebook_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "a.py").write_text("x = 1\n")
    monkeypatch.setattr(runner, "package_folder", lambda name: package)
    monkeypatch.delenv("FLOWER_DEVICE", raising=False)
    path = write(tmp_path, "print(1)")
    assert run(tmp_path) == ["a.ipynb"]

    notebook = read(path)
    notebook.cells[0].source = "# 改了标题"
    nbformat.write(notebook, path)
    assert run(tmp_path) == [], "text is not code"
    assert read(path).cells[0].source == "# 改了标题"

    notebook.cells[1].outputs[0].text = "2\n"  # a stale output
    nbformat.write(notebook, path)
    assert run(tmp_path) == ["a.ipynb"]
    assert read(path).cells[1].outputs[0].text == "1\n"

    (package / "a.py").write_text("x = 2\n")
    assert run(tmp_path) == ["a.ipynb"], "the package has changed"
    monkeypatch.setenv("FLOWER_DEVICE", "cuda")
    assert run(tmp_path) == ["a.ipynb"], "the device has changed"
    monkeypatch.setattr(runner.importlib.metadata, "version", lambda name: "0")
    assert run(tmp_path) == ["a.ipynb"], "torch has changed"
    assert run(tmp_path) == []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("#| label: bad\n1 / 0", "notebooks/a.ipynb: 错误：单元格 bad 报错：ZeroDivisionError"),
        ("1 / 0", "notebooks/a.ipynb: 错误：单元格 2 报错：ZeroDivisionError"),
        ("import sys\nprint('x', file=sys.stderr)", "单元格 2 写了 stderr"),
        ("import warnings\nwarnings.warn('old', stacklevel=1)", "单元格 2 写了 stderr"),
        ("import os\nos._exit(1)", "单元格 2 没有运行完"),
        ("import time\ntime.sleep(60)", "单元格 2 没有运行完"),
        ("print(('x' * 99 + chr(10)) * 4000)", "笔记本太大"),
        ("exit()", "单元格 3 结束了内核"),
        ("raise SystemExit", "单元格 2 报错：SystemExit"),
        ("input()", "单元格 2 报错：StdinNotImplementedError"),
        (
            "from IPython.display import display\n"
            "display({'application/vnd.jupyter.widget-view+json': {}}, raw=True)",
            "单元 2：输出是小部件",
        ),
    ],
    ids=[
        *("raises", "unlabelled", "stderr", "warning", "dies", "hangs", "too large"),
        *("exits", "leaves", "asks", "widget"),
    ],
)
def test_a_failing_cell_is_an_error_and_leaves_the_file_with_its_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, message: str
) -> None:
    path = write(tmp_path, "print(1)", "print(2)")
    run(tmp_path)
    notebook = read(path)
    changed = 1 if "exit()" not in source else 2  # after it no cell finds the kernel gone
    notebook.cells[changed].source = source
    nbformat.write(notebook, path)
    before = path.read_bytes()
    assert before.count(b'"output_type": "stream"') == 2
    monkeypatch.setattr(runner, "CELL_TIMEOUT", 3)
    with pytest.raises(Problems) as caught:
        run(tmp_path)
    assert message in str(caught.value)
    assert path.read_bytes() == before
    assert sorted(file.name for file in path.parent.iterdir()) == ["a.ipynb"]


def test_tagged_exceptions_are_no_way_around(tmp_path: Path) -> None:
    path = write(tmp_path, "1 / 0")
    notebook = read(path)
    notebook.cells[1].metadata["tags"] = ["raises-exception"]
    nbformat.write(notebook, path)
    with pytest.raises(Problems, match="ZeroDivisionError"):
        run(tmp_path)


def test_a_cell_that_was_not_run_is_not_sealed(tmp_path: Path) -> None:
    path = write(tmp_path, "print(1)")
    run(tmp_path)
    notebook = read(path)
    notebook.cells[1].metadata["tags"] = ["skip-execution"]
    notebook.cells[1].source = "print(2)"
    nbformat.write(notebook, path)
    before = path.read_bytes()
    with pytest.raises(Problems, match="不是运行出来的"):
        run(tmp_path)
    assert path.read_bytes() == before


def test_a_reason_is_kept_and_a_tag_without_one_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "print(1)")
    notebook = read(path)
    notebook.cells[1].metadata["tags"] = ["nbval-ignore-output"]
    nbformat.write(notebook, path)
    before = path.read_bytes()
    with pytest.raises(Problems, match="没有写原因"):
        run(tmp_path)
    assert path.read_bytes() == before
    notebook.cells[1].metadata["flower_reason"] = "耗时随机器而变"
    nbformat.write(notebook, path)
    run(tmp_path)
    kept = read(path).cells[1]
    assert kept.metadata["flower_reason"] == "耗时随机器而变"
    assert kept.outputs[0].text == "1\n"


def test_an_older_format_and_dead_widgets_are_made_whole(tmp_path: Path) -> None:
    path = write(tmp_path, "print(1)", "print(2)")
    content = json.loads(path.read_text("utf-8"))
    content["nbformat_minor"] = 4
    content["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
    for cell in content["cells"]:
        del cell["id"]
    path.write_text(json.dumps(content), encoding="utf-8")
    run(tmp_path)
    notebook = read(path)
    assert [cell.id for cell in notebook.cells] == ["cell-1", "cell-2", "cell-3"]
    assert "widgets" not in notebook.metadata
    assert list(faults("a", read_notebook(path.read_text("utf-8"), "a"))) == []


@pytest.mark.parametrize(
    "metadata",
    [
        {"kernelspec": {"name": "ir", "display_name": "R", "language": "R"}},
        {"kernelspec": {"name": "x", "display_name": "x"}, "language_info": {"name": "julia"}},
    ],
)
def test_another_language_is_refused(tmp_path: Path, metadata: dict[str, object]) -> None:
    path = write(tmp_path, "print(1)")
    content = json.loads(path.read_text("utf-8"))
    content["metadata"] = metadata
    path.write_text(json.dumps(content), encoding="utf-8")
    before = path.read_bytes()
    with pytest.raises(Problems, match=r"笔记本的语言是 (R|julia)"):
        run(tmp_path)
    assert path.read_bytes() == before


def test_the_others_still_run(tmp_path: Path) -> None:
    write(tmp_path, "1 / 0", name="a")
    good = write(tmp_path, "print(1)", name="b")
    (tmp_path / "notebooks" / "c.ipynb").write_text("{")
    with pytest.raises(Problems) as caught:
        run(tmp_path)
    assert [problem.path for problem in caught.value.problems] == [
        "notebooks/a.ipynb",
        "notebooks/c.ipynb",
    ]
    assert read(good).cells[1].outputs


def test_two_cells_with_one_label(tmp_path: Path) -> None:
    write(tmp_path, "#| label: x\n1", "#| label: x\n2")
    with pytest.raises(Problems, match="标签 x 用了两次"):
        run(tmp_path)


def test_command_line(tmp_path: Path) -> None:
    write(tmp_path, "1 / 0")
    command = [sys.executable, "-m", "flower_site.run_notebooks"]
    failed = subprocess.run(
        [*command], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8"
    )
    assert failed.returncode == 1
    assert "ZeroDivisionError: division by zero" in failed.stderr
    missing = subprocess.run(
        [*command, "none.ipynb"], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8"
    )
    assert missing.returncode == 1
    assert "没有这个笔记本" in missing.stderr


def test_nbval_compares_records_tables_and_figures(tmp_path: Path) -> None:
    """The suite that guards the notebooks does see a changed number, table or figure."""
    path = write(
        tmp_path,
        "from flower_transformer.notebook import record, table\nrecord('ratio', 1.5)",
        "table([['a', 1]], header=['x', 'y'])",
        "from flower_transformer import plots\nfig, ax = plots.figure()\nplots.show(fig, alt='空')",
    )
    run(tmp_path)
    text = path.read_text(encoding="utf-8")
    for old, new in [
        ('"value": 1.5', '"value": 1.6'),
        ("<td>1</td>", "<td>2</td>"),
        ("0 0 480 300", "0 0 480 301"),
    ]:
        assert text.count(old) == 1
        path.with_name(f"changed-{len(old)}.ipynb").write_text(text.replace(old, new), "utf-8")
    command = [sys.executable, "-m", "pytest", "--nbval", str(path.parent), "-q"]
    result = subprocess.run(
        [*command, "-p", "no:cacheprovider", "--rootdir", str(tmp_path)],
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert "3 failed, 9 passed" in result.stdout, result.stdout
