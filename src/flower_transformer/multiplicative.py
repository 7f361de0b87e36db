r"""Multiplicative attention (Luong et al. 2015): the scores dot, general and concat.

Legend: T query length, S key length, d_q and d_k the widths of queries and keys, a the hidden
width, "..." leading axes, usually (B,).

The paper writes the queries as h_t, states of the decoder, and the keys as h_s with a bar, states
of the encoder. "concat" multiplies nothing: it is additive attention with both matrices in one.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from flower_transformer.additive import additive_scores
from flower_transformer.alignment import Alignment
from flower_transformer.scaled_dot_product import attention_scores

Kind = Literal["dot", "general", "concat"]


def dot_scores(query: Tensor, key: Tensor) -> Tensor:
    r"""Score by the inner product.

    $$
    e_{ts} = q_t^{\top} k_s
    $$

    Args:
        query: q (..., T, d).
        key: k (..., S, d).

    Returns:
        (..., T, S).

    Raises:
        ValueError: query and key differ in width.

    Source: Luong et al. 2015, "Effective Approaches to Attention-based Neural Machine
    Translation", section 3.1, equation (8).
    """
    return attention_scores(query, key, scale=1.0)


def general_scores(query: Tensor, key: Tensor, w: Tensor) -> Tensor:
    r"""Score by a bilinear form.

    $$
    e_{ts} = q_t^{\top} W_a k_s
    $$

    Args:
        query: q (..., T, d_q).
        key: k (..., S, d_k).
        w: W_a (d_q, d_k).

    Returns:
        (..., T, S).

    Raises:
        ValueError: the matrix does not fit query and key.

    Source: Luong et al. 2015, section 3.1, equation (8).
    """
    widths = (query.shape[-1], key.shape[-1])
    if w.shape != widths:
        raise ValueError(f"w is {tuple(w.shape)}, query and key have the widths {widths}")
    return dot_scores(query @ w, key)


def concat_scores(query: Tensor, key: Tensor, w: Tensor, v: Tensor) -> Tensor:
    r"""Score by a small network on both, one after the other.

    $$
    e_{ts} = v_a^{\top} \tanh(W_a [q_t; k_s])
    $$

    Args:
        query: q (..., T, d_q).
        key: k (..., S, d_k).
        w: W_a (a, d_q + d_k).
        v: v_a (a,).

    Returns:
        (..., T, S).

    Raises:
        ValueError: the matrix does not fit query and key, or v.

    Source: Luong et al. 2015, section 3.1, equation (8).
    """
    d_q = query.shape[-1]
    # W [q; k] = W's first columns times q + its last columns times k
    return additive_scores(query, key, w[:, :d_q], w[:, d_q:], v)


class MultiplicativeAttention(Alignment):
    """Attention by `dot_scores`, `general_scores` or `concat_scores`.

    Args:
        d_query: d_q.
        d_key: d_k.
        kind: "dot" (no weights), "general" or "concat".
        d_hidden: a, for "concat"; d_query when left out.

    Raises:
        ValueError: the kind is unknown, a size is < 1, or "dot" with two widths.

    Source: Luong et al. 2015, section 3.1.
    """

    def __init__(
        self, d_query: int, d_key: int, kind: Kind = "general", *, d_hidden: int | None = None
    ) -> None:
        super().__init__()
        d_hidden = d_query if d_hidden is None else d_hidden
        if kind not in get_args(Kind):
            raise ValueError(f"kind must be one of {get_args(Kind)}, got {kind!r}")
        if min(d_query, d_key, d_hidden) < 1:
            sizes = f"d_query {d_query}, d_key {d_key}, d_hidden {d_hidden}"
            raise ValueError(f"sizes must be positive: {sizes}")
        if kind == "dot" and d_query != d_key:
            raise ValueError(f"'dot' needs one width: d_query {d_query}, d_key {d_key}")
        self.kind: Kind = kind
        if kind == "general":
            self.w = nn.Parameter(torch.empty(d_query, d_key))
            nn.init.xavier_uniform_(self.w)
        if kind == "concat":
            self.w = nn.Parameter(torch.empty(d_hidden, d_query + d_key))
            nn.init.xavier_uniform_(self.w)
            self.v = nn.Parameter(torch.empty(d_hidden))
            nn.init.uniform_(self.v, -(d_hidden**-0.5), d_hidden**-0.5)

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """Score every key (..., S, d_k) against every query (..., T, d_q): (..., T, S)."""
        if self.kind == "dot":
            return dot_scores(query, key)
        if self.kind == "general":
            return general_scores(query, key, self.w)
        return concat_scores(query, key, self.w, self.v)
