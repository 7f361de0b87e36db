"""Additive attention against numbers worked out by hand and against a loop."""

from __future__ import annotations

import math

import pytest
import torch
from parity import normal

from flower_transformer.additive import AdditiveAttention, additive_scores


def test_by_hand() -> None:
    # one hidden unit, W = 1, U = 2, v = 3: e = 3 tanh(s + 2 h)
    one = torch.ones(1, 1)
    scores = additive_scores(
        torch.tensor([[0.0], [1.0]]), torch.tensor([[0.0], [0.5]]), one, 2 * one, 3 * one[0]
    )
    expected = [[0, 3 * math.tanh(1)], [3 * math.tanh(1), 3 * math.tanh(2)]]
    torch.testing.assert_close(scores, torch.tensor(expected))


def test_formula_entry_by_entry() -> None:
    s, h = normal(2, 3, 4), normal(2, 5, 6, seed=1)
    w, u, v = normal(7, 4, seed=2), normal(7, 6, seed=3), normal(7, seed=4)
    scores = additive_scores(s, h, w, u, v)
    assert scores.shape == (2, 3, 5)
    for b in range(2):
        for i in range(3):
            for j in range(5):
                expected = v @ torch.tanh(w @ s[b, i] + u @ h[b, j])
                torch.testing.assert_close(scores[b, i, j], expected)


def test_module_equals_formula() -> None:
    module = AdditiveAttention(4, 6, 7).double()
    s, h = normal(2, 3, 4), normal(2, 5, 6, seed=1)
    w, u = module.project_query.weight, module.project_key.weight
    torch.testing.assert_close(module.scores(s, h), additive_scores(s, h, w, u, module.v))
    assert module(s, h).shape == (2, 3, 6)


def test_errors_name_both_values() -> None:
    states = torch.zeros(2, 3)
    with pytest.raises(ValueError, match=r"w must be .* got \(5, 4\), v is \(5,\), its states 3"):
        additive_scores(states, states, torch.zeros(5, 4), torch.zeros(5, 3), torch.zeros(5))
    with pytest.raises(ValueError, match=r"u must be .* got \(4, 3\), v is \(5,\), its states 3"):
        additive_scores(states, states, torch.zeros(5, 3), torch.zeros(4, 3), torch.zeros(5))
    with pytest.raises(ValueError, match="d_query 3, d_key 0, d_hidden 2"):
        AdditiveAttention(3, 0, 2)
