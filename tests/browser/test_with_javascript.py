"""JavaScript on: search, anchors, copying, the switch of themes, instant navigation."""

from __future__ import annotations

from pathlib import Path

import pytest
from chromium import Browser
from conftest import page_paths
from playwright.sync_api import Page, expect

CARD = "cards/scaled-dot-product-attention/"
NOTEBOOK = "notebooks/scaled-dot-product-attention/"


def search(page: Page, query: str) -> list[str]:
    """Paths of the results, best first."""
    page.locator("label.md-search__icon[for=__search]").first.click(force=True)
    field = page.locator("input.md-search__input")
    field.fill(query)
    field.press("End")  # the theme listens to keys
    results = page.locator(".md-search-result__item > a.md-search-result__link")
    expect(results.first).to_be_visible(timeout=15_000)
    page.wait_for_timeout(300)
    return [str(link.get_attribute("href")).split("?")[0] for link in results.all()]


@pytest.mark.parametrize(
    ("query", "card"),
    [
        ("缩放点积", "cards/scaled-dot-product-attention/"),
        ("多头", "cards/multi-head-attention/"),
        ("掩码", "cards/attention-masks/"),
        ("softmax", "cards/scaled-dot-product-attention/"),
        ("点积", "cards/scaled-dot-product-attention/"),
        ("多头注意力", "cards/multi-head-attention/"),
        ("填充掩码", "cards/attention-masks/"),
        ("因果", "cards/attention-masks/"),
    ],
)
def test_search_finds_the_card_first(browser: Browser, query: str, card: str) -> None:
    with browser.page("about/") as page:
        results = search(page, query)
        assert results[0].split("#")[0].removeprefix(browser.address).lstrip("./") == card
        first = page.locator(".md-search-result__item").first
        assert first.locator("mark").count() >= 1
        assert "缺少" not in first.inner_text()
    assert browser.errors == []
    assert browser.foreign == []


def test_no_page_logs_an_error_or_asks_another_host(browser: Browser, site: Path) -> None:
    with browser.context() as context:
        page = context.pages[0]
        for path in page_paths(site):
            page.goto(browser.address + path)
            page.wait_for_load_state("networkidle")
    assert browser.errors == []
    assert browser.foreign == []


def test_the_notes_of_errors_and_hosts_are_taken(browser: Browser) -> None:
    """Plants both faults, so that the two lists can be trusted when they are empty."""
    with browser.page("about/") as page:
        page.evaluate("console.error('planted')")
        page.evaluate("new Image().src = 'https://example.org/a.png'")
        page.wait_for_timeout(300)
    assert any("planted" in error for error in browser.errors)
    # Either the page's own policy refuses the request, or our route notes it.
    assert browser.foreign or any("example.org" in error for error in browser.errors)


@pytest.mark.parametrize("path", [CARD, NOTEBOOK])
def test_chinese_anchors_and_contents_links(browser: Browser, path: str) -> None:
    with browser.page(path) as page:
        links = page.locator(".md-sidebar--secondary .md-nav__link[href*='#']")
        assert links.count() >= 3
        chinese = 0
        for link in links.all():
            fragment = page.evaluate(
                "link => decodeURIComponent(link.hash.slice(1))", link.element_handle()
            )
            chinese += any(char >= "\u4e00" for char in fragment)
            assert page.evaluate("id => !!document.getElementById(id)", fragment), fragment
        assert chinese >= 3
        last = links.last
        fragment = page.evaluate(
            "link => decodeURIComponent(link.hash.slice(1))", last.element_handle()
        )
        last.click()
        page.wait_for_timeout(600)
        assert page.evaluate("decodeURIComponent(location.hash.slice(1))") == fragment
        heading = page.locator(f"[id='{fragment}']")
        expect(heading).to_be_in_viewport()
        # Opened afresh, the address leads to the same place.
        address = page.url
        page.goto("about:blank")
        page.goto(address)
        expect(page.locator(f"[id='{fragment}']")).to_be_in_viewport()
        assert page.locator(f"[id='{fragment}'] a.headerlink").get_attribute("href") is not None


def test_code_is_copied(browser: Browser) -> None:
    with browser.context() as context:
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.pages[0]
        page.goto(browser.address + NOTEBOOK)
        block = page.locator(".flower-cell .highlight").first
        block.hover()
        block.locator("button[data-clipboard-target], button.md-code__button").first.click()
        page.wait_for_timeout(200)
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.strip() == block.locator("code").inner_text().strip()
        assert "import" in copied


def test_the_theme_is_remembered(browser: Browser) -> None:
    with browser.context() as context:
        page = context.pages[0]
        page.goto(browser.address + CARD)
        scheme = "document.body.dataset.mdColorScheme"
        assert page.evaluate(scheme) == "default"
        page.locator("[data-md-component=palette] label:not([hidden])").click()
        assert page.evaluate(scheme) == "slate"
        page.goto(browser.address + "about/")
        assert page.evaluate(scheme) == "slate"
        page.reload()
        assert page.evaluate(scheme) == "slate"


def test_dark_is_chosen_by_the_readers_system(browser: Browser) -> None:
    with browser.page(CARD, scheme="dark") as page:
        assert page.evaluate("document.body.dataset.mdColorScheme") == "slate"


def test_formulas_survive_every_route_to_a_page(browser: Browser) -> None:
    with browser.page(CARD) as page:
        counts = page.locator(".katex-html").count()
        assert counts >= 1
        page.locator(".md-footer__link--next, .md-footer__link--prev").first.click()
        page.wait_for_load_state("networkidle")
        page.go_back()
        page.wait_for_load_state("networkidle")
        assert page.locator(".katex-html").count() == counts
        text = page.locator("article").inner_text()
        assert "\\(" not in text


@pytest.mark.parametrize("path", ["", CARD, NOTEBOOK])
def test_nothing_moves_while_the_page_loads(browser: Browser, path: str) -> None:
    with browser.context(width=360) as context:
        page = context.pages[0]
        page.add_init_script(
            "window.shift = 0; new PerformanceObserver(list => {"
            " for (const entry of list.getEntries()) window.shift += entry.value;"
            "}).observe({type: 'layout-shift', buffered: true})"
        )
        page.goto(browser.address + path)
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(500)
        assert page.evaluate("window.shift") < 0.01
