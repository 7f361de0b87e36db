"""TeX's own structure: arguments, scripts, groups; nothing unknown or unbalanced gets through."""

from __future__ import annotations

import pytest

from flower_formula.errors import FormulaError
from flower_formula.tex import Item, read_items


def outline(items: tuple[Item, ...]) -> str:
    """Items as a string: ``frac{1}{2}``, ``W_{i}^{Q}``."""
    parts = []
    for item in items:
        inner = "".join(f"{{{outline(part)}}}" for part in item.parts if part)
        sub = f"_{{{outline(item.sub)}}}" if item.sub is not None else ""
        sup = f"^{{{outline(item.sup)}}}" if item.sup is not None else ""
        kind = item.kind if item.kind in ("frac", "sqrt", "group", "under") else item.text
        parts.append(kind + inner + sub + sup)
    return " ".join(parts)


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\frac12", "frac{1}{2}"),
        (r"\frac a b", "frac{a}{b}"),
        (r"\dfrac{a}{b}", "frac{a}{b}"),
        (r"\sqrt d", "sqrt{d}"),
        (r"\sqrt d_k", "sqrt{d}_{k}"),  # TeX sets the root over d alone
        (r"\sqrt[3]{x}", "sqrt{x}{3}"),
        (r"{x \over y}", "group{frac{x}{y}}"),
        (r"10000^{2i}", "10000^{2 i}"),
        (r"0.5x", "0.5 x"),
        (r"W^Q_i", "W_{i}^{Q}"),
        (r"W_i^Q", "W_{i}^{Q}"),
        (r"W_\text{up}", "W_{up}"),
        (r"x_12", "x_{1} 2"),  # one digit is TeX's argument
        (r"\left( a \right)", "( a )"),
        (r"\bigl( a \Bigg)", "( a )"),
        (r"a \, b \quad c~d", "a b c d"),
        ("a % a comment\n b", "a b"),
        (r"a = b \tag{1} \label{eq:x}", "a = b"),
        (r"x\hspace{3mm}y", "x y"),
        (r"\mathrm{head_1}", "head_{1}"),
        (r"\mathrm{softmax}", "softmax"),
        (r"\operatorname{softmax}", "softmax"),
        (r"\operatorname*{softmax}", "softmax"),
        (r"\mathbf{x}_i", "x_{i}"),
        (r"\mathbf q", "q"),
        (r"\text{rotate\_half}", "rotate_half"),
        (r"\text{带掩码的分数}", "带掩码的分数"),
        (r"a, ..., b", "a , ldots , b"),
        (r"x'", "x^{prime}"),
    ],
)
def test_structure(latex: str, expected: str) -> None:
    assert outline(read_items(latex)) == expected


def test_environments_keep_rows_and_cells() -> None:
    (rows,) = read_items(r"\begin{cases} 0 & j \le i \cr -\infty & \text{otherwise} \\ \end{cases}")
    assert rows.text == "cases"
    assert [[outline(cell) for cell in row] for row in rows.rows] == [
        ["0", "j le i"],
        ["- infty", "otherwise"],
    ]


@pytest.mark.parametrize(
    ("latex", "message", "start"),
    [
        (r"a + \foo b", r"unknown command \foo", 4),
        (r"a + {b", "never closed", 4),
        (r"a } b", "without its opening", 2),
        (r"\frac{a}", "ends where the denominator", 7),
        (r"x^2^3", "a second ^", 3),
        (r"x_", "ends where a subscript", 1),
        (r"^2", "nothing before it", 0),
        (r"\begin{cases} a & b", "never closed", 0),
        (r"\begin{cases} a \end{aligned}", "closed by", 16),
        (r"\begin{tikz} \end{tikz}", "unknown environment", 0),
        (r"\text x + \text", "needs an argument", 10),
        ("a \\", "backslash at the end", 2),
        ("a ☃ b", "unknown character", 2),
        ("a \x07 b", "unprintable", 2),
        ("{" * 80 + "a" + "}" * 80, "nested deeper", 59),
    ],
)
def test_refused_with_place(latex: str, message: str, start: int) -> None:
    with pytest.raises(FormulaError) as caught:
        read_items(latex)
    assert message in caught.value.message
    assert caught.value.span[0] == start


def test_too_long_is_refused() -> None:
    with pytest.raises(FormulaError, match="the limit is"):
        read_items("a" * 30_000)


def test_the_caret_stands_under_the_place() -> None:
    with pytest.raises(FormulaError) as caught:
        read_items("a = b \\\\\n c = \\foo d")
    assert str(caught.value).splitlines()[1:3] == ["2:6:  c = \\foo d", "          ^^^^"]
