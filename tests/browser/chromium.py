"""Serves a built site and opens it in Chromium, for the tests and for the screenshots."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser as Chromium
from playwright.sync_api import BrowserContext, Page, Route, sync_playwright

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: Any) -> None:
        pass


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve ``folder`` on a free port; yields the address, ending in ``/``."""
    handler = partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def chromium_path() -> str | None:
    """The installed browser, if there is one."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((path for name in names if (path := shutil.which(name))), None)


@dataclass
class Browser:
    """Chromium, with all hosts but the site's own blocked and noted.

    Args:
        address: where the site is served.
        foreign: addresses of other hosts that a page asked for.
        errors: console errors and uncaught exceptions.
    """

    instance: Chromium
    address: str
    foreign: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @contextlib.contextmanager
    def context(
        self,
        *,
        width: int = 1280,
        javascript: bool = True,
        scheme: Literal["light", "dark"] = "light",
    ) -> Iterator[BrowserContext]:
        """A fresh profile; yields its context."""
        context = self.instance.new_context(
            java_script_enabled=javascript,
            viewport={"width": width, "height": 800},
            color_scheme=scheme,
            locale="zh-CN",
        )
        context.route("**/*", self._route)
        context.on("page", self._listen)
        context.new_page()
        try:
            yield context
        finally:
            context.close()

    @contextlib.contextmanager
    def page(self, path: str, **options: Any) -> Iterator[Page]:
        """Open one page of the site in a fresh profile (options as for :meth:`context`)."""
        with self.context(**options) as context:
            page = context.pages[0]
            page.goto(self.address + path)
            yield page

    def _route(self, route: Route) -> None:
        url = route.request.url
        if url.startswith(self.address) or urlsplit(url).scheme in ("data", "blob"):
            route.continue_()
        else:
            self.foreign.append(url)
            route.abort()

    def _listen(self, page: Page) -> None:
        page.on("console", lambda message: self._console(message.type, message.text))
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _console(self, kind: str, text: str) -> None:
        if kind == "error":
            self.errors.append(text)


@contextlib.contextmanager
def started(address: str) -> Iterator[Browser]:
    """Start playwright; raises FileNotFoundError without a browser."""
    executable = chromium_path()
    if executable is None:
        raise FileNotFoundError("Chromium 没有安装（apt-get install chromium fonts-noto-cjk）")
    with sync_playwright() as playwright:
        instance = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        try:
            yield Browser(instance, address)
        finally:
            instance.close()
