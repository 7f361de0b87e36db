"""Calls for formulas whose symbols are not plain arguments. Each only calls
``flower_transformer``; it computes nothing.

A binding may add or take away an axis, or put functions of the package together; a test holds it
to that.
"""

from __future__ import annotations

import torch
from torch import Tensor

from flower_transformer import attention, masks, positional, relative_bias, rotary, sampling
from flower_transformer.training import losses, metrics, optim


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


def sinusoidal_encoding(n: int, d_model: int) -> Tensor:
    """``positional.sinusoidal_encoding`` of the positions 0 to n − 1: shape ``(n, d_model)``."""
    positions = positional.consecutive_positions(n)
    return positional.sinusoidal_encoding(positions, d_model, dtype=torch.float64)


def rotate_interleaved(x: Tensor, position: int, base: float) -> Tensor:
    """``rotary.rotary_encoding`` of one vector ``(d,)``, adjacent channels in pairs."""
    return rotary.rotary_encoding(
        x.unsqueeze(0), torch.tensor([position]), layout="interleaved", base=base
    ).squeeze(0)


def rotate_half_split(x: Tensor, position: int, base: float) -> Tensor:
    """``rotary.rotary_encoding`` of one vector ``(d,)``, channel i with channel i + d/2."""
    return rotary.rotary_encoding(
        x.unsqueeze(0), torch.tensor([position]), layout="half_split", base=base
    ).squeeze(0)


def position_bucket(distance: int, n_buckets: int, max_distance: int) -> Tensor:
    """``relative_bias.relative_position_buckets`` of a key that lies so far before the query."""
    return relative_bias.relative_position_buckets(
        torch.tensor(distance).neg(),
        bidirectional=False,
        n_buckets=n_buckets,
        max_distance=max_distance,
    )


def temperature_softmax(logits: Tensor, temperature: float) -> Tensor:
    """The softmax of ``sampling.with_temperature``."""
    return attention.masked_softmax(sampling.with_temperature(logits, temperature))


def smoothed_targets(y: int, n_classes: int, epsilon: float) -> Tensor:
    """``losses.smoothed_targets`` of one class, counted from 1: shape ``(K,)``."""
    return losses.smoothed_targets(torch.tensor(y - 1), n_classes, epsilon=epsilon)


def smoothed_targets_over_others(y: int, n_classes: int, epsilon: float) -> Tensor:
    """``losses.smoothed_targets_over_others`` of one class, counted from 1: shape ``(K,)``."""
    return losses.smoothed_targets_over_others(torch.tensor(y - 1), n_classes, epsilon=epsilon)


def cross_entropy(logits: Tensor, y: Tensor, epsilon: float) -> Tensor:
    """``losses.cross_entropy`` with classes counted from 1."""
    return losses.cross_entropy(logits, y - 1, epsilon=epsilon)


def cross_entropy_over_others(logits: Tensor, y: Tensor, epsilon: float) -> Tensor:
    """``losses.cross_entropy_over_others`` with classes counted from 1."""
    return losses.cross_entropy_over_others(logits, y - 1, epsilon=epsilon)


def perplexity(logits: Tensor, y: Tensor) -> Tensor:
    """``losses.perplexity`` with classes counted from 1."""
    return losses.perplexity(logits, y - 1)


def bleu(matches: Tensor, totals: Tensor, n_hypothesis: int, n_reference: int) -> float:
    """``metrics.bleu_from_counts`` of counts that are given as tensors."""
    return metrics.bleu_from_counts(matches.tolist(), totals.tolist(), n_hypothesis, n_reference)


def clip(gradient: Tensor, max_norm: float) -> Tensor:
    """``optim.clip_by_global_norm`` of a single tensor."""
    (clipped,), _ = optim.clip_by_global_norm([gradient], max_norm=max_norm)
    return clipped
