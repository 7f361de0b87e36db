"""The 28 published spellings: how authors really write these formulas, and what becomes of each.

An OK formula agrees with the function. A WRONG one is refused, at its place or with both values,
and its correction agrees. A VARIANT agrees with its own function and not with the other. An AMBIG
one is read with a warning, or refused by the name that has two meanings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from flower_formula import Definition, FormulaError, check, define

ATTENTION = ["Q [n, d_k]", "K [m, d_k]", "V [m, d_v]"]
SDPA = "flower_transformer.attention.scaled_dot_product_attention(Q, K, V)"
HEADS = [
    "Q [n, d]", "K [m, d]", "V [m, d]", "W_i^Q [d, d_k] for i in 1..h",
    "W_i^K [d, d_k] for i in 1..h", "W_i^V [d, d_v] for i in 1..h", "W^O [h d_v, d]",
]  # fmt: skip
MULTI_HEAD = "flower_transformer.attention.multi_head_attention(Q, K, V, W^Q, W^K, W^V, W^O)"


def sinusoid(n: int, half: int) -> Tensor:
    pair = torch.arange(half, dtype=torch.float64)
    angle = torch.arange(n, dtype=torch.float64)[:, None] / 10000 ** (2 * pair / (2 * half))
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    mask = torch.ones(q.shape[0], k.shape[0], dtype=torch.bool).tril()
    return F.scaled_dot_product_attention(q, k, v, mask)


def layer_norm(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], gain, bias, eps)


def deviation_norm(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> Tensor:
    return gain * (x - x.mean()) / (x.std(unbiased=False) + eps) + bias


def gelu_tanh(x: float) -> Tensor:
    return F.gelu(torch.tensor(x, dtype=torch.float64), approximate="tanh")


def swiglu(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    return F.silu(x @ w) * (x @ v)


def smoothed_loss(p: Tensor, eps: float, y: int) -> Tensor:
    target = torch.tensor([y - 1])
    return F.cross_entropy(p.log()[None], target, label_smoothing=eps) - p.sum().log()


def grouped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q[None], k[None], v[None], enable_gqa=True)[0]


def rotate(x: Tensor, m: float, angles: Tensor, *, halves: bool) -> Tensor:
    if halves:
        a, b = x.chunk(2)
        turned = torch.cat([-b, a])
    else:
        turned = torch.stack([-x[1::2], x[::2]], -1).flatten()
    return x * (m * angles).cos() + turned * (m * angles).sin()


@dataclass(frozen=True)
class Spelling:
    """``fix`` replaces in a WRONG formula what is wrong; ``fixed`` has the function and the symbols
    where the correction needs others; ``other`` is a function that must not agree.
    """

    verdict: str
    latex: str
    function: str | Callable[..., Any]
    symbols: list[str] = field(default_factory=lambda: ATTENTION)
    fix: tuple[str, str] = ("", "")
    other: Callable[..., Any] | None = None
    library: dict[str, Definition] = field(default_factory=dict)
    fixed: tuple[Callable[..., Any], list[str]] | None = None


PE_SYMBOLS = ["pos in 0..n-1", "i in 0..c-1", "d_{model} = 2 c"]
ATTENTION_LIBRARY = {
    "Attention": define(
        r"\mathrm{Attention}(Q,K,V) = \mathrm{softmax}(\frac{QK^T}{\sqrt{d_k}})V", ATTENTION
    )
}
HALVES = {
    "rotate_half": define(
        r"\text{rotate\_half}(x)_i = \begin{cases} -x_{i+c} & i \le c \\ x_{i-c} & i > c \end{cases}",
        ["x [d]", "i in 1..d", "d = 2 c"],
    )
}

SPELLINGS = {
    "S-01": Spelling("OK", r"\mathrm{Attention}(Q, K, V) = \mathrm{softmax}(\frac{QK^T}{\sqrt{d_k}})V", SDPA),
    "S-02": Spelling("AMBIG", r"A(Q, K, V) = softmax({QK^T \over {\sqrt d_{k}}})V", SDPA),
    "S-03": Spelling("OK", r"\text{Attention}(Q,K,V) = \text{softmax}\!\left(\frac{QK^{\top}}{\sqrt{d_k}}\right)V", SDPA),
    "S-04": Spelling("WRONG", r"\text{Attention}(Q, K, V) = \frac{1}{\sqrt{d_k}} \text{softmax}\left(\frac{QK^T}{d_k}\right) V", SDPA,
        fix=(r"\frac{1}{\sqrt{d_k}} \text{softmax}\left(\frac{QK^T}{d_k}", r"\text{softmax}\left(\frac{QK^T}{\sqrt{d_k}}")),
    "S-05": Spelling("WRONG", r"\mathop{Attention}(Q, K, V) = \underset{seq}{\mathop{softmax}}\Bigg(\frac{Q^\top K}{\sqrt{d_k}}\Bigg)V", SDPA,
        fix=(r"Q^\top K", r"Q K^\top")),
    "S-06": Spelling("OK", "\\text{带掩码的分数} = \\frac{QK^T}{\\sqrt{d_k}} + M \\\\\n\\text{注意力权重} = \\text{softmax}(\\text{带掩码的分数}) \\\\\n\\text{注意力}(Q, K, V) = \\text{注意力权重} V",
        "flower_transformer.attention.masked_attention(Q, K, V, M)", [*ATTENTION, "M [n, m]"]),
    "S-07": Spelling("OK", r"\mathrm{Attention}(Q,K,V) = \mathrm{softmax}\left(\frac{QK^{\top}}{\sqrt{d_k}} + M\right)V, \qquad M_{ij} = \begin{cases} 0 & j \le i \cr -\infty & j > i \end{cases}",
        causal_attention, [*ATTENTION, "i in 1..n", "j in 1..m"]),
    "S-08": Spelling("OK", "\\mathrm{MultiHead}(Q, K, V) = \\mathrm{Concat}(\\mathrm{head_1}, ..., \\mathrm{head_h})W^O \\\\\n    \\text{where}~\\mathrm{head_i} = \\mathrm{Attention}(QW^Q_i, KW^K_i, VW^V_i)",
        MULTI_HEAD, HEADS, library=ATTENTION_LIBRARY),
    "S-09": Spelling("OK", r"\begin{aligned} p_{i, 2j} &= \sin\left(\frac{i}{10000^{2j/d}}\right),\\p_{i, 2j+1} &= \cos\left(\frac{i}{10000^{2j/d}}\right).\end{aligned}",
        lambda d, n, c: sinusoid(n, c), ["i in 0..n-1", "j in 0..c-1", "d = 2 c"]),
    "S-10": Spelling("OK", "PE_{(pos,i)} = \\begin{cases}\n    \\sin\\left(\\frac{pos}{10000^{i/d_{\\text{model}}}}\\right) & \\text{if}\\hspace{3mm} i \\text{ mod } 2=0\\\\\n    \\cos\\left(\\frac{pos}{10000^{(i-1)/d_{\\text{model}}}}\\right) & \\text{otherwise}\\\\\n\\end{cases}",
        lambda d, n, c: sinusoid(n, c), ["pos in 0..n-1", "i in 0..d_{model}-1", "d_{model} = 2 c"]),
    "S-11": Spelling("WRONG", "PE_{(pos, 2i)} = sin(pos/10000^{(2i)/d_model}) \\\\\nPE_{(pos, 2i+1)} = cos(pos/10000^{(2i+1)/d_model})",
        lambda d, n, c: sinusoid(n, c), PE_SYMBOLS, fix=("{(2i+1)/", "{(2i)/")),
    "S-12": Spelling("OK", "\\text{LN}(X) = \\gamma\n\\frac{X - \\underset{C}{\\mathbb{E}}[X]}{\\sqrt{\\underset{C}{Var}[X] + \\epsilon}}\n+ \\beta",
        layer_norm, ["X [N, C]", r"\gamma [C]", r"\beta [C]", r"\epsilon"]),
    "S-13": Spelling("VARIANT", r"y=\gamma\cdot\frac{x-\mu}{\sigma+\epsilon}+\beta, \mu = \frac{1}{d}\sum_i x_i, \sigma = \sqrt{\frac{1}{d}\sum_i (x_i - \mu)^2}",
        deviation_norm, ["x [d]", r"\gamma [d]", r"\beta [d]", r"\epsilon"], other=layer_norm),
    "S-14": Spelling("OK", r"\text{RMSNorm}(x) = \frac{x}{\sqrt{\frac{1}{n}\sum_{i=1}^{n}x_i^2 + \epsilon}} \cdot \gamma",
        lambda x, g, e: x / (x.square().mean() + e).sqrt() * g, ["x [n]", r"\gamma [n]", r"\epsilon"]),
    "S-15": Spelling("OK", r"\mathrm{FFN}(x)=\max(0, xW_1 + b_1) W_2 + b_2", lambda x, w, b, v, c: (x @ w + b).relu() @ v + c,
        ["x [d]", "W_1 [d, f]", "b_1 [f]", "W_2 [f, d]", "b_2 [d]"]),
    "S-16": Spelling("WRONG", r"\text{SwiGLU}(x) = x \cdot \sigma(x) + \tanh(x)", F.silu, ["x [d]"],
        fix=(r"x \cdot \sigma(x) + \tanh(x)", r"(xW \odot \sigma(xW)) \odot xV"),
        fixed=(swiglu, ["x [d]", "W [d, f]", "V [d, f]"])),
    "S-17": Spelling("WRONG", r"GELU(x) = 0.5x(1 + tanh(\sqrt{\frac{2}{\pi}})(x + 0.044715x^3))", gelu_tanh, ["x"],
        fix=(r"{\pi}})(x + 0.044715x^3)", r"{\pi}}(x + 0.044715x^3))")),
    "S-18": Spelling("WRONG", r"\text{softmax}(x)_i = \frac{e^{xi}}{\sum_{j}e^{x_j}}", lambda x: x.softmax(-1), ["x [n]"],
        fix=("e^{xi}", "e^{x_i}")),
    "S-19": Spelling("OK", r"p_i^{(T)} = \frac{\exp(z_i / T)}{\sum_j \exp(z_j / T)}", lambda z, t: (z / t).softmax(-1), ["z [n]", "T > 0"]),
    "S-19, sibling": Spelling("OK", r"q_i = \frac{\exp (\frac{z_i}{T})}{\sum_j \exp (\frac{z_j}{T})}", lambda z, t: (z / t).softmax(-1), ["z [n]", "T > 0"]),
    "S-20": Spelling("WRONG", r"\Theta = {\theta_i = 10000^{\frac{2(i-1)}{d}}, i \in [1, 2, ..., \frac{d}{2}]}",
        lambda d: 10000 ** (-2 * torch.arange(d // 2, dtype=torch.float64) / d), ["d = 2 c"], fix=("{2(i-1)}", "{-2(i-1)}")),
    "S-21": Spelling("AMBIG", r"\text{RoPE}(x, m) = x \odot \cos(m\Theta) + \text{rotate\_half}(x) \odot \sin(m\Theta)",
        lambda x, m, t: rotate(x, m, t, halves=True), ["x [d]", "m", r"\Theta [d]", "d = 2 c"],
        other=lambda x, m, t: rotate(x, m, t, halves=False), library=HALVES),
    "S-22": Spelling("OK", r"\mathcal{L}=-(1-\epsilon)\log p_y-\frac{\epsilon}{K}\sum_{k=1}^{K}\log p_k",
        smoothed_loss, ["p [K] in (0.1, 1)", r"\epsilon", "y in 1..K"]),
    "S-23": Spelling("OK", "lrate = d_{\\text{model}}^{-0.5} \\cdot\n  \\min({step\\_num}^{-0.5},\n    {step\\_num} \\cdot {warmup\\_steps}^{-1.5})",
        lambda d, s, w: d**-0.5 * min(s**-0.5, s * w**-1.5), [r"d_{\text{model}} > 0", r"step\_num in 1..9", r"warmup\_steps in 1..9"]),
    "S-24": Spelling("OK", r"a(\mathbf q, \mathbf k) = \mathbf w_v^\top \text{tanh}(\mathbf W_q\mathbf q + \mathbf W_k \mathbf k) \in \mathbb{R},",
        lambda q, k, w, a, b: w @ (a @ q + b @ k).tanh(), ["q [s]", "k [t]", "w_v [h]", "W_q [h, s]", "W_k [h, t]"]),
    "S-24, sibling": Spelling("OK", r"e = v_a^\top \tanh\!\big(W_a[s_t;h_j]\big)",
        lambda s, h, w, v: v @ (w @ torch.cat([s, h])).tanh(), ["s_t [a]", "h_j [b]", "W_a [c, a + b]", "v_a [c]"]),
    "S-25": Spelling("OK", r"\text{head}_i = \text{Softmax}\left(\frac{Q_i K_{\lfloor i \cdot g / h \rfloor}^T}{\sqrt{d_k}}\right) V_{\lfloor i \cdot g / h \rfloor}",
        grouped, ["Q_i [n, d_k] for i in 0..h-1", "K_j [m, d_k] for j in 0..g-1", "V_j [m, d_k] for j in 0..g-1", "h = r g"]),
    "S-26": Spelling("OK", r"\text{score}(m,n)=\frac{q_m^\top k_n}{\sqrt{d}}-m_h\,|m-n|,\qquad m_h=2^{-8h/H},\ h=1,\dots,H \tag{11}",
        lambda q, k, h, n, d, big: q @ k.T / d**0.5 - 2 ** (-8 * h / big) * (torch.arange(n)[:, None] - torch.arange(n)).abs().double(),
        ["m in 1..N", "n in 1..N", "q_m [d] for m in 1..N", "k_n [d] for n in 1..N", "h in 1..H"]),
    "S-27": Spelling("OK", r"\mathbf{z}_0 = [ \mathbf{x}_\text{class}; \, \mathbf{x}^1_p \mathbf{E}; \, \mathbf{x}^2_p \mathbf{E}; \cdots; \, \mathbf{x}^{N}_p \mathbf{E} ] + \mathbf{E}_{pos}",
        lambda c, x, e, p: torch.cat([c[None], x @ e]) + p,
        [r"\mathbf{x}_\text{class} [D]", r"\mathbf{x}^i_p [P] for i in 1..N", r"\mathbf{E} [P, D]", r"\mathbf{E}_{pos} [N + 1, D]"]),
    "S-28": Spelling("VARIANT", r"b = \exp\left(\min\left(0, 1 - \frac{\mathrm{len}_{\text{label}}}{\mathrm{len}_{\text{pred}}}\right)\right) \prod_{n=1}^k p_n^{1/2^n},",
        lambda a, b, p: math.exp(min(0, 1 - a / b)) * torch.prod(p ** (1 / 2 ** torch.arange(1, len(p) + 1))),
        [r"\mathrm{len}_{label} > 0", r"\mathrm{len}_{pred} > 0", "p [k] in (0.1, 1)"],
        other=lambda a, b, p: math.exp(min(0, 1 - a / b)) * torch.prod(p ** (1 / len(p)))),
    "S-28, sibling": Spelling("OK", r"\text{BLEU} = \text{BP} \cdot \exp\left(\sum_{n=1}^{N} w_n \log p_n\right)",
        lambda bp, w, p: bp * (w * p.log()).sum().exp(), [r"\text{BP}", "w [N]", "p [N] in (0.1, 1)"]),
}  # fmt: skip


def run(
    spelling: Spelling, latex: str, function: str | Callable[..., Any], symbols: list[str]
) -> list[str]:
    report = check(latex, function, symbols, library=spelling.library)
    return [warning.message for warning in report.warnings]


@pytest.mark.parametrize("name", SPELLINGS)
def test_spelling(name: str) -> None:
    spelling = SPELLINGS[name]
    if spelling.verdict == "WRONG":
        with pytest.raises(FormulaError) as caught:
            run(spelling, spelling.latex, spelling.function, spelling.symbols)
        assert caught.value.span[1] > caught.value.span[0]
        assert spelling.fix[0] in spelling.latex
        right = spelling.latex.replace(*spelling.fix)
        run(spelling, right, *(spelling.fixed or (spelling.function, spelling.symbols)))
        return
    warnings = run(spelling, spelling.latex, spelling.function, spelling.symbols)
    assert bool(warnings) == (name == "S-02")
    if spelling.other is not None:
        with pytest.raises(FormulaError):
            run(spelling, spelling.latex, spelling.other, spelling.symbols)


def test_rotate_half_without_its_definition_is_refused_by_name() -> None:
    spelling = SPELLINGS["S-21"]
    with pytest.raises(FormulaError, match="rotate_half"):
        check(spelling.latex, spelling.function, spelling.symbols)


def test_all_28_are_here() -> None:
    assert {name.split(",")[0] for name in SPELLINGS} == {f"S-{n:02}" for n in range(1, 29)}
