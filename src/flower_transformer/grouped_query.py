r"""Multi-query and grouped-query attention: several query heads read one key/value head.

Legend: H query heads, G key/value heads, R = H / G query heads a group, T query length, S key
length, d_k width of queries and keys, d_v width of values. "..." stands for leading axes, usually
(B,).

The keys and values kept while decoding shrink by the factor R; with G = H this is multi-head
attention, with G = 1 multi-query attention. No key is repeated in memory: the R queries that share
a head of keys are set one below the other, and what remains is plain attention with G heads and
R * T queries.
"""

from __future__ import annotations

from torch import Tensor

from flower_transformer.scaled_dot_product import (
    Path,
    attention_weights,
    scaled_dot_product_attention,
)


def grouped_query_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    may_attend: Tensor | None = None,
    score_bias: Tensor | None = None,
    scale: float | None = None,
    dropout_p: float = 0.0,
    path: Path = "reference",
) -> Tensor:
    r"""Attention whose query head i reads the key/value head of its group.

    $$
    \mathrm{head}_i = \mathrm{softmax}\left(
        \frac{Q_i K_{\lfloor i / r \rfloor}^{\top}}{\sqrt{d_k}}
    \right) V_{\lfloor i / r \rfloor}
    $$

    Heads count from 0, and r is R = H / G: 4 query and 2 key heads pair up as [0, 0, 1, 1], the
    order of torch's ``enable_gqa``.

    Args:
        query: Q (..., H, T, d_k).
        key: K (..., G, S, d_k); H is a multiple of G.
        value: V (..., G, S, d_v).
        may_attend: boolean, broadcastable to (..., H, T, S), True = may attend.
        score_bias: finite, broadcastable to (..., H, T, S), added to the scaled scores.
        scale: factor in place of 1/sqrt(d_k).
        dropout_p: probability of dropping a weight, applied whenever it is not 0.
        path: "reference" or "fused", see `scaled_dot_product_attention`.

    Returns:
        Output (..., H, T, d_v).

    Raises:
        ValueError: H is no multiple of G, key and value differ in G, a mask or bias does not fit,
            or what `scaled_dot_product_attention` raises.

    Source: Ainslie et al. 2023, "GQA: Training Generalized Multi-Query Transformer Models from
    Multi-Head Checkpoints", section 2.2; for G = 1 Shazeer 2019, "Fast Transformer Decoding: One
    Write-Head is All You Need", section 3.
    """
    if value.dim() < 3 or value.shape[-3] != key.shape[-3]:
        shapes = f"key {tuple(key.shape)}, value {tuple(value.shape)}"
        raise ValueError(f"key and value must have the same heads (..., G, S, d): got {shapes}")
    group = _group_size(query, key)
    heads = scaled_dot_product_attention(
        _fold(query, group),
        key,
        value,
        may_attend=_fold_scores(may_attend, query, key),
        score_bias=_fold_scores(score_bias, query, key),
        scale=scale,
        dropout_p=dropout_p,
        path=path,
    )  # (..., G, R * T, d_v)
    return _unfold(heads, group)


def grouped_query_weights(
    query: Tensor,
    key: Tensor,
    *,
    may_attend: Tensor | None = None,
    score_bias: Tensor | None = None,
    scale: float | None = None,
) -> Tensor:
    """Return the weights of `grouped_query_attention`, one matrix for each query head.

    Args:
        query: Q (..., H, T, d_k).
        key: K (..., G, S, d_k).
        may_attend: boolean, broadcastable to (..., H, T, S), True = may attend.
        score_bias: finite, broadcastable to (..., H, T, S), added to the scaled scores.
        scale: factor in place of 1/sqrt(d_k).

    Returns:
        Weights (..., H, T, S).

    Raises:
        ValueError: as `grouped_query_attention`.
    """
    group = _group_size(query, key)
    weights = attention_weights(
        _fold(query, group),
        key,
        may_attend=_fold_scores(may_attend, query, key),
        score_bias=_fold_scores(score_bias, query, key),
        scale=scale,
    )  # (..., G, R * T, S)
    return _unfold(weights, group)


def _group_size(query: Tensor, key: Tensor) -> int:
    """R, the number of query heads that share a key head."""
    if query.dim() < 3 or key.dim() < 3:
        shapes = f"query {tuple(query.shape)}, key {tuple(key.shape)}"
        raise ValueError(f"query and key need the axes (heads, length, width), got {shapes}")
    n_heads, n_kv_heads = query.shape[-3], key.shape[-3]
    if n_kv_heads < 1 or n_heads % n_kv_heads:
        raise ValueError(f"{n_heads} query heads are no multiple of {n_kv_heads} key/value heads")
    return n_heads // n_kv_heads


def _fold(x: Tensor, group: int) -> Tensor:
    """Set the heads of a group one below the other."""
    # (..., H, T, d) -> (..., G, R, T, d) -> (..., G, R * T, d)
    *batch, n_heads, length, width = x.shape
    return x.reshape(*batch, n_heads // group, group, length, width).flatten(-3, -2)


def _unfold(x: Tensor, group: int) -> Tensor:
    """Undo `_fold`."""
    # (..., G, R * T, d) -> (..., G, R, T, d) -> (..., H, T, d)
    *batch, n_groups, rows, width = x.shape
    return x.view(*batch, n_groups, group, rows // group, width).flatten(-4, -3)


def _fold_scores(x: Tensor | None, query: Tensor, key: Tensor) -> Tensor | None:
    """Fold a mask or bias as the queries are, without giving it axes that it does not need."""
    if x is None or x.dim() < 2:
        return x  # (S,), the same for every query
    group, n_query = _group_size(query, key), query.shape[-2]
    x = x if x.dim() > 2 else x.unsqueeze(0)  # (T, S) -> (1, T, S)
    n_heads, n_rows = x.shape[-3:-1]
    if n_heads == n_rows == 1:
        return x
    if n_heads not in (1, query.shape[-3]) or n_rows not in (1, n_query):
        scores = f"the scores (..., {query.shape[-3]}, {n_query}, {key.shape[-2]})"
        raise ValueError(f"a mask or bias {tuple(x.shape)} does not broadcast to {scores}")
    # (..., 1, T, S) -> (..., R, T, S) -> (..., 1, R * T, S): one copy serves all groups
    x = x.expand(*x.shape[:-3], group if n_heads == 1 else n_heads, n_query, -1)
    return _fold(x, group)
