"""What a committed notebook must be before anything of it is published, seen in its JSON alone.

The outputs are proven elsewhere (nbval runs the cells again), so nothing may keep them from that:
each cell has run, in order, on the kernel that CI has, and a cell whose outputs nobody compares
says why in its metadata, for everybody to see::

    {"tags": ["nbval-ignore-output"], "flower_reason": "耗时随机器而变"}
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from flower_site.problems import Problem

REASON = "flower_reason"
KERNEL = "python3"
WIDGET = "application/vnd.jupyter.widget-view+json"
LABEL = re.compile(r"\A#\|[ \t]*label:[ \t]*(\S+)[ \t]*$", re.M)

# nbval obeys these tags, and comments of the same name (# NBVAL_SKIP).
_UNCOMPARED = ("nbval-ignore-output", "nbval-skip", "nbval-raises-exception", "raises-exception")
_COMMENT = re.compile(r"^[ \t]*#+[ \t]*(NBVAL_[A-Z_]+|PYTEST_VALIDATE_IGNORE_OUTPUT)[ \t]*$", re.M)
_SKIPPED = "skip-execution"  # nbclient obeys this one
_IDENTITY = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_REMEDY = "运行 make notebooks"


@dataclass(frozen=True)
class Uncompared:
    """A cell whose outputs are not compared with a new run: by which tag, and why."""

    tag: str
    reason: str


def uncompared(cell: Mapping[str, Any]) -> Uncompared | None:
    """Whether nobody compares the outputs of this cell."""
    tags = cell.get("metadata", {}).get("tags") or []
    named = [tag for tag in _UNCOMPARED if tag in tags]
    named += [f"# {name}" for name in _COMMENT.findall(cell["source"]) if "CHECK" not in name]
    if not named:
        return None
    return Uncompared(named[0], str(cell["metadata"].get(REASON) or "").strip())


def cell_name(cell: Mapping[str, Any], number: int) -> str:
    """How messages call a cell: by its label, else by its place, counted from 1."""
    match = LABEL.match(cell["source"]) if cell["cell_type"] == "code" else None
    return match[1] if match else str(number)


def faults(path: str, notebook: Mapping[str, Any], raw: str = "") -> Iterator[Problem]:
    """What is wrong with a notebook, cell by cell.

    Args:
        path: named in the problems.
        notebook: its JSON, texts joined.
        raw: the file, for the lines of the problems.
    """
    kernel = notebook["metadata"].get("kernelspec", {}).get("name", KERNEL)
    if kernel != KERNEL:
        yield _problem(path, raw, f"内核是 {kernel}，不是 {KERNEL}", _REMEDY, r'"kernelspec"')
    if "widgets" in notebook["metadata"]:
        yield _problem(path, raw, "存着小部件（widget）的状态，网页上不会动", _REMEDY, r'"widgets"')
    if notebook.get("nbformat_minor", 0) < 5:
        yield _problem(path, raw, "格式早于 4.5，单元没有编号", _REMEDY, r'"nbformat_minor"')
    seen: set[str] = set()
    expected = 0
    in_order = True
    for number, cell in enumerate(notebook["cells"], start=1):
        here = (path, raw, f"单元 {cell_name(cell, number)}")
        identity = str(cell.get("id", ""))
        if notebook.get("nbformat_minor", 0) >= 5:
            if not _IDENTITY.fullmatch(identity):
                yield _in_cell(*here, number, "没有编号（id）", _REMEDY)
            elif identity in seen:
                yield _in_cell(*here, number, f"编号 {identity} 用了两次", _REMEDY)
            seen.add(identity)
        if cell["cell_type"] != "code":
            continue
        yield from (_in_cell(*here, number, *fault) for fault in _of_code(cell))
        expected += bool(cell["source"].strip())
        count = cell.get("execution_count")
        if in_order and count != (expected if cell["source"].strip() else None):
            in_order = False  # the counts after it are wrong as well
            ran = f"是第 {count} 个运行的，应当是第 {expected} 个" if count else "没有运行过"
            yield _in_cell(*here, number, ran, f"{_REMEDY}，从头到尾重新运行")


def _of_code(cell: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    metadata = cell.get("metadata", {})
    found = uncompared(cell)
    if found is not None and not found.reason:
        yield (
            f"带 {found.tag}，它的输出没有人核对，也没有写原因",
            f'删去它；确有必要时在单元的元数据里写 "{REASON}": "原因"',
        )
    if found is None and REASON in metadata:
        yield f"写着 {REASON}，却没有不核对输出的标签", f"删去 {REASON}"
    if _SKIPPED in (metadata.get("tags") or []):
        yield f"带 {_SKIPPED}，它的输出不是运行出来的", "删去这个标签"
    if any(WIDGET in output.get("data", {}) for output in cell.get("outputs", [])):
        yield "输出是小部件（widget），网页上不会动", "改用图（plots）或表（table）"


def _in_cell(path: str, raw: str, where: str, number: int, message: str, remedy: str) -> Problem:
    return _problem(path, raw, f"{where}：{message}", remedy, r'"cell_type"', number)


def _problem(path: str, raw: str, message: str, remedy: str, key: str, count: int = 1) -> Problem:
    """A problem at the n-th line of the file that begins with a key; at line 1 without one."""
    lines = raw.split("\n")
    found = [n for n, line in enumerate(lines, 1) if re.match(rf"\s*{key}:", line)]
    line = found[count - 1] if len(found) >= count else 1
    text = lines[line - 1] if raw else None
    if text is not None and len(text) > 200:
        text = None  # the whole notebook on one line
    column = len(text) - len(text.lstrip()) + 1 if text is not None else None
    return Problem(
        message, path=path, line=line, column=column, text=text, width=len(key), remedy=remedy
    )
