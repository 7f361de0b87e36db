"""Grouped-query attention: equal to repeated heads, and to torch's enable_gqa."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from parity import normal

from flower_transformer.grouped_query import grouped_query_attention, grouped_query_weights
from flower_transformer.masks import causal_mask
from flower_transformer.scaled_dot_product import (
    attention_weights,
    scaled_dot_product_attention,
)

PATHS = ("reference", "fused")


def masks() -> dict[str, torch.Tensor | None]:
    """Every shape of a mask for scores (2, 4, 3, 5), rows without a key among them."""
    random = normal(2, 4, 3, 5, seed=9) > 0
    random[0, 1, 2] = False
    padding = torch.arange(5) < torch.tensor([5, 2])[:, None]
    return {
        "none": None,
        "one row": torch.arange(5) != 1,
        "causal": causal_mask(3, 5),
        "padding": padding[:, None, None, :],
        "padding and causal": padding[:, None, None, :] & causal_mask(3, 5),
        "per head": random[0],
        "per head, one row": random[:, :, :1],
        "per query": random[:, :1, :, :1],
        "per batch and head": random,
        "nothing": torch.zeros(3, 5, dtype=torch.bool),
    }


@pytest.mark.parametrize("path", PATHS)
def test_two_heads_share_a_key_by_hand(path: str) -> None:
    # zero queries average the values; 4 query heads, 2 value heads with the values 1, 3 and 10, 20
    value = torch.tensor([[[1.0], [3.0]], [[10.0], [20.0]]])
    output = grouped_query_attention(torch.zeros(4, 1, 2), torch.zeros(2, 2, 2), value, path=path)
    assert output.flatten().tolist() == [2, 2, 15, 15]
    # query ln 3 against the keys 1 and 0: weights 3 : 1
    query = torch.zeros(4, 1, 1)
    query[1] = query[2] = math.log(3)
    key = torch.tensor([[[1.0], [0.0]], [[1.0], [0.0]]])
    output = grouped_query_attention(query, key, value, path=path)
    torch.testing.assert_close(output.flatten(), torch.tensor([2.0, 1.5, 12.5, 15.0]))


@pytest.mark.parametrize("n_kv_heads", [1, 2, 4])
@pytest.mark.parametrize("kind", masks())
@pytest.mark.parametrize("path", PATHS)
def test_equals_repeated_heads(n_kv_heads: int, kind: str, path: str) -> None:
    inputs = [normal(2, 4, 3, 6), normal(2, n_kv_heads, 5, 6), normal(2, n_kv_heads, 5, 7)]
    for tensor in inputs:
        tensor.requires_grad_()
    query, key, value = inputs
    mask, bias = masks()[kind], normal(4, 3, 5, seed=8)
    ours = grouped_query_attention(
        query, key, value, may_attend=mask, score_bias=bias, scale=0.3, path=path
    )
    key4, value4 = (x.repeat_interleave(4 // n_kv_heads, dim=-3) for x in (key, value))
    theirs = scaled_dot_product_attention(
        query, key4, value4, may_attend=mask, score_bias=bias, scale=0.3
    )
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(
        grouped_query_weights(query, key, may_attend=mask, score_bias=bias, scale=0.3),
        attention_weights(query, key4, may_attend=mask, score_bias=bias, scale=0.3),
        rtol=1e-10,
        atol=1e-10,
    )
    for a, b in zip(
        torch.autograd.grad(ours.square().sum(), inputs),
        torch.autograd.grad(theirs.square().sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


@given(
    groups=st.integers(1, 3),
    group=st.integers(1, 3),
    n_query=st.integers(1, 4),
    n_key=st.integers(1, 5),
    seed=st.integers(0, 2**31),
)
def test_parity_with_torch(groups: int, group: int, n_query: int, n_key: int, seed: int) -> None:
    query = normal(2, groups * group, n_query, 4, seed=seed)
    key, value = normal(2, groups, n_key, 4, seed=seed + 1), normal(2, groups, n_key, 4)
    mask = normal(2, 1, n_query, n_key, seed=seed + 2) > -1
    mask |= ~mask.any(dim=-1, keepdim=True)
    theirs = F.scaled_dot_product_attention(query, key, value, mask, enable_gqa=True)
    for path in PATHS:
        ours = grouped_query_attention(query, key, value, may_attend=mask, path=path)
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


def test_keys_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel sees the two heads of keys themselves, and a padding mask as small as it was."""
    seen: list[torch.Tensor] = []

    def kernel(query: torch.Tensor, *rest: torch.Tensor, **options: float) -> torch.Tensor:
        seen.extend((query, *rest[:3]))
        return query

    monkeypatch.setattr(F, "scaled_dot_product_attention", kernel)
    key = normal(1, 2, 5, 6)
    padding = torch.ones(1, 1, 1, 5, dtype=torch.bool)
    grouped_query_attention(normal(1, 8, 3, 6), key, key, may_attend=padding, path="fused")
    assert [tuple(x.shape) for x in seen] == [
        (1, 2, 12, 6),
        (1, 2, 5, 6),
        (1, 2, 5, 6),
        (1, 1, 1, 5),
    ]


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((4, 3, 2), (3, 5, 2), (3, 5, 2)), "4 query heads are no multiple of 3 key/value heads"),
        (((4, 3, 2), (2, 5, 2), (4, 5, 2)), r"key \(2, 5, 2\), value \(4, 5, 2\)"),
        (((3, 2), (2, 5, 2), (2, 5, 2)), r"query \(3, 2\), key \(2, 5, 2\)"),
    ],
)
def test_errors_name_both_values(shapes: tuple[tuple[int, ...], ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        grouped_query_attention(*(torch.zeros(shape) for shape in shapes))


@pytest.mark.parametrize("shape", [(2, 5), (3, 3, 5), (2, 1, 4, 5), (4, 3, 6)])
def test_a_mask_that_does_not_fit_is_refused(shape: tuple[int, ...]) -> None:
    key = torch.zeros(2, 5, 2)
    with pytest.raises(ValueError, match="does not broadcast to the scores"):
        grouped_query_attention(
            torch.zeros(4, 3, 2), key, key, may_attend=torch.ones(shape, dtype=torch.bool)
        )
