"""Reads published LaTeX, evaluates it, and compares it with the function that it describes."""

from flower_formula.check import Report, check
from flower_formula.environment import Definition
from flower_formula.errors import (
    CallError,
    DeclarationError,
    Disagreement,
    FormulaError,
    FormulaWarning,
    ShapeError,
)
from flower_formula.evaluate import evaluate
from flower_formula.target import define

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
