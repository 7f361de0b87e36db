"""``mkdocs serve`` rebuilds once for each kind of source, and not without reason."""

from __future__ import annotations

import os
import queue
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_plugin import make_repository

# "Documentation built in … seconds" won't do: MkDocs leaves out a line equal to an earlier one.
DONE = re.compile(r"Reloading browsers|An error happened during the rebuild|Serving on")


class Server:
    """A running server and what it says."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONUNBUFFERED": "1"}
        command = [sys.executable, "-m", "mkdocs", "serve", "-a", f"127.0.0.1:{self.port}"]
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment, stderr=subprocess.PIPE, text=True
        )
        self.said: queue.Queue[str] = queue.Queue()
        self.log: list[str] = []
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line)
            if DONE.search(line):
                self.said.put(line.strip())

    def wait_for(self, what: str, seconds: float = 90) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                said = self.said.get(timeout=0.5)
            except queue.Empty:
                continue
            if what in said:
                return
            if "error" in said:
                break
        pytest.fail(f"{what!r} did not come within {seconds} s:\n{''.join(self.log)}")

    def page(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/{path}", timeout=60) as answer:
            text: str = answer.read().decode()
        return text

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=20)
        self.thread.join(timeout=20)
        assert self.process.stderr is not None
        self.process.stderr.close()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repository")


@pytest.fixture
def server(repository: Path) -> Iterator[Server]:
    running = Server(repository)
    try:
        running.wait_for("Serving on")
        yield running
    finally:
        running.stop()


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_each_kind_of_source_rebuilds_once(repository: Path, server: Server) -> None:
    card = repository / "docs/cards/scaled.md"
    edit(card, "## 实验", "## 改过的标题")
    server.wait_for("Reloading browsers")
    assert "改过的标题" in server.page("cards/scaled/")

    edit(repository / "notebooks/scaled.ipynb", "提示框里", "改过的提示框里")
    server.wait_for("Reloading browsers")
    assert "改过的提示框里" in server.page("notebooks/scaled/")

    edit(repository / "docs/references.bib", "{2017}", "{2018}")
    server.wait_for("Reloading browsers")

    module = repository / "src/flower_site/bindings.py"
    module.write_text("X = 1\n", encoding="utf-8")
    server.wait_for("Reloading browsers")

    # A fault is reported, and mending it is enough (until then MkDocs answers no request).
    edit(card, "status: published", "status: publishd")
    server.wait_for("An error happened during the rebuild")
    edit(card, "status: publishd", "status: published")
    server.wait_for("Reloading browsers")

    # Nothing changes any more: no further build.
    time.sleep(5)
    assert server.said.empty()
