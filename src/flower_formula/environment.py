"""Where names have values while a formula is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from flower_formula.errors import Span
from flower_formula.indexing import Family
from flower_formula.statements import Formula
from flower_formula.symbols import Declaration
from flower_formula.values import Value


class NeedsReading(Exception):
    """A notation with several readings, none chosen yet."""

    def __init__(self, place: tuple[str, Span], options: tuple[str, ...]) -> None:
        super().__init__(", ".join(options))
        self.place = place
        self.options = options


@dataclass
class Environment:
    """Where names have values while one formula is computed."""

    formula: Formula
    declarations: Mapping[str, Declaration]
    tensors: dict[str, Value]
    sizes: dict[str, int]
    indices: dict[str, Value] = field(default_factory=dict)
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    defined: dict[str, Family] = field(default_factory=dict)
    computing: list[str] = field(default_factory=list)
