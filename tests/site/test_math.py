"""KaTeX at build time: results, errors, cache, and the vendored files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flower_site import math
from flower_site.math import ASSETS, KATEX_VERSION, Katex, MathError


def test_a_formula_is_html_and_mathml_with_its_latex() -> None:
    html = Katex().html(r"\frac{a}{b}", display=True)
    assert html.startswith(
        '<span class="katex-display"><span class="katex"><span class="katex-mathml">'
    )
    assert r'encoding="application/x-tex">\frac{a}{b}</annotation>' in html


@pytest.mark.parametrize(
    ("latex", "position", "words"),
    [
        (r"a + \foo b", 4, r"Undefined control sequence: \foo"),
        (r"\frac{a}{", 9, "Unexpected end of input"),
        ("x中", 1, 'Unicode text character "中"'),
        ("a_b_c", 3, "Double subscript"),
        (r"\href{https://x.org}{x}", 23, r"not allowed here: \href"),
    ],
)
def test_a_bad_formula_says_where(latex: str, position: int, words: str) -> None:
    with pytest.raises(MathError, match=re.escape(words)) as caught:
        Katex().html(latex)
    assert caught.value.position == position


def test_results_are_kept_in_memory_and_on_disk(tmp_path: Path, monkeypatch) -> None:
    first = Katex(tmp_path).html("x")
    assert [path for path in tmp_path.rglob("*") if path.is_file()]
    monkeypatch.setattr(math, "_context", lambda: pytest.fail("drawn again"))
    assert Katex(tmp_path).html("x") == first


def test_a_bad_formula_is_not_kept(tmp_path: Path) -> None:
    renderer = Katex(tmp_path)
    for _ in range(2):
        with pytest.raises(MathError):
            renderer.html(r"\foo")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_the_vendored_katex_is_whole_and_asks_for_woff2_only() -> None:
    css = (ASSETS / "katex.min.css").read_text(encoding="utf-8")
    fonts = set(re.findall(r"url\(fonts/([^)]+)\)", css))
    assert fonts == {path.name for path in (ASSETS / "fonts").iterdir()}
    assert all(name.endswith(".woff2") for name in fonts)
    assert "http" not in css
    assert (ASSETS / "LICENSE").is_file()
    assert f'version:"{KATEX_VERSION}"' in (ASSETS / "katex.min.js").read_text(encoding="utf-8")
