"""The works that pages cite, from `docs/references.bib` (read by pybtex)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pybtex.backends.plaintext import Backend
from pybtex.database import BibliographyDataError, Entry, parse_string
from pybtex.richtext import Text as RichText
from pybtex.scanner import PybtexSyntaxError

from flower_site import context
from flower_site.problems import Problem

FILE = Path("docs") / "references.bib"
MANY_AUTHORS = 6


@dataclass(frozen=True)
class Work:
    """One entry: ``bibtex`` is its text in the file, to be copied."""

    key: str
    title: str
    authors: tuple[str, ...]
    year: str
    venue: str
    url: str
    bibtex: str

    @property
    def byline(self) -> str:
        """All authors, or the first three and 等."""
        if len(self.authors) > MANY_AUTHORS:
            return "、".join(self.authors[:3]) + " 等"
        return "、".join(self.authors)


@dataclass(frozen=True)
class Bibliography:
    """All works by key, and what is wrong with the file."""

    works: dict[str, Work]
    faults: tuple[Problem, ...]


def load(root: Path) -> Bibliography:
    """The bibliography of a repository; empty when there is no file."""
    file = root / FILE
    return context.index(("bibliography", file), lambda: [file], lambda: _read(file))


def find_problems(root: Path) -> Iterator[Problem]:
    """Entries that can't be read, are there twice, or lack title, author or year."""
    yield from load(root).faults


def _read(file: Path) -> Bibliography:
    if not file.is_file():
        return Bibliography({}, ())
    source = file.read_text(encoding="utf-8")
    lines = source.split("\n")

    def problem(message: str, line: int, remedy: str) -> Problem:
        return Problem(
            message,
            path=FILE,
            line=line,
            column=1,
            text=lines[line - 1],
            width=len(lines[line - 1]),
            remedy=remedy,
        )

    try:
        entries = parse_string(source, "bibtex").entries
    except PybtexSyntaxError as error:
        line = min(int(error.lineno or 1), len(lines))
        return Bibliography(
            {}, (problem(f"文献库的语法有误：{error.args[0]}", line, "检查括号、引号与逗号"),)
        )
    except BibliographyDataError as error:
        repeated = re.search(r"entry: (\S+)", str(error))
        key = repeated[1] if repeated else ""
        line = _entry_lines(lines, key)[-1]
        return Bibliography(
            {}, (problem(f"文献 {key} 出现了两次", line, "删去一条，或改用另一个键"),)
        )
    works: dict[str, Work] = {}
    faults: list[Problem] = []
    for key, entry in entries.items():
        missing = [name for name in ("title", "year") if not entry.fields.get(name)]
        if not entry.persons.get("author"):
            missing.append("author")
        if missing:
            faults.append(
                problem(
                    f"文献 {key} 缺少 {'、'.join(missing)}",
                    _entry_lines(lines, key)[0],
                    "补全这一条",
                )
            )
        else:
            works[key] = _work(key, entry, source)
    return Bibliography(works, tuple(faults))


def _work(key: str, entry: Entry, source: str) -> Work:
    fields = entry.fields
    venue = next(
        (fields[name] for name in ("journal", "booktitle", "publisher") if name in fields), ""
    )
    url = fields.get("url", "")
    if not url and fields.get("doi"):
        url = "https://doi.org/" + fields["doi"]
    if not url and fields.get("eprint"):
        url = "https://arxiv.org/abs/" + fields["eprint"]
    return Work(
        key=key,
        title=_plain(fields["title"]),
        authors=tuple(_plain(_person(person)) for person in entry.persons["author"]),
        year=str(fields["year"]),
        venue=_plain(venue),
        url=url,
        bibtex=_entry_text(source, key),
    )


def _person(person: object) -> str:
    parts = (
        getattr(person, f"{name}_names")
        for name in ("first", "middle", "prelast", "last", "lineage")
    )
    return " ".join(name for names in parts for name in names)


def _plain(latex: str) -> str:
    text: str = RichText.from_latex(latex).render(Backend())
    return text


def _entry_lines(lines: list[str], key: str) -> list[int]:
    pattern = re.compile(r"@\w+\s*\{\s*" + re.escape(key) + r"\s*,")
    return [number for number, line in enumerate(lines, 1) if pattern.search(line)] or [1]


def _entry_text(source: str, key: str) -> str:
    """The entry as it is written, from its @ to the brace that closes it."""
    match = re.search(r"@\w+\s*\{\s*" + re.escape(key) + r"\s*,", source)
    assert match is not None
    depth = 0
    for offset in range(match.start(), len(source)):
        depth += {"{": 1, "}": -1}.get(source[offset], 0)
        if depth == 0 and source[offset] == "}":
            return source[match.start() : offset + 1]
    return source[match.start() :]
