"""Errors of indices and ranges stand under the index or the range, and say at which sizes."""

from __future__ import annotations

import pytest
import torch

from flower_formula import FormulaError, check, define, evaluate
from flower_formula.errors import DeclarationError, RangeError

ALIGNED = "\\begin{aligned}\n y_i &= RIGHT \\\\\n z &= y_1 \n\\end{aligned}"
ROWS = ["x [n]", "i in 1..n"]


def zero(*_: object) -> torch.Tensor:
    return torch.zeros(1)


@pytest.mark.parametrize(
    ("latex", "symbols", "message", "place"),
    [
        (ALIGNED.replace("RIGHT", "x_{i/2}"), ROWS, "no whole number", "i/2"),
        (ALIGNED.replace("RIGHT", "x_{i+1}"), ROWS, "is outside 1..", "i+1"),
        (ALIGNED.replace("RIGHT", r"i \sum_{j=1}^{n/2} x_j"), ROWS, "no whole number", "n/2"),
        (ALIGNED.replace("RIGHT", r"i \sum_{j=1/2}^{n} x_j"), ROWS, "no whole number", "1/2"),
        (ALIGNED.replace("RIGHT", r"i \max_{j=9}^{n} x_j"), ROWS, "an empty", r"\max_{j=9}^{n}"),
        (r"y = \sum_{j=1}^{10^9} x_j", ["x [n]"], "a sum over", r"\sum_{j=1}^{10^9}"),
        (ALIGNED.replace("y_i", "y_{i/2}").replace("RIGHT", "x_i"), ROWS, "no whole number", "i/2"),
        (ALIGNED.replace("y_i", "y_{2i}").replace("RIGHT", "x_i"), ROWS, "leaves", "y_{2i}"),
        (r"y_i = x_i, \quad i = 1, \ldots, n/2", ["x [n]"], "no whole number", "n/2"),
        (r"y = \max(x_1, \ldots, x_{n/2})", ["x [n]"], "no whole number", "n/2"),
        (r"y = \max(x_7, \ldots, x_n)", ["x [n]"], "a list from 7", r"x_7, \ldots, x_n"),
        ("y_i = x_1 i", ["x [n]", "i in 9..n"], "range of the index is empty", "y_i"),
        (r"\begin{aligned} h_t &= h_{t-1} + x_t \\ h_0 &= 0 \\ y &= h_{n/2} \end{aligned}",
         ["x_t for t in 1..n"], "no whole number", "n/2"),
    ],
)  # fmt: skip
def test_place_and_sizes(latex: str, symbols: list[str], message: str, place: str) -> None:
    with pytest.raises(RangeError, match=message) as caught:
        check(latex, zero, symbols)
    start, end = caught.value.span
    assert latex[start:end].strip() == place
    assert (caught.value.detail or "").startswith("  sizes: n=")


@pytest.mark.parametrize(
    ("right", "symbols", "line", "place"),
    [
        ("x_i", ["x [n]", "i in 1..n/2"], "i in 1..n/2", "n/2"),
        ("x_i", ["x [n]", "i in n/2..n"], "i in n/2..n", "n/2"),
        ("i", ["i in 1..1/2"], "i in 1..1/2", "1/2"),
    ],
)
def test_a_bound_of_a_declaration_is_shown_there(
    right: str, symbols: list[str], line: str, place: str
) -> None:
    """Its place counts in the declaration; in the formula it would be under the first letters."""
    with pytest.raises(DeclarationError, match="a bound that is no whole number") as caught:
        check(ALIGNED.replace("RIGHT", right), zero, symbols)
    error = caught.value
    start, end = error.span
    assert error.declaration[start:end] == place
    assert str(error).splitlines()[1] == f"1:{start + 1}: {line}"
    assert (error.detail or "").startswith("  sizes: n=") == ("n" in place)


def test_sums_are_marked_without_what_they_sum() -> None:
    for latex, place in (
        (r"y = a \sum_{j} \frac{1}{a + 1}", r"\sum_{j}"),
        (r"y = a \sum_{j=1} \frac{j}{a + 1}", r"\sum_{j=1}"),
        (r"y = a \sum_{j} x_j w_j", "w_j"),
    ):
        symbols = ["a", "x [n]", "w [m]"] if "x" in latex else ["a"]
        with pytest.raises(FormulaError) as caught:
            check(latex, zero, symbols)
        start, end = caught.value.span
        assert latex[start:end].strip() == place


def test_an_index_in_the_formula_of_another_block() -> None:
    half = define(r"f(x) = \sum_{i=1}^{n/2} x_i", ["x [n]"], slug="half")
    latex = r"y = 2 f(z)"
    with pytest.raises(RangeError, match=r"in the formula of f \(block half\): a limit") as caught:
        check(latex, zero, ["z [k]"], library={"f": half})
    assert latex[slice(*caught.value.span)] == "f(z)"
    assert "sizes: n=" in (caught.value.detail or "")
    bound = define(r"f(x) = \sum_{i} x_i", ["x [n]", "i in 1..n/2"], slug="half")
    with pytest.raises(RangeError, match=r"\(block half\): a bound that is no whole") as caught:
        check(latex, zero, ["z [k]"], library={"f": bound})
    assert latex[slice(*caught.value.span)] == "f(z)"


def test_evaluate_shows_the_declaration_too() -> None:
    with pytest.raises(DeclarationError) as caught:
        evaluate(r"\sum_{i} x_i", ["x [n]", "i in 1..n/2"], x=torch.ones(3))
    assert "1:9: i in 1..n/2" in str(caught.value)
