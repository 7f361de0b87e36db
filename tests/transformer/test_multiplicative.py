"""Luong's three scores against numbers worked out by hand and against their formulas."""

from __future__ import annotations

import math

import pytest
import torch
from parity import normal

from flower_transformer.multiplicative import (
    MultiplicativeAttention,
    concat_scores,
    dot_scores,
    general_scores,
)


def test_by_hand() -> None:
    query, key = torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]])
    assert dot_scores(query, key).tolist() == [[11, 2]]  # no division by a root
    swap = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    assert general_scores(query, key, swap).tolist() == [[10, 1]]
    # v = 5, W = [1 0 | 0 1]: 5 tanh(first of the query + second of the key)
    w = torch.tensor([[1.0, 0.0, 0.0, 1.0]])
    expected = torch.tensor([[5 * math.tanh(5), 5 * math.tanh(2)]])
    torch.testing.assert_close(concat_scores(query, key, w, torch.tensor([5.0])), expected)


def test_formulas_entry_by_entry() -> None:
    query, key = normal(2, 3, 4), normal(2, 5, 6, seed=1)
    w, w_both, v = normal(4, 6, seed=2), normal(7, 10, seed=3), normal(7, seed=4)
    general, concat = general_scores(query, key, w), concat_scores(query, key, w_both, v)
    for b in range(2):
        for t in range(3):
            for s in range(5):
                torch.testing.assert_close(general[b, t, s], query[b, t] @ w @ key[b, s])
                both = torch.cat((query[b, t], key[b, s]))
                torch.testing.assert_close(concat[b, t, s], v @ torch.tanh(w_both @ both))


def test_general_with_the_unit_matrix_is_dot() -> None:
    query, key = normal(3, 4), normal(5, 4, seed=1)
    eye = torch.eye(4, dtype=torch.float64)
    torch.testing.assert_close(general_scores(query, key, eye), dot_scores(query, key))


def test_modules_equal_their_formulas() -> None:
    query, key = normal(2, 3, 4), normal(2, 5, 6, seed=1)
    general = MultiplicativeAttention(4, 6).double()
    torch.testing.assert_close(general.scores(query, key), general_scores(query, key, general.w))
    concat = MultiplicativeAttention(4, 6, "concat", d_hidden=3).double()
    expected = concat_scores(query, key, concat.w, concat.v)
    torch.testing.assert_close(concat.scores(query, key), expected)
    assert list(MultiplicativeAttention(4, 4, "dot").parameters()) == []


def test_errors_name_both_values() -> None:
    with pytest.raises(ValueError, match=r"w is \(3, 3\), query and key have the widths \(3, 4\)"):
        general_scores(torch.zeros(2, 3), torch.zeros(2, 4), torch.zeros(3, 3))
    with pytest.raises(ValueError, match=r"got \(5, 3\), v is \(5,\), its states 4"):
        concat_scores(torch.zeros(2, 3), torch.zeros(2, 4), torch.zeros(5, 6), torch.zeros(5))
    with pytest.raises(ValueError, match="query has width 3, key has width 4"):
        dot_scores(torch.zeros(2, 3), torch.zeros(2, 4))
    with pytest.raises(ValueError, match="'dot' needs one width: d_query 3, d_key 4"):
        MultiplicativeAttention(3, 4, "dot")
    with pytest.raises(ValueError, match="got 'bilinear'"):
        MultiplicativeAttention(3, 3, "bilinear")
    with pytest.raises(ValueError, match="d_query 3, d_key 4, d_hidden 0"):
        MultiplicativeAttention(3, 4, "concat", d_hidden=0)
