"""Checks the built HTML, not the sources: ``python -m flower_site.html_check site``.

Each gate counts what it looked at, so that a gate that looked at nothing shows.
"""

from __future__ import annotations

import argparse
import posixpath
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote, urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

# What loads by itself when a page is opened; an ordinary <a href> does not.
_LOADED = {
    "script[src]": "src",
    "img[src]": "src",
    "source[src]": "src",
    "video[src]": "src",
    "audio[src]": "src",
    "iframe[src]": "src",
    "embed[src]": "src",
    "object[data]": "data",
    "image[href]": "href",
    "use[href]": "href",
}
_LOADING_LINKS = {
    *("stylesheet", "icon", "preload", "prefetch", "modulepreload", "preconnect"),
    *("dns-prefetch", "manifest", "apple-touch-icon"),
}
# The theme's script asks another host only when it meets one of these elements.
_TRIGGERS = {
    ".mermaid": "主题会从 unpkg.com 加载 mermaid",
    '[data-md-component="source"]': "主题会向 api.github.com 请求仓库信息",
}
# Hosts that the theme's scripts name in a string and use only on a trigger above.
_NAMED_IN_SCRIPTS = {"unpkg.com", "api.github.com"}
_RAW = {
    r"\$[^$\n]*\$?": "裸露的 $（没有排版的公式）",
    r"\\\(|\\\[": "裸露的 \\( 或 \\[",
    r"!!!|\?\?\?\+?[ ]": "没有解析的提示框 !!!",
    r"(?:^|\s)///": "没有解析的块 ///",
    r"\{(?:nb|eq)\}": "没有解析的 {nb} 或 {eq}",
    r"\[@[\w:-]+\]": "没有解析的引用 [@…]",
    r"Traceback \(most recent call last\)": "错误堆栈",
}
_CSS_URL = re.compile(r"""url\(\s*['"]?([^'")]+)|@import\s+['"]([^'"]+)""")
_HOST = re.compile(r"""["'`](?:https?:)?//([\w.-]+\.[a-z]{2,})""", re.IGNORECASE)


@dataclass(frozen=True)
class Fault:
    """One fault: the file (relative to the site), the gate, and the reason."""

    file: str
    gate: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file}: [{self.gate}] {self.reason}"


@dataclass
class Report:
    """Faults, and gate → number of items checked."""

    faults: list[Fault] = field(default_factory=list)
    checked: Counter[str] = field(default_factory=Counter)


class BuiltPage:
    """One HTML file of the site, parsed once."""

    def __init__(self, path: Path, site: Path) -> None:
        self.path = path
        self.name = path.relative_to(site).as_posix()
        self.tree = LexborHTMLParser(path.read_text(encoding="utf-8"))

    @cached_property
    def ids(self) -> Counter[str]:
        """Every id of the page, and how often it occurs."""
        found = (node.attributes["id"] for node in self.tree.css("[id]"))
        return Counter(name for name in found if name is not None)

    @cached_property
    def anchors(self) -> set[str]:
        """What a fragment may point at."""
        named = {node.attributes.get("name") or "" for node in self.tree.css("a[name]")}
        return set(self.ids) | named

    @cached_property
    def text(self) -> str:
        """What a reader sees as running text: no code, no scripts, no LaTeX kept for copying."""
        tree = LexborHTMLParser(self.tree.html or "")
        for node in tree.css("script, style, code, pre, annotation, template, noscript, svg"):
            node.decompose()
        title = tree.css_first("title")
        body = tree.body
        return f"{title.text() if title else ''}\n{body.text(separator=' ') if body else ''}"


class Site:
    """The built site."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pages = {
            page.name: page
            for page in (BuiltPage(path, folder) for path in sorted(folder.rglob("*.html")))
        }
        self.base = self._base_path()

    def resolve(self, page: BuiltPage, link: str) -> str:
        """A link's target as a path below the site, ``index.html`` filled in; ``..`` if outside."""
        path = unquote(urlsplit(link).path)
        if not path:
            return page.name
        if path.startswith("/"):
            path = path.removeprefix(self.base).lstrip("/") or "."
        else:
            path = posixpath.join(posixpath.dirname(page.name), path)
        target = posixpath.normpath(path)
        if target.startswith(".."):
            return ".."
        if (self.folder / target).is_dir():
            target = posixpath.normpath(posixpath.join(target, "index.html"))
        return target

    def _base_path(self) -> str:
        """The path under which the site is served, from the home page's canonical address."""
        home = self.pages.get("index.html")
        link = home.tree.css_first('link[rel="canonical"]') if home else None
        return urlsplit(link.attributes.get("href") or "").path if link else "/"


Gate = Callable[[Site], Iterator["str | Fault"]]
"""A gate yields a string for each item that is well and a Fault for each that is not."""


def check_links(site: Site) -> Iterator[str | Fault]:
    """Every internal link points at a file of the site."""
    for page in site.pages.values():
        for node in page.tree.css("a[href], link[href], area[href]"):
            link = node.attributes["href"] or ""
            if _is_foreign(link) or link.startswith(("mailto:", "data:", "tel:")):
                continue
            target = site.resolve(page, link)
            if target == ".." or not (site.folder / target).is_file():
                yield Fault(page.name, "链接", f"{link} 指向的文件不存在")
            else:
                yield link


def check_anchors(site: Site) -> Iterator[str | Fault]:
    """Every fragment of an internal link is an id of its target."""
    for page in site.pages.values():
        for node in page.tree.css('a[href*="#"]'):
            link = node.attributes["href"] or ""
            fragment = unquote(urlsplit(link).fragment)
            if _is_foreign(link):
                continue
            target = site.pages.get(site.resolve(page, link))
            if target is None:
                continue  # a dead link: check_links reports it
            if not fragment:
                yield Fault(page.name, "锚点", f"{link} 的锚点是空的")
            elif fragment not in target.anchors:
                yield Fault(page.name, "锚点", f"{target.name} 里没有 #{fragment}")
            else:
                yield link


def check_ids(site: Site) -> Iterator[str | Fault]:
    """Ids are unique on their page and not empty."""
    for page in site.pages.values():
        for name, times in page.ids.items():
            if not name:
                yield Fault(page.name, "编号", "有空的 id")
            elif times > 1:
                yield Fault(page.name, "编号", f"id {name} 出现 {times} 次")
            else:
                yield name


def check_resources(site: Site) -> Iterator[str | Fault]:
    """Every image, script, style sheet and font lies in the site; none comes from another host."""
    for page in site.pages.values():
        for link in _loaded_by(page):
            yield _resource(site, page.name, link, site.resolve(page, link))
        for selector, reason in _TRIGGERS.items():
            if page.tree.css_first(selector) is not None:
                yield Fault(page.name, "资源", f"{selector}：{reason}")
    for sheet in sorted(site.folder.rglob("*.css")):
        name = sheet.relative_to(site.folder).as_posix()
        for link in _css_links(sheet.read_text(encoding="utf-8")):
            path = posixpath.join(posixpath.dirname(name), unquote(urlsplit(link).path))
            yield _resource(site, name, link, posixpath.normpath(path))
    for script in sorted(site.folder.rglob("*.js")):
        name = script.relative_to(site.folder).as_posix()
        if name.startswith("search/"):
            continue  # the index: text, not a program
        unknown = set(_HOST.findall(script.read_text(encoding="utf-8"))) - _NAMED_IN_SCRIPTS
        if unknown:
            yield Fault(name, "资源", f"脚本里有外部地址：{'、'.join(sorted(unknown))}")
        else:
            yield name


def check_raw_markup(site: Site) -> Iterator[str | Fault]:
    """No source markup is left in what a reader sees, and no formula failed."""
    for page in site.pages.values():
        found = False
        for pattern, reason in _RAW.items():
            for match in re.finditer(pattern, page.text, re.MULTILINE):
                found = True
                around = page.text[max(0, match.start() - 20) : match.end() + 20]
                yield Fault(page.name, "源码", f"{reason}：…{' '.join(around.split())}…")
        for node in page.tree.css(".katex-error"):
            found = True
            yield Fault(page.name, "源码", f"KaTeX 没有排出的公式：{node.text()}")
        if not found:
            yield page.name


def check_alternatives(site: Site) -> Iterator[str | Fault]:
    """Every image, drawing and figure says in words what it shows."""
    for page in site.pages.values():
        for node in page.tree.css("img"):
            ok = node.attributes.get("alt") or node.attributes.get("aria-hidden") == "true"
            name = node.attributes.get("src") or "img"
            yield name if ok else Fault(page.name, "替代文字", f"图片 {name} 没有 alt")
        for node in page.tree.css("article svg"):
            if _inside(node, {"md-icon", "twemoji", "katex", "headerlink"}):
                continue
            yield _named(node) or Fault(page.name, "替代文字", "一幅 SVG 没有 title 或 aria-label")
        for node in page.tree.css("article figure"):
            said = node.css_first("figcaption, svg, img[alt], table, pre, .katex")
            ok = node.attributes.get("aria-label") or said is not None
            name = node.attributes.get("id") or "figure"
            yield name if ok else Fault(page.name, "替代文字", f"{name} 没有说明")


GATES: dict[str, Gate] = {
    "链接": check_links,
    "锚点": check_anchors,
    "编号": check_ids,
    "资源": check_resources,
    "源码": check_raw_markup,
    "替代文字": check_alternatives,
}


def check_html(folder: Path) -> Report:
    """Run every gate over the built site in ``folder``."""
    site = Site(folder)
    report = Report()
    report.checked["页面"] = len(site.pages)
    if not site.pages:
        report.faults.append(Fault(str(folder), "页面", "没有找到网页，先运行 make build"))
    for name, gate in GATES.items():
        report.checked[name] = 0
        for item in gate(site):
            report.checked[name] += 1
            if isinstance(item, Fault):
                report.faults.append(item)
    return report


def main(arguments: list[str] | None = None) -> int:
    """Print faults and counts; 1 when there is a fault."""
    parser = argparse.ArgumentParser(description="检查生成的网页")
    parser.add_argument("site", type=Path, nargs="?", default=Path("site"))
    report = check_html(parser.parse_args(arguments).site)
    for fault in report.faults:
        print(fault)
    counts = "，".join(f"{name} {count}" for name, count in report.checked.items())
    print(f"已检查：{counts}；错误 {len(report.faults)} 处")
    return 1 if report.faults else 0


def _is_foreign(link: str) -> bool:
    parts = urlsplit(link)
    return bool(parts.netloc) or parts.scheme in ("http", "https")


def _loaded_by(page: BuiltPage) -> Iterator[str]:
    for selector, attribute in _LOADED.items():
        for node in page.tree.css(selector):
            yield node.attributes.get(attribute) or node.attributes.get("xlink:href") or ""
    for node in page.tree.css("link[href]"):
        if _LOADING_LINKS & set((node.attributes.get("rel") or "").split()):
            yield node.attributes["href"] or ""
    for node in page.tree.css("[srcset]"):
        for candidate in (node.attributes["srcset"] or "").split(","):
            yield candidate.split()[0]
    for node in page.tree.css("style"):
        yield from _css_links(node.text())
    for node in page.tree.css("[style]"):
        yield from _css_links(node.attributes["style"] or "")


def _css_links(css: str) -> Iterator[str]:
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    for url, imported in _CSS_URL.findall(css):
        yield (url or imported).strip()


def _resource(site: Site, name: str, link: str, target: str) -> str | Fault:
    if link.startswith(("data:", "#", "blob:")):
        return link
    if _is_foreign(link):
        return Fault(name, "资源", f"向外部主机请求 {link}")
    if not (site.folder / target).is_file():
        return Fault(name, "资源", f"{link} 不存在")
    return link


def _inside(node: LexborNode, classes: set[str]) -> bool:
    current: LexborNode | None = node
    while current is not None:
        if classes & set((current.attributes.get("class") or "").split()):
            return True
        current = current.parent
    return False


def _named(svg: LexborNode) -> str | None:
    """The words that stand for a drawing, if it has any or needs none."""
    if svg.attributes.get("aria-hidden") == "true":
        return "aria-hidden"
    title = svg.css_first("title")
    return svg.attributes.get("aria-label") or (title.text().strip() if title else None) or None


if __name__ == "__main__":
    sys.exit(main())
