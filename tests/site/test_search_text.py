"""The search reads words once, and no drawings or code cells."""

from flower_site.math import Katex
from flower_site.search_text import searchable


def test_what_the_search_does_not_read() -> None:
    html = (
        '<h2 id="公式">公式<a class="headerlink" href="#公式">¶</a></h2>'
        '<p>设 <span class="katex"><span class="katex-mathml"><math><mi>d</mi></math></span>'
        '<span class="katex-html"><span>d</span><span>!</span></span></span> 很大</p>'
        "<svg><text>轴</text></svg>"
        '<div class="flower-cell"><div class="highlight"><pre>x = 1</pre></div><pre>2</pre></div>'
        '<div class="highlight"><pre>y = 1</pre></div>'
        "<div data-search-exclude><div>甲</div>乙</div>"
        '<details class="flower-references__bibtex"><pre>@misc</pre></details>'
    )
    text = searchable(html)
    assert '<h2 id="公式">' in text
    assert text.count(">d<") == 1
    assert "y = 1" in text
    assert "<pre>2</pre>" in text
    for left_out in ("!", "轴", "x = 1", "甲", "乙", "@misc"):
        assert left_out not in text


def test_formulas_are_searched_with_their_signs() -> None:
    drawn = f"<h2>为何除以 {Katex().html(chr(92) + 'sqrt{d_k}')}</h2><p>{Katex().html('W^O')}</p>"
    assert searchable(drawn) == "<h2>为何除以 √d_k</h2><p>Wᴼ</p>"
