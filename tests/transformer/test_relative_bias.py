"""ALiBi and T5's buckets against numbers worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from flower_transformer.relative_bias import (
    ALiBi,
    RelativePositionBias,
    alibi_bias,
    alibi_slopes,
    relative_position_buckets,
)


def test_slopes_by_hand() -> None:
    assert alibi_slopes(1).tolist() == [2**-8]
    assert alibi_slopes(2).tolist() == [2**-4, 2**-8]
    assert alibi_slopes(8).tolist() == [2**-h for h in range(1, 9)]
    # the 4 slopes of 4 heads, then the odd ones of 8 heads
    assert alibi_slopes(6).tolist() == [1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 2, 1 / 8]
    assert alibi_slopes(3).tolist() == [2**-4, 2**-8, 2**-2]


@given(n_heads=st.integers(1, 40))
def test_slopes_are_distinct_and_below_one(n_heads: int) -> None:
    slopes = alibi_slopes(n_heads)
    assert slopes.shape == (n_heads,)
    assert ((slopes > 0) & (slopes < 1)).all()
    assert len(set(slopes.tolist())) == n_heads


def test_alibi_by_hand() -> None:
    bias = alibi_bias(torch.tensor([1.0, 0.5]), torch.tensor([1, 2]), torch.arange(3))
    assert bias.tolist() == [[[-1, 0, -1], [-2, -1, 0]], [[-0.5, 0, -0.5], [-1, -0.5, 0]]]


def test_alibi_module_moves_and_is_not_saved() -> None:
    module = ALiBi(6)
    assert not module.state_dict()
    assert not list(module.parameters())
    positions = torch.tensor([[0, 0, 1], [0, 1, 2]])  # the first sequence is padded on the left
    bias = module.double()(positions, positions)
    assert bias.shape == (2, 6, 3, 3)
    assert bias.dtype == torch.float64
    assert bias[0, 4].tolist() == [[0, 0, -0.5], [0, 0, -0.5], [-0.5, -0.5, 0]]


def test_buckets_by_hand() -> None:
    # causal, 8 buckets up to 16: 0..3 singly, then 4 + floor(4 ln(d/4) / ln 4)
    past = torch.arange(20)
    buckets = relative_position_buckets(-past, bidirectional=False, n_buckets=8, max_distance=16)
    assert buckets.tolist() == [0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7]
    future = relative_position_buckets(past, bidirectional=False, n_buckets=8, max_distance=16)
    assert (future == 0).all()
    # both directions: 4 buckets each, 2 of them single; keys after the query in the upper half
    both = relative_position_buckets(
        torch.arange(-9, 10), bidirectional=True, n_buckets=8, max_distance=8
    )
    assert both.tolist() == [3, 3, 3, 3, 3, 3, 2, 2, 1, 0, 5, 6, 6, 7, 7, 7, 7, 7, 7]


@given(
    n_buckets=st.sampled_from([8, 16, 32]),
    max_distance=st.sampled_from([20, 64, 128]),
    bidirectional=st.booleans(),
)
def test_buckets_are_monotone_and_within_range(
    n_buckets: int, max_distance: int, bidirectional: bool
) -> None:
    past = -torch.arange(300)
    options = {"n_buckets": n_buckets, "max_distance": max_distance, "bidirectional": bidirectional}
    buckets = relative_position_buckets(past, **options)
    n = n_buckets // 2 if bidirectional else n_buckets
    assert (buckets.diff() >= 0).all()
    assert buckets[0] == 0
    assert (buckets[max_distance:] == n - 1).all()
    if bidirectional:
        future = relative_position_buckets(-past[1:], **options)
        assert torch.equal(future, buckets[1:] + n)


@pytest.mark.parametrize("bidirectional", [False, True])
def test_bias_looks_its_bucket_up(bidirectional: bool) -> None:
    module = RelativePositionBias(3, bidirectional=bidirectional, n_buckets=8, max_distance=16)
    query, key = torch.tensor([[4, 5], [0, 1]]), torch.arange(6)
    bias = module.double()(query, key)
    assert bias.shape == (2, 3, 2, 6)
    assert bias.dtype == torch.float64
    for b in range(2):
        for i in range(2):
            for j in range(6):
                distance = (key[j] - query[b, i])[None]
                bucket = relative_position_buckets(
                    distance, bidirectional=bidirectional, n_buckets=8, max_distance=16
                )
                assert torch.equal(bias[b, :, i, j], module.weight[bucket[0]])
    bias.sum().backward()
    assert module.weight.grad.sum() == 2 * 3 * 2 * 6
    # a shift of all positions changes nothing
    assert torch.equal(module(query + 7, key + 7), bias)


def test_default_buckets_are_those_of_t5() -> None:
    distances = torch.tensor([0, -1, -7, -8, -11, -12, -16, -63, -64, -127, -128, 1, 128])
    buckets = relative_position_buckets(distances, bidirectional=True)
    # 8 + floor(8 ln(d / 8) / ln 16)
    far = [8 + math.floor(8 * math.log(d / 8) / math.log(16)) for d in (8, 11, 12, 16, 63, 64)]
    assert far == [8, 8, 9, 10, 13, 14]
    assert buckets.tolist() == [0, 1, 7, *far, 15, 15, 17, 31]


def test_errors_name_both_values() -> None:
    with pytest.raises(ValueError, match="n_heads must be positive, got 0"):
        alibi_slopes(0)
    with pytest.raises(ValueError, match="n_heads must be positive, got 0"):
        RelativePositionBias(0, bidirectional=True)
    with pytest.raises(ValueError, match="n_buckets 2, max_distance 128"):
        RelativePositionBias(4, bidirectional=True, n_buckets=2)
    with pytest.raises(ValueError, match="n_buckets 32, max_distance 8"):
        relative_position_buckets(torch.arange(3), bidirectional=True, max_distance=8)
