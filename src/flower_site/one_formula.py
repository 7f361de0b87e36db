"""One formula from the command line: read, evaluated, compared with a function of our packages."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from typer.core import TyperCommand

from flower_formula import Disagreement, FormulaError
from flower_site.formula_worker import PACKAGES

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


def judge(
    latex: str,
    code: str | None,
    where: Sequence[str],
) -> Judgement:
    """Checks a formula against a call; without a call its sides are compared with each other."""
    from flower_formula import check  # imports torch

    try:
        report = check(latex, code, where, packages=PACKAGES)
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
