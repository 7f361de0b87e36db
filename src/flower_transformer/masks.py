"""Attention masks as booleans. One polarity in the whole package: True = may attend.

Legend: B batch, T query length, S key length.

The makers are small predicates on a query and a key (`causal_mask`: the key is not newer;
`window_mask`: nor older than the window; `block_mask`: both are in one block; `padding_mask`: the
key is a real token). What a model needs is their conjunction, `combine`.

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


def window_mask(
    n_query: int,
    n_key: int | None = None,
    *,
    window: int,
    device: torch.device | str | None = None,
) -> Tensor:
    """Let every query attend to the `window` newest keys, its own position included.

    Causal, and aligned with the last key as `causal_mask` is:

        window_mask(4, window=2)    window_mask(2, 5, window=3)
        1 0 0 0                     0 1 1 1 0
        1 1 0 0                     0 0 1 1 1
        0 1 1 0
        0 0 1 1

    Args:
        n_query: T, the number of queries.
        n_key: S, the number of keys; T when left out.
        window: W, how many keys a query sees; W >= S is the causal mask.
        device: where the mask is made.

    Returns:
        Boolean (T, S), True = may attend.

    Raises:
        ValueError: a length is negative, or the window < 1.

    Source: Beltagy et al. 2020, "Longformer", section 3.1; Jiang et al. 2023, "Mistral 7B",
    section 2 (with W counting the query's own position).
    """
    if window < 1:
        raise ValueError(f"window must be at least 1 (the position itself), got {window}")
    causal = causal_mask(n_query, n_key, device=device)
    return causal.triu(causal.shape[1] - n_query - window + 1)


def block_mask(query_blocks: Tensor, key_blocks: Tensor | None = None) -> Tensor:
    """Let queries attend to the keys of their own block, as for sentences packed into one row.

    Args:
        query_blocks: integers (..., T), the number of each query's block.
        key_blocks: integers (..., S), those of the keys; the queries' own when left out.

    Returns:
        Boolean (..., T, S), True where the numbers are equal. Blocks [0, 0, 1] give

            1 1 0
            1 1 0
            0 0 1

    Raises:
        ValueError: the numbers are no integers.
    """
    key_blocks = query_blocks if key_blocks is None else key_blocks
    for name, blocks in (("query_blocks", query_blocks), ("key_blocks", key_blocks)):
        _require_integers(name, blocks)
    return query_blocks.unsqueeze(-1) == key_blocks.unsqueeze(-2)  # (..., T, 1) == (..., 1, S)


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
    _require_integers("lengths", lengths)
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


def silence_unused(x: Tensor, may_attend: Tensor) -> Tensor:
    """Set the keys (or values) that no query may attend to to 0: weight 0 times NaN is NaN.

    Args:
        x: keys or values (..., S, d).
        may_attend: boolean, broadcastable to (..., T, S), True = may attend.

    Returns:
        x with the rows nobody sees at 0, and so with the gradient 0 there.
    """
    used = may_attend.any(dim=-2) if may_attend.dim() > 1 else may_attend  # (..., S)
    return x.masked_fill(~used.unsqueeze(-1), 0.0)


def _require_integers(name: str, numbers: Tensor) -> None:
    if numbers.is_floating_point() or numbers.is_complex() or numbers.dtype == torch.bool:
        raise ValueError(f"{name} must be integers, got {numbers.dtype}")
