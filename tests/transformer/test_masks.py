"""Masks: True = may attend, everywhere."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from flower_transformer.masks import (
    additive_mask,
    block_mask,
    causal_mask,
    combine,
    padding_mask,
    silence_unused,
    window_mask,
)


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


def test_window_mask_by_hand() -> None:
    assert window_mask(4, window=2).int().tolist() == [
        [1, 0, 0, 0],
        [1, 1, 0, 0],
        [0, 1, 1, 0],
        [0, 0, 1, 1],
    ]
    assert window_mask(2, 5, window=3).int().tolist() == [[0, 1, 1, 1, 0], [0, 0, 1, 1, 1]]
    assert torch.equal(window_mask(3, window=1), torch.eye(3, dtype=torch.bool))


@given(n_query=st.integers(0, 6), n_key=st.integers(0, 6), window=st.integers(1, 8))
def test_window_mask_is_the_causal_mask_without_old_keys(
    n_query: int, n_key: int, window: int
) -> None:
    mask, causal = window_mask(n_query, n_key, window=window), causal_mask(n_query, n_key)
    assert mask.shape == (n_query, n_key)
    for i in range(n_query):
        own = n_key - n_query + i  # the query's own position among the keys
        for j in range(n_key):
            assert mask[i, j] == (causal[i, j] and own - j < window)
    if window >= n_key:
        assert torch.equal(mask, causal)


def test_block_mask_by_hand() -> None:
    packed = torch.tensor([0, 0, 1])
    assert block_mask(packed).int().tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    assert block_mask(packed, torch.tensor([1, 0])).int().tolist() == [[0, 1], [0, 1], [1, 0]]
    assert block_mask(packed.expand(4, 3)).shape == (4, 3, 3)
    # causal within each sentence of a packed row
    assert combine(block_mask(packed), causal_mask(3)).int().tolist() == [
        [1, 0, 0],
        [1, 1, 0],
        [0, 0, 1],
    ]


def test_silence_unused() -> None:
    nan = float("nan")
    x = torch.tensor([[1.0, 2.0], [nan, nan], [3.0, nan]])
    may_attend = torch.tensor([[True, False, False], [False, False, True]])
    silenced = silence_unused(x, may_attend)
    assert silenced[:2].tolist() == [[1, 2], [0, 0]]
    assert silenced[2].isnan().tolist() == [False, True]  # seen by the second query: left alone
    assert silence_unused(x, torch.tensor([True, False, False]))[1:].tolist() == [[0, 0], [0, 0]]


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
    with pytest.raises(ValueError, match=r"at least 1 \(the position itself\), got 0"):
        window_mask(4, window=0)
    with pytest.raises(ValueError, match=r"key_blocks must be integers, got torch.float32"):
        block_mask(torch.tensor([1]), torch.tensor([1.0]))
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
