"""One formula from the command line: read, evaluated, compared with a function of our packages."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from flower_formula import Disagreement, FormulaError
from flower_formula.target import Definition
from flower_site.formula_worker import PACKAGES
from flower_site.problems import Problem, nearest

AGREES, DISAGREES, UNREADABLE = 0, 1, 2


@dataclass(frozen=True)
class Judgement:
    """``exit_code``: 0 agrees, 1 disagrees, 2 cannot be read; ``text`` says it with the place."""

    exit_code: int
    text: str
    draws: int = 0
    errors: dict[str, float] = field(default_factory=dict)
    readings: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    span: tuple[int, int] | None = None

    def as_json(self) -> str:
        """Everything, for another program."""
        return json.dumps(asdict(self), ensure_ascii=False)


class FormulaCommand(TyperCommand):
    """A command whose argument may begin with a minus: only ``--word`` is an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        takes_value = {
            name
            for param in self.params
            if param.param_type_name == "option" and not getattr(param, "is_flag", False)
            for name in param.opts
        }
        options: list[str] = []
        formulas: list[str] = []
        rest = iter(args)
        for argument in rest:
            if argument == "--":
                formulas += rest
            elif argument.startswith("-") and not re.fullmatch(
                r"--[A-Za-z-]+(=.*)?", argument, re.S
            ):
                formulas.append(argument)
            else:
                options.append(argument)
                options += itertools.islice(rest, argument in takes_value)
        return super().parse_args(ctx, [*options, "--", *formulas])


def definitions(root: Path, slugs: Sequence[str]) -> dict[str, Definition]:
    """What formula blocks of the site define, by name, with the definitions that they use.

    Raises:
        Problem: for an unknown block, one that cannot be read or defines nothing, and a name that
            two blocks define.
    """
    from flower_site.formulas import FormulaBook  # reads pages, which most commands do not

    book = FormulaBook.load(root)
    found: dict[str, Definition] = {}
    for slug in slugs:
        if slug not in book.blocks:
            close = nearest(slug, book.blocks)
            remedy = f"是不是 {close}？" if close else "flower check 检查所有公式"
            raise Problem(f"没有名为 {slug} 的公式", path=root, remedy=remedy)
        own = book.defined_by(slug)
        if not own:
            raise Problem(f"公式 {slug} 没有定义可用的名字", path=book.blocks[slug].path)
        for name, definition in (book.library(slug) | own).items():
            first = found.setdefault(name, definition)
            if first.slug != definition.slug:
                raise Problem(
                    f"{name} 由 {first.slug} 和 {definition.slug} 两个公式定义",
                    path=root,
                    remedy="只用其中一个",
                )
    return found


def judge(
    latex: str,
    code: str | None,
    where: Sequence[str],
    library: Mapping[str, Definition] | None = None,
) -> Judgement:
    """Checks a formula against a call; without a call its sides are compared with each other.

    Args:
        latex: the display, without dollars.
        code: the call to compare with.
        where: the declarations.
        library: definitions that the formula may use by name.
    """
    from flower_formula import check  # imports torch

    try:
        report = check(latex, code, where, packages=PACKAGES, library=library)
    except FormulaError as error:
        disagrees = isinstance(error, Disagreement)
        return Judgement(DISAGREES if disagrees else UNREADABLE, str(error), span=error.span)
    shown = "，".join(f"{name} {error:.1e}" for name, error in report.errors.items())
    lines = [f"一致：{report.draws} 次随机抽样，最大相对误差 {shown}", *report.readings]
    return Judgement(
        AGREES,
        "\n".join(lines),
        report.draws,
        report.errors,
        report.readings,
        tuple(warning.describe(latex) for warning in report.warnings),
    )
