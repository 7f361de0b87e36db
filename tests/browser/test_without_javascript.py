"""All other hosts blocked and JavaScript off: everything is there, nothing is cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from chromium import Browser
from conftest import page_paths

CARD = "cards/scaled-dot-product-attention/"
NOTEBOOK = "notebooks/scaled-dot-product-attention/"

# Elements that reach beyond the right edge although no ancestor lets the reader scroll to them.
CUT = """() => {
  const width = document.documentElement.clientWidth;
  const scrolls = element => {
    let node = element;
    while ((node = node.parentElement) && node !== document.body) {
      const style = getComputedStyle(node);
      if (style.position === 'fixed') return true;
      if (/auto|scroll/.test(style.overflowX) && node.scrollWidth > node.clientWidth) return true;
    }
    return false;
  };
  const hidden = element => element.closest(
    '.katex-mathml, [hidden], .md-sidebar, .md-header, .md-tabs, .md-skip, .md-search, svg *');
  return [...document.querySelectorAll('body *')]
    .filter(element => {
      const box = element.getBoundingClientRect();
      return box.width > 0 && box.height > 0 && box.right > width + 1
        && !hidden(element) && !scrolls(element);
    })
    .map(element => element.outerHTML.slice(0, 120));
}"""


def test_a_card_has_formulas_figures_code_and_links(browser: Browser) -> None:
    with browser.page(CARD, javascript=False) as page:
        formulas = page.locator("figure.flower-formula")
        assert formulas.count() >= 1
        assert page.locator("figure.flower-formula .katex-html").count() >= formulas.count()
        assert page.locator("figure.flower-formula math").count() >= formulas.count()
        assert page.locator(".flower-formula__status.is-checked").count() >= 1
        assert page.locator("figure.flower-notebook").count() >= 1
        assert page.locator("figure.flower-notebook svg[role=img]").count() >= 1
        assert page.locator("figure.flower-source .highlight code").count() >= 1
        assert page.locator("a.flower-value").count() >= 1
        for drawing in page.locator("figure svg[role=img]").all():
            box = drawing.bounding_box()
            assert box is not None
            assert box["width"] > 200
            assert box["height"] > 50
    assert browser.foreign == []


def test_a_notebook_page_has_code_outputs_and_formulas(browser: Browser) -> None:
    with browser.page(NOTEBOOK, javascript=False) as page:
        assert page.locator(".flower-cell .highlight code").count() >= 3
        assert page.locator(".flower-cell svg[role=img]").count() >= 1
        assert page.locator(".katex-html").count() >= 1
        assert page.get_by_role("link", name="下载笔记本").is_visible()
        assert "#| label" not in page.locator("article").inner_text()
    assert browser.foreign == []


def test_a_diagram_is_drawn(browser: Browser, site: Path) -> None:
    paths = [
        path
        for path in page_paths(site)
        if "flower-diagram__svg" in (site / path / "index.html").read_text("utf-8")
    ]
    assert paths, "没有一页有图"
    with browser.page(paths[0], javascript=False) as page:
        drawing = page.locator(".flower-diagram__svg").first
        assert drawing.is_visible()
        assert drawing.locator("text, foreignObject").count() >= 2


def test_fonts_of_the_formulas_are_the_sites_own(browser: Browser) -> None:
    with browser.page(CARD, javascript=False) as page:
        page.wait_for_load_state("networkidle")
        loaded = page.locator(".katex-html .mathnormal").first.evaluate(
            "element => getComputedStyle(element).fontFamily"
        )
        assert "KaTeX_Math" in loaded
    assert browser.foreign == []


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("javascript", [False, True])
def test_nothing_is_cut_off_on_any_page(
    browser: Browser, site: Path, width: int, javascript: bool
) -> None:
    paths = page_paths(site)
    assert len(paths) >= 10
    faults = {}
    with browser.context(width=width, javascript=javascript) as context:
        page = context.pages[0]
        for path in paths:
            page.goto(browser.address + path)
            wide = page.evaluate(
                "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            cut = page.evaluate(CUT)
            if wide > 0 or cut:
                faults[path] = (wide, cut)
    assert faults == {}


def test_the_test_for_cut_elements_sees_one(browser: Browser) -> None:
    with browser.page("about/", width=360) as page:
        page.evaluate(
            "document.querySelector('article').insertAdjacentHTML('beforeend',"
            ' \'<div style="overflow:hidden"><p style="width:900px">x</p></div>\')'
        )
        assert len(page.evaluate(CUT)) == 1
