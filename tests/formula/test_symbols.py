"""The lines of ``where``."""

from __future__ import annotations

import pytest

from flower_formula.errors import DeclarationError
from flower_formula.names import canonical_name
from flower_formula.symbols import read_declaration, read_declarations


@pytest.mark.parametrize(
    ("latex", "name"),
    [
        ("Q", "Q"),
        (r"\gamma", "gamma"),
        ("gamma", "gamma"),
        ("d_k", "d_k"),
        ("d_{model}", "d_model"),
        (r"d_{\text{model}}", "d_model"),
        (r"d_{\mathrm{model}}", "d_model"),
        (r"d_\text{model}", "d_model"),
        ("d_model", "d_model"),
        ("W^Q", "W^Q"),
        ("W_{QK}", "W_QK"),
        ("W_{KQ}", "W_KQ"),
        ("pos", "pos"),
        (r"step\_num", "step_num"),
        (r"\mathbf{x}", "x"),
        (r"\text{注意力}", "注意力"),
    ],
)
def test_one_spelling_for_a_name(latex: str, name: str) -> None:
    assert canonical_name(latex) == name


@pytest.mark.parametrize(
    ("line", "kind", "axes"),
    [
        ("Q [n, d_k]", "tensor", 2),
        (r"\epsilon", "tensor", 0),
        ("T > 0", "tensor", 0),
        ("p [m] in {0, 1}", "tensor", 1),
        ("q [d_k] ~ N(0,1)", "tensor", 1),
        ("pos in 0..n-1", "index", 0),
        ("W_i^Q [d_model, d_k] for i in 1..h", "tensor", 3),
        ("k_i [d_k] for i in 1..m", "tensor", 2),
        ("W^O [h d_v, d_model]", "tensor", 2),
        ("d_model = h d_k", "size", 0),
        ("x [0..n-1, d]", "tensor", 2),
        ("min in 1..n", "index", 0),
        ("for [n]", "tensor", 1),
    ],
)
def test_kinds_of_declarations(line: str, kind: str, axes: int) -> None:
    declared = read_declaration(line)
    assert (declared.kind, len(declared.axes)) == (kind, axes)


def test_a_family_is_named_without_its_index() -> None:
    declared = read_declaration("W_i^Q [d_model, d_k] for i in 1..h")
    assert (declared.name, declared.family, declared.ranges[0].variable) == ("W^Q", 1, "i")


def test_sizes_in_shapes_become_numbers() -> None:
    table = read_declarations(["Q [n, d_k]", "W^O [h d_v, d_model]"])
    assert {name for name, d in table.items() if d.kind == "size"} == {
        "n", "d_k", "h", "d_v", "d_model",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["Q [n, ]"], "empty axis"),
        (["Q n, d]"], "cannot read the declaration"),
        (["Q [n] in nowhere"], "cannot read 'in nowhere'"),
        (["Q [n]", "Q [m]"], "declared twice"),
        (["W [d] for i in 1..h"], "does not carry the index"),
        (["W_i [d] for i"], "cannot read the range"),
        (["n [3]", "Q [n]"], "used as a size but declared as something else"),
        (["Q [n + ]"], "cannot read 'n +'"),
        ([r"\foo [n]"], "unknown command"),
        (["p in (3, 1)"], "cannot read"),
    ],
)
def test_bad_lines_are_refused(lines: list[str], message: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        read_declarations(lines)
    assert message in caught.value.message
    assert caught.value.declaration in lines
