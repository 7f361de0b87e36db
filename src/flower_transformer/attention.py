r"""Multi-head attention (Vaswani et al. 2017, section 3.2.2).

Legend: B batch, H heads, G key/value heads (G = H unless they are shared), T query length, S key
length, D = d_model, d_k and d_v head widths.
"..." stands for any leading axes, usually (B,).

The attention inside each head is `flower_transformer.scaled_dot_product`, whose functions can be
imported from here too. `multi_head_attention` is the published formula as a function of its
weights; `MultiHeadAttention` holds the weights and computes the same.
"""

from __future__ import annotations

from typing import Literal, Protocol, overload

from torch import Tensor, nn

from flower_transformer.grouped_query import grouped_query_attention, grouped_query_weights
from flower_transformer.masks import causal_mask, combine
from flower_transformer.rotary import Rotation
from flower_transformer.scaled_dot_product import (
    Path,
    attention_scores,
    attention_weights,
    masked_attention,
    masked_softmax,
    scaled_dot_product_attention,
)

__all__ = [
    "KeyValueCache",
    "MultiHeadAttention",
    "Path",
    "attention_scores",
    "attention_weights",
    "masked_attention",
    "masked_softmax",
    "merge_heads",
    "multi_head_attention",
    "scaled_dot_product_attention",
    "split_heads",
]


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """Cut the last axis into heads: (..., T, H * d) -> (..., H, T, d).

    Args:
        x: (..., T, H * d); head h owns the columns h * d .. (h + 1) * d - 1.
        n_heads: H.

    Returns:
        A view of shape (..., H, T, d); no number is moved.

    Raises:
        ValueError: the width is no multiple of n_heads.
    """
    if n_heads < 1 or x.shape[-1] % n_heads:
        raise ValueError(f"width {x.shape[-1]} is not divisible by n_heads {n_heads}")
    x = x.view(*x.shape[:-1], n_heads, x.shape[-1] // n_heads)  # (..., T, H * d) -> (..., T, H, d)
    return x.transpose(-3, -2)  # (..., T, H, d) -> (..., H, T, d)


def merge_heads(x: Tensor) -> Tensor:
    """Write the heads side by side again, the inverse of `split_heads`.

    Args:
        x: (..., H, T, d).

    Returns:
        (..., T, H * d): Concat(head_1, ..., head_H).
    """
    return x.transpose(-3, -2).flatten(-2)  # (..., H, T, d) -> (..., T, H, d) -> (..., T, H * d)


@overload
def multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    w_query: Tensor,
    w_key: Tensor,
    w_value: Tensor,
    w_output: Tensor,
    *,
    may_attend: Tensor | None = None,
    dropout_p: float = 0.0,
    return_weights: Literal[False] = False,
    path: Path = "reference",
) -> Tensor: ...


@overload
def multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    w_query: Tensor,
    w_key: Tensor,
    w_value: Tensor,
    w_output: Tensor,
    *,
    may_attend: Tensor | None = None,
    dropout_p: float = 0.0,
    return_weights: Literal[True],
    path: Path = "reference",
) -> tuple[Tensor, Tensor]: ...


def multi_head_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    w_query: Tensor,
    w_key: Tensor,
    w_value: Tensor,
    w_output: Tensor,
    *,
    may_attend: Tensor | None = None,
    dropout_p: float = 0.0,
    return_weights: bool = False,
    path: Path = "reference",
) -> Tensor | tuple[Tensor, Tensor]:
    r"""Attention in H subspaces at once, the results mixed by one matrix.

    $$
    \begin{aligned}
    \mathrm{MultiHead}(Q, K, V) &= \mathrm{Concat}(\mathrm{head}_1, \ldots, \mathrm{head}_h)W^O \\
    \mathrm{head}_i &= \mathrm{Attention}(QW_i^Q, KW_i^K, VW_i^V)
    \end{aligned}
    $$

    Args:
        query: Q (..., T, D).
        key: K (..., S, D).
        value: V (..., S, D).
        w_query: the matrices W_i^Q of all heads, (H, D, d_k).
        w_key: W_i^K, (H, D, d_k).
        w_value: W_i^V, (H, D, d_v).
        w_output: W^O, (H * d_v, D).
        may_attend: boolean, broadcastable to (..., H, T, S), True = may attend. A (T, S) mask
            serves every batch and head; one mask per sequence has the shape (B, 1, T, S).
        dropout_p: probability of dropping an attention weight, applied whenever it is not 0.
        return_weights: also return the weights of each head, before dropout.
        path: "reference" or "fused", see `scaled_dot_product_attention`.

    Returns:
        Output (..., T, D) in the dtype of the inputs; with return_weights the pair of it and the
        weights (..., H, T, S).

    Raises:
        ValueError: the four weights disagree about H or d_v, or what
            `scaled_dot_product_attention` raises.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.2.
    """
    n_heads, width = w_value.shape[0], w_value.shape[0] * w_value.shape[-1]
    if not w_query.shape[0] == w_key.shape[0] == n_heads:
        counts = f"{w_query.shape[0]}, w_key {w_key.shape[0]}, w_value {n_heads}"
        raise ValueError(f"the weights have different numbers of heads: w_query {counts}")
    if w_output.shape[0] != width:
        raise ValueError(f"w_output has {w_output.shape[0]} rows, the heads give {width} columns")

    # (..., 1, length, D) @ (H, D, d) -> (..., H, length, d): each head looks with its own matrix
    q = query.unsqueeze(-3) @ w_query
    k = key.unsqueeze(-3) @ w_key
    v = value.unsqueeze(-3) @ w_value
    heads = scaled_dot_product_attention(
        q, k, v, may_attend=may_attend, dropout_p=dropout_p, path=path
    )  # (..., H, T, d_v)
    output = merge_heads(heads) @ w_output  # (..., T, H * d_v) @ (H * d_v, D) -> (..., T, D)
    return (output, attention_weights(q, k, may_attend=may_attend)) if return_weights else output


class KeyValueCache(Protocol):
    """What `MultiHeadAttention` asks of a cache: keep the newest keys and values, return all."""

    def update(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Append (B, G, T, d_k) and (B, G, T, d_v); return (B, G, S, d_k) and (B, G, S, d_v)."""
        ...


class MultiHeadAttention(nn.Module):
    """Multi-head attention with its weights: self-, cross- and masked attention.

    The formula is that of `multi_head_attention`, and so is the result (tested). The matrices of
    all heads stand side by side in one: one large product costs less than H small ones.

    Args:
        d_model: D, the width of input and output.
        n_heads: H.
        n_kv_heads: G, the number of key/value heads (`grouped_query_attention`); H when left out.
        d_k: width of queries and keys in a head; d_model / n_heads when left out.
        d_v: width of values in a head; d_k when left out.
        bias: add a bias to each projection. The published formula has none.
        dropout_p: probability of dropping an attention weight in training; never in evaluation.
        path: "fused" (torch's kernel) or "reference" (the formula written out): same values.

    Raises:
        ValueError: d_model is no multiple of n_heads (and d_k is not given), n_heads none of
            n_kv_heads, or a size is < 1.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.2.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        n_kv_heads: int | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
        bias: bool = False,
        dropout_p: float = 0.0,
        path: Path = "fused",
    ) -> None:
        super().__init__()
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        if d_model < 1 or n_heads < 1 or n_kv_heads < 1:
            sizes = f"d_model {d_model}, n_heads {n_heads}, n_kv_heads {n_kv_heads}"
            raise ValueError(f"sizes must be positive: {sizes}")
        if d_k is None and d_model % n_heads:
            raise ValueError(f"d_model {d_model} is not divisible by n_heads {n_heads}")
        if n_heads % n_kv_heads:
            raise ValueError(f"n_heads {n_heads} is not divisible by n_kv_heads {n_kv_heads}")
        d_k = d_model // n_heads if d_k is None else d_k
        d_v = d_k if d_v is None else d_v
        if d_k < 1 or d_v < 1:
            raise ValueError(f"sizes must be positive: d_k {d_k}, d_v {d_v}")
        if not 0.0 <= dropout_p < 1.0:
            raise ValueError(f"dropout_p must lie in [0, 1), got {dropout_p}")
        self.n_heads = n_heads
        self.n_kv_heads = n_kv_heads
        self.dropout_p = dropout_p
        self.path: Path = path
        self.project_query = nn.Linear(d_model, n_heads * d_k, bias=bias)
        self.project_key = nn.Linear(d_model, n_kv_heads * d_k, bias=bias)
        self.project_value = nn.Linear(d_model, n_kv_heads * d_v, bias=bias)
        self.project_output = nn.Linear(n_heads * d_v, d_model, bias=bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor | None = None,
        value: Tensor | None = None,
        *,
        may_attend: Tensor | None = None,
        causal: bool = False,
        key_padding_mask: Tensor | None = None,
        score_bias: Tensor | None = None,
        rotation: Rotation | None = None,
        cache: KeyValueCache | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Attend from the query to the key; to itself when no key is given.

        Args:
            query: (B, T, D), or (T, D) without a batch.
            key: (B, S, D); the query when left out (self-attention).
            value: (B, S, D); the key when left out.
            may_attend: boolean, broadcastable to (B, H, T, S), True = may attend.
            causal: no query attends to a later key; see `causal_mask` for T != S.
            key_padding_mask: boolean (B, S), True = real token: torch's argument of this name
                means the opposite.
            score_bias: finite, broadcastable to (B, H, T, S), added to the scaled scores.
            rotation: rotary positions of the tokens (`RotaryEmbedding`), for queries and keys.
            cache: earlier keys and values; it takes the new ones, and S counts all of them.
            return_weights: also return the weights of each head, before dropout.

        Returns:
            (B, T, D); with return_weights the pair of it and the weights (B, H, T, S). A query
            that may attend to nothing gets 0 from every head, and so the bias of the output.

        Raises:
            ValueError: key_padding_mask is no boolean (..., S), or what
                `grouped_query_attention` raises.
        """
        key = query if key is None else key
        value = key if value is None else value
        q = split_heads(self.project_query(query), self.n_heads)  # (B, H, T, d_k)
        k = split_heads(self.project_key(key), self.n_kv_heads)  # (B, G, S, d_k)
        v = split_heads(self.project_value(value), self.n_kv_heads)  # (B, G, S, d_v)
        if rotation is not None:
            q, k = rotation.apply(q), rotation.apply(k)
        if cache is not None:
            k, v = cache.update(k, v)

        if key_padding_mask is not None:
            if key_padding_mask.shape != (*k.shape[:-3], k.shape[-2]):
                keys = (*k.shape[:-3], k.shape[-2], key.shape[-1])  # with those of the cache
                shapes = f"{tuple(key_padding_mask.shape)}, key {keys}"
                raise ValueError(f"key_padding_mask must have the key's (B, S): got {shapes}")
            key_padding_mask = key_padding_mask[..., None, None, :]  # (B, S) -> (B, 1, 1, S)
        # One new token may attend to every key: without a mask the kernel need not copy them.
        hidden = causal and q.shape[-2] > 1
        past = causal_mask(q.shape[-2], k.shape[-2], device=q.device) if hidden else None  # (T, S)
        allowed = combine(may_attend, past, key_padding_mask)

        heads = grouped_query_attention(
            q,
            k,
            v,
            may_attend=allowed,
            score_bias=score_bias,
            dropout_p=self.dropout_p if self.training else 0.0,
            path=self.path,
        )  # (B, H, T, d_v)
        output: Tensor = self.project_output(merge_heads(heads))  # (B, T, D)
        if not return_weights:
            return output
        return output, grouped_query_weights(q, k, may_attend=allowed, score_bias=score_bias)

    def head_weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return W^Q, W^K, W^V and W^O in the shapes that `multi_head_attention` takes.

        Returns:
            (H, D, d_k), (H, D, d_k), (H, D, d_v), (H * d_v, D): gradients flow through them. The
            matrices of a shared key/value head are repeated for each of its query heads.
        """
        query, key, value = (
            # (n * d, D) -> (n, d, D) -> (n, D, d): a Linear holds its matrix transposed
            layer.weight.view(n, -1, layer.in_features).transpose(-2, -1)
            for layer, n in (
                (self.project_query, self.n_heads),
                (self.project_key, self.n_kv_heads),
                (self.project_value, self.n_kv_heads),
            )
        )
        group = self.n_heads // self.n_kv_heads  # (G, D, d) -> (H, D, d), in the order 0 0 1 1
        key, value = key.repeat_interleave(group, dim=0), value.repeat_interleave(group, dim=0)
        return query, key, value, self.project_output.weight.T
