"""The names that may be used at a place of a formula."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from flower_formula.errors import FormulaWarning


@dataclass
class Scope:
    """The names that may be used.

    ``tensors`` are declared or defined symbols, ``functions`` defined functions (here or in
    another block);
    ``indices`` are the index variables bound at this place; ``raised`` are families whose index
    stands in the superscript. With ``open`` every name is taken as a
    number.
    """

    tensors: set[str] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)
    indices: list[str] = field(default_factory=list)
    raised: set[str] = field(default_factory=set)
    open: bool = False
    used: set[str] = field(default_factory=set)
    warnings: list[FormulaWarning] = field(default_factory=list)

    def knows(self, name: str) -> bool:
        return self.open or name in self.tensors or name in self.functions or name in self.indices

    @contextmanager
    def bound(self, *names: str) -> Iterator[None]:
        """Index variables that exist while a sum's body or an equation's right side is read."""
        self.indices.extend(names)
        try:
            yield
        finally:
            del self.indices[len(self.indices) - len(names) :]
