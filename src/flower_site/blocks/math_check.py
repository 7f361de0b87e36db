"""Faults of formulas that the source text shows: what KaTeX refuses, what Markdown would print as
plain text, and what TeX sets otherwise than it was meant.
"""

from __future__ import annotations

import html as html_text
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from markdown import Markdown

from flower_site.blocks.page import Formula, Page
from flower_site.math import MathError, katex, tidy
from flower_site.problems import Problem
from flower_site.sources import block_regions

# The extensions of mkdocs.yml that decide where a paragraph begins and ends.
STRUCTURE = (
    *("abbr", "admonition", "attr_list", "def_list", "footnotes", "md_in_html", "tables"),
    *("pymdownx.details", "pymdownx.superfences", "pymdownx.tabbed", "pymdownx.arithmatex"),
)
ARITHMATEX = {"generic": True, "inline_syntax": ["dollar"], "block_syntax": ["dollar", "square"]}

_ENVIRONMENT = re.compile(
    r"^[ \t>]*\\begin\{(align|alignat|flalign|equation|gather|multline|eqnarray)\*?\}", re.M
)
_ROOT = re.compile(
    r"\\sqrt(?:\[[^\]]*\])?\s*(?:(?P<bare>\\[a-zA-Z]+|[a-zA-Z])|\{\s*(?P<braced>\\?[a-zA-Z]+)\s*\})"
    r"\s*_(?P<sub>\{[^{}]*\}|\w)"
)
_WORD_BELOW = re.compile(r"(?<!\\)_(?P<word>[a-zA-Z]{3,}|ff)(?![a-zA-Z])")
_LAID_OUT = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.S)


def find_problems(page: Page, root: Path) -> Iterator[Problem]:
    """Formulas that KaTeX refuses, that Markdown would not see, or that stand where Markdown
    breaks them.
    """
    render = katex(root).html
    regions = _regions(page, checked=True)
    for formula in page.formulas:
        yield from _misplaced(page, formula)
        if not any(start <= formula.start < end for start, end in regions):
            yield from _misprinted(page, formula)
        try:
            render(tidy(formula.latex), display=formula.display)
        except MathError:
            yield located(page, formula, root)
    for match in re.finditer(r"(?<!\\)\\([(\[])(?=[^\n]*?(?:\\[a-zA-Z]|[_^]))", page.prose):
        if not any(f.start <= match.start() < f.start + len(f.latex) for f in page.formulas):
            yield page.problem(
                f"\\{match[1]} 不被当作公式",
                match.start(),
                match.end(),
                remedy="行内公式写 $…$，独立公式写 $$…$$",
            )
    for match in _ENVIRONMENT.finditer(page.prose):
        if not any(f.start <= match.start() < f.start + len(f.latex) for f in page.formulas):
            yield page.problem(
                f"\\begin{{{match[1]}}} 不在 $$ 里，会原样显示",
                match.start(),
                match.end(),
                remedy="写成 $$\\begin{aligned} … \\end{aligned}$$",
            )


def _misprinted(page: Page, formula: Formula) -> Iterator[Problem]:
    r"""What TeX sets otherwise than it was meant, in formulas that nothing reads and checks:
    ``\sqrt d_k`` and ``d_model``.
    """
    for match in _ROOT.finditer(formula.latex):
        radicand = match["bare"] or match["braced"]
        yield page.problem(
            f"根号只盖住 {radicand}，没有盖住下标",
            formula.start + match.start(),
            formula.start + match.end(),
            remedy=f"写成 \\sqrt{{{radicand}_{match['sub']}}}",
        )
    for match in _WORD_BELOW.finditer(formula.latex):
        word = match["word"]
        yield page.problem(
            f"只有 {word[0]} 排成下标",
            formula.start + match.start(),
            formula.start + match.end(),
            remedy=f"写成 _{{{word}}}；若 {word[1:]} 是另外的因子，在前面空一格",
        )


def find_undrawn(page: Page, root: Path) -> Iterator[Problem]:
    """A display that Markdown would print as plain text, found without rendering the page.

    Only displays outside of blocks can stand wrong; the block sees to the others.
    """
    regions = _regions(page)
    loose = [d for d in page.displays if not any(a <= d.start < b for a, b in regions)]
    if not loose or any(list(_misplaced(page, display)) for display in loose):
        return
    source = page.source
    for start, end in regions:
        source = source[:start] + re.sub(r"[^\n]", " ", source[start:end]) + source[end:]
    md = Markdown(
        extensions=[*STRUCTURE],
        extension_configs={
            "pymdownx.arithmatex": ARITHMATEX,
            "pymdownx.tabbed": {"alternate_style": True},
        },
    )
    yield from undrawn(page, loose, _LAID_OUT.findall(md.convert(source)))


def _regions(page: Page, *, checked: bool = False) -> list[tuple[int, int]]:
    try:
        return block_regions(page.text, checked=checked)
    except Problem:
        return []  # a block that can't be read: its own check reports it


def undrawn(page: Page, displays: Sequence[Formula], drawn: Sequence[str]) -> Iterator[Problem]:
    """The first of the displays that is not among the drawn ones in this order.

    More may be drawn than the page holds: docstrings, which are pages of their own.
    """
    waiting = iter(tidy(html_text.unescape(latex)) for latex in drawn)
    for display in displays:
        if tidy(display.latex) not in waiting:
            yield page.problem(
                "独立公式会原样显示，没有排成公式",
                display.start - 2,
                display.start,
                remedy="前后各空一行；列表里每深一层缩进 4 格（顶层的项下 4 格，子项下 8 格）",
            )
            return


def located(page: Page, formula: Formula, root: Path) -> Problem:
    """The problem of a formula that KaTeX refuses, at the character that it names."""
    try:
        katex(root).html(formula.latex, display=formula.display)
    except MathError as error:
        at = min(error.position, max(len(formula.latex.rstrip()) - 1, 0))
        start = formula.start + at
        return page.problem(
            f"公式有误：{error}", start, start + error.length, remedy=_remedy(str(error))
        )
    raise AssertionError("KaTeX refused the formula only without its white space")


def _remedy(message: str) -> str:
    if "unicodeTextInMathMode" in message:
        return "中文放进 \\text{…}，中文标点移到公式外面"
    return "按 KaTeX 的提示改公式"


def _misplaced(page: Page, formula: Formula) -> Iterator[Problem]:
    source, start, end = page.prose, formula.start, formula.start + len(formula.latex)
    if not formula.display:
        line = source[source.rfind("\n", 0, start) + 1 :].split("\n", 1)[0]
        bar = re.search(r"(?<!\\)\|", formula.latex)
        if bar and line.lstrip(" >").startswith("|"):
            yield page.problem(
                "表格里的公式含有 |，会被当作分列符",
                start + bar.start(),
                remedy="写成 \\vert 或 \\mid",
            )
        return
    gap = re.search(r"\n[ \t>]*\n", formula.latex)
    if gap:
        yield page.problem("独立公式中间有空行", start + gap.end() - 1, remedy="删去空行")
    mark = "$$" if source[start - 2 : start] == "$$" else "\\["
    lines_before = source[: start - 2].split("\n")
    lines_after = source[end + 2 :].split("\n")
    opening = re.fullmatch(r"[ \t>]*(?:[-*+][ \t]+|\d+[.)][ \t]+)?", lines_before[-1])
    previous = lines_before[-2].strip(" \t>") if len(lines_before) > 1 else ""
    indented = len(lines_before) > 1 and _is_option(lines_before[:-1])
    following = lines_after[1].strip(" \t>") if len(lines_after) > 1 else ""
    listed = bool(opening and opening[0].strip(" \t>"))
    if (
        not opening
        or (
            previous
            and not previous.startswith(("///", "!!!", "???", "==="))
            and not indented
            and not listed
        )
        or lines_after[0].strip()
        or (
            following
            and not following.startswith("///")
            and not (listed and re.match(r"[-*+\d]", following))
        )
    ):
        yield page.problem(
            "独立公式没有自成一段，会原样显示", start - 2, start, remedy=f"{mark} 的前后各空一行"
        )


def _is_option(lines: list[str]) -> bool:
    """Whether the last of these lines belongs to the header of a block."""
    for line in reversed(lines):
        if re.match(r"^[ \t>]*/{3,}[ ]*\w", line):
            return True
        if not re.match(r"^[ >]{4}", line) or not line.strip():
            return False
    return False
