"""Whether two results agree, and how to say that they do not."""

from __future__ import annotations

from dataclasses import dataclass

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
    ``precision`` is ``float64`` or ends in ``float32``.
    """

    expected: Tensor
    result: Tensor
    other: str
    span: Span
    sizes: dict[str, int]
    axis_names: dict[int, str]
    precision: str

    def require_shape(self) -> None:
        """Both have the same shape, and the formula has a value.

        Raises:
            ShapeError: naming both shapes.
            FormulaError: if the formula gives NaN.
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
        if bool(self.expected.isnan().any()):
            raise FormulaError(
                "the formula has no value here: 0/0, the root of a negative number, "
                "or a softmax over nothing",
                self.span,
                "restrict the symbols' domains, or define this case",
            )

    def require_agreement(self) -> float:
        """The largest relative error, if it is within the tolerance.

        Raises:
            Disagreement: with the sizes, both values at the place of the largest error, and that
                error.
        """
        self.require_shape()
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
        sizes = ", ".join(f"{spelled(name)}={size}" for name, size in self.sizes.items())
        values = [float(tensor.reshape(-1)[at]) for tensor in (self.expected, self.result)]
        lines = [f"  sizes: {sizes}"] if sizes else []
        lines.append(f"  entry {place}:" if place else "  value:")
        lines[-1] += f" the formula gives {values[0]:.6g}, {self.other} {values[1]:.6g}"
        lines.append(f"  largest relative error in {self.precision}: {error:.3g}")
        return "\n".join(lines)


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
