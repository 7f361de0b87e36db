"""Cosine attention: angles only, whatever the lengths."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from parity import normal

from flower_transformer.cosine import CosineAttention, cosine_scores


def test_by_hand() -> None:
    query = torch.tensor([[3.0, 0.0]])
    key = torch.tensor([[2.0, 0.0], [0.0, 5.0], [-1.0, 0.0], [4.0, 4.0]])
    expected = torch.tensor([[1.0, 0.0, -1.0, math.sqrt(0.5)]])
    torch.testing.assert_close(cosine_scores(query, key), expected)
    torch.testing.assert_close(cosine_scores(query, key, 10), 10 * expected)


@given(seed=st.integers(0, 2**31), factor=st.floats(0.01, 100))
def test_lengths_do_not_matter(seed: int, factor: float) -> None:
    query, key = normal(3, 4, seed=seed), normal(5, 4, seed=seed + 1)
    scores = cosine_scores(query, key)
    torch.testing.assert_close(cosine_scores(factor * query, key), scores)
    assert scores.abs().max() <= 1 + 1e-12
    for i in range(3):
        torch.testing.assert_close(scores[i], F.cosine_similarity(query[i, None], key, dim=-1))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_the_zero_vector_scores_zero(dtype: torch.dtype) -> None:
    key = torch.zeros(2, 3, dtype=dtype, requires_grad=True)
    scores = cosine_scores(torch.ones(1, 3, dtype=dtype), key)
    assert scores.tolist() == [[0, 0]]
    scores.sum().backward()
    assert key.grad.isfinite().all()


def test_module_starts_at_its_scale() -> None:
    query, key = normal(2, 3, 4).float(), normal(2, 5, 4, seed=1).float()
    for learned in (True, False):
        module = CosineAttention(7.0, learned=learned)
        torch.testing.assert_close(module.scores(query, key), cosine_scores(query, key, 7.0))
        assert len(list(module.parameters())) == learned
        assert list(module.state_dict()) == ["log_scale"]


def test_errors_name_the_value() -> None:
    with pytest.raises(ValueError, match=r"must be positive, got -1\.0"):
        CosineAttention(-1.0)
    with pytest.raises(ValueError, match="query has width 3, key has width 4"):
        cosine_scores(torch.ones(1, 3), torch.ones(1, 4))
