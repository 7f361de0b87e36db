"""Attention masks as booleans. One polarity in the whole package: True = may attend.

Legend: B batch, T query length, S key length.

Masks are combined as booleans (`combine`) and applied once, by the attention function. Only
`additive_mask` leaves the boolean world, for texts and libraries that add a mask to the scores.
"""

from __future__ import annotations

from functools import reduce
from typing import overload

import torch
from torch import Tensor


def causal_mask(
    n_query: int, n_key: int | None = None, *, device: torch.device | str | None = None
) -> Tensor:
    """Let every query attend to the keys up to and including its own position.

    The last query is aligned with the last key (the lower right corner), as in decoding with a
    cache, where the queries are the newest tokens:

        causal_mask(3)        causal_mask(2, 5)
        1 0 0                 1 1 1 1 0
        1 1 0                 1 1 1 1 1
        1 1 1

    torch's ``is_causal=True`` aligns the upper left corners instead; the two agree for T = S only.
    With more queries than keys, the first T - S queries precede every key and may attend to none.

    Args:
        n_query: T, the number of queries.
        n_key: S, the number of keys; T when left out.
        device: where the mask is made.

    Returns:
        Boolean (T, S), True = may attend.

    Raises:
        ValueError: a length is negative.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.3.
    """
    n_key = n_query if n_key is None else n_key
    if n_query < 0 or n_key < 0:
        raise ValueError(f"lengths must not be negative: n_query {n_query}, n_key {n_key}")
    return torch.ones(n_query, n_key, dtype=torch.bool, device=device).tril(n_key - n_query)


def padding_mask(lengths: Tensor, n_key: int) -> Tensor:
    """Mark the real tokens of right-padded sequences.

    Args:
        lengths: integers of any shape (...), the number of real tokens of each sequence.
        n_key: S, the padded length.

    Returns:
        Boolean (..., S), True = real token (may be attended to). Lengths (B,) give (B, S), the
        ``key_padding_mask`` of `MultiHeadAttention`; lengths (B, 1, 1) give (B, 1, 1, S), which
        combines with a causal mask over heads and queries.

    Raises:
        ValueError: the lengths are no integers, or one lies outside 0..n_key.
    """
    if lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == torch.bool:
        raise ValueError(f"lengths must be integers, got {lengths.dtype}")
    if lengths.numel() and not 0 <= int(lengths.min()) <= int(lengths.max()) <= n_key:
        low, high = int(lengths.min()), int(lengths.max())
        raise ValueError(f"lengths run from {low} to {high}, outside 0..n_key = 0..{n_key}")
    return torch.arange(n_key, device=lengths.device) < lengths.unsqueeze(-1)


@overload
def combine(*masks: Tensor) -> Tensor: ...


@overload
def combine(*masks: Tensor | None) -> Tensor | None: ...


def combine(*masks: Tensor | None) -> Tensor | None:
    """Combine masks: a position may be attended to when every mask allows it.

    Args:
        masks: boolean masks whose shapes broadcast; None allows everything.

    Returns:
        The conjunction, of the broadcast shape; None when no mask is left.

    Raises:
        ValueError: a mask is not boolean. (Two additive masks of ``finfo.min`` would add up to
            -inf and turn a row into NaN; booleans cannot overflow.)
    """
    present = [mask for mask in masks if mask is not None]
    for mask in present:
        require_boolean("mask", mask)
    return reduce(torch.logical_and, present) if present else None


def additive_mask(may_attend: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn a boolean mask into the published additive one, M.

    M_ij = 0 where query i may attend to key j, and -inf elsewhere (Vaswani et al. 2017, section
    3.2.3: "setting to -inf all values in the input of the softmax which correspond to illegal
    connections").

    -inf is exact in every floating dtype. A large finite number is not a substitute: -1e9 is
    beyond the range of float16, and a row of nothing but -1e9 becomes a uniform average.

    Args:
        may_attend: boolean (..., T, S), True = may attend.
        dtype: floating dtype of the result.

    Returns:
        M of the same shape, 0 or -inf.

    Raises:
        ValueError: the mask is not boolean, or the dtype not a floating one.
    """
    require_boolean("may_attend", may_attend)
    if not dtype.is_floating_point:
        raise ValueError(f"an additive mask needs a floating dtype, got {dtype}")
    zeros = torch.zeros(may_attend.shape, dtype=dtype, device=may_attend.device)
    return zeros.masked_fill(~may_attend, float("-inf"))


def require_boolean(name: str, mask: Tensor) -> None:
    """Refuse a mask that is not boolean; other libraries would add its 0 and 1 to the scores.

    Args:
        name: what the caller calls the mask.
        mask: the tensor to look at.

    Raises:
        ValueError: the mask is not boolean.
    """
    if mask.dtype != torch.bool:
        raise ValueError(f"{name} must be boolean (True = may attend), got {mask.dtype}")
