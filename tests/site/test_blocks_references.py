"""Citations and the list of references."""

from __future__ import annotations

from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser as HTMLParser

from flower_site.blocks.check import check_text
from flower_site.problems import Problem, Problems

LIST = "\n\n/// references\n///\n"


def test_citations_are_numbered_by_first_mention_and_linked_to_the_list(render) -> None:
    html = render(
        "先 [@bahdanau2015neural]，再 [@vaswani2017attention; @bahdanau2015neural]。" + LIST
    )
    page = HTMLParser(html)
    assert [node.text() for node in page.css(".flower-citations")] == ["[1]", "[2, 1]"]
    first = page.css_first("a.flower-citation")
    assert first.attributes["href"] == "#ref-bahdanau2015neural"
    assert first.attributes["title"] == "Dzmitry Bahdanau，2015：Neural Machine Translation"
    items = page.css("ol.flower-references > li")
    assert [item.id for item in items] == ["ref-bahdanau2015neural", "ref-vaswani2017attention"]
    assert (
        items[1]
        .text()
        .startswith("Ashish Vaswani、Łukasz Kaiser. Attention Is All You Need. NeurIPS, 2017.")
    )
    assert items[0].css_first("a").attributes["href"] == "https://arxiv.org/abs/1409.0473"
    bibtex = items[1].css_first("details.flower-references__bibtex pre").text()
    assert bibtex.startswith("@article{vaswani2017attention,\n")
    assert bibtex.rstrip().endswith("}")


def test_a_work_can_be_listed_without_being_cited(render) -> None:
    html = render("/// references | vaswani2017attention\n///\n")
    assert 'id="ref-vaswani2017attention"' in html


def test_citations_in_code_and_mail_addresses_stay(render) -> None:
    html = render("`[@nobody]`，a@b.org，[链接](x.md)")
    assert "<code>[@nobody]</code>" in html
    assert "flower-citation" not in html


@pytest.mark.parametrize(
    ("text", "line", "column", "width", "message", "remedy"),
    [
        (
            "见 [@vaswani2017atention]" + LIST,
            1,
            4,
            20,
            "没有 vaswani2017atention",
            "是不是 vaswani2017attention？",
        ),
        ("[@bahdanau2015neural; @zzz]" + LIST, 1, 23, 4, "没有 zzz", "docs/references.bib"),
        ("文 [@bahdanau2015neural]\n", 1, 4, 19, "没有参考列表", "/// references"),
        ("# 题" + LIST, 3, 1, 14, "是空的", "[@键]"),
        ("[@bahdanau2015neural]\n\n/// references\n", 3, 1, 14, "没有结束", "///"),
        ("/// references | zzz\n///\n", 1, 18, 3, "没有 zzz", "docs/references.bib"),
    ],
)
def test_a_fault_is_reported_at_its_place(
    repo: Path, render, text: str, line: int, column: int, width: int, message: str, remedy: str
) -> None:
    found = check_text(text, Path("docs/a.md"), repo)
    assert [(p.line, p.column, p.width) for p in found] == [(line, column, width)]
    assert message in found[0].message
    assert remedy in (found[0].remedy or "")
    with pytest.raises((Problem, Problems)):
        render(text)


def test_a_cited_entry_without_its_year_is_reported_in_the_bibliography(repo: Path) -> None:
    file = repo / "docs/references.bib"
    file.write_text(
        file.read_text(encoding="utf-8").replace("  year = {2015},\n", ""), encoding="utf-8"
    )
    found = check_text("[@bahdanau2015neural]" + LIST, Path("docs/a.md"), repo)
    assert [(str(p.path), p.line, p.message) for p in found] == [
        ("docs/references.bib", 9, "文献 bahdanau2015neural 缺少 year")
    ]
