"""Whether two results agree, and how to say that they do not."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from flower_formula.errors import Disagreement, FormulaError, ShapeError, Span
from flower_formula.names import spelled
from flower_formula.values import describe

# Largest error that counts as agreement, relative to the largest value of the result.
TOLERANCE = {"float64": 1e-9, "float32": 2e-5}


@dataclass(frozen=True)
class Comparison:
    """A value of the formula beside another one, on one draw.

    ``other`` names who gave the other value; ``sizes`` are the sizes of the draw, ``axis_names``
    the names by size;
    ``precision`` is ``float64`` or ends in ``float32``; ``failure`` is the error with which the
    function refused its arguments (``result`` is NaN then). ``by_code``: ``other`` is a function,
    not another side of the formula.
    """

    expected: Tensor
    result: Tensor
    other: str
    span: Span
    sizes: dict[str, int]
    axis_names: dict[int, str]
    precision: str
    failure: FormulaError | None = None
    by_code: bool = False

    @property
    def undefined(self) -> bool:
        """Whether one of them lacks a value: it is NaN, or infinite where the other is not so."""
        return self.expected.shape == self.result.shape and bool(self._lacking().any())

    def _lacking(self) -> Tensor:
        finite = torch.isfinite(self.expected) & torch.isfinite(self.result)
        return ~finite & (self.expected != self.result)

    def require_defined_rest(self, at: str, hint: str) -> None:
        """The entries that both give agree; a function gives all that the formula gives.

        Where the formula lacks a value it says nothing, whatever the function returns there.

        Raises:
            FormulaError: if the function lacks a value that the formula has; ``at`` names the
                sizes.
            Disagreement: if the other entries differ.
        """
        lacking = self._lacking()
        if self.by_code and bool((torch.isfinite(self.expected) & lacking).any()):
            refused = "" if self.failure is None else f" ({self.failure.message})"
            raise FormulaError(
                f"at {at} {self.other} has no value, but the formula has one{refused}",
                self.span,
                hint,
                self._both_values(float("inf")),
            )
        zero = torch.zeros_like(self.expected)
        expected, result = (torch.where(lacking, zero, x) for x in (self.expected, self.result))
        replace(self, expected=expected, result=result, failure=None).require_agreement()

    def require_shape(self) -> None:
        """Both have the same shape.

        Raises:
            ShapeError: naming both shapes.
        """
        shapes = [
            describe(tuple(tensor.shape), self.axis_names)
            for tensor in (self.expected, self.result)
        ]
        if self.expected.shape != self.result.shape:
            raise ShapeError(
                f"the formula gives {shapes[0]}, {self.other} gives {shapes[1]}",
                self.span,
                "check transposes, indices and the declared shapes",
            )

    def require_agreement(self) -> float:
        """The largest relative error, if it is within the tolerance.

        Raises:
            FormulaError: if the formula gives NaN, or the function refused its arguments.
            Disagreement: with the sizes, both values at the place of the largest error, and that
                error.
        """
        self.require_shape()
        if self.failure is not None:
            raise self.failure
        if bool(self.expected.isnan().any()):
            raise FormulaError(
                "the formula has no value here: 0/0, the root of a negative number, "
                "or a softmax over nothing",
                self.span,
                "restrict the symbols' domains, or define this case",
                self._sizes(),
            )
        error = largest_error(self.expected, self.result)
        if error <= TOLERANCE[self.precision.split()[-1]]:
            return error
        raise Disagreement(
            f"the formula and {self.other} disagree",
            self.span,
            "correct the formula, or the code",
            self._both_values(error),
        )

    def _both_values(self, error: float) -> str:
        gap = (self.expected - self.result).abs().nan_to_num(torch.inf)
        gap = torch.where(self.expected == self.result, torch.zeros_like(gap), gap)
        at = int(gap.argmax())
        place: list[int] = []
        rest = at
        for size in reversed(gap.shape):  # torch.unravel_index would first import sympy
            rest, index = divmod(rest, size)
            place.insert(0, index + 1)
        values = [float(tensor.reshape(-1)[at]) for tensor in (self.expected, self.result)]
        lines = [sizes] if (sizes := self._sizes()) else []
        lines.append(f"  entry {place}:" if place else "  value:")
        lines[-1] += f" the formula gives {values[0]:.6g}, {self.other} {values[1]:.6g}"
        lines.append(f"  largest relative error in {self.precision}: {error:.3g}")
        return "\n".join(lines)

    def _sizes(self) -> str:
        sizes = ", ".join(f"{spelled(name)}={size}" for name, size in self.sizes.items())
        return f"  sizes: {sizes}" if sizes else ""


def largest_error(expected: Tensor, result: Tensor) -> float:
    """The largest difference, relative to the largest finite value of ``expected``.

    It is infinite where only one of the two is finite, or where they are different infinities or
    NaN.
    """
    same = expected == result
    if bool(same.all()):
        return 0.0
    finite = torch.isfinite(expected) & torch.isfinite(result)
    if not bool((finite | same).all()):
        return float("inf")
    scale = expected[finite].abs().max().clamp(min=torch.finfo(torch.float64).tiny)
    return float((expected - result)[finite].abs().max() / scale)
