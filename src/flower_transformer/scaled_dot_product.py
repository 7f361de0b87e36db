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

from flower_transformer.masks import require_boolean

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
    query: Tensor, key: Tensor, *, may_attend: Tensor | None = None, scale: float | None = None
) -> Tensor:
    r"""How much each query takes from each key: the softmax of the scores, row by row.

    Args:
        query: Q (..., T, d_k), or a single query (d_k,).
        key: K (..., S, d_k).
        may_attend: boolean, broadcastable to (..., T, S), True = may attend.
        scale: factor in place of 1/sqrt(d_k).

    Returns:
        Weights (..., T, S) >= 0. Each row sums to 1, or is 0 where nothing may be attended to.

    Raises:
        ValueError: query and key differ in width, or the mask is not boolean or does not fit.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1.
    """
    _check_shapes(query, key)
    if may_attend is not None:
        _check_mask(may_attend, _scores_shape(query, key))
        key = _silence_unused(key, may_attend)
    return masked_softmax(attention_scores(query, key, scale=scale), may_attend)


@overload
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    may_attend: Tensor | None = None,
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
        ValueError: widths or lengths of query, key and value differ, the mask is not boolean or
            does not fit, dropout_p lies outside [0, 1), or the path is unknown.

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
        value = _silence_unused(value, may_attend)

    if path == "reference":
        weights = attention_weights(query, key, may_attend=may_attend, scale=scale)  # (..., T, S)
        output = F.dropout(weights, dropout_p) @ value  # (..., T, d_v)
        return (output, weights) if return_weights else output
    if path == "fused":
        output = _fused(query, key, value, may_attend, _scale(query, scale), dropout_p)
        if not return_weights:
            return output
        return output, attention_weights(query, key, may_attend=may_attend, scale=scale)
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
    _check_mask(may_attend, _scores_shape(query, key, value))
    scores = attention_scores(query, _silence_unused(key, may_attend)) + mask  # (..., T, S)
    return masked_softmax(scores, may_attend) @ _silence_unused(value, may_attend)


def _fused(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    may_attend: Tensor | None,
    scale: float,
    dropout_p: float,
) -> Tensor:
    """Call torch's kernel; rows without a key are handled here, as kernels differ about them."""
    if query.dim() == 1:  # the kernel wants an axis T
        return _fused(query.unsqueeze(0), key, value, may_attend, scale, dropout_p).squeeze(-2)
    if may_attend is None:
        return F.scaled_dot_product_attention(query, key, value, None, dropout_p, scale=scale)
    has_key = may_attend.any(dim=-1, keepdim=True)
    allowed = may_attend | ~has_key
    if allowed.dim() < 2:  # the kernel wants both axes
        allowed = allowed.expand(query.shape[-2], key.shape[-2])
    key = _silence_unused(key, may_attend)
    output = F.scaled_dot_product_attention(query, key, value, allowed, dropout_p, scale=scale)
    return output.masked_fill(~has_key, 0.0)


def _silence_unused(x: Tensor, may_attend: Tensor) -> Tensor:
    """Set the keys (or values) that no query may attend to to 0: weight 0 times NaN is NaN."""
    used = may_attend.any(dim=-2) if may_attend.dim() > 1 else may_attend  # (..., S)
    return x.masked_fill(~used.unsqueeze(-1), 0.0)


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
    try:
        fits = _broadcast(may_attend.shape, scores_shape) == scores_shape
    except RuntimeError:
        fits = False
    if not fits:
        shapes = f"{tuple(may_attend.shape)} does not broadcast to the scores {tuple(scores_shape)}"
        raise ValueError(f"may_attend {shapes}")
