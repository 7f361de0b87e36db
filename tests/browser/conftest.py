"""One built site and one browser for all browser tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import Browser, chromium_path, served, started

ROOT = Path(__file__).resolve().parents[2]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test here needs a browser."""
    for item in items:
        if Path(item.path).parent == Path(__file__).parent:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site: ``FLOWER_SITE_DIR``, or built now."""
    if given := os.environ.get("FLOWER_SITE_DIR"):
        folder = Path(given).resolve()
        assert (folder / "index.html").is_file(), f"FLOWER_SITE_DIR={given} 里没有 index.html"
        return folder
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(folder)]
    # With a repository address the theme shows its link, and must still not ask that host.
    environment = {**os.environ, "FLOWER_REPO_URL": "https://github.com/example/flower"}
    built = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture(scope="session")
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    """Chromium over the served site; skipped without Chromium, failed if ``CI=true``."""
    if chromium_path() is None:
        reason = "没有 Chromium，浏览器测试没有运行；安装：apt-get install chromium fonts-noto-cjk"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with served(request.getfixturevalue("site")) as address, started(address) as running:
        yield running


@pytest.fixture(autouse=True)
def nothing_noted(browser: Browser) -> None:
    """Each test starts with empty notes of foreign requests and errors."""
    browser.foreign.clear()
    browser.errors.clear()


def page_paths(site: Path) -> list[str]:
    """Every page of the site as a path, without 404."""
    return sorted(
        path.relative_to(site).as_posix().removesuffix("index.html")
        for path in site.rglob("index.html")
    )
