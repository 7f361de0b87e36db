"""Run notebooks in place, so that two runs give the same bytes.

    python -m flower_site.run_notebooks [PATH ...] [--force]

A notebook is run in a fresh kernel and written only when every cell went through with nothing on
stderr. Whatever changes from run to run (timings, random cell ids, the kernel's version) is left
out. A notebook is skipped while its code, the package it imports, the libraries, the device and
its stored outputs are what the last run left behind; that is remembered under ``.cache/flower``.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from flower_site import notebook_rules
from flower_site.problems import Problem, Problems
from flower_site.seals import KEY, seal
from flower_site.texts import read_notebook

CELL_TIMEOUT = 120  # seconds, the same as in `make test`
MAX_BYTES = 300_000
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def run_notebooks(
    paths: Sequence[Path] = (),
    *,
    root: Path | None = None,
    force: bool = False,
    report: Callable[[str], None] = print,
) -> list[Path]:
    """Run the notebooks whose sources have changed and write them back.

    Args:
        paths: notebooks; all below ``root/notebooks`` when left out.
        root: the repository, the working directory when left out.
        force: run unchanged ones too.
        report: is told one line a notebook.

    Returns:
        The notebooks that were run.

    Raises:
        Problems: notebooks that could not be run; their files are untouched, the others are done.
    """
    root = (root or Path.cwd()).resolve()
    ran, problems = [], []
    for path in [path.resolve() for path in paths] or find_notebooks(root):
        name = path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)
        start = time.monotonic()
        try:
            if run_notebook(
                path, name, cache=root / ".cache" / "flower" / "notebooks", force=force
            ):
                ran.append(path)
                report(f"{name}: 已运行，{time.monotonic() - start:.1f} 秒")
            else:
                report(f"{name}: 未变，跳过")
        except Problem as problem:
            report(f"{name}: 出错")
            problems.append(problem)
    if problems:
        raise Problems(problems)
    return ran


def find_notebooks(root: Path) -> list[Path]:
    """All notebooks below ``root/notebooks``, without Jupyter's own copies."""
    found = sorted((root / "notebooks").rglob("*.ipynb"))
    return [path for path in found if ".ipynb_checkpoints" not in path.parts]


def run_notebook(path: Path, name: str, *, cache: Path, force: bool) -> bool:
    """Bring one notebook up to date.

    Args:
        path: the file.
        name: how messages call it.
        cache: folder where it is remembered what the last run was made from.
        force: run it even if nothing changed.

    Returns:
        Whether it had to be run.

    Raises:
        Problem: the file is no notebook, a cell fails or writes to stderr, or it grows too large.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise Problem("没有这个笔记本", path=name, remedy="检查路径") from None
    notebook = read(text, name)
    state_file = cache / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.json"
    remembered = state_file.read_text(encoding="utf-8") if state_file.exists() else ""
    changed = force or remembered != state(notebook)
    if changed:
        execute(notebook, path, name)
    normalise(notebook, name)
    written: str = nbformat.writes(notebook)
    new_text = written.rstrip("\n") + "\n"
    for problem in notebook_rules.faults(name, read_notebook(new_text, name), new_text):
        raise problem
    if len(new_text.encode()) > MAX_BYTES:
        size = f"{len(new_text.encode())} 字节，上限 {MAX_BYTES}"
        raise Problem(f"笔记本太大：{size}", path=name, remedy="减少图里的点数，或少打印一些")
    if new_text != text:
        partial = path.with_suffix(".partial")
        partial.write_text(new_text, encoding="utf-8", newline="\n")
        partial.replace(path)
    cache.mkdir(parents=True, exist_ok=True)
    state_file.write_text(state(notebook), encoding="utf-8")
    return changed


def read(text: str, name: str) -> NotebookNode:
    """A notebook of format 4.5: cells without an id, as older Jupyters wrote them, get one.

    Raises:
        Problem: the file is no notebook, or not one in Python.
    """
    try:
        content = json.loads(text)
        notebook: NotebookNode = nbformat.reads(json.dumps(_with_ids(content)), as_version=4)
    except (ValueError, KeyError, TypeError, AttributeError, nbformat.ValidationError) as error:
        remedy = "用 Jupyter 打开并另存，或恢复上一版"
        raise Problem(f"不是有效的笔记本：{error}", path=name, remedy=remedy) from error
    kernel = notebook.metadata.get("kernelspec", {})
    language = notebook.metadata.get("language_info", {}).get("name") or kernel.get("language")
    if language not in (None, "python"):
        raise Problem(
            f"笔记本的语言是 {language}",
            path=name,
            remedy="这里的笔记本用 Python 写，内核选 Python 3",
        )
    return notebook


def _with_ids(content: dict[str, Any]) -> dict[str, Any]:
    if content["nbformat"] == 4:
        content["nbformat_minor"] = 5
        for number, cell in enumerate(content["cells"], start=1):
            cell.setdefault("id", f"cell-{number}")
    return content


def execute(notebook: NotebookNode, path: Path, name: str) -> None:
    """Run all cells in a fresh kernel, in the notebook's folder.

    Args:
        notebook: changed in place.
        path: the file, for the kernel's working directory.
        name: how messages call it.

    Raises:
        Problem: a cell fails, takes too long, or writes to stderr.
    """
    replies: dict[int, Mapping[str, Any]] = {}
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
        coalesce_streams=True,  # how stdout is cut into messages depends on timing
        record_timing=False,
        extra_arguments=["--IPKernelApp.log_level=40"],  # it warns that it listens on localhost
        on_cell_executed=lambda cell, cell_index, execute_reply: replies.update(
            {cell_index: execute_reply}
        ),
    )
    with client.setup_kernel():
        for index, cell in enumerate(notebook.cells):
            if cell.cell_type != "code":
                continue
            where = f"单元格 {label(cell) or index + 1}"
            try:
                client.execute_cell(cell, index)
            except CellExecutionError as error:
                trace = ANSI.sub("", error.traceback).rpartition("-----\n")[2].strip()
                message = f"{where} 报错：{error.ename}: {error.evalue}"
                raise Problem(message, path=name, detail=trace) from error
            except (CellTimeoutError, DeadKernelError) as error:
                raise Problem(f"{where} 没有运行完：{error}", path=name) from error
            if _asks_to_end(replies.get(index)):
                raise Problem(f"{where} 结束了内核", path=name, remedy="删去 exit() 之类的调用")
            for output in cell.outputs:
                if output.output_type == "error":
                    raise Problem(f"{where} 报错：{output.ename}: {output.evalue}", path=name)
                if output.get("name") == "stderr":
                    remedy = "消除警告的原因；发布的输出里不能有 stderr"
                    raise Problem(
                        f"{where} 写了 stderr", path=name, detail=output.text, remedy=remedy
                    )


def _asks_to_end(reply: Mapping[str, Any] | None) -> bool:
    """Whether a cell called ``exit()``: the kernel still answers for a moment, and ends then."""
    payload = (reply or {}).get("content", {}).get("payload", [])
    return any(part.get("source") == "ask_exit" for part in payload)


def normalise(notebook: NotebookNode, name: str) -> None:
    """Leave only what the next run would write too.

    Args:
        notebook: changed in place.
        name: how messages call it.

    Raises:
        Problem: two cells have one label.
    """
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook["metadata"] = {"kernelspec": kernel, "language_info": {"name": "python"}}
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    taken: set[str] = set()
    count = 0
    for index, cell in enumerate(notebook.cells):
        own = label(cell)
        if own is not None and own in taken:
            raise Problem(f"标签 {own} 用了两次", path=name, remedy="给其中一个单元格改名")
        identity = own or cell.get("id") or f"cell-{index + 1}"
        cell["id"] = identity if identity not in taken else f"cell-{index + 1}"
        taken.add(cell["id"])
        kept = ("tags", notebook_rules.REASON)
        cell["metadata"] = {key: cell.metadata[key] for key in kept if cell.metadata.get(key)}
        if cell.cell_type == "code":
            count += bool(cell.source.strip())
            cell.execution_count = count if cell.source.strip() else None
            for output in cell.outputs:
                if "metadata" in output:
                    output["metadata"] = {}
                if output.output_type == "execute_result":
                    output.execution_count = cell.execution_count
            if cell.source.strip():
                cell["metadata"][KEY] = seal(cell.source, cell.outputs)


def label(cell: NotebookNode) -> str | None:
    """The name after ``#| label:`` in the first line of a code cell."""
    match = notebook_rules.LABEL.match(cell.source) if cell.cell_type == "code" else None
    return match[1] if match else None


def state(notebook: NotebookNode) -> str:
    """What the outputs of a notebook depend on, and the outputs themselves, as hashes."""
    sources = hashlib.sha256()
    outputs = hashlib.sha256()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            sources.update(json.dumps(cell.source).encode())
            outputs.update(json.dumps(cell.outputs, sort_keys=True).encode())
    package = package_folder("flower_transformer")
    for file in sorted(package.rglob("*.py")):
        sources.update(file.relative_to(package).as_posix().encode() + file.read_bytes())
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("torch", "matplotlib")]
    made_with = [sys.version, *versions, os.environ.get("FLOWER_DEVICE", "") or "cpu"]
    sources.update(json.dumps(made_with).encode())
    return json.dumps({"sources": sources.hexdigest(), "outputs": outputs.hexdigest()})


def package_folder(name: str) -> Path:
    """Where a package lies, without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"没有安装 {name}；在仓库里运行 make，或 pip install -e .")
    return Path(spec.origin).parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; 1 when a notebook could not be run."""
    parser = argparse.ArgumentParser(
        prog="python -m flower_site.run_notebooks", description="运行笔记本，把输出写回原文件。"
    )
    parser.add_argument(
        "paths", nargs="*", type=Path, metavar="PATH", help="缺省：notebooks/ 下全部"
    )
    parser.add_argument("--force", action="store_true", help="没有变化的也重新运行")
    options = parser.parse_args(arguments)
    try:
        run_notebooks(options.paths, force=options.force)
    except Problems as problems:
        print(problems, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
