"""Masks: True = may attend, everywhere."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from flower_transformer.masks import additive_mask, causal_mask, combine, padding_mask


def test_causal_mask_by_hand() -> None:
    assert causal_mask(3).int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert causal_mask(2, 5).int().tolist() == [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]
    assert causal_mask(3, 2).int().tolist() == [[0, 0], [1, 0], [1, 1]]
    assert causal_mask(1, 4).all()
    assert causal_mask(2).dtype == torch.bool


@given(n_query=st.integers(0, 6), n_key=st.integers(0, 6))
def test_causal_mask_is_aligned_at_the_end(n_query: int, n_key: int) -> None:
    mask = causal_mask(n_query, n_key)
    assert mask.shape == (n_query, n_key)
    for i in range(n_query):
        for j in range(n_key):
            # counted from the end, a query sees the keys that are not newer than itself
            assert mask[i, j] == (n_key - 1 - j >= n_query - 1 - i)


def test_padding_mask_by_hand() -> None:
    assert padding_mask(torch.tensor([2, 0, 3]), 3).int().tolist() == [
        [1, 1, 0],
        [0, 0, 0],
        [1, 1, 1],
    ]
    assert padding_mask(torch.tensor(1), 2).tolist() == [True, False]
    assert padding_mask(torch.tensor([[[2]], [[1]]]), 3).shape == (2, 1, 1, 3)


def test_combine() -> None:
    causal, real = causal_mask(3), padding_mask(torch.tensor(2), 3)
    assert combine(causal, real).int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 0]]
    assert combine(None, causal, None) is causal
    assert combine() is None
    assert combine(None) is None


def test_additive_mask() -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        mask = additive_mask(torch.tensor([[True, False]]), dtype)
        assert mask.tolist() == [[0.0, float("-inf")]]
        assert mask.dtype == dtype


def test_errors_name_the_values() -> None:
    with pytest.raises(ValueError, match="n_query -1, n_key 3"):
        causal_mask(-1, 3)
    with pytest.raises(ValueError, match=r"run from 1 to 5, outside 0\.\.n_key = 0\.\.4"):
        padding_mask(torch.tensor([1, 5]), 4)
    with pytest.raises(ValueError, match=r"run from -1 to 2"):
        padding_mask(torch.tensor([-1, 2]), 4)
    with pytest.raises(ValueError, match=r"integers, got torch.float32"):
        padding_mask(torch.tensor([1.0]), 4)
    with pytest.raises(ValueError, match=r"boolean .* got torch.float32"):
        combine(causal_mask(2), torch.zeros(2, 2))
    with pytest.raises(ValueError, match=r"boolean .* got torch.int64"):
        additive_mask(torch.tensor([1, 0]), torch.float32)
    with pytest.raises(ValueError, match=r"floating dtype, got torch.int64"):
        additive_mask(torch.tensor([True]), torch.int64)
