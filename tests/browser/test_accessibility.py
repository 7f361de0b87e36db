"""axe finds no violation on any page, light and dark, wide and narrow."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from chromium import Browser
from conftest import page_paths
from playwright.sync_api import Page


def violations(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [
        f"{violation['id']}: {node['target']} {node['failureSummary']}"
        for violation in found
        for node in violation["nodes"]
    ]


@pytest.mark.parametrize("width", [1280, 360])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(browser: Browser, site: Path, scheme: str, width: int) -> None:
    faults = {}
    with browser.context(width=width, scheme=scheme) as context:
        page = context.pages[0]
        for path in page_paths(site):
            page.goto(browser.address + path)
            page.wait_for_load_state("networkidle")
            if found := violations(page):
                faults[path] = found
    assert faults == {}


def test_axe_sees_a_planted_fault(browser: Browser) -> None:
    with browser.page("about/") as page:
        page.evaluate(
            "document.querySelector('article').insertAdjacentHTML('beforeend',"
            ' \'<p style="color:#ccc;background:#fff">浅灰</p><img src="../assets/favicon.svg">\')'
        )
        found = violations(page)
    assert any(fault.startswith("color-contrast") for fault in found)
    assert any(fault.startswith("image-alt") for fault in found)
