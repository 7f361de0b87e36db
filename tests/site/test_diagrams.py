"""Mermaid as SVG: small, without colours of its own, and with its faults at their lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser as HTMLParser

from flower_site import diagrams
from flower_site.blocks.check import check_text
from flower_site.diagrams import DiagramError, Diagrams
from flower_site.problems import Problem

FLOW = """flowchart LR
    accTitle: 从输入到输出
    accDescr: 一句说明
    X[输入 X] --> Q[查询 Q]
    X --> K[键 K]
    X -.-> V[值 V]
    Q --> S{{softmax 权重}}
    K ==>|点积| S
    S --> O[输出]:::accent
    V --> O
"""
SEQUENCE = """sequenceDiagram
    accTitle: 逐词生成
    编码器->>解码器: K, V
"""


@pytest.mark.parametrize("source", [FLOW, SEQUENCE])
def test_a_diagram_is_small_and_has_no_look_of_its_own(source: str) -> None:
    svg = Diagrams().svg(source, "d1-")
    assert len(svg.encode()) <= 12_000
    for word in ("<style", "fill=", "stroke=", "font-family", "#28253D", "merman-foreignobject"):
        assert word not in svg, word
    drawn = HTMLParser(svg).css_first("svg")
    assert drawn.attributes["role"] == "img"
    assert drawn.attributes["aria-label"] == re.search(r"accTitle: (.*)", source)[1]


def test_every_label_is_there_and_nodes_carry_the_class_of_the_author() -> None:
    svg = Diagrams().svg(FLOW, "d1-")
    words = {node.text().strip() for node in HTMLParser(svg).css("text")}
    assert words == {"输入 X", "查询 Q", "键 K", "值 V", "softmax 权重", "输出", "点积"}
    assert 'class="node accent"' in svg
    assert "<desc>一句说明</desc>" in svg
    assert svg.count('class="background"') == 1


def test_ids_start_with_the_prefix_and_all_references_meet_one() -> None:
    svg = Diagrams().svg(FLOW, "d1-")
    ids = set(re.findall(r'\bid="([^"]*)"', svg))
    assert ids
    assert all(name.startswith("d1-") for name in ids)
    assert set(re.findall(r"url\(#([^)]*)\)", svg)) == ids


def test_drawings_are_kept_on_disk(tmp_path: Path, monkeypatch) -> None:
    first = Diagrams(tmp_path).svg(FLOW, "a-")
    monkeypatch.setattr(diagrams, "_draw", lambda _: pytest.fail("drawn again"))
    assert Diagrams(tmp_path).svg(FLOW, "a-") == first
    assert Diagrams(tmp_path).svg(FLOW, "b-") == first.replace('"a-', '"b-').replace("#a-", "#b-")


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        ("flowchart LR\naccTitle: x\nA --> B\nB[一 --> C\nC --> D", 4, "Unterminated node label"),
        ("flowchart LR\naccTitle: x\nsubgraph A\nB --> C", 3, 'expected "end"'),
        ("flowchart LR\nA --> B", 1, "没有标题"),
        ("pie\n", 1, "不支持 pie"),
        ("", 1, "不支持 空的"),
        ("flowchart LR\naccTitle: x\nstyle A fill:#f00", 3, "颜色"),
        ("%%{init: {}}%%\nflowchart LR\naccTitle: x\nA", 1, "颜色"),
        ("flowchart LR\naccTitle: x\nA:::hot --> B", 3, "没有样式 hot"),
    ],
)
def test_a_fault_names_its_line(source: str, line: int, message: str) -> None:
    with pytest.raises(DiagramError, match=re.escape(message)) as caught:
        Diagrams().svg(source, "x")
    assert caught.value.line == line
    assert caught.value.remedy


def test_a_fence_becomes_a_figure_and_two_equal_ones_do_not_share_ids(render) -> None:
    html = render(f"```mermaid\n{FLOW}```\n\n文\n\n```mermaid\n{FLOW}```\n")
    assert html.count('<figure class="flower-diagram" tabindex="0"><svg') == 2
    ids = re.findall(r'\bid="([^"]*)"', html)
    assert len(ids) == len(set(ids)) == 2


def test_a_fence_in_a_list_is_drawn(render) -> None:
    html = render(
        "- 项\n\n    ```mermaid\n    flowchart LR\n    accTitle: 一\n    A --> B\n    ```\n"
    )
    assert "flower-diagram__svg" in html


def test_a_bad_diagram_is_reported_at_its_line(repo: Path, render) -> None:
    text = "# 题\n\n```mermaid\nflowchart LR\n    accTitle: 一\n    A[一 --> B\n    B --> C\n```\n"
    found = check_text(text, Path("docs/a.md"), repo)
    assert [(p.line, p.column) for p in found] == [(6, 5)]
    with pytest.raises(Problem, match="图有误"):
        render(text)
