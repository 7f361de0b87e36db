"""One formula from the command line: read, evaluated, compared with a function of our packages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from flower_formula import Disagreement, FormulaError, check
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


def judge(latex: str, code: str | None, where: Sequence[str]) -> Judgement:
    """Checks a formula against a call; without a call its sides are compared with each other."""
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
