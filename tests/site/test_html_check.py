"""Each gate over the built HTML: it passes a good site, and goes red on its own planted fault."""

from pathlib import Path

import pytest

from flower_site.html_check import GATES, check_html, main

PAGE = """<!doctype html><html lang="zh"><head><title>页</title>
<link rel="stylesheet" href="../assets/a.css"></head>
<body><article class="md-content">
<h2 id="核心公式">核心公式
<a class="headerlink" href="#%E6%A0%B8%E5%BF%83%E5%85%AC%E5%BC%8F">¶</a></h2>
<p>正文，<a href="../">首页</a>，<a href="../#top">首页顶部</a>，<a href="https://example.org">外站</a></p>
<img src="../assets/a.png" alt="一朵花">
<figure id="nb-a"><svg role="img"><title>曲线</title></svg><figcaption>图</figcaption></figure>
<pre><code>price = "$5"; /// !!!</code></pre>
<!-- planted -->
</article></body></html>
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "cards").mkdir()
    home = '<!doctype html><title>首页</title><h1 id="top">首页</h1><a href="cards/">卡片</a>'
    (tmp_path / "index.html").write_text(home, encoding="utf-8")
    (tmp_path / "cards/index.html").write_text(PAGE, encoding="utf-8")
    (tmp_path / "assets/a.css").write_text("a{background:url(a.png)}", encoding="utf-8")
    script = "// see https://lunrjs.com\nload('https://unpkg.com/a')"
    (tmp_path / "assets/a.js").write_text(script, encoding="utf-8")
    (tmp_path / "assets/a.png").write_bytes(b"png")
    return tmp_path


def test_a_good_site_passes_and_every_gate_looked_at_something(site: Path) -> None:
    report = check_html(site)
    assert [str(fault) for fault in report.faults] == []
    assert set(report.checked) == {"页面", *GATES}
    assert all(report.checked.values()), report.checked


@pytest.mark.parametrize(
    ("planted", "gate", "reason"),
    [
        ('<a href="nowhere/">a</a>', "链接", "nowhere/ 指向的文件不存在"),
        ('<a href="../../outside.html">a</a>', "链接", "outside.html 指向的文件不存在"),
        ('<a href="#没有">a</a>', "锚点", "没有 #没有"),
        ('<a href="../#没有">a</a>', "锚点", "index.html 里没有 #没有"),
        ('<a href="#">a</a>', "锚点", "锚点是空的"),
        ('<p id="核心公式"></p>', "编号", "id 核心公式 出现 2 次"),
        ('<p id=""></p>', "编号", "有空的 id"),
        ('<img src="../assets/b.png" alt="b">', "资源", "../assets/b.png 不存在"),
        ('<script src="https://unpkg.com/a.js"></script>', "资源", "向外部主机请求"),
        ('<link rel="preconnect" href="https://fonts.gstatic.com">', "资源", "向外部主机请求"),
        ('<img src="//example.org/a.png" alt="a">', "资源", "向外部主机请求"),
        ('<img srcset="https://e.org/a.png 2x" alt="a">', "资源", "向外部主机请求"),
        ('<p style="background:url(https://e.org/a)">a</p>', "资源", "向外部主机请求"),
        ('<svg role="img" aria-label="a"><use xlink:href="https://e.org/a.svg#b"/></svg>',)
        + ("资源", "向外部主机请求"),
        ("<style>@import 'https://e.org/a.css'</style>", "资源", "向外部主机请求"),
        ('<pre class="mermaid"></pre>', "资源", "unpkg.com"),
        ('<a href="../" data-md-component="source">a</a>', "资源", "api.github.com"),
        ("<p>设 $x$ 为</p>", "源码", "裸露的 $"),
        (r"<p>设 \(x\) 为</p>", "源码", "裸露的 \\("),
        (r"<p>\[x\]</p>", "源码", "裸露的 \\("),
        ("<p>!!! note</p>", "源码", "提示框"),
        ("<p>/// formula | a</p>", "源码", "没有解析的块"),
        ("<p>约为 {nb}a#b</p>", "源码", "{nb}"),
        ("<p>见 {eq}a</p>", "源码", "{eq}"),
        ("<p>见 [@vaswani2017]</p>", "源码", "[@…]"),
        ("<p>Traceback (most recent call last):</p>", "源码", "错误堆栈"),
        ('<span class="katex-error">\\foo</span>', "源码", "KaTeX 没有排出的公式"),
        ('<img src="../assets/a.png">', "替代文字", "没有 alt"),
        ("<svg></svg>", "替代文字", "SVG"),
        ('<figure id="f"><p>a</p></figure>', "替代文字", "f 没有说明"),
    ],
)
def test_a_planted_fault_is_found_by_its_gate(
    site: Path, planted: str, gate: str, reason: str
) -> None:
    page = site / "cards/index.html"
    page.write_text(PAGE.replace("<!-- planted -->", planted), encoding="utf-8")
    faults = check_html(site).faults
    assert [fault.file for fault in faults if fault.gate == gate and reason in fault.reason] == [
        "cards/index.html"
    ]
    assert {fault.gate for fault in faults} == {gate}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("assets/a.css", "@font-face{src:url(https://fonts.gstatic.com/a.woff2)}"),
        ("assets/a.css", "@font-face{src:url(fonts/missing.woff2)}"),
        ("assets/a.js", 'import("https://cdn.jsdelivr.net/npm/katex")'),
    ],
)
def test_style_sheets_and_scripts_are_read_too(site: Path, name: str, content: str) -> None:
    (site / name).write_text(content, encoding="utf-8")
    assert [(fault.file, fault.gate) for fault in check_html(site).faults] == [(name, "资源")]


def test_the_command_prints_counts_and_fails_on_a_fault(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(site)]) == 0
    assert "页面 2，链接 " in capsys.readouterr().out
    (site / "assets/a.png").unlink()
    assert main([str(site)]) == 1
    assert "cards/index.html: [资源] ../assets/a.png 不存在" in capsys.readouterr().out


def test_an_empty_folder_is_a_fault(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 1


def test_links_below_a_base_path_resolve(site: Path) -> None:
    home = site / "index.html"
    canonical = '<link rel="canonical" href="https://example.org/notes/">'
    home.write_text(home.read_text("utf-8") + canonical, encoding="utf-8")
    (site / "404.html").write_text('<a href="/notes/cards/">卡片</a>', encoding="utf-8")
    assert check_html(site).faults == []
