"""The words that the search knows, from the site's glossary.

jieba takes the longest word it knows. With 填充掩码 in its dictionary that term is one word, and
who searches 掩码 finds nothing. So only the terms that hold no shorter term become words.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

GLOSSARY = Path("docs/glossary-terms.txt")
WORDS = Path(".cache/flower/search-words.txt")
_FREQUENCY = 100_000


def read_terms(text: str) -> list[str]:
    """Terms of a glossary file: the first column of each line, ``#`` begins a comment."""
    lines = (line.partition("#")[0].split() for line in text.splitlines())
    return [columns[0] for columns in lines if columns]


def search_words(terms: Iterable[str]) -> list[str]:
    """The terms of two or more characters that contain no other such term."""
    known = {term for term in terms if len(term) > 1}
    return sorted(
        term for term in known if not any(other != term and other in term for other in known)
    )


def write_words(root: Path) -> Path | None:
    """Write jieba's user dictionary; ``None`` where the repository has no glossary."""
    glossary = root / GLOSSARY
    if not glossary.is_file():
        return None
    words = search_words(read_terms(glossary.read_text(encoding="utf-8")))
    target = root / WORDS
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(f"{word} {_FREQUENCY} n\n" for word in words), encoding="utf-8")
    return target
