"""Mutants: every single change is made once, and the check refuses those that change the value."""

from __future__ import annotations

from collections import Counter

from flower_formula.mutate import mutants
from flower_formula.mutate_code import code_mutants
from flower_formula.mutation_score import MutationTest
from flower_formula.statements import read_formula
from flower_formula.symbols import read_declarations
from flower_transformer.attention import masked_softmax, scaled_dot_product_attention

ATTENTION = ["Q [n, d_k]", "K [m, d_k]", "V [m, d_v]"]
LATEX = r"\mathrm{Attention}(Q, K, V) = \mathrm{softmax}\left(\frac{QK^{\top}}{\sqrt{d_k}}\right)V"
CALL = "flower_transformer.attention.scaled_dot_product_attention(Q, K, V)"


def test_each_kind_of_change_is_made() -> None:
    formula = read_formula(LATEX, read_declarations(ATTENTION))
    changes = [mutant.change for mutant in mutants(formula)]
    assert changes[0].startswith(r"\mathrm{softmax}")
    kinds = Counter(change.split(": ")[-1] for change in changes)
    for kind in (
        "root dropped",
        "transpose dropped",
        "softmax dropped",
        "parts exchanged",
        "made V",
    ):
        assert kinds[kind] >= 1, kind
    assert len(set(changes)) > 20


def test_the_original_is_left_alone() -> None:
    formula = read_formula(LATEX, read_declarations(ATTENTION))
    side = formula.equations[0].sides[0]
    assert all(mutant.formula.equations[0].sides[0] is not side for mutant in mutants(formula))
    assert formula.equations[0].sides[0] is side


def test_every_wrong_attention_is_refused() -> None:
    test = MutationTest(LATEX, CALL, ATTENTION, packages=("flower_transformer",), library={})
    score = test.of_formula()
    assert score.survivors == []
    assert score.refused > 20
    assert test.of_code().share == 1.0


def test_mutants_of_equal_value_are_proven_equal() -> None:
    call = "flower_transformer.attention.masked_softmax(x)"
    latex = r"y_i = \frac{e^{x_i + 0}}{\sum_{j} e^{x_j}}"
    score = MutationTest(
        latex, call, ["x [m]"], packages=("flower_transformer",), library={}
    ).of_formula()
    assert score.survivors == []
    assert score.equal >= 2  # the 0 dropped; + made -


def test_a_weak_check_shows_in_the_score() -> None:
    # no draw has k above 2: what stands in the other case is never seen
    latex = (
        r"y_i = \begin{cases} \frac{e^{x_i}}{\sum_j e^{x_j}} & k < 3 \\ 2 x_i & k \ge 3 \end{cases}"
    )
    call = "flower_transformer.attention.masked_softmax(x)"
    test = MutationTest(
        latex, call, ["x [m]", "k in 1..2"], packages=("flower_transformer",), library={}
    )
    score = test.of_formula()
    assert score.refused > 5
    assert score.equal > 0


def test_code_is_changed_one_place_at_a_time() -> None:
    changes = [mutant.change for mutant in code_mutants(masked_softmax)]
    assert any("softmax: made log_softmax" in change for change in changes)
    assert any("number plus 1" in change for change in changes)
    for mutant in code_mutants(scaled_dot_product_attention):
        assert mutant.function is not scaled_dot_product_attention
        assert callable(mutant.function)
