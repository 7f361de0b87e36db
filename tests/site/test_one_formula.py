"""``flower formula``: one formula from the command line."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from flower_site.cli import app

WHERE = ["--where", "Q [n, d_k]", "--where", "K [m, d_k]", "--where", "V [m, d_v]"]
CODE = ["--code", "flower_transformer.attention.scaled_dot_product_attention(Q, K, V)"]
LATEX = r"A(Q, K, V) = \mathrm{softmax}(\frac{QK^T}{\sqrt{d_k}})V"


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["formula", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_a_right_formula() -> None:
    code, out, err = run(LATEX, *CODE, *WHERE)
    assert (code, err) == (0, "")
    assert "一致：25 次" in out


@pytest.mark.parametrize(
    ("latex", "exit_code", "said"),
    [
        (LATEX.replace(r"\sqrt{d_k}", "d_k"), 1, "disagree"),
        (LATEX.replace("QK^T", "QK"), 2, "cannot multiply"),
        (LATEX.replace(r"\frac", r"\fraction"), 2, r"unknown command \fraction"),
        (LATEX.replace("V)", "U)"), 2, "undeclared"),
    ],
)
def test_wrong_ones_say_where(latex: str, exit_code: int, said: str) -> None:
    code, out, err = run(latex, *CODE, *WHERE)
    assert (code, out) == (exit_code, "")
    assert said in err
    assert "^" in err


def test_json_and_warnings() -> None:
    latex = LATEX.replace(r"\sqrt{d_k}", r"\sqrt d_k")
    code, out, err = run(latex, "--json", *CODE, *WHERE)
    assert code == 0
    assert json.loads(out)["draws"] == 25
    assert "TeX sets the root over d alone" in err


def test_an_identity_needs_no_code() -> None:
    where = ["--where", "a [n]", "--where", "b [n]"]
    assert run(r"a^\top b = \sum_{i=1}^{n} a_i b_i", *where)[0] == 0
    assert run(r"a^\top b = \sum_{i=1}^{n} a_i a_i", *where)[0] == 1
