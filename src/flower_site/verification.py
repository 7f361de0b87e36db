"""The page 公式验证: every published formula, what it was compared with, and what is unchecked."""

from __future__ import annotations

import html
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from .context import site_path

if TYPE_CHECKING:
    from .formulas import FormulaBook
    from .notebook_rules import Uncompared


@dataclass(frozen=True)
class Row:
    """What the page says of one formula.

    Args:
        slug: the formula's name, the anchor on the page.
        latex: its LaTeX.
        uri: the page that holds it, inside the site's sources (``cards/a.md``).
        title: that page's title.
        line: the line on which the block begins.
        status: ``checked``, ``unchecked`` or ``failed``.
        call: the call that it was compared with.
        reason: why it is unchecked.
        draws: how many random draws agreed.
        errors: precision and device → largest relative error.
        notes: which reading was taken, where a notation has several.
    """

    slug: str
    latex: str
    uri: str
    title: str
    line: int
    status: str
    call: str = ""
    reason: str = ""
    draws: int = 0
    errors: Mapping[str, float] = field(default_factory=dict)
    notes: Sequence[str] = ()


def environment() -> dict[str, str]:
    """Versions and date that the figures belong to."""
    found = {"Python": platform.python_version()}
    for name, package in (("PyTorch", "torch"), ("flower-research-notes", "flower-research-notes")):
        try:
            found[name] = version(package)
        except PackageNotFoundError:
            continue
    found["系统"] = platform.system()
    found["日期"] = datetime.now(UTC).date().isoformat()
    return found


def verification_markdown(
    rows: Sequence[Row],
    facts: Mapping[str, str],
    uncompared: Sequence[tuple[str, str, Uncompared]] = (),
) -> str:
    """The page as Markdown; links are relative to the root of the site's sources.

    ``uncompared`` are the notebook cells whose outputs nobody compares: notebook, cell, reason.
    """
    checked = [row for row in rows if row.status == "checked"]
    others = [row for row in rows if row.status != "checked"]
    devices = sorted({name.split("/")[-1] for row in checked for name in row.errors if "/" in name})
    about = dict(facts)
    if devices:
        about["设备"] = "、".join(devices)
    share = f"{len(checked) / len(rows):.0%}" if rows else "—"
    lines = [
        "---",
        "title: 公式验证",
        "description: 每个公式与代码比较的结果",
        "search:",
        "  boost: 0.05",
        "---",
        "",
        "# 公式验证",
        "",
        "页面上的公式就是被检验的公式：程序读取页面里的 LaTeX，在小的随机张量上按教科书的含义"
        "逐项计算，再与公式旁边写明的函数比较；没有写明函数的，比较等式的各边。每次抽样都改变各个维度的大小。",
        "",
        f"共 {len(rows)} 个公式，已验证 {len(checked)} 个（{share}），未验证 {len(others)} 个。",
        "",
        "环境：" + "，".join(f"{name} {value}" for name, value in about.items()) + "。",
        "",
        "全部数据见 [verification.json](verification.json)。",
        "",
        "## 已验证",
        "",
    ]
    if not checked:
        lines += ["还没有。", ""]
    for row in checked:
        lines += _checked(row)
    lines += ["## 未验证", ""]
    if not others:
        lines += ["没有未验证的公式。", ""]
    for row in others:
        lines += [*_head(row), f"**未验证**：{row.reason or '检验没有通过'}", "", _where(row), ""]
    lines += ["## 笔记本里输出未核对的单元", ""]
    if not uncompared:
        lines += ["没有。每个单元都会重新运行，输出逐字比较。", ""]
    for slug, cell, why in uncompared:
        page = f"[{slug}](notebooks/{slug}.ipynb)"
        lines.append(f"- {page}，单元 {_escape(cell)}（`{why.tag}`）：{_escape(why.reason)}")
    lines.append("")
    return "\n".join(lines)


def verification_json(
    rows: Sequence[Row],
    facts: Mapping[str, str],
    uncompared: Sequence[tuple[str, str, Uncompared]] = (),
) -> str:
    """The same as data."""
    data = {
        "environment": dict(facts),
        "formulas": [asdict(row) for row in rows],
        "uncompared_cells": [
            {"notebook": slug, "cell": cell, **asdict(why)} for slug, cell, why in uncompared
        ],
    }
    return json.dumps(data, ensure_ascii=False, indent=1, default=list) + "\n"


def _checked(row: Row) -> list[str]:
    errors = "；".join(f"{name}：{_error(value)}" for name, value in row.errors.items())
    facts = [
        f"- 代码：<code>{_escape(row.call)}</code>" if row.call else "- 等式各边互相比较",
        f"- 随机抽样：{row.draws} 次",
        f"- 最大相对误差：{errors or '—'}",
    ]
    facts += [f"- 读法：{_escape(note)}" for note in row.notes]
    return [*_head(row), _where(row), "", *facts, ""]


def _head(row: Row) -> list[str]:
    latex = "\n".join(line for line in row.latex.strip().splitlines() if line.strip())
    return [f"### {row.slug} {{#{row.slug}}}", "", "$$", latex, "$$", ""]


def _where(row: Row) -> str:
    title = row.title.replace("[", r"\[").replace("]", r"\]")
    return f"所在页面：[{title}]({row.uri}#formula-{row.slug})"


def _escape(text: str) -> str:
    return html.escape(text, quote=False).replace("\n", " ")


def _error(value: float) -> str:
    return "0" if value == 0 else f"{value:.1e}"


def rows_of(book: FormulaBook, titles: Mapping[str, str]) -> list[Row]:
    """One row for each formula of the book, in the order of slugs.

    Args:
        book: every formula block of the repository, with its verdict.
        titles: page inside the site's sources → its title.
    """
    rows = []
    for slug, block in sorted(book.blocks.items()):
        verdict = book.verdict(slug)
        path = block.path.partition(",")[0]  # a notebook's cell is named after the comma
        uri = site_path(path)
        rows.append(
            Row(
                slug=slug,
                latex=block.latex,
                uri=uri,
                title=titles.get(uri, uri),
                line=block.line,
                status=verdict.status,
                call=verdict.call or "",
                reason=verdict.reason or (verdict.problem.message if verdict.problem else ""),
                draws=verdict.draws,
                errors=dict(verdict.errors),
                notes=tuple(verdict.notes),
            )
        )
    return rows
