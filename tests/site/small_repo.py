"""The small repository that the tests of blocks work on: one page, one notebook, one package."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from flower_site.seals import KEY, seal
from flower_site.sources import formula_blocks
from flower_site.texts import Text

RECORD = "application/vnd.flower.record+json"
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 4"><title>方差随维数增长</title>'
    '<defs><clipPath id="clip"><rect width="4" height="4"/></clipPath></defs>'
    '<g clip-path="url(#clip)"><text>4</text></g></svg>'
)
BIB = r"""@article{vaswani2017attention,
  title = {Attention Is All You {N}eed},
  author = {Vaswani, Ashish and Kaiser, {\L}ukasz},
  journal = {NeurIPS},
  year = {2017},
  url = {https://arxiv.org/abs/1706.03762}
}

@misc{bahdanau2015neural,
  title = {Neural Machine Translation},
  author = {Bahdanau, Dzmitry},
  year = {2015},
  eprint = {1409.0473}
}
"""
CODE = '''"""A module."""

from flower_demo.inner import deep


def scaled(q, k):
    """Dot product.

    Shapes: q [d], k [d].
    """
    return (q * k).sum()


class Layer:
    @property
    def width(self):
        return 4
'''
FORMULA_PAGE = """# 缩放点积注意力

/// formula | first
    code: flower_demo.attention.scaled(q, k)
    where:
      q [d_k]: 查询，也就是 $q$
      \\epsilon: 很小的数：防止除以 0
      p [m] in {0, 1}: 哪些位置可以看
      W_i^Q [d_model, d_k] for i in 1..h: 投影
$$
s = q k^{\\top} + \\epsilon
$$
///

/// formula | second
    unchecked: 只是记号
$$
t < s
$$
///
"""


def notebook_cells() -> list[Any]:
    """Cells of the notebook `demo`: every kind of output, those that no page may embed too."""
    data = {
        "variance": [
            new_output("display_data", {"image/svg+xml": SVG, "text/plain": "图"}),
            new_output(
                "display_data",
                {RECORD: {"name": "ratio", "value": 3.98}, "text/plain": "ratio = 3.98"},
            ),
        ],
        "table": [new_output("display_data", {"text/html": "<table><tr><td>1</td></tr></table>"})],
        "text": [
            new_output("stream", text="a < b\n"),
            new_output("execute_result", {"text/plain": "7"}),
        ],
        "silent": [],
        "broken": [new_output("error", ename="ValueError", evalue="no")],
        "unnamed": [new_output("display_data", {"image/svg+xml": "<svg><g/></svg>"})],
    }
    cells = [new_markdown_cell("# 实验：示范")]
    for label, outputs in data.items():
        cells.append(new_code_cell(f"#| label: {label}\nx = 1", outputs=outputs))
    return cells


def write_notebook(path: Path, cells: list[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    code = [cell for cell in cells if cell.cell_type == "code"]
    for count, cell in enumerate(code, start=1):
        cell.metadata[KEY] = seal(cell.source, cell.outputs)
        cell.execution_count = count
    nbformat.write(new_notebook(cells=cells), path)


def formula_book(root: Path) -> Any:
    """Blocks as they are read from the pages; a verdict without running anything."""
    blocks = {}
    for path in sorted((root / "docs").rglob("*.md")):
        text = Text(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix())
        blocks.update({block.slug: block for block in formula_blocks(text)})

    def verdict(slug: str) -> Any:
        block = blocks[slug]
        problem = text.problem("公式与代码不一致", block.start) if slug == "wrong" else None
        status = "unchecked" if block.unchecked else "failed" if problem else "checked"
        return SimpleNamespace(
            status=status, call=block.code or "", reason=block.unchecked or "", problem=problem
        )

    return SimpleNamespace(blocks=blocks, verdict=verdict)
