r"""How far sine, cosine and tangent reach: as textbooks mean it, or refused."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from flower_formula import Disagreement, FormulaError, check, evaluate

M, N, THETA, PHI, F, T, X = 3.0, 1.0, 0.7, 0.4, 0.3, 1.7, 2.0
VALUES = {"m": M, "n": N, "theta": THETA, "phi": PHI, "f": F, "t": T, "x": X}


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\cos m\theta", math.cos(M * THETA)),
        (r"\sin 2\pi f t", math.sin(2 * math.pi * F * T)),
        (r"\tan \frac{m}{2} \theta", math.tan(M / 2 * THETA)),
        (r"\cos^2 m\theta", math.cos(M * THETA) ** 2),
        (r"\sin m \sqrt{x} {f} t", math.sin(M * math.sqrt(X) * F * T)),
        # it ends at a sign, an operator, a relation, a bracket, bars, a sum or another function
        (r"\sin m\theta + x", math.sin(M * THETA) + X),
        (r"x \cos m\theta - t \sin n\theta", X * math.cos(M * THETA) - T * math.sin(N * THETA)),
        (r"\cos m\theta \cdot x", math.cos(M * THETA) * X),
        (r"x(t - \cos m\theta)", X * (T - math.cos(M * THETA))),
        (r"|\cos m\theta|", abs(math.cos(M * THETA))),
        (r"\frac{\sin m\theta}{x}", math.sin(M * THETA) / X),
        (r"\sin m\theta \cos n\phi", math.sin(M * THETA) * math.cos(N * PHI)),
        (r"\sin\theta\cos\phi", math.sin(THETA) * math.cos(PHI)),
        (r"\sin m\theta \exp(t)", math.sin(M * THETA) * math.exp(T)),
        (r"\cos n\theta \sum_{j} v_j", math.cos(N * THETA) * 6),
        (r"\sin\cos m\theta", math.sin(math.cos(M * THETA))),
        # a bracket is the argument; before an angle a sum in brackets is a factor of it
        (r"\cos(m\theta) x", math.cos(M * THETA) * X),
        (r"\cos\left(m\theta\right) x", math.cos(M * THETA) * X),
        (r"\cos(m)\theta", math.cos(M) * THETA),
        (r"\cos(-m)\theta", math.cos(M) * THETA),
        (r"\cos{\left(m \theta \right)} x", math.cos(M * THETA) * X),
        (r"\cos (m-n)\theta", math.cos((M - N) * THETA)),
        (r"\cos(m-n)\theta", math.cos((M - N) * THETA)),
        (r"\cos \bigl[ m - n \bigr] \, \theta + x", math.cos((M - N) * THETA) + X),
        (r"\sin (m+n)\frac{\pi}{4}", math.sin((M + N) * math.pi / 4)),
        (r"\sin (m+n) 2\pi f", math.sin((M + N) * 2 * math.pi * F)),
        (r"\cos^2 (m-n)\theta", math.cos((M - N) * THETA) ** 2),
        (r"\cos(\theta - \phi) x", math.cos(THETA - PHI) * X),
        (r"\cos(m\theta + \phi) x (m + n)", math.cos(M * THETA + PHI) * X * (M + N)),
        (r"\cos(m-n) \sin\theta", math.cos(M - N) * math.sin(THETA)),
        (r"\cos(m-n) \cdot x", math.cos(M - N) * X),
        (r"\cos((m-n)) x", math.cos(M - N) * X),
        # other spellings of the name
        (r"cos m\theta + sin(m\theta) x", math.cos(M * THETA) + math.sin(M * THETA) * X),
        (r"\mathrm{cos} (m-n)\theta", math.cos((M - N) * THETA)),
        (r"\operatorname{sin} m f t cos n\phi", math.sin(M * F * T) * math.cos(N * PHI)),
    ],
)  # fmt: skip
def test_values(latex: str, expected: float) -> None:
    assert float(evaluate(latex, v=torch.tensor([1.0, 2.0, 3.0]), **VALUES)) == pytest.approx(
        expected, rel=1e-12
    )


@pytest.mark.parametrize(
    "latex",
    [
        r"\cos(m-n) x",  # no angle on either side
        r"\cos(\theta + \phi)\theta",  # one on both
        r"\cos(m-n)^2\theta",
        r"\cos(m-n)(\theta + \phi)",
        r"\cos \theta (m + n)",
        r"\sin m |x|",
        r"\sin 2\pi m / n",
        r"\sin 2\pi m \bmod n",
        r"\cos{m\theta} x",  # prints as \cos m\theta x
        r"\sin \exp(m) n",
        r"\log m n",
        r"\exp m n",
        r"\tanh m n",
        r"log m n",
    ],
)
def test_what_is_not_clear_is_refused(latex: str) -> None:
    with pytest.raises(FormulaError, match="not clear how far") as caught:
        evaluate(latex, **VALUES)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("latex", "symbols"),
    [
        (r"y = \cos m v", ["m", "v [d]"]),
        (r"y = \sin A v", ["A [d, d]", "v [d]"]),
        (r"y = \sin u^\top v", ["u [d]", "v [d]"]),
        (r"y = \cos (m-n)\theta v", ["m", "n", r"\theta", "v [d]"]),
    ],
)
def test_only_numbers_are_taken(latex: str, symbols: list[str]) -> None:
    with pytest.raises(FormulaError, match="is no number, but") as caught:
        check(latex, lambda *_: 0, symbols)
    start, end = caught.value.span
    assert latex[start:end].startswith(("\\cos", "\\sin"))


ROTATION = r"""y = \begin{pmatrix} \cos m\theta_1 & -\sin m\theta_1 & 0 & 0 \\
\sin m\theta_1 & \cos m\theta_1 & 0 & 0 \\ 0 & 0 & \cos m\theta_2 & -\sin m\theta_2 \\
0 & 0 & \sin m\theta_2 & \cos m\theta_2 \end{pmatrix} x"""


def test_the_matrix_of_rotary_embedding() -> None:
    symbols = [r"\theta_1", r"\theta_2", "x [4]", "m in 0..9"]

    def code(first: float, second: float, x: Tensor, m: int) -> Tensor:
        angle = m * torch.tensor([first, second], dtype=torch.float64)
        a, b, cos, sin = x[::2], x[1::2], angle.cos(), angle.sin()
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten()

    report = check(ROTATION, code, symbols)
    assert r"\cos m\theta_1: cos of the whole product" in report.readings
    with pytest.raises(Disagreement):
        check(ROTATION.replace(r"& -\sin m\theta_2", r"& \sin m\theta_2"), code, symbols)


def test_the_report_says_how_it_was_read() -> None:
    symbols = ["m in 0..9", "n in 0..9", r"\theta"]
    latex = r"s = \cos (m-n)\theta"

    def right(theta: float, m: int, n: int) -> float:
        return math.cos((m - n) * theta)

    assert check(latex, right, symbols).readings == (r"\cos (m-n)\theta: cos of the whole product",)
    with pytest.raises(Disagreement) as caught:
        check(latex, lambda theta, m, n: math.cos(m - n) * theta, symbols)
    assert r"read as \cos (m-n)\theta: cos of the whole product" in (caught.value.detail or "")
    report = check(r"s = \cos(\theta + m) n", lambda t, m, n: math.cos(t + m) * n, symbols)
    assert report.readings == (r"\cos(\theta + m): cos of the bracket alone",)
    with pytest.raises(Disagreement):
        check(r"s = \cos(\theta + m) n", lambda t, m, n: math.cos((t + m) * n), symbols)
    plain = check(r"s = \cos(m\theta) n", lambda t, m, n: math.cos(m * t) * n, symbols)
    assert plain.readings == ()


def test_the_product_of_rotated_vectors_depends_on_the_distance() -> None:
    latex = (
        r"(a \cos m\theta)(a \cos n\theta) + (a \sin m\theta)(a \sin n\theta) "
        r"= a^2 \cos (m-n)\theta"
    )
    symbols = ["a", r"\theta", "m in 0..9", "n in 0..9"]
    check(latex, None, symbols)
    with pytest.raises(Disagreement):
        check(latex.replace("(m-n)", "(m+n)"), None, symbols)
