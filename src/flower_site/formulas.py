"""All formula blocks of the site and their verdicts: read, evaluated and compared with the code
they name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

from flower_formula.errors import (
    CallError,
    DeclarationError,
    Disagreement,
    FormulaError,
    FormulaWarning,
    ShapeError,
    UndeclaredSymbol,
)
from flower_formula.functions import function_name
from flower_formula.statements import names_defined, read_formula
from flower_formula.symbols import read_declarations
from flower_formula.target import Definition, define
from flower_site import formula_worker
from flower_site.formula_worker import Job
from flower_site.problems import Problem, nearest
from flower_site.restatements import loose_formulas
from flower_site.sources import FormulaBlock, formula_blocks
from flower_site.text_cache import write_whole
from flower_site.texts import Text, notebook_texts, page_texts

CACHE = Path(".cache/flower/formulas")


@dataclass(frozen=True)
class Verdict:
    """What is known about one block.

    ``status`` is ``checked``, ``unchecked`` (with its ``reason``) or ``failed`` (with its
    ``problem``). ``errors`` has the largest relative error by precision and device; ``notes`` how
    notations with several readings were read.
    """

    status: str
    call: str = ""
    reason: str = ""
    draws: int = 0
    errors: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    problem: Problem | None = None


@dataclass
class FormulaBook:
    """The formula blocks of a repository by slug."""

    root: Path
    blocks: dict[str, FormulaBlock]
    faults: list[Problem]
    devices: tuple[str, ...] = ("cpu",)
    _verdicts: dict[str, Verdict] = field(default_factory=dict)
    _libraries: dict[str, dict[str, Definition]] = field(default_factory=dict)
    _definitions: dict[str, Definition] = field(default_factory=dict)
    _names: dict[str, tuple[list[str], list[str]]] = field(default_factory=dict)

    @classmethod
    def load(cls, root: Path) -> FormulaBook:
        """Reads every page and every notebook's Markdown cells; what cannot be read is in
        ``faults``.
        """
        book = cls(root, {}, [], formula_worker.devices())
        for text in (*page_texts(root), *notebook_texts(root)):
            book._add(text)
        return book

    def _add(self, text: Text) -> None:
        try:
            found = formula_blocks(text)
        except Problem as problem:
            self.faults.append(problem)
            return
        for block in found:
            first = self.blocks.setdefault(block.slug, block)
            if first is not block:
                self.faults.append(
                    block.text.problem(
                        f"公式名 {block.slug} 已经用在 {first.path}:{first.line}",
                        block.start,
                        remedy="换一个名字；要重复同一个公式，直接写 $$…$$ 即可",
                    )
                )

    # -- verdicts -------------------------------------------------------------------------------

    def verdict(self, slug: str) -> Verdict:
        """The verdict on a block; computed once, kept on disk while nothing it depends on
        changes.
        """
        self._judge([slug])
        return self._verdicts[slug]

    def _judge(self, slugs: Iterable[str]) -> None:
        """Finds the verdicts that are not known yet; those not on the disk all in one go."""
        jobs: dict[str, Job] = {}
        paths: dict[str, Path] = {}
        for slug in slugs:
            if slug in self._verdicts:
                continue
            block = self.blocks[slug]
            if block.unchecked:
                self._verdicts[slug] = Verdict("unchecked", reason=block.unchecked)
                continue
            try:
                library = self.library(slug)
            except Problem as problem:
                self._verdicts[slug] = Verdict("failed", call=block.code or "", problem=problem)
                continue
            path = self.root / CACHE / f"{self._key(block, library)}.json"
            if path.exists():
                kept = json.loads(path.read_text(encoding="utf-8"))
                self._verdicts[slug] = Verdict(**{**kept, "notes": tuple(kept["notes"])})
                continue
            paths[slug] = path
            jobs[slug] = Job(block.latex, block.code, tuple(block.where), library, self.devices)
        outcomes = formula_worker.check_all(list(jobs.values()))
        for slug, outcome in zip(jobs, outcomes, strict=True):
            block = self.blocks[slug]
            unsound = (
                place_of(outcome, block)
                if isinstance(outcome, FormulaError)
                else misprinted(outcome.warnings, block)
            )
            if isinstance(outcome, FormulaError) or unsound:
                self._verdicts[slug] = Verdict("failed", call=block.code or "", problem=unsound)
                continue
            verdict = Verdict(
                "checked",
                block.code or "",
                draws=outcome.draws,
                errors=outcome.errors,
                notes=outcome.readings,
            )
            content = {key: value for key, value in asdict(verdict).items() if key != "problem"}
            write_whole(paths[slug], json.dumps(content, ensure_ascii=False))
            self._verdicts[slug] = verdict

    def problems(self) -> list[Problem]:
        """Everything wrong with blocks, and displayed formulas that no block accounts for."""
        found = list(self.faults)
        self._judge(self.blocks)
        for slug in self._definitions_first():
            problem = self.verdict(slug).problem
            if problem is not None and str(problem) not in map(str, found):
                found.append(problem)  # a broken definition also breaks the blocks that use it
        return found + loose_formulas(self.root, self.blocks.values())

    def _definitions_first(self) -> list[str]:
        """The blocks in an order that names a broken definition before the blocks that use it."""

        def used(slug: str) -> int:
            try:
                return len(self.library(slug))
            except Problem:
                return 0

        return sorted(self.blocks, key=used)

    def library(self, slug: str) -> dict[str, Definition]:
        """The definitions of other blocks that a block's formula uses.

        Raises:
            Problem: if one of them cannot be read, or it is not clear which is meant.
        """
        if slug not in self._libraries:
            self._libraries[slug] = self._library(self.blocks[slug], ())
        return self._libraries[slug]

    def defined_by(self, slug: str) -> dict[str, Definition]:
        """What a block defines, by name.

        Raises:
            Problem: if the block cannot be read.
        """
        block = self.blocks[slug]
        names = [name for names in self._defines(block) for name in names]
        return dict.fromkeys(names, self._define(block, self.library(slug))) if names else {}

    # -- definitions that other blocks use ------------------------------------------------------

    @cached_property
    def defining(self) -> dict[str, list[str]]:
        """The blocks that define each name; functions that mathematics knows keep their meaning."""
        names: dict[str, list[str]] = {}
        for slug, block in self.blocks.items():
            for name in (*self._defines(block)[0], *self._defines(block)[1]):
                names.setdefault(name, []).append(slug)
        return names

    def _defines(self, block: FormulaBlock) -> tuple[list[str], list[str]]:
        """The functions and the tensors that a block defines."""
        if block.slug not in self._names:
            self._names[block.slug] = _names_of(block)
        return self._names[block.slug]

    def _library(self, block: FormulaBlock, chain: tuple[str, ...]) -> dict[str, Definition]:
        """The definitions that a block's formula uses, those that they use included.

        A function's name is enough where one block alone defines it; a tensor's name, and a
        function's that several blocks define, need the block under ``uses``.
        """
        if block.slug in chain:
            circle = " → ".join((*chain, block.slug))
            raise block.text.problem(
                f"公式互相引用成环：{circle}", block.start, remedy="拆开其中一个定义"
            )
        self._require_known_uses(block)
        own = {name for names in self._defines(block) for name in names}
        functions = {n for other in self.blocks.values() for n in self._defines(other)[0]} - own
        tensors = {n for slug in block.uses for n in self._defines(self.blocks[slug])[1]} - own
        try:
            declarations = read_declarations(block.where)
            used = read_formula(
                block.latex, declarations, functions, tensors - set(declarations)
            ).used
        except FormulaError as error:
            if isinstance(error, UndeclaredSymbol) and error.name in self.defining:
                others = self.defining[error.name]
                error.hint = (
                    f"声明它；若指公式 {'、'.join(others)} 里的定义，加一行 uses: {others[0]}"
                )
            raise place_of(error, block) from error
        library: dict[str, Definition] = {}
        for name in sorted((used & (functions | tensors)) - set(declarations)):
            slugs = self.defining[name]
            chosen = [slug for slug in slugs if slug in block.uses] or slugs
            if len(chosen) > 1:
                at = block.latex_start + max(0, block.latex.find(name))
                raise block.text.problem(
                    f"{name} 由几个公式定义：{'、'.join(chosen)}",
                    at,
                    at + len(name),
                    remedy=f"在块里写明是哪一个，例如 uses: {chosen[0]}",
                )
            other = self.blocks[chosen[0]]
            inner = self._library(other, (*chain, block.slug))
            library |= inner
            try:
                library[name] = self._define(other, inner)
            except FormulaError as error:
                raise place_of(error, other) from error
        return library

    def _require_known_uses(self, block: FormulaBlock) -> None:
        for slug in block.uses:
            if slug not in self.blocks:
                close = nearest(slug, self.blocks)
                raise block.text.problem(
                    f"没有名为 {slug} 的公式",
                    block.option_starts["uses"],
                    remedy=f"是不是 {close}？" if close else "检查 uses",
                )

    def _define(self, block: FormulaBlock, library: dict[str, Definition]) -> Definition:
        if block.slug not in self._definitions:
            self._definitions[block.slug] = define(
                block.latex, block.where, library=library, slug=block.slug
            )
        return self._definitions[block.slug]

    # -- cache ----------------------------------------------------------------------------------

    @cached_property
    def _code(self) -> str:
        """A hash of all sources that a check runs."""
        digest = hashlib.sha256()
        for path in sorted(formula_worker.source_files()):
            digest.update(path.name.encode())
            digest.update(path.read_bytes())
        return digest.hexdigest()

    def _key(self, block: FormulaBlock, library: dict[str, Definition]) -> str:
        """A hash of all that the verdict depends on."""
        content: list[object] = [
            block.latex,
            block.code,
            list(block.where),
            self.devices,
            version("torch"),
            self._code,
        ]
        for name in sorted(library):
            other = self.blocks[library[name].slug]
            content.append([name, other.latex, list(other.where)])
        return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()[:32]


def _names_of(block: FormulaBlock) -> tuple[list[str], list[str]]:
    if block.unchecked:
        return [], []
    try:
        functions, tensors = names_defined(block.latex, read_declarations(block.where))
    except FormulaError:
        return [], []  # the block's own check reports it
    return [name for name in functions if function_name(name) is None], tensors


def place_of(error: FormulaError, block: FormulaBlock) -> Problem:
    """The problem at the place in the page that an error of the reader means."""
    start, end = error.span
    if isinstance(error, DeclarationError):
        offset = block.option_starts.get(
            error.declaration, block.option_starts.get("where", block.start)
        )
        what = "声明读不懂"
    elif isinstance(error, CallError):
        offset, what = block.option_starts.get("code", block.start), "code 有误"
    else:
        offset, what = block.latex_start, "公式有误"
        if isinstance(error, Disagreement):
            what = "公式与代码不一致"
        elif isinstance(error, ShapeError):
            what = "形状不合"
    disagrees = isinstance(error, Disagreement)
    return block.text.problem(
        what if disagrees else f"{what}：{error.message}",
        offset + start,
        offset + end,
        remedy="改公式，或改代码，让两边说同一件事" if disagrees else error.hint,
        detail=error.detail,
    )


def misprinted(warnings: Sequence[FormulaWarning], block: FormulaBlock) -> Problem | None:
    """The first place where the page would show something else than what was read and checked."""
    for warning in warnings:
        start, end = (block.latex_start + offset for offset in warning.span)
        return block.text.problem(
            f"页面上印出来的不是验证的那个公式：{warning.message}", start, end, remedy=warning.hint
        )
    return None
