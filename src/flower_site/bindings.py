"""Calls for formulas whose symbols are not plain arguments. Each only calls
``flower_transformer``; it computes nothing.

A binding may add or take away an axis, or put functions of the package together; a test holds it
to that.
"""

from __future__ import annotations

import torch
from torch import Tensor

from flower_transformer import attention, masks


def causal_mask(n: int, m: int) -> Tensor:
    """The causal mask of ``n`` queries at the end of ``m`` keys, as the matrix M of 0 and −∞."""
    return masks.additive_mask(masks.causal_mask(n, m), torch.float64)


def padding_mask(length: int, n: int, m: int) -> Tensor:
    """The padding mask of a sequence of ``length`` real tokens among ``m``, for ``n`` queries: 0
    and −∞.
    """
    real = masks.padding_mask(torch.tensor([length]), m)
    return masks.additive_mask(real.expand(n, m), torch.float64)


def multi_head_by_blocks(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    w_query: Tensor,
    w_key: Tensor,
    w_value: Tensor,
    w_output: Tensor,
) -> Tensor:
    """``multi_head_attention`` with the output projection given as one block ``(d_v, D)`` for each
    head.
    """
    return attention.multi_head_attention(
        query, key, value, w_query, w_key, w_value, w_output.flatten(0, 1)
    )
