"""The meaning of a formula as a tree. Every node knows its place in the LaTeX."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from flower_formula.errors import Span


@dataclass(frozen=True, eq=False)
class Node:
    """A part of a formula."""

    span: Span

    def children(self) -> Iterator[Node]:
        """The nodes directly below, in reading order."""
        for item in fields(self):
            yield from _nodes(getattr(self, item.name))

    def walk(self) -> Iterator[Node]:
        """This node and all below it."""
        yield self
        for child in self.children():
            yield from child.walk()


def _nodes(value: object) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for element in value:
            yield from _nodes(element)


@dataclass(frozen=True, eq=False)
class Number(Node):
    """A number, perhaps infinite."""

    value: float


@dataclass(frozen=True, eq=False)
class Symbol(Node):
    """A declared symbol, a defined name, a size or an index variable."""

    name: str


@dataclass(frozen=True, eq=False)
class Indexed(Node):
    r"""An element, row or member: ``x_i``, ``\alpha_{ij}``, ``W_i^Q``, ``softmax(x)_i``."""

    base: Node
    indices: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Negative(Node):
    """Minus the body."""

    body: Node


@dataclass(frozen=True, eq=False)
class Binary(Node):
    """``operator``: ``+ - /``, or a product: ``juxtaposed cdot times odot otimes``."""

    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, eq=False)
class Power(Node):
    """``base^exponent``."""

    base: Node
    exponent: Node


@dataclass(frozen=True, eq=False)
class Transpose(Node):
    """``body^T``."""

    body: Node


@dataclass(frozen=True, eq=False)
class Root(Node):
    """A root; ``degree`` None is the square root."""

    body: Node
    degree: Node | None


@dataclass(frozen=True, eq=False)
class Call(Node):
    """A function applied: ``over`` is the index that a subscript names (``softmax_j``), ``reach``
    says how far the argument reaches where that could be seen otherwise (see ``reach``).
    """

    name: str
    arguments: tuple[Node, ...]
    over: str | None = None
    reach: str = ""


@dataclass(frozen=True, eq=False)
class Reduce(Node):
    r"""``\sum``, ``\prod``, ``\max_j``, ``\min_j`` over an index, with limits and a
    condition.
    """

    operator: str
    variable: str
    lower: Node | None
    upper: Node | None
    condition: Node | None
    body: Node


@dataclass(frozen=True, eq=False)
class Bars(Node):
    """``kind``: ``abs``, ``norm``, ``floor`` or ``ceiling``."""

    kind: str
    body: Node


@dataclass(frozen=True, eq=False)
class Cases(Node):
    """Values with their conditions, first match wins; the condition ``None`` is *otherwise*."""

    branches: tuple[tuple[Node, Node | None], ...]


@dataclass(frozen=True, eq=False)
class Compare(Node):
    """A chain ``a < b <= c``: ``operators`` has one entry fewer than ``operands``."""

    operators: tuple[str, ...]
    operands: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Both(Node):
    """Two conditions that must both hold."""

    left: Node
    right: Node


@dataclass(frozen=True, eq=False)
class Dots(Node):
    """``first, ..., last`` in a list: ``body`` for ``variable`` from ``lower`` to ``upper``."""

    variable: str
    lower: Node
    upper: Node
    body: Node


@dataclass(frozen=True, eq=False)
class Matrix(Node):
    """Rows of cells; ``[a; b]`` stacks rows, ``[a, b]`` sets side by side."""

    rows: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, eq=False)
class Equation(Node):
    r"""``sides[0] = sides[1] = ...``.

    ``name`` is what the left side defines, or None when it is an expression (an identity).
    ``parameters`` are the names of a function's arguments; ``indices`` the indices of the left
    side (``\alpha_{ij}``, ``f(x)_i``); ``shape`` what ``\in \mathbb{R}^{n \times d}`` says.
    """

    name: str | None
    parameters: tuple[str, ...] | None
    indices: tuple[Node, ...]
    sides: tuple[Node, ...]
    left: Span
    shape: tuple[Node, ...] | None


@dataclass(frozen=True)
class Range:
    """An index variable counts from ``lower`` to ``upper``, both included."""

    variable: str
    lower: Node
    upper: Node
