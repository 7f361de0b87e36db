"""Code quoted from our packages."""

from __future__ import annotations

from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser as HTMLParser

from flower_site.blocks.check import check_text
from flower_site.blocks.source import excerpt
from flower_site.problems import Problem


def test_an_excerpt_is_highlighted_with_its_file_and_lines(render) -> None:
    html = render("/// source | flower_demo.attention.scaled\n    caption: 一行\n///\n")
    figure = HTMLParser(html).css_first("figure.flower-source")
    assert figure.id == "source-flower_demo.attention.scaled"
    assert figure.css_first(".highlight .filename").text() == "src/flower_demo/attention.py:6"
    assert figure.css_first("pre").text().startswith("def scaled(q, k):\n")
    assert "Dot product." in figure.text()
    caption = figure.css_first("figcaption").text()
    assert caption == "一行 src/flower_demo/attention.py 第 6–11 行"
    assert not figure.css("figcaption a")


def test_with_a_repository_the_lines_are_linked(render) -> None:
    html = render("/// source | flower_demo.attention.scaled\n///\n", repository="https://x.org/r/")
    assert 'href="https://x.org/r/blob/main/src/flower_demo/attention.py#L6-L11"' in html


@pytest.mark.parametrize(
    ("dotted", "first", "code"),
    [
        ("flower_demo.attention.Layer.width", 15, "@property\ndef width(self):\n    return 4"),
        ("flower_demo.attention.deep", 1, "def deep():\n    return 1"),  # passed on by an import
        ("flower_demo.inner", 1, "def deep():\n    return 1"),
    ],
)
def test_methods_imported_names_and_modules(repo: Path, dotted: str, first: int, code: str) -> None:
    found = excerpt(dotted, repo)
    assert (found.first, found.code) == (first, code)


def test_nothing_is_imported_or_run(repo: Path) -> None:
    (repo / "src/flower_demo/evil.py").write_text("raise SystemExit\n\n\ndef f():\n    pass\n")
    assert excerpt("flower_demo.evil.f", repo).code == "def f():\n    pass"


@pytest.mark.parametrize(
    ("dotted", "remedy"),
    [
        ("flower_demo.attention.scale", "是不是 flower_demo.attention.scaled？"),
        ("os.path.join", "只能引用 flower_demo 里的代码"),
    ],
)
def test_a_dead_path_is_reported_at_its_place(repo: Path, render, dotted: str, remedy: str) -> None:
    text = f"# 题\n\n/// source | {dotted}\n///\n"
    found = check_text(text, Path("docs/a.md"), repo)
    assert [(p.line, p.column, p.width) for p in found] == [(3, 14, len(dotted))]
    assert found[0].remedy == remedy
    with pytest.raises(Problem, match="找不到代码"):
        render(text)
