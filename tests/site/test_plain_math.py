"""Formulas where only plain text can stand."""

from __future__ import annotations

import pytest

from flower_site.plain_math import plain_sentence, plain_text


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"\sqrt{d_k}", "√d_k"),
        (r"\sqrt{d_{\text{model}}}", "√d_model"),
        (r"\sqrt{a+b}", "√(a+b)"),
        (r"\sqrt[3]{x}", "³√x"),
        ("W^O", "Wᴼ"),
        ("W_h^Q", "W_h^Q"),
        (r"QK^\top", "QKᵀ"),
        (r"QK^{\mathsf T}", "QKᵀ"),
        ("x^2", "x²"),
        ("10000^{2i/d}", "10000^(2i/d)"),
        (r"\lambda_1", "λ_1"),
        (r"\frac{1}{n}", "1/n"),
        (r"\frac{QK^{\top}}{\sqrt{d_k}}", "QKᵀ/(√d_k)"),
        (r"\mathrm{softmax}\left(QK^\top\right)V", "softmax(QKᵀ)V"),
        (r"\hat{y}_i = \sum_{j} \alpha_{ij} v_j", "ŷ_i = Σ_jα_ijv_j"),
        (r"n \to \infty", "n→∞"),
        (r"\text{带掩码的 分数} = \mathbb{R}", "带掩码的 分数 = ℝ"),
        (r"a \\ b", "a; b"),
        (r"\begin{aligned} x &= 1 \end{aligned}", "x = 1"),
        (r"\foo{x}", "foox"),
        (r"\frac", "/"),
        ("{x", "x"),
        ("x_", "x_"),
    ],
)
def test_plain_text(latex: str, text: str) -> None:
    assert plain_text(latex) == text


def test_a_sentence_keeps_its_words() -> None:
    assert plain_sentence(r"除以 $\sqrt{d_k}$，再乘 $W^O$。") == "除以 √d_k，再乘 Wᴼ。"
    assert plain_sentence("花 $5 与 $6。") == "花 $5 与 $6。"
