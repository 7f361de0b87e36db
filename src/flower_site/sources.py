"""Finds formula blocks and displayed formulas in Markdown, with their places."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import yaml

from flower_site.blocks.page import page_of
from flower_site.problems import nearest
from flower_site.texts import Text


@dataclass(frozen=True)
class DisplayMath:
    """One displayed formula: ``latex`` stands at ``start`` of ``text.content``, with blanks for the
    ``>`` of a quotation.
    """

    latex: str
    text: Text
    start: int
    in_block: bool = False


@dataclass(frozen=True)
class FormulaBlock:
    """One ``/// formula | slug`` block.

    ``uses`` names the blocks whose definitions this formula means, where several define the same
    name.
    ``where`` maps each declaration to its meaning, in order; ``option_starts`` gives the offset in
    ``text`` of each option's value and of each declaration.
    """

    slug: str
    latex: str
    latex_start: int
    text: Text
    start: int
    code: str | None = None
    where: dict[str, str] = field(default_factory=dict)
    uses: tuple[str, ...] = ()
    unchecked: str | None = None
    option_starts: dict[str, int] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return self.text.path

    @property
    def line(self) -> int:
        return self.text.place(self.start)[0]


# libyaml reads the options several times faster; not every PyYAML has it
_YAML = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

FORMULA_OPTIONS = ("code", "where", "uses", "unchecked")
_BLOCK_START = re.compile(
    r"^(?P<indent>[ \t]*)/{3,}[ \t]*formula\b[ \t]*(?:\|[ \t]*(?P<slug>.*?))?[ \t]*$"
)
_BLOCK_END = re.compile(r"^[ \t]*/{3,}[ \t]*$")


def formula_blocks(text: Text) -> list[FormulaBlock]:
    """The formula blocks of a text, in order.

    Raises:
        Problem: for a block without slug, without end, without formula or with two, or with an
            unknown option.
    """
    return [block for block, _, _ in _blocks(text)]


def display_math(text: Text) -> list[DisplayMath]:
    """Every displayed formula of a text, those in blocks too."""
    regions = block_regions(text)
    return [
        DisplayMath(display.latex, text, display.start, _within(display.start, regions))
        for display in page_of(text).formulas
        if display.display
    ]


def block_regions(text: Text, *, checked: bool = False) -> list[tuple[int, int]]:
    """Where each formula block begins and ends; with ``checked`` without the unchecked ones."""
    return [(a, b) for block, a, b in _blocks(text) if not (checked and block.unchecked)]


def _within(offset: int, regions: Iterable[tuple[int, int]]) -> bool:
    return any(start <= offset < end for start, end in regions)


@lru_cache(maxsize=1024)  # each check of a page asks for its blocks
def _blocks(text: Text) -> list[tuple[FormulaBlock, int, int]]:
    """Each block with the offsets at which it starts and ends."""
    found = []
    lines = page_of(text).prose.splitlines(keepends=True)
    original = text.content.splitlines(keepends=True)
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    number = 0
    while number < len(lines):
        match = _BLOCK_START.match(lines[number].rstrip("\n"))
        if not match:
            number += 1
            continue
        start = number
        number += 1
        while number < len(lines) and not _BLOCK_END.match(lines[number].rstrip("\n")):
            if _BLOCK_START.match(lines[number].rstrip("\n")):
                number = len(lines)
                break
            number += 1
        if number >= len(lines):
            raise text.problem(
                "formula 块没有结束",
                offsets[start],
                offsets[start + 1] - 1,
                remedy="在公式后面另起一行写 ///",
            )
        block = _read_block(text, match["slug"], original, offsets, start, number)
        found.append((block, offsets[start], offsets[number + 1]))
        number += 1
    return found


def _read_block(
    text: Text,
    slug: str | None,
    original: list[str],
    offsets: list[int],
    start: int,
    end: int,
) -> FormulaBlock:
    here = (offsets[start], offsets[start + 1] - 1)
    if not slug or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug):
        raise text.problem(
            "formula 块需要一个名字（小写英文、数字和连字符）",
            *here,
            remedy="写成 /// formula | scaled-dot-product-attention",
        )
    indent = len(original[start]) - len(original[start].lstrip(" "))
    header_end = start + 1
    while header_end < end and original[header_end][: indent + 4].isspace():
        if not original[header_end].strip():
            break
        header_end += 1
    header = "".join(original[start + 1 : header_end])
    options, starts = _read_options(text, header, offsets[start + 1])
    body = [(offsets[header_end], offsets[end])]
    displays = [d for d in page_of(text).formulas if d.display and _within(d.start, body)]
    if len(displays) != 1:
        raise text.problem(
            f"formula 块 {slug} 里有 {len(displays)} 个独立公式，应当恰好有一个",
            *here,
            remedy="公式写在 $$ 与 $$ 之间；多个等式放进同一个 aligned，或拆成几个块",
        )
    return FormulaBlock(
        slug=slug,
        latex=displays[0].latex,
        latex_start=displays[0].start,
        text=text,
        start=offsets[start],
        code=options.get("code"),
        where=options.get("where") or {},
        uses=tuple(re.split(r"[,\s]+", options["uses"].strip())) if "uses" in options else (),
        unchecked=options.get("unchecked"),
        option_starts=starts,
    )


def _read_options(text: Text, header: str, offset: int) -> tuple[dict[str, Any], dict[str, int]]:
    """The YAML options and the offset of each value (``code``) and each key under ``where``."""
    try:
        node = yaml.compose(header, Loader=_YAML)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = offset + (_mark_offset(header, mark.line, mark.column) if mark else 0)
        raise text.problem(
            f"块的选项不是合法的 YAML：{error.problem}", at,
            remedy="选项缩进 4 格；含 # 或以特殊符号开头的值放进引号",
        ) from error  # fmt: skip
    options: dict[str, Any] = {}
    starts: dict[str, int] = {}
    if node is None:
        return options, starts
    if not isinstance(node, yaml.MappingNode):
        raise text.problem("块的选项应当是“键: 值”", offset, remedy="例如 code: 点路径(Q, K, V)")
    for key, value in node.value:
        at = offset + key.start_mark.index
        name = key.value
        if name not in FORMULA_OPTIONS:
            close = nearest(name, FORMULA_OPTIONS)
            raise text.problem(
                f"formula 块没有选项 {name}",
                at,
                at + len(name),
                remedy=f"是不是 {close}？"
                if close
                else f"可用的选项：{'、'.join(FORMULA_OPTIONS)}",
            )
        starts[name] = offset + value.start_mark.index
        if name == "where":
            if not isinstance(value, yaml.MappingNode):
                raise text.problem("where 下面应当每行一个“符号 [形状]: 含义”", at)
            where: dict[str, str] = {}
            for symbol, meaning in value.value:
                place = offset + symbol.start_mark.index
                if symbol.value in where:
                    raise text.problem(f"{symbol.value} 声明了两次", place, remedy="删去其中一行")
                where[symbol.value] = str(meaning.value)
                starts[symbol.value] = place
            options[name] = where
        else:
            if not isinstance(value, yaml.ScalarNode) or not value.value.strip():
                raise text.problem(f"选项 {name} 需要一个值", at, at + len(name))
            options[name] = value.value
    return options, starts


def _mark_offset(text: str, line: int, column: int) -> int:
    return sum(len(row) for row in text.splitlines(keepends=True)[:line]) + column
