r"""Scaled dot-product attention (Vaswani et al. 2017, section 3.2.1).

Legend: T query length, S key length, d_k width of queries and keys, d_v width of values.
"..." stands for any leading axes, usually (B, H): batch and heads. A single query (d_k,) loses its
T everywhere.

Every function is written out first; torch's fused kernel is a second path to the same values.
Masks are boolean and named ``may_attend``: True = may attend. The softmax over no key at all is
undefined; here a query that may attend to nothing gets weights 0 and output 0, and sends back the
gradient 0, on both paths and on every device.
"""

from __future__ import annotations

import math
from typing import Literal, overload

import torch
import torch.nn.functional as F
from torch import Tensor

from flower_transformer.masks import require_boolean, silence_unused

Path = Literal["reference", "fused"]


def attention_scores(query: Tensor, key: Tensor, *, scale: float | None = None) -> Tensor:
    r"""Score every key against every query: $QK^{\top} / \sqrt{d_k}$.

    Args:
        query: Q (..., T, d_k), or a single query (d_k,).
        key: K (..., S, d_k).
        scale: factor in place of 1/sqrt(d_k); 1.0 gives the plain dot products.

    Returns:
        Scores (..., T, S), in the dtype of the inputs.

    Raises:
        ValueError: query and key differ in width.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1.
    """
    _check_shapes(query, key)
    # Scaling Q rather than the product is the same number, later out of float16's range, and
    # costs T * d_k multiplications instead of T * S.
    return (query * _scale(query, scale)) @ key.transpose(-2, -1)


def masked_softmax(scores: Tensor, may_attend: Tensor | None = None) -> Tensor:
    r"""Softmax over the last axis, restricted to the keys that a query may attend to.

    Args:
        scores: (..., T, S); NaN and infinities at masked places have no effect.
        may_attend: boolean, broadcastable to the scores, True = may attend; None allows all.

    Returns:
        Weights like the scores. A row sums to 1, or is all 0 where nothing may be attended to;
        the gradient of such a row is 0 as well.

    Raises:
        ValueError: the mask is not boolean, or does not fit the scores.
    """
    if may_attend is None:
        return scores.softmax(dim=-1)
    _check_mask(may_attend, scores.shape)
    has_key = may_attend.any(dim=-1, keepdim=True)
    # -inf gives weight exactly 0. A row of nothing but -inf would be NaN, forward and backward,
    # so an empty row is given finite scores (0) and its weights are set to 0 afterwards.
    scores = scores.masked_fill(~may_attend, float("-inf")).masked_fill(~has_key, 0.0)
    return scores.softmax(dim=-1).masked_fill(~has_key, 0.0)


def attention_weights(
    query: Tensor,
    key: Tensor,
    *,
    may_attend: Tensor | None = None,
    score_bias: Tensor | None = None,
    scale: float | None = None,
) -> Tensor:
    r"""How much each query takes from each key: the softmax of the scores, row by row.

    Args:
        query: Q (..., T, d_k), or a single query (d_k,).
        key: K (..., S, d_k).
        may_attend: boolean, broadcastable to (..., T, S), True = may attend.
        score_bias: floating, broadcastable to (..., T, S), added to the scaled scores.
        scale: factor in place of 1/sqrt(d_k).

    Returns:
        Weights (..., T, S) >= 0. Each row sums to 1, or is 0 where nothing may be attended to.

    Raises:
        ValueError: query and key differ in width, the mask is not boolean, the bias not floating,
            or one of them does not fit.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1.
    """
    _check_shapes(query, key)
    if may_attend is not None:
        _check_mask(may_attend, _scores_shape(query, key))
        key = silence_unused(key, may_attend)
    scores = attention_scores(query, key, scale=scale)  # (..., T, S)
    if score_bias is not None:
        _check_bias(score_bias, scores.shape)
        scores = scores + score_bias.to(scores.dtype)
    return masked_softmax(scores, may_attend)


@overload
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    may_attend: Tensor | None = None,
    score_bias: Tensor | None = None,
    scale: float | None = None,
    dropout_p: float = 0.0,
    return_weights: Literal[False] = False,
    path: Path = "reference",
) -> Tensor: ...


@overload
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    may_attend: Tensor | None = None,
    score_bias: Tensor | None = None,
    scale: float | None = None,
    dropout_p: float = 0.0,
    return_weights: Literal[True],
    path: Path = "reference",
) -> tuple[Tensor, Tensor]: ...


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    may_attend: Tensor | None = None,
    score_bias: Tensor | None = None,
    scale: float | None = None,
    dropout_p: float = 0.0,
    return_weights: bool = False,
    path: Path = "reference",
) -> Tensor | tuple[Tensor, Tensor]:
    r"""Each query's average of the values, weighted by how well the keys match it.

    $$
    \mathrm{Attention}(Q, K, V) = \mathrm{softmax}\left(\frac{QK^{\top}}{\sqrt{d_k}}\right)V
    $$

    Args:
        query: Q (..., T, d_k), or a single query (d_k,).
        key: K (..., S, d_k); (S, d_k) for a single query.
        value: V (..., S, d_v), of one floating dtype with query and key; leading axes broadcast.
        may_attend: boolean, broadcastable to (..., T, S), True = may attend; None allows all.
        score_bias: finite, broadcastable to (..., T, S), added to the scaled scores: relative
            positions (`flower_transformer.relative_bias`). Masking is the business of may_attend.
        scale: factor in place of 1/sqrt(d_k).
        dropout_p: probability of dropping a weight, applied whenever it is not 0: a function
            does not know whether it trains, the Module does.
        return_weights: also return the weights, before dropout. The output does not change.
        path: "reference" is the formula written out; "fused" is torch's kernel, which never
            forms the weights in memory (asking for them as well computes them separately).

    Returns:
        Output (..., T, d_v) in the dtype of the inputs; with return_weights the pair of it and
        the weights (..., T, S). A query that may attend to nothing gets exactly 0.

    Raises:
        ValueError: widths or lengths of query, key and value differ, the mask is not boolean, the
            bias not floating, one of them does not fit, dropout_p lies outside [0, 1), or the path
            is unknown.

    A key that no query may attend to (padding) has no influence, even if it or its value holds
    NaN. A key that one query may attend to and another may not must be finite: for the other it
    is multiplied by 0, and 0 * NaN = NaN.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1, equation (1).
    """
    _check_shapes(query, key, value)
    if not 0.0 <= dropout_p < 1.0:
        raise ValueError(f"dropout_p must lie in [0, 1), got {dropout_p}")
    if may_attend is not None:
        _check_mask(may_attend, _scores_shape(query, key, value))
        value = silence_unused(value, may_attend)
    if score_bias is not None:
        _check_bias(score_bias, _scores_shape(query, key, value))

    if path == "reference":
        weights = attention_weights(
            query, key, may_attend=may_attend, score_bias=score_bias, scale=scale
        )  # (..., T, S)
        output = F.dropout(weights, dropout_p) @ value  # (..., T, d_v)
        return (output, weights) if return_weights else output
    if path == "fused":
        output = _fused(query, key, value, may_attend, score_bias, _scale(query, scale), dropout_p)
        if not return_weights:
            return output
        return output, attention_weights(
            query, key, may_attend=may_attend, score_bias=score_bias, scale=scale
        )
    raise ValueError(f"path must be 'reference' or 'fused', got {path!r}")


def masked_attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    r"""Attention with an additive mask, as it is published.

    $$
    \mathrm{MaskedAttention}(Q, K, V, M)
      = \mathrm{softmax}\left(\frac{QK^{\top}}{\sqrt{d_k}} + M\right)V
    $$

    The same as `scaled_dot_product_attention` with ``may_attend = (M == 0)`` when M holds 0 and
    -inf only; other finite entries act as a bias on the scores.

    Args:
        query: Q (..., T, d_k), or a single query (d_k,).
        key: K (..., S, d_k).
        value: V (..., S, d_v).
        mask: M, floating, broadcastable to (..., T, S): 0 = may attend, -inf = may not.

    Returns:
        Output (..., T, d_v). A query whose row of M is all -inf gets exactly 0.

    Raises:
        ValueError: widths or lengths differ, or M is not floating (a boolean M would be added to
            the scores as 0 and 1) or does not fit.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.3.
    """
    _check_shapes(query, key, value)
    if not mask.dtype.is_floating_point:
        raise ValueError(f"an additive mask must be floating, got {mask.dtype}")
    may_attend = mask != float("-inf")
    return scaled_dot_product_attention(query, key, value, may_attend=may_attend, score_bias=mask)


def _fused(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    may_attend: Tensor | None,
    bias: Tensor | None,
    scale: float,
    dropout_p: float,
) -> Tensor:
    """Call torch's kernel; rows without a key are handled here, as kernels differ about them."""
    if query.dim() == 1:  # the kernel wants an axis T
        row = query.unsqueeze(0)
        return _fused(row, key, value, may_attend, bias, scale, dropout_p).squeeze(-2)
    mask = None if bias is None else bias.to(query.dtype)
    has_key = None
    if may_attend is not None:
        has_key = may_attend.any(dim=-1, keepdim=True)
        allowed = may_attend | ~has_key
        key = silence_unused(key, may_attend)
        # the kernel takes one mask: booleans, or what to add to the scores
        mask = allowed if mask is None else mask.masked_fill(~allowed, float("-inf"))
    if mask is not None and mask.dim() < 2:  # the kernel wants both axes
        mask = mask.expand(query.shape[-2], key.shape[-2])
    output = F.scaled_dot_product_attention(query, key, value, mask, dropout_p, scale=scale)
    return output if has_key is None else output.masked_fill(~has_key, 0.0)


def _scale(query: Tensor, scale: float | None) -> float:
    return 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale


def _scores_shape(query: Tensor, *others: Tensor) -> torch.Size:
    batch = _broadcast(query.shape[:-2], *(x.shape[:-2] for x in others))
    return torch.Size((*batch, *query.shape[-2:-1], others[0].shape[-2]))


def _broadcast(*shapes: torch.Size) -> torch.Size:
    # torch.broadcast_shapes says the same, but its first call imports torch._refs: half a second.
    views = (torch.empty(()).expand(shape) for shape in shapes)
    return torch.Size(torch.broadcast_tensors(*views)[0].shape)  # type: ignore[no-untyped-call]


def _check_shapes(query: Tensor, key: Tensor, value: Tensor | None = None) -> None:
    for name, tensor in (("key", key), ("value", key if value is None else value)):
        if tensor.dim() < 2:
            raise ValueError(f"{name} needs a length and a width axis, got {tuple(tensor.shape)}")
    if query.dim() == 0 or (query.dim() == 1 and key.dim() > 2):
        shapes = f"query {tuple(query.shape)}, key {tuple(key.shape)}"
        raise ValueError(f"a single query (d_k,) takes keys (S, d_k), got {shapes}")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query has width {query.shape[-1]}, key has width {key.shape[-1]}")
    if value is not None and key.shape[-2] != value.shape[-2]:
        raise ValueError(f"key has length {key.shape[-2]}, value has length {value.shape[-2]}")


def _check_mask(may_attend: Tensor, scores_shape: torch.Size) -> None:
    require_boolean("may_attend", may_attend)
    _check_fits("may_attend", may_attend, scores_shape)


def _check_bias(score_bias: Tensor, scores_shape: torch.Size) -> None:
    if not score_bias.dtype.is_floating_point:
        raise ValueError(f"score_bias must be floating, got {score_bias.dtype}")
    _check_fits("score_bias", score_bias, scores_shape)


def _check_fits(name: str, tensor: Tensor, scores_shape: torch.Size) -> None:
    try:
        fits = _broadcast(tensor.shape, scores_shape) == scores_shape
    except RuntimeError:
        fits = False
    if not fits:
        shapes = f"{tuple(tensor.shape)} does not broadcast to the scores {tuple(scores_shape)}"
        raise ValueError(f"{name} {shapes}")
