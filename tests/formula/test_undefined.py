r"""Sizes at which a formula has no value (``\epsilon / (c - 1)`` at c = 1), and declared bounds."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from flower_formula import Disagreement, FormulaError, check
from flower_formula.draw import draws
from flower_formula.errors import DeclarationError
from flower_formula.mutation_score import MutationTest
from flower_formula.symbols import read_declarations

SMOOTHED = r"q_k = (1-\epsilon)\delta_{k,y} + \frac{\epsilon}{c-1}(1-\delta_{k,y})"
SYMBOLS = ["y in 1..c", "k in 1..c", r"\epsilon"]


def by_tensors(eps: float, y: int, c: int) -> Tensor:
    right = (torch.arange(1, c + 1) == y).double()
    return (1 - eps) * right + torch.tensor(eps) / torch.tensor(c - 1) * (1 - right)


def by_numbers(eps: float, y: int, c: int) -> Tensor:
    each = eps / (c - 1)  # ZeroDivisionError at c = 1
    return torch.tensor([1 - eps if k == y else each for k in range(1, c + 1)])


def with_a_case(eps: float, y: int, c: int) -> Tensor:
    return torch.tensor([1.0]) * (1 - eps) if c == 1 else by_tensors(eps, y, c)


@pytest.mark.parametrize("code", [by_tensors, by_numbers])
def test_sizes_without_a_value_on_either_side_are_drawn_again(code: object) -> None:
    report = check(SMOOTHED, code, SYMBOLS)  # type: ignore[arg-type]
    assert report.draws == 25
    assert report.readings == ("no value at c = 1: drawn again",)
    for wrong in (SMOOTHED.replace("c-1", "c-2"), SMOOTHED.replace("c-1", "c")):
        with pytest.raises(FormulaError):
            check(wrong, code, SYMBOLS)  # type: ignore[arg-type]


def test_where_the_formula_has_no_value_the_code_may_have_one() -> None:
    assert check(SMOOTHED, with_a_case, SYMBOLS).readings == ("no value at c = 1: drawn again",)
    for bound in ("c > 1", "c >= 2", r"c \ge 2", r"c \geq 2", r"c \gt 1", "c ≥ 2", "c > 1.5"):
        assert check(SMOOTHED, with_a_case, [*SYMBOLS, bound]).readings == ()
    assert check(SMOOTHED, with_a_case, [*SYMBOLS, "c >= 1"]).readings != ()
    with pytest.raises(FormulaError):
        check(SMOOTHED.replace("c-1", "c"), with_a_case, SYMBOLS)


def test_where_the_code_alone_has_no_value_the_error_says_what_to_declare() -> None:
    latex = r"q_k = (1-\epsilon)\delta_{k,y} + \frac{\epsilon}{\max(c-1, 1)}(1-\delta_{k,y})"
    with pytest.raises(FormulaError) as caught:
        check(latex, by_numbers, SYMBOLS)
    assert caught.value.message.startswith(
        "at c = 1 by_numbers has no value, but the formula has one"
    )
    assert "sizes: c=1" in (caught.value.detail or "")
    assert caught.value.hint == "declare `c > 1`, or define this case"
    assert check(latex, by_numbers, [*SYMBOLS, "c > 1"]).readings == ()


def test_code_that_refuses_a_size() -> None:
    def mean_distance(x: Tensor) -> Tensor:
        if len(x) == 1:
            raise ValueError("one is no pair")
        return (x[0] - x).abs().sum() / (len(x) - 1)

    latex = r"s = \frac{1}{c-1} \sum_{k=1}^{c} |x_1 - x_k|"
    assert check(latex, mean_distance, ["x [c]"]).readings[0].startswith("no value at c = 1")
    finite = r"s = \sum_{k=1}^{c} |x_1 - x_k|"
    with pytest.raises(FormulaError) as caught:
        check(finite, lambda x: mean_distance(x) * (len(x) - 1), ["x [c]"])
    assert "at c = 1 the function has no value, but the formula has one" in caught.value.message
    assert "one is no pair" in caught.value.message
    check(finite, lambda x: mean_distance(x) * (len(x) - 1), ["x [c]", "c > 1"])

    def never(x: Tensor) -> Tensor:
        raise ValueError("no")

    with pytest.raises(FormulaError, match="fails on these arguments: ValueError: no"):
        check(latex, never, ["x [c]"])


def test_an_identity_whose_sides_have_no_value_at_a_size() -> None:
    whole, part = r"\sum_{k=1}^{c} x_k", r"\frac{c-1}{c-1} \sum_{k=1}^{c} x_k"
    for latex in (f"{whole} = {part}", f"{part} = {whole}", f"{part} = {part}"):
        assert check(latex, None, ["x [c]"]).readings == ("no value at c = 1: drawn again",)
        assert check(latex, None, ["x [c]", "c > 1"]).readings == ()
        with pytest.raises(FormulaError):
            check(latex + " + x_1", None, ["x [c]"])


@pytest.mark.parametrize(
    ("latex", "code", "symbols", "at"),
    [
        (r"s = \frac{x_1 - x_1}{c-2}", lambda x: (x[0] - x[0]) / (len(x) - 2), ["x [c]"], "c = 2"),
        (r"s = \frac{x_1 - x_1}{t}", lambda x, t: (x[0] - x[0]) / t, ["x [c]", "t in 0..9"],
         "t = 0"),
        (r"s = \frac{x_1 - x_1}{(c-1)(n-1)} + y_1",
         lambda x, y: (x[0] - x[0]) / ((len(x) - 1) * (len(y) - 1)) + y[0],
         ["x [c]", "y [n]"], "c = 1 or n = 1"),
        (r"s = \frac{x_1 - x_1}{c - t} + x_2", lambda x, c, t: (x[0] - x[0]) / (c - t) + x[1],
         ["x [c]", "c > 1", "t in 1..c"], "c = t"),
    ],
)  # fmt: skip
def test_the_report_names_the_sizes(latex: str, code: object, symbols: list[str], at: str) -> None:
    report = check(latex, code, symbols)  # type: ignore[arg-type]
    assert report.readings == (f"no value at {at}: drawn again",)
    with pytest.raises(Disagreement):
        check(latex + " + x_1", code, symbols)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("latex", "code", "message"),
    [
        # no value at any size
        (r"s = \frac{x_1 - x_1}{0}", lambda x: x[0] * torch.nan, "has no value here"),
        (r"s = \frac{x_1 - x_1}{0}", lambda x: x[0], "has no value here"),
        (r"s = x_1", lambda x: x[0] * torch.nan, "disagree"),
        # the values are the reason, on most draws or on few
        (r"s = \log x_1", lambda x: x[0].log(), "has no value here"),
        (r"s = \log (x_1 + 1.5)", lambda x: (x[0] + 1.5).log(), "has no value here"),
        # no value in other entries
        (r"y_i = \frac{x_i - x_i}{(c-1)(i-2)}",
         lambda x: torch.full((len(x),), torch.nan) if len(x) == 1 else x * 0, "has no value"),
        # the entries that have a value differ where the others have none
        (r"y_{ij} = \begin{cases} x_i & j = 1 \\ \frac{0}{c-1} & j = 2 \end{cases}",
         lambda x: torch.stack([x if len(x) > 1 else x + 1, 0 * x / (len(x) - 1)], 1), "disagree"),
    ],
)  # fmt: skip
def test_nothing_else_is_drawn_again(latex: str, code: object, message: str) -> None:
    with pytest.raises(FormulaError) as caught:
        check(latex, code, ["x [c]", *("j in 1..2" for _ in range("j" in latex))])  # type: ignore[arg-type]
    assert message in caught.value.message


PUBLISHED = r"flower_site.bindings.smoothed_targets_over_others(y, c, \epsilon)"


@pytest.mark.parametrize("bounds", [[], ["c > 1"]])
def test_mutants_are_refused_as_before(bounds: list[str]) -> None:
    packages = ("flower_site.bindings",)
    report = check(SMOOTHED, PUBLISHED, [*SYMBOLS, *bounds], packages=packages)
    assert bool(report.readings) == (not bounds)
    test = MutationTest(SMOOTHED, PUBLISHED, [*SYMBOLS, *bounds], packages=packages, library={})
    score = test.of_formula()
    assert score.survivors == []
    assert score.refused > 30


def test_declared_bounds_are_kept_and_sizes_differ() -> None:
    table = read_declarations(["x [n, c, m]", "c > 1", "m >= 4"])
    drawn = [draw.sizes for draw in draws(table, 25, 0)]
    assert min(sizes["n"] for sizes in drawn) == 1
    assert min(sizes["c"] for sizes in drawn) == 2
    assert min(sizes["m"] for sizes in drawn) == 4
    assert all(len(set(sizes.values())) == 3 for sizes in drawn)
    assert len({tuple(sizes.values()) for sizes in drawn}) > 15
    numbers = read_declarations(["T > 2", "s >= -1"])
    assert all(draw.tensors["T"] > 2 for draw in draws(numbers, 25, 0))
    assert all(draw.tensors["s"] >= -1 for draw in draws(numbers, 25, 0))
    with pytest.raises(DeclarationError, match="no size above 100"):
        read_declarations(["x [c]", "c > 100000"])
    with pytest.raises(DeclarationError, match="cannot read"):
        read_declarations(["x [c]", "c > n"])


def test_every_draw_that_counts_has_a_value() -> None:
    sizes: list[int] = []

    def counted(eps: float, y: int, c: int) -> Tensor:
        if torch.get_default_dtype() == torch.float32:  # once for each draw that counts
            sizes.append(c)
        return by_tensors(eps, y, c)

    assert check(SMOOTHED, counted, SYMBOLS).draws == len(sizes) == 25
    assert 1 not in sizes


def test_a_value_at_most_sizes_is_needed() -> None:
    latex = r"s = \frac{x_1 - x_1}{(c-2)(c-3)(c-4)}"
    with pytest.raises(FormulaError, match="has no value here") as caught:
        check(latex, lambda x, c: (x[0] - x[0]) / ((c - 2) * (c - 3) * (c - 4)), ["x [c]"])
    assert "sizes: c=" in (caught.value.detail or "")


def test_values_that_happen_to_be_missing_at_one_size_are_an_error() -> None:
    latex = r"s = \begin{cases} \log x_1 & c = 1 \\ x_1 & c > 1 \end{cases}"
    refused = 0
    for seed in range(8):
        try:
            report = check(
                latex, lambda x: x[0] if len(x) > 1 else x[0].log(), ["x [c]"], seed=seed
            )
        except FormulaError:
            refused += 1
        else:
            assert report.readings == ()
    assert 0 < refused < 8
