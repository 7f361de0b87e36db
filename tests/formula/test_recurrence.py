"""Recurrences are computed step by step, and wrong ones are refused."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from flower_formula import Disagreement, FormulaError, check

ONLINE_SOFTMAX = r"""\begin{aligned}
m_0 &= -\infty, \quad l_0 = 0 \\
m_j &= \max(m_{j-1}, x_j) \\
l_j &= l_{j-1} e^{m_{j-1} - m_j} + e^{x_j - m_j} \\
\mathrm{softmax}(x)_i &= \frac{e^{x_i - m_n}}{l_n}
\end{aligned}"""
RECURRENT = r"h_t = \tanh(W h_{t-1} + U x_t + b)"


def recurrent(w: Tensor, u: Tensor, x: Tensor, b: Tensor, h: Tensor) -> Tensor:
    states = []
    for step in x:
        h = (w @ h + u @ step + b).tanh()
        states.append(h)
    return torch.stack(states)


def test_recurrences_are_computed_step_by_step() -> None:
    check(ONLINE_SOFTMAX, lambda x: x.softmax(0), ["x [n]", "j in 1..n"])
    symbols = ["W [d, d]", "U [d, p]", "x_t [p] for t in 1..T", "b [d]", "h_0 [d]"]
    check(RECURRENT, recurrent, symbols)
    for wrong in ("W h_{t-1} + U x_t", "W h_{t-1} - U x_t + b", "W h_{t-1} + U x_t + b + h_{t-1}"):
        with pytest.raises(FormulaError):
            check(RECURRENT.replace("W h_{t-1} + U x_t + b", wrong), recurrent, symbols)
    wrong = ONLINE_SOFTMAX.replace("e^{x_j - m_j}", "e^{x_j - m_n}")
    with pytest.raises(FormulaError):
        check(wrong, lambda x: x.softmax(0), ["x [n]", "j in 1..n"])
    with pytest.raises(FormulaError, match="has no first member"):
        check(RECURRENT, recurrent, symbols[:-1])
    with pytest.raises(FormulaError, match="is outside"):
        check(RECURRENT.replace("h_{t-1}", "h_{t-2}"), recurrent, symbols)


def test_one_step_of_a_recurrence() -> None:
    latex = r"m_t = \beta m_{t-1} + (1 - \beta) g_t, \quad \hat{m}_t = \frac{m_t}{1 - \beta^t}"
    symbols = ["m_{t-1} [d]", "g_t [d]", r"\beta in (0, 1)", "t in 1..9"]
    check(latex, lambda m, g, b, t: (b * m + (1 - b) * g) / (1 - b**t), symbols)
    with pytest.raises(Disagreement):
        check(latex, lambda m, g, b, t: b * m + (1 - b) * g, symbols)
