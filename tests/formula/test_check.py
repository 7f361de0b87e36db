"""Formulas against code: right ones agree; each wrong one is refused, with place and values."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from flower_formula import (
    Disagreement,
    FormulaError,
    ShapeError,
    check,
    define,
    evaluate,
)

ATTENTION = ["Q [n, d_k]", "K [m, d_k]", "V [m, d_v]"]
CALL = "flower_transformer.attention.scaled_dot_product_attention(Q, K, V)"
LEFT = r"\mathrm{Attention}(Q, K, V) = "
RIGHT = r"\mathrm{softmax}\left(\frac{QK^{\top}}{\sqrt{d_k}}\right)V"
HEADS = [
    "Q [n, d_model]", "K [m, d_model]", "V [m, d_model]",
    "W_i^Q [d_model, d_k] for i in 1..h", "W_i^K [d_model, d_k] for i in 1..h",
    "W_i^V [d_model, d_v] for i in 1..h", "W^O [h d_v, d_model]",
]  # fmt: skip
MULTI_HEAD = "flower_transformer.attention.multi_head_attention(Q, K, V, W^Q, W^K, W^V, W^O)"


def attention_library() -> dict[str, object]:
    return {"Attention": define(LEFT + RIGHT, ATTENTION, slug="attention")}


@pytest.mark.parametrize(
    "right",
    [
        RIGHT,
        r"\mathrm{softmax}(\frac{QK^T}{\sqrt{d_k}})V",
        r"\text{softmax}\!\left(\frac{Q K^{\mathsf T}}{\sqrt{d_{k}}}\right) V",
        r"\operatorname{softmax}\Bigl( Q K^\intercal / \sqrt{d_k} \Bigr) V",
        r"softmax({QK^T \over {\sqrt{d_k}}})V",
        r"\mathrm{softmax}\left(d_k^{-1/2} \, QK^\top\right)V \tag{1}",
        r"\mathrm{softmax}\left(\frac{1}{\sqrt{d_k}} QK^\top\right) \cdot V.",
        r"\mathrm{softmax}\left(\frac{Q}{\sqrt{d_k}} K^\top\right)V % by hand",
    ],
)
def test_spellings_of_attention_agree(right: str) -> None:
    report = check(LEFT + right, CALL, ATTENTION)
    assert report.draws == 25
    assert report.errors["float64"] < 1e-14
    assert report.errors["float32"] < 1e-6


# The eight edits of the acceptance list, and where each is reported.
EIGHT = {
    "root dropped": (r"\mathrm{softmax}\left(\frac{QK^{\top}}{d_k}\right)V", Disagreement),
    "d_k to d_v": (r"\mathrm{softmax}\left(\frac{QK^{\top}}{\sqrt{d_v}}\right)V", Disagreement),
    "QK^T to KQ^T": (r"\mathrm{softmax}\left(\frac{KQ^{\top}}{\sqrt{d_k}}\right)V", ShapeError),
    "V dropped": (r"\mathrm{softmax}\left(\frac{QK^{\top}}{\sqrt{d_k}}\right)", FormulaError),
    "V inside": (r"\mathrm{softmax}\left(\frac{QK^{\top}}{\sqrt{d_k}}V\right)", Disagreement),
    "root multiplied": (r"\mathrm{softmax}\left(QK^{\top}\sqrt{d_k}\right)V", Disagreement),
    "softmax dropped": (r"\left(\frac{QK^{\top}}{\sqrt{d_k}}\right)V", Disagreement),
    "Q and K swapped": (r"\mathrm{softmax}\left(\frac{Q^{\top}K}{\sqrt{d_k}}\right)V", ShapeError),
}


@pytest.mark.parametrize("edit", EIGHT)
def test_eight_edits_are_refused(edit: str) -> None:
    right, kind = EIGHT[edit]
    with pytest.raises(kind) as caught:
        check(LEFT + right, CALL, ATTENTION)
    assert caught.value.latex == LEFT + right
    assert "^" in str(caught.value).splitlines()[2]


def test_a_disagreement_shows_both_values_and_the_sizes() -> None:
    with pytest.raises(Disagreement) as caught:
        check(LEFT + EIGHT["root dropped"][0], CALL, ATTENTION)
    detail = caught.value.detail or ""
    assert "sizes: n=" in detail
    assert "formula" in detail
    assert "the formula gives" in detail


def test_a_shape_error_names_both_parts_and_shapes() -> None:
    with pytest.raises(ShapeError) as caught:
        check(LEFT + r"\mathrm{softmax}\left(\frac{QK}{\sqrt{d_k}}\right)V", CALL, ATTENTION)
    lines = (caught.value.detail or "").splitlines()
    assert lines[0].startswith("  Q: [n=")
    assert lines[1].startswith("  K: [m=")


def softmax(x: Tensor) -> Tensor:
    return x.softmax(-1)


@pytest.mark.parametrize(
    ("latex", "function", "symbols"),
    [
        (r"\mathrm{softmax}(x)_i = \frac{e^{x_i}}{\sum_{j=1}^n e^{x_j}}", softmax, ["x [n]"]),
        (r"\mathrm{softmax}(x)_i = \frac{\exp(x_i)}{\sum_{j} \exp(x_j)}", softmax, ["x [n]"]),
        (r"y_i = \operatorname{softmax}_i(x_i)", softmax, ["x [n]"]),
        (r"y = \operatorname{softmax}(x)", softmax, ["x [n]"]),
        (
            r"p_i^{(T)} = \frac{\exp(z_i / T)}{\sum_j \exp(z_j / T)}",
            lambda z, t: (z / t).softmax(-1),
            ["z [n]", "T > 0"],
        ),
        (r"s = \sum_{j \neq t} x_j, \quad t = 1, \ldots, n", None, []),
        (r"c = \prod_{j=1}^{n} x_j", lambda x: x.prod(), ["x [n]"]),
        (r"c = \max_j x_j", lambda x: x.max(), ["x [n]"]),
        (r"s_i = \sum_{j=1}^{i} x_j", lambda x: x.cumsum(0), ["x [n]", "i in 1..n"]),
        (r"s_i = \sum_{j \le i} x_j", lambda x: x.cumsum(0), ["x [n]", "i in 1..n"]),
        (r"n_x = \|x\|", lambda x: x.norm(), ["x [n]"]),
        (r"a_{ij} = |x_i - x_j|", lambda x: (x[:, None] - x).abs(), ["x [n]"]),
        (r"y = \frac{x}{\sqrt{\frac{1}{d}\sum_{i=1}^{d}x_i^2 + \epsilon}} \cdot \gamma",
         lambda x, e, g: x / (x.square().mean() + e).sqrt() * g,
         ["x [d]", r"\epsilon", r"\gamma [d]"]),
        (r"y = \max(0, xW_1 + b_1) W_2 + b_2",
         lambda x, w, b, v, c: (x @ w + b).relu() @ v + c,
         ["x [d]", "W_1 [d, f]", "b_1 [f]", "W_2 [f, d]", "b_2 [d]"]),
        (r"y = a \odot b", lambda a, b: a * b, ["a [n]", "b [n]"]),
        (r"y = a^\top b", lambda a, b: a @ b, ["a [n]", "b [n]"]),
        (r"Y = a b^\top", lambda a, b: a.outer(b), ["a [n]", "b [m]"]),
        (r"y = a \cdot b", lambda a, b: a @ b, ["a [n]", "b [n]"]),
        (r"\mathrm{Concat}(a, b) = c", None, []),
        (r"y_i = \begin{cases} x_i & x_i > 0 \\ 0 & \text{否则} \end{cases}",
         torch.relu, ["x [n]"]),
        (r"y = 0.5 x (1 + \tanh(\sqrt{\frac{2}{\pi}}(x + 0.044715 x^3)))",
         lambda x: torch.nn.functional.gelu(x, approximate="tanh"), ["x"]),
    ],
)  # fmt: skip
def test_formulas_against_functions(latex: str, function: object, symbols: list[str]) -> None:
    if function is None:
        with pytest.raises(FormulaError):
            check(latex, lambda: 0, symbols)
        return
    if symbols == ["x"]:
        raw = function
        function = lambda x: raw(torch.tensor(x, dtype=torch.float64))  # type: ignore[operator]  # noqa: E731
    check(latex, function, symbols)  # type: ignore[arg-type]


def test_multi_head_uses_the_formula_of_another_block() -> None:
    latex = (
        r"\mathrm{MultiHead}(Q, K, V) = "
        r"\mathrm{Concat}(\mathrm{head_1}, ..., \mathrm{head_h})W^O \\"
        "\n"
        r"\text{where}~\mathrm{head_i} = \mathrm{Attention}(QW^Q_i, KW^K_i, VW^V_i)"
    )
    check(latex, MULTI_HEAD, HEADS, library=attention_library())
    for right, wrong in [
        ("KW^K_i", "KW^Q_i"), ("VW^V_i", "KW^V_i"), (")W^O", ")"), ("W^V_i)", "W^V_1)"),
        ("QW^Q_i, KW^K_i", "KW^K_i, QW^Q_i"), ("head_1}, ...", "head_2}, ..."),
    ]:  # fmt: skip
        assert right in latex
        with pytest.raises(FormulaError):
            check(latex.replace(right, wrong), MULTI_HEAD, HEADS, library=attention_library())


def test_two_dimensional_positions_fill_every_entry_once() -> None:
    def table(n: int, d: int) -> Tensor:
        pair = torch.arange(d, dtype=torch.float64)
        angle = torch.arange(n)[:, None] / 10000 ** (2 * pair / (2 * d))
        return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)

    symbols = ["pos in 0..n-1", "i in 0..d-1"]
    latex = (
        r"PE_{(pos,2i)} = \sin(pos/10000^{2i/(2d)}) \\ PE_{(pos,2i+1)} = \cos(pos/10000^{2i/(2d)})"
    )
    check(latex, table, symbols)
    with pytest.raises(Disagreement):  # a cosine exponent of its own
        check(latex.replace(r"\cos(pos/10000^{2i", r"\cos(pos/10000^{(2i+1)"), table, symbols)
    with pytest.raises(FormulaError, match="leaves entries undefined"):
        check(latex.replace("2i+1)} =", "2i+3)} ="), table, symbols)
    with pytest.raises(FormulaError, match="defines an entry twice"):
        check(latex.replace("2i+1)} =", "2i)} ="), table, symbols)


@pytest.mark.parametrize(
    ("latex", "symbols", "message"),
    [
        (LEFT + RIGHT, [*ATTENTION, "M [n, m]"], "M is declared but the formula does not use it"),
        (LEFT + RIGHT.replace("V", "U"), ATTENTION, "undeclared symbol U"),
        (r"y = \mathrm{softmax}(x_i)", ["x [n]", "i in 1..n"], "not clear over which index"),
        (r"y_i = \mathrm{softmax}(x_i)", ["x [n]"], "not clear over which index"),
        (r"y = a b", ["a [n]", "b [m]"], "two vectors side by side"),
        (r"y_i = x_i / n x_i", ["x [n]"], "how far the division reaches"),
        (r"y = \log a b", ["a", "b"], "how far log reaches"),
        (r"y_i = x_{i+1}", ["x [n]", "i in 1..n"], "is outside 1.."),
        (r"y_i = x_{i/2}", ["x [n]", "i in 1..n"], "no whole number"),
        (r"y = x + W", ["x", "W_i [n] for i in 1..m"], "it needs its index i"),
        (r"y = \sum_{j=1}^{m} x_j", ["x [n]", "z [m]"], "z is declared but"),
        (r"y_{ij} = a_i + b_i", ["a [n]", "b [m]"], "different sizes"),
        (r"y \approx x", ["x [n]"], "needs a stated tolerance"),
        (r"y = x, z = 2x", ["x [n]"], "defines several things"),
        (r"y = x + ", ["x [n]"], "something is missing"),
        (r"y = x) + x", ["x [n]"], "cannot read on from"),
        (r"y = (x + x", ["x [n]"], "never closed"),
        (r"y = x^-1", ["x [n]"], "only the sign is the exponent"),
        (r"x + x", ["x [n]"], "states nothing"),
        (r"y = f(x)", ["x [n]"], "undeclared symbol f"),
        (r"y = e^x_i", ["x [n]"], "the subscript stands on e"),
    ],
)  # fmt: skip
def test_never_a_guess(latex: str, symbols: list[str], message: str) -> None:
    with pytest.raises(FormulaError) as caught:
        check(latex, lambda *arguments: arguments[0], symbols)
    assert message in str(caught.value)
    assert caught.value.span[1] > caught.value.span[0]


def test_a_notation_with_two_fitting_readings_is_an_error() -> None:
    with pytest.raises(FormulaError, match="two ways that both fit"):
        check(
            r"y = (a \cdot b) \odot c",
            lambda a, b, c: a * b * c,
            ["a [n]", "b [n]", "c [n]"],
        )


def test_the_reading_that_fits_is_reported() -> None:
    report = check(r"y = a \cdot b", lambda a, b: a @ b, ["a [n]", "b [n]"])
    assert report.readings == (r"a \cdot b: inner product",)


def test_unbraced_subscripts_are_read_with_a_warning() -> None:
    report = check(r"y = x / \sqrt{d_model}", lambda x, d: x / d**0.5, ["x [n]", "d_{model} > 0"])
    assert [w.message for w in report.warnings] == ["TeX sets only m as the subscript"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (lambda q, k, v: (q @ k.mT).softmax(-1) @ v, "disagree"),
        (lambda q, k, v: (q @ k.mT / q.shape[-1] ** 0.5).softmax(0) @ v, "disagree"),
        (lambda q, k, v: v, "gives"),
        (lambda q, k, v: "no tensor", "gives a str"),
        (lambda q, k, v: q @ k, "fails on these arguments"),
        (lambda q, k, v: torch.full((q.shape[0], v.shape[1]), torch.nan), "disagree"),
    ],
)
def test_wrong_code_is_refused(code: object, message: str) -> None:
    with pytest.raises(FormulaError, match=message):
        check(LEFT + RIGHT, code, ATTENTION)  # type: ignore[arg-type]


def test_circles_are_refused() -> None:
    a = define("f(x) = g(x)", ["x [n]"], library={"g": define("g(x) = x", ["x [n]"])})
    b = define("g(x) = f(x)", ["x [n]"], library={"f": a})
    with pytest.raises(FormulaError, match="in a circle"):
        check("h(x) = f(x)", lambda x: x, ["x [n]"], library={"f": a, "g": b})


def test_x_i_is_row_i_of_capital_x() -> None:
    check(r"y_{ij} = x_i^\top x_j", lambda x: x @ x.T, ["X [n, d]"])


@pytest.mark.parametrize(
    ("latex", "values", "expected"),
    [
        (r"x \left( y - z + w \right)", {"x": 2, "y": 5, "z": 1, "w": 3}, 14),  # O-01
        (r"x \bigl( y - z + w \Bigg)", {"x": 2, "y": 5, "z": 1, "w": 3}, 14),
        (r"d \cdot 2", {"d": 8}, 16),  # O-05
        (r"2 d h", {"d": 8, "h": 2}, 32),
        (r"a d e", {"a": 3, "d": 8, "e": 1}, 24),
        (r"\frac{d}{h}", {"d": 8, "h": 2}, 4),
        (r"\frac12 + \frac a b", {"a": 1, "b": 2}, 1),  # O-06
        (r"2^{-3}", {}, 0.125),
        (r"-x^2", {"x": 3}, -9),
        (r"\frac{a_1}{a_2} {h}_{i} + 3 b", {"a_1": 6, "a_2": 2, "h_i": 5, "b": 1}, 18),  # O-02
        (r"\lfloor x / 2 \rfloor + \lceil x / 2 \rceil", {"x": 5}, 5),
        (r"\sin^2 x + \cos^2 x", {"x": 0.7}, 1),
        (r"7 \bmod 3", {}, 1),
    ],
)
def test_values(latex: str, values: dict[str, float], expected: float) -> None:
    assert float(evaluate(latex, **values)) == pytest.approx(expected)


@pytest.mark.parametrize(
    "transpose", ["^T", "^{T}", r"^\top", r"^{\top}", r"^{\intercal}", r"^\mathsf{T}"]
)
def test_transpose_is_no_power(transpose: str) -> None:  # O-07
    q, k = torch.randn(2, 3, dtype=torch.float64), torch.randn(5, 3, dtype=torch.float64)
    assert torch.equal(evaluate(f"QK{transpose}", Q=q, K=k), q @ k.T)
    with pytest.raises(ShapeError):
        evaluate(f"K{transpose} Q", Q=q, K=k)


def test_names_with_word_subscripts_differ() -> None:  # O-03
    assert float(evaluate("W_{QK} - W_{KQ}", W_QK=5, W_KQ=3)) == 2
    x = torch.arange(12.0).reshape(3, 4)
    assert float(evaluate("x_{2,3}", x=x)) == 6
    assert float(evaluate("x_{2,2+1}", x=x)) == 6


@pytest.mark.parametrize(
    "bomb", ["x^{9^{9^9}}", r"\sum_{i=1}^{10^{12}} i", r"\prod_{i=1}^{999999999} x"]
)
def test_huge_numbers_do_not_hang(bomb: str) -> None:
    try:
        value = evaluate(bomb, x=2.0)
    except FormulaError:
        return
    assert value.numel() == 1


def test_a_tensor_of_another_block_needs_its_symbols_here() -> None:
    weights = define(
        r"\alpha_i = \frac{\exp(q^\top k_i)}{\sum_{j=1}^{m} \exp(q^\top k_j)}",
        ["q [d]", "k_i [d] for i in 1..m"],
    )
    symbols = ["q [d]", "k_i [d] for i in 1..m", "v_i [w] for i in 1..m"]
    latex = r"o = \sum_{i=1}^{m} \alpha_i v_i"

    def code(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return (k @ q).softmax(0) @ v

    check(latex, code, symbols, library={"alpha": weights})
    with pytest.raises(FormulaError, match="also uses q"):
        check(latex, code, symbols[1:], library={"alpha": weights})


def test_a_stated_space_is_checked() -> None:
    check(r"y = Wx \in \mathbb{R}^{n}, ", lambda w, x: w @ x, ["W [n, m]", "x [m]"])
    check(r"y = Wx \in \mathbb{R}^n", lambda w, x: w @ x, ["W [n, m]", "x [m]"])
    with pytest.raises(ShapeError, match="the text says"):
        check(r"y = Wx \in \mathbb{R}^{m}", lambda w, x: w @ x, ["W [n, m]", "x [m]"])
    with pytest.raises(FormulaError, match="states nothing"):
        check(r"y = Wx \in \mathbb{R}^{n}, foo", lambda w, x: w @ x, ["W [n, m]", "x [m]"])
    with pytest.raises(FormulaError, match="can follow"):
        check(r"y = Wx \in \mathbb{R}^{n} + x", lambda w, x: w @ x, ["W [n, m]", "x [m]"])


def test_kronecker_delta_and_whole_numbers() -> None:
    check(r"q_k = \delta_{k,y}", lambda y, n: torch.eye(n)[y - 1], ["y in 1..K", "k in 1..K"])
    check(
        r"l = \sum_{i=1}^{N} z_{i,y_i}",
        lambda z, y: z[range(len(z)), y - 1].sum(),
        ["z [N, K]", "y [N] in 1..K"],
    )
