"""``flower formula``: one formula from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

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


LOSS = r"-(1-\epsilon) a - \epsilon b = \epsilon (a - b) - a"


def in_a_process(*arguments: str) -> tuple[int, str, str]:
    program = "from flower_site.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "formula", *arguments],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("start", [run, in_a_process])
def test_a_formula_may_begin_with_a_minus(start: Callable[..., tuple[int, str, str]]) -> None:
    where = ["--where", "a", "--where", "b", "--where=\\epsilon"]
    code, out, err = start(LOSS, *where)
    assert (code, err) == (0, "")
    assert "一致：25 次" in out
    assert start(*where, LOSS, "--json")[0] == 0
    assert start("-a = -a", "--where", "a")[0] == 0
    assert start(*where, "--", LOSS)[0] == 0
    code, _, err = start(LOSS.replace("- a", "+ a"), *where)
    assert code == 1
    assert f"1:{LOSS.index('=') + 3}: -(1-" in err  # the caret's column counts in the text as typed


@pytest.mark.parametrize("start", [run, in_a_process])
@pytest.mark.parametrize("wrong", ["--wher", "--wher=a", "--jsn", "--Code"])
def test_a_mistyped_option_is_named(start: Callable[..., tuple[int, str, str]], wrong: str) -> None:
    code, out, err = start("a = a", wrong, "--where", "a")
    assert (code, out) == (2, "")
    assert "No such option" in err
    assert wrong.partition("=")[0] in err


def test_a_second_formula_is_refused_and_help_is_whole() -> None:
    code, _, err = run("-a = -a", "-code", "x", "--where", "a")
    assert code == 2
    assert "unexpected extra argument" in err
    assert "Q [n, d_k]" in run("--help")[1]


PAGE = r"""---
title: 题
---

# 题

/// formula | row-softmax
    where:
      z [m]: 分数
$$
f(z)_i = \frac{e^{z_i}}{\sum_{j=1}^{m} e^{z_j}}
$$
///

/// formula | weights
    where:
      z [m]: 分数
$$
\alpha = f(2z)
$$
///

/// formula | other-weights
    where:
      z [m]: 分数
$$
\alpha = 2z
$$
///

/// formula | identity
    where:
      z [m]: 分数
$$
2z = z + z
$$
///
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mkdocs.yml").write_text("")
    page = tmp_path / "docs/cards/a.md"
    page.parent.mkdir(parents=True)
    page.write_text(PAGE, encoding="utf-8")
    monkeypatch.chdir(page.parent)
    return tmp_path


@pytest.mark.usefixtures("site")
def test_a_formula_uses_what_a_page_defines() -> None:
    code = ["--code", "flower_transformer.attention.masked_softmax(z)", "--where", "z [m]"]
    assert run("y = f(z)", *code)[0] == 2  # without it
    assert run("y = f(z)", *code, "--uses", "row-softmax")[0] == 0
    assert run("y = f(2z)", *code, "--uses", "row-softmax")[0] == 1
    # a tensor, with the function that it uses itself; both blocks may be named
    where = ["--where", "z [m]", "--uses", "weights"]
    assert run(r"\sum_{i=1}^{m} \alpha_i z_i = f(z + z)^T z", *where)[0] == 0
    assert run(r"\sum_{i=1}^{m} \alpha_i z_i = f(2z)^T z", *where, "--uses", "row-softmax")[0] == 0
    assert run(r"\sum_{i=1}^{m} \alpha_i z_i = f(z)^T z", *where)[0] == 1


@pytest.mark.usefixtures("site")
@pytest.mark.parametrize(
    ("slugs", "said"),
    [
        (["row-sofmax"], "是不是 row-softmax？"),
        (["nothing-like-it"], "没有名为 nothing-like-it 的公式"),
        (["identity"], "公式 identity 没有定义可用的名字"),
        (["weights", "other-weights"], "alpha 由 weights 和 other-weights 两个公式定义"),
    ],
)
def test_what_cannot_be_used_is_said(slugs: list[str], said: str) -> None:
    uses = [word for slug in slugs for word in ("--uses", slug)]
    code, out, err = run("f(z) = f(z)", "--where", "z [m]", *uses)
    assert (code, out) == (2, "")
    assert said in err
    code, out, _ = run("f(z) = f(z)", "--json", "--where", "z [m]", *uses)
    assert code == json.loads(out)["exit_code"] == 2


def test_uses_outside_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("-a = -a", "--where", "a")[0] == 0  # nothing of the site is needed
    code, _, err = run("f(z) = f(z)", "--where", "z [m]", "--uses", "row-softmax")
    assert code == 2
    assert "不在 Flower Research Notes 的仓库里" in err


def test_the_attention_of_the_published_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    uses = ["--uses", "scaled-dot-product-attention"]
    assert run(r"Y = \mathrm{Attention}(Q, K, V)", *CODE, *WHERE, *uses)[0] == 0
    assert run(r"Y = \mathrm{Attention}(2Q, K, V)", *CODE, *WHERE, *uses)[0] == 1


def test_an_identity_needs_no_code() -> None:
    where = ["--where", "a [n]", "--where", "b [n]"]
    assert run(r"a^\top b = \sum_{i=1}^{n} a_i b_i", *where)[0] == 0
    assert run(r"a^\top b = \sum_{i=1}^{n} a_i a_i", *where)[0] == 1
