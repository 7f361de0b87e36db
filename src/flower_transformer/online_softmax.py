r"""Online softmax, and attention block by block: FlashAttention's recurrence, written to be read.

Legend: T query length, S key length, d_k and d_v widths, "..." leading axes, usually (B, H).

The softmax needs the largest score and the sum of all exponentials before it can give the first
weight; the plain way keeps all T * S scores for that. Here the keys are read once, block by block,
and three things are kept for each query: the largest score so far m, the sum so far l of
exp(score - m), and the output so far o, the same sum with each exponential times its value. When a
block brings a larger m, what was summed before shrinks by exp(m_old - m_new).

This is the arithmetic only. What makes FlashAttention fast is that a block fits into the memory on
the chip; `scaled_dot_product_attention` calls such a kernel with ``path="fused"``.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from flower_transformer.masks import require_boolean, silence_unused


def online_softmax(scores: Tensor, *, block_size: int = 1) -> Tensor:
    r"""Softmax over the last axis, its maximum and sum found in one pass.

    $$
    \begin{aligned}
    m_j &= \max(m_{j-1}, x_j) \\
    l_j &= l_{j-1} e^{m_{j-1} - m_j} + e^{x_j - m_j} \\
    \mathrm{softmax}(x)_i &= \frac{e^{x_i - m_n}}{l_n}
    \end{aligned}
    $$

    with $m_0 = -\infty$ and $l_0 = 0$.

    Args:
        scores: x (..., S), finite.
        block_size: how many scores are read at a time; 1 is the published recurrence.

    Returns:
        The softmax (..., S).

    Raises:
        ValueError: block_size < 1.

    Source: Milakov and Gimelshein 2018, "Online normalizer calculation for softmax", section 3,
    algorithm 3.
    """
    _check_block_size(block_size)
    largest = torch.full_like(scores[..., :1], -math.inf)  # m, (..., 1)
    total = torch.zeros_like(largest)  # l, (..., 1)
    for block in torch.split(scores, block_size, dim=-1):
        new = torch.maximum(largest, block.amax(dim=-1, keepdim=True))
        total = total * (largest - new).exp() + (block - new).exp().sum(dim=-1, keepdim=True)
        largest = new
    return (scores - largest).exp() / total


def blockwise_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    may_attend: Tensor | None = None,
    scale: float | None = None,
    block_size: int = 64,
) -> Tensor:
    r"""Attention that never holds more than `block_size` scores of a query.

    For the j-th block of keys and values:

    $$
    \begin{aligned}
    S_j &= \frac{Q K_j^{\top}}{\sqrt{d_k}} \\
    m_j &= \max(m_{j-1}, \mathrm{rowmax}(S_j)) \\
    l_j &= e^{m_{j-1} - m_j} l_{j-1} + \mathrm{rowsum}(e^{S_j - m_j}) \\
    O_j &= e^{m_{j-1} - m_j} O_{j-1} + e^{S_j - m_j} V_j
    \end{aligned}
    $$

    and the output is $O_n / l_n$. (FlashAttention cuts the queries into blocks as well; they do not
    depend on each other, so here all of them go at once.)

    Args:
        query: Q (..., T, d_k).
        key: K (..., S, d_k).
        value: V (..., S, d_v).
        may_attend: boolean, broadcastable to (..., T, S), True = may attend; None allows all.
        scale: factor in place of 1/sqrt(d_k).
        block_size: how many keys are read at a time.

    Returns:
        Output (..., T, d_v) in the dtype of the inputs, equal to `scaled_dot_product_attention`: a
        query that may attend to nothing gets exactly 0. Half precision is summed in float32.

    Raises:
        ValueError: widths or lengths of query, key and value differ, the mask is not boolean, or
            block_size < 1.

    Source: Dao et al. 2022, "FlashAttention", section 3.1, algorithm 1; the division at the end as
    in Dao 2023, "FlashAttention-2", section 3.1.
    """
    _check_block_size(block_size)
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query has width {query.shape[-1]}, key has width {key.shape[-1]}")
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(f"key has length {key.shape[-2]}, value has length {value.shape[-2]}")
    n_key = key.shape[-2]
    if may_attend is None:
        may_attend = torch.ones(n_key, dtype=torch.bool, device=key.device)
    require_boolean("may_attend", may_attend)
    key, value = silence_unused(key, may_attend), silence_unused(value, may_attend)
    may_attend = may_attend.expand(*may_attend.shape[:-1], n_key)  # an axis of 1 serves all keys

    dtype = torch.promote_types(query.dtype, torch.float32)
    query = query.to(dtype) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    largest = torch.full_like(query[..., :1], -math.inf)  # m (..., T, 1)
    total = torch.zeros_like(largest)  # l (..., T, 1)
    output = query.new_zeros(*query.shape[:-1], value.shape[-1])  # o (..., T, d_v)
    for start in range(0, n_key, block_size):
        block = slice(start, start + block_size)
        scores = query @ key[..., block, :].to(dtype).transpose(-2, -1)  # (..., T, block)
        scores = scores.masked_fill(~may_attend[..., block], -math.inf)
        # The maximum only keeps exp in range and cancels in the end: no gradient goes through it.
        new = torch.maximum(largest, scores.detach().amax(dim=-1, keepdim=True))  # (..., T, 1)
        finite = new.masked_fill(new == -math.inf, 0.0)  # no key yet: exp(-inf - 0) = 0, not NaN
        shrink = (largest - finite).exp()
        exponentials = (scores - finite).exp()  # (..., T, block)
        total = shrink * total + exponentials.sum(dim=-1, keepdim=True)
        output = shrink * output + exponentials @ value[..., block, :].to(dtype)
        largest = new
    return (output / total.masked_fill(total == 0, 1.0)).to(value.dtype)


def _check_block_size(block_size: int) -> None:
    if block_size < 1:
        raise ValueError(f"block_size must be at least 1, got {block_size}")
