"""Slimming must not change what a reader sees."""

from flower_site.slim_html import (
    safe_for_instant_navigation,
    without_indentation,
    without_plain_tokens,
)


def test_plain_tokens_lose_their_spans_and_nothing_else() -> None:
    html = '<span class="n">d_k</span><span class="o">=</span><span class="mi">8</span>'
    assert without_plain_tokens(html) == 'd_k=<span class="mi">8</span>'


def test_indentation_goes_except_in_verbatim_text() -> None:
    html = "<p>\n    a\n\n  b</p>\n  <pre><code>x\n    y\n\n</code></pre>\n   <p>c</p>"
    assert without_indentation(html) == (
        "<p>\na\nb</p>\n<pre><code>x\n    y\n\n</code></pre>\n<p>c</p>"
    )


def test_text_without_verbatim_elements() -> None:
    assert without_indentation("a  \n   b") == "a\nb"


def test_drawings_do_not_break_instant_navigation() -> None:
    html = '<use x="1" href="#a"/><a href="#b">b</a><use xlink:href="#c"/>'
    assert safe_for_instant_navigation(html) == (
        '<use x="1" xlink:href="#a"/><a href="#b">b</a><use xlink:href="#c"/>'
    )
