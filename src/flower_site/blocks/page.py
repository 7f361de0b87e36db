"""One page's Markdown as the extensions see it: what is code, what is prose, what stands where.

Everything is found in the source text, with offsets, so that a problem can name its line and
column. Text that is code, a comment or front matter is blanked out in `prose`, which keeps every
offset.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from pymdownx.arithmatex import RE_SMART_DOLLAR_INLINE

from flower_site.problems import Problem
from flower_site.texts import Text

CODE_SPAN = r"(?P<code>(?<![\\`])(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`))"
ROLE = r"\{(?P<role>nb|eq)\}`(?P<target>[^`\n]*)`"
CODE_SPAN_OR_ROLE = re.compile(f"{ROLE}|{CODE_SPAN}", re.S)
CITATION = re.compile(r"\[(?P<keys>@[^\]\n]*)\]")

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?\n---[ \t]*\n", re.S)
_COMMENT = re.compile(r"<!--.*?-->", re.S)
_FENCE = re.compile(r"^(?P<indent>[ \t>]*)(?P<mark>`{3,}|~{3,})(?P<info>[^`\n]*)$")
_HEADER = re.compile(
    r"^(?P<indent>[ \t>]*)/{3,}[ ]*(?P<name>formula|notebook|source|references)[ ]*"
    r"(?:\|[ ]*(?P<argument>.*?)[ ]*)?$"
)
_DISPLAY = re.compile(
    r"(?<!\\)\$\$(?P<dollars>.+?)(?<!\\)\$\$"
    r"|^[ \t>]*(?:(?:[-*+]|\d+[.)])[ \t]+)*\\\[(?P<brackets>.+?)(?<!\\)\\\]",
    re.S | re.M,
)
_FOOTNOTE = re.compile(r"^\[\^[^\]\n]+\]:.*(?:\n(?:[ \t]+.*)?)*", re.M)
INLINE: re.Pattern[str] = re.compile(RE_SMART_DOLLAR_INLINE)
_PARAGRAPH_START = re.compile(
    r"^[ \t>]*(?:[-*+][ \t]|\d+[.)][ \t]|#{1,6}[ \t]|\||/{3}|!!!|\?\?\?|===|$)"
)


@dataclass(frozen=True)
class Fence:
    """A fenced code block. ``start`` is the offset of its opening line, ``body_start`` of its
    first code line.
    """

    language: str
    body: str
    start: int
    body_start: int


@dataclass(frozen=True)
class Header:
    """The first line of a block (`/// name | argument`) and its options, each with its offset."""

    name: str
    argument: str
    start: int
    end: int
    argument_start: int
    options: dict[str, tuple[str, int]]
    options_source: str
    options_start: int


@dataclass(frozen=True)
class Role:
    """An inline role, `` {nb}`target` `` or `` {eq}`target` ``."""

    name: str
    target: str
    start: int
    end: int


@dataclass(frozen=True)
class Citation:
    """One key of `[@key; @other]`."""

    key: str
    start: int
    end: int


@dataclass(frozen=True)
class Formula:
    """Math in the text: ``latex`` begins at ``start``."""

    latex: str
    start: int
    display: bool


class Page:
    """A piece of Markdown.

    Args:
        text: the Markdown with its place (`flower_site.sources.Text`).
    """

    def __init__(self, text: Text) -> None:
        self.text = text
        self.source = text.content
        self.fences: list[Fence] = []
        self.roles: list[Role] = []
        self.prose = self._blank_code()

    def problem(
        self, message: str, start: int, end: int | None = None, *, remedy: str | None = None
    ) -> Problem:
        """A problem at an offset."""
        return self.text.problem(message, start, end, remedy=remedy)

    @cached_property
    def headers(self) -> list[Header]:
        """The blocks of the page, in order."""
        return list(self._find_headers())

    @cached_property
    def citations(self) -> list[Citation]:
        """Every cited key, in order, also those that `/// references | @key; @other` adds."""
        found = [
            Citation(key[0][1:], match.start("keys") + key.start(), match.start("keys") + key.end())
            for match in CITATION.finditer(self.prose)
            for key in re.finditer(r"@[^;\s,]+", match["keys"])
        ]
        for header in self.headers:
            if header.name == "references":
                found.extend(
                    Citation(
                        key[1],
                        header.argument_start + key.start(),
                        header.argument_start + key.end(),
                    )
                    for key in re.finditer(r"@?([^;\s,@]+)", header.argument)
                )
        return found

    @cached_property
    def cited_keys(self) -> list[str]:
        """The cited keys in order of first mention: the n-th is shown as [n]."""
        return list(dict.fromkeys(citation.key for citation in self.citations))

    @cached_property
    def formulas(self) -> list[Formula]:
        """Display and inline math outside of code, in order."""
        prose = re.sub(r"(?m)^[ \t]*>[> \t]*", lambda match: " " * len(match[0]), self.prose)
        found = [
            Formula(match[match.lastgroup], match.start(match.lastgroup), True)
            for match in _DISPLAY.finditer(prose)
            if match.lastgroup is not None
        ]
        rest = _DISPLAY.sub(lambda match: _blank(match[0]), prose)
        for start, paragraph in _paragraphs(rest):
            found.extend(
                Formula(match[3], start + match.start(3), False)
                for match in INLINE.finditer(paragraph)
                if match[3]
            )
        return sorted(found, key=lambda formula: formula.start)

    @cached_property
    def displays(self) -> list[Formula]:
        """The displayed formulas in the order in which a reader meets them: footnotes last."""
        notes = [match.span() for match in _FOOTNOTE.finditer(self.prose)]
        return sorted(
            (formula for formula in self.formulas if formula.display),
            key=lambda formula: any(start <= formula.start < end for start, end in notes),
        )

    def _blank_code(self) -> str:
        text = _FRONT_MATTER.sub(lambda match: _blank(match[0]), self.source)
        text = self._blank_fences(text)
        text = _COMMENT.sub(lambda match: _blank(match[0]), text)
        return "".join(self._blank_spans(start, part) for start, part in _split_paragraphs(text))

    def _blank_fences(self, text: str) -> str:
        kept: list[str] = []
        opening: re.Match[str] | None = None
        start = body_start = offset = 0
        for line in text.splitlines(keepends=True):
            match = _FENCE.match(line.rstrip("\n"))
            if opening is None and match:
                opening, start, body_start = match, offset, offset + len(line)
            elif opening is not None and _closes(opening["mark"], line):
                language = re.match(r"[\w+-]*", opening["info"].strip().lstrip("{. "))
                self.fences.append(
                    Fence(
                        language[0] if language else "", text[body_start:offset], start, body_start
                    )
                )
                opening, line = None, _blank(line)
            kept.append(line if opening is None else _blank(line))
            offset += len(line)
        return "".join(kept)

    def _blank_spans(self, start: int, paragraph: str) -> str:
        def blank(match: re.Match[str]) -> str:
            if match["role"]:
                self.roles.append(
                    Role(match["role"], match["target"], start + match.start(), start + match.end())
                )
            return _blank(match[0])

        return CODE_SPAN_OR_ROLE.sub(blank, paragraph)

    def _find_headers(self) -> Iterator[Header]:
        lines = self.prose.splitlines(keepends=True)
        offsets = [0]
        for line in lines:
            offsets.append(offsets[-1] + len(line))
        for number, line in enumerate(lines):
            match = _HEADER.match(line.rstrip("\n"))
            if not match:
                continue
            start = offsets[number]
            indent = len(match["indent"]) + 4
            options, options_end = self._options(lines, offsets, number + 1, indent)
            argument = match.span("argument") if match["argument"] else (len(line.rstrip()),) * 2
            yield Header(
                name=match["name"],
                argument=self.source[start + argument[0] : start + argument[1]],
                start=start + match.end("indent"),
                end=start + len(line.rstrip("\n")),
                argument_start=start + argument[0],
                options=options,
                options_source=self.source[offsets[number + 1] : options_end],
                options_start=offsets[number + 1],
            )

    def _options(
        self, lines: list[str], offsets: list[int], number: int, indent: int
    ) -> tuple[dict[str, tuple[str, int]], int]:
        """Options on the first level of the indented lines that follow a header, and where those
        lines end.
        """
        options: dict[str, tuple[str, int]] = {}
        while (
            number < len(lines)
            and lines[number][:indent].strip(" >") == ""
            and lines[number].strip()
        ):
            raw = self.source[offsets[number] : offsets[number + 1]].rstrip("\n")
            match = re.match(r"^[ >]*(?P<name>[\w-]+):(?:\s+(?P<value>.*))?$", raw)
            if match and match.start("name") == indent:
                value = (match["value"] or "").strip().strip("\"'")
                options[match["name"]] = (value, offsets[number] + indent)
            number += 1
        return options, offsets[number]


@lru_cache(maxsize=1024)
def page_of(text: Text) -> Page:
    """The page of a text, read once: blocks, displays and checks all ask for it."""
    return Page(text)


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _closes(mark: str, line: str) -> bool:
    closing = line.strip(" \t>\n")
    return bool(closing) and set(closing) == {mark[0]} and len(closing) >= len(mark)


def _split_paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """The whole text in pieces with their offsets, cut where inline Markdown can't reach across."""
    start = offset = 0
    for line in text.splitlines(keepends=True):
        if _PARAGRAPH_START.match(line.rstrip("\n")) and offset > start:
            yield start, text[start:offset]
            start = offset
        offset += len(line)
    if offset > start:
        yield start, text[start:offset]


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Pieces of `_split_paragraphs` that hold a dollar sign; each indented option line stands
    alone.
    """
    for start, part in _split_paragraphs(text):
        if "$" not in part:
            continue
        if not part.lstrip(" >").startswith("///"):
            yield start, part
            continue
        for line in part.splitlines(keepends=True):
            yield start, line
            start += len(line)
