"""Texts that are slow to make, kept in memory and on disk under the hash of what they were made
from.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path


class TextCache:
    """One folder of cached texts, and the same texts in memory.

    Args:
        folder: where the files go; ``None`` keeps texts in memory only.
        version: part of every key; change it when the maker changes.
    """

    def __init__(self, folder: Path | None, version: str) -> None:
        self.folder = folder
        self.version = version
        self._kept: dict[str, str] = {}

    def get(self, content: str, make: Callable[[], str]) -> str:
        """The text made from ``content``; nothing is kept when ``make`` raises."""
        key = hashlib.sha256(f"{self.version}\0{content}".encode()).hexdigest()[:40]
        if key in self._kept:
            return self._kept[key]
        file = self.folder / key[:2] / key[2:] if self.folder else None
        if file is not None and file.is_file():
            text = file.read_text(encoding="utf-8")
        else:
            text = make()
            if file is not None:
                write_whole(file, text)
        self._kept[key] = text
        return text


def write_whole(file: Path, text: str) -> None:
    """Writes a file so that nobody ever reads half of it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent)
    with os.fdopen(handle, "w", encoding="utf-8", newline="") as out:
        out.write(text)
    os.replace(name, file)
