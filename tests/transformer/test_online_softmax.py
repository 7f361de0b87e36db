"""Block by block equals all at once, masks and empty rows included."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from parity import normal

from flower_transformer.masks import causal_mask
from flower_transformer.online_softmax import blockwise_attention, online_softmax
from flower_transformer.scaled_dot_product import scaled_dot_product_attention


def test_online_softmax_by_hand() -> None:
    # read 0 first: m = 0, l = 1; then ln 3: m = ln 3, l = 1 * e^(-ln 3) + 1 = 4/3
    scores = torch.tensor([0.0, math.log(3)])
    torch.testing.assert_close(online_softmax(scores), torch.tensor([0.25, 0.75]))
    huge = torch.tensor([1000.0, 1000.0, -1000.0])  # exp(1000) is infinite
    assert online_softmax(huge).tolist() == [0.5, 0.5, 0.0]


@given(n=st.integers(1, 12), block_size=st.integers(1, 13), seed=st.integers(0, 2**31))
def test_online_softmax_equals_softmax(n: int, block_size: int, seed: int) -> None:
    scores = (5 * normal(2, n, seed=seed)).requires_grad_()
    online, plain = online_softmax(scores, block_size=block_size), scores.softmax(dim=-1)
    torch.testing.assert_close(online, plain)
    weights = normal(2, n, seed=seed + 1)
    torch.testing.assert_close(
        torch.autograd.grad((online * weights).sum(), scores)[0],
        torch.autograd.grad((plain * weights).sum(), scores)[0],
    )


@given(
    n_query=st.integers(1, 5),
    n_key=st.integers(1, 9),
    block_size=st.integers(1, 10),
    density=st.sampled_from([0.1, 0.5, 0.9]),
    seed=st.integers(0, 2**31),
)
def test_blockwise_equals_full(
    n_query: int, n_key: int, block_size: int, density: float, seed: int
) -> None:
    inputs = [normal(2, n_query, 3), normal(2, n_key, 3, seed=seed), normal(2, n_key, 4, seed=1)]
    for tensor in inputs:
        tensor.requires_grad_()
    generator = torch.Generator().manual_seed(seed)
    random = torch.rand(2, n_query, n_key, generator=generator) < density
    empty = torch.zeros(n_query, n_key, dtype=torch.bool)
    for may_attend in (None, random, random[0, 0], causal_mask(n_query, n_key), empty):
        ours = blockwise_attention(*inputs, may_attend=may_attend, block_size=block_size)
        theirs = scaled_dot_product_attention(*inputs, may_attend=may_attend)
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
        for a, b in zip(
            torch.autograd.grad(ours.square().sum(), inputs),
            torch.autograd.grad(theirs.square().sum(), inputs),
            strict=True,
        ):
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


def test_leading_axes_broadcast_and_a_single_query() -> None:
    query, key, value = normal(2, 1, 4, 5), normal(3, 6, 5), normal(1, 3, 6, 7)
    torch.testing.assert_close(
        blockwise_attention(query, key, value, block_size=4),
        scaled_dot_product_attention(query, key, value),
    )
    single = blockwise_attention(query[0, 0, 0], key[0], value[0, 0], block_size=4)
    torch.testing.assert_close(
        single, scaled_dot_product_attention(query[0, 0, 0], key[0], value[0, 0])
    )
    per_query = torch.tensor([True, False, True, True])[:, None]
    torch.testing.assert_close(
        blockwise_attention(query, key, value, may_attend=per_query, block_size=4),
        scaled_dot_product_attention(query, key, value, may_attend=per_query),
    )


def test_scale_and_no_key_at_all() -> None:
    query, key, value = normal(4, 5), normal(6, 5), normal(6, 7)
    torch.testing.assert_close(
        blockwise_attention(query, key, value, scale=2.0, block_size=4),
        scaled_dot_product_attention(query, key, value, scale=2.0),
    )
    assert blockwise_attention(query, key[:0], value[:0]).tolist() == [[0.0] * 7] * 4


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_summed_in_float32(dtype: torch.dtype) -> None:
    # 4096 equal weights of 1/4096 each, of the value 1: the sum itself is out of bfloat16's digits
    query, key, value = (torch.zeros(1, 4), torch.zeros(4096, 4), torch.ones(4096, 2))
    output = blockwise_attention(query.to(dtype), key.to(dtype), value.to(dtype), block_size=1)
    assert output.dtype == dtype
    assert output.tolist() == [[1, 1]]


def test_nan_in_padding_does_not_spread() -> None:
    query, key, value = normal(3, 4), normal(5, 4, seed=1), normal(5, 2, seed=2)
    expected = scaled_dot_product_attention(query, key[:3], value[:3])
    key[3:], value[3:] = math.nan, math.nan
    output = blockwise_attention(query, key, value, may_attend=torch.arange(5) < 3, block_size=2)
    torch.testing.assert_close(output, expected)


@pytest.mark.parametrize(
    ("shapes", "options", "message"),
    [
        (((2, 3), (4, 5), (4, 6)), {}, "query has width 3, key has width 5"),
        (((2, 3), (4, 3), (5, 6)), {}, "key has length 4, value has length 5"),
        (((2, 3), (4, 3), (4, 6)), {"block_size": 0}, "block_size must be at least 1, got 0"),
        (((2, 3), (4, 3), (4, 6)), {"may_attend": torch.ones(2, 4)}, "must be boolean"),
    ],
)
def test_errors_name_both_values(
    shapes: tuple[tuple[int, ...], ...], options: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        blockwise_attention(*(torch.zeros(shape) for shape in shapes), **options)
