"""Reads published LaTeX, evaluates it, and compares it with the function that it describes.

Reading needs no torch: `check`, `evaluate` and `Report` are imported when first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flower_formula.errors import (
    CallError,
    DeclarationError,
    Disagreement,
    FormulaError,
    FormulaWarning,
    ShapeError,
)
from flower_formula.target import Definition, define

if TYPE_CHECKING:
    from flower_formula.checker import Report, check
    from flower_formula.evaluation import evaluate

__all__ = [
    "CallError",
    "DeclarationError",
    "Definition",
    "Disagreement",
    "FormulaError",
    "FormulaWarning",
    "Report",
    "ShapeError",
    "check",
    "define",
    "evaluate",
]


def __getattr__(name: str) -> Any:
    if name in ("Report", "check"):
        from flower_formula import checker

        return getattr(checker, name)
    if name == "evaluate":
        from flower_formula import evaluation

        return evaluation.evaluate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
