r"""Cosine attention: scores between -s and s, whatever the length of queries and keys.

Legend: T query length, S key length, d width, "..." leading axes, usually (B,).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from flower_transformer.alignment import Alignment
from flower_transformer.scaled_dot_product import attention_scores


def cosine_scores(
    query: Tensor, key: Tensor, scale: float | Tensor = 1.0, *, eps: float = 1e-4
) -> Tensor:
    r"""Score by the angle between query and key.

    $$
    e_{ij} = s \, \frac{q_i^{\top} k_j}{\lVert q_i \rVert \, \lVert k_j \rVert}
    $$

    Args:
        query: q (..., T, d).
        key: k (..., S, d).
        scale: s, how sharp the softmax of the scores becomes (an inverse temperature).
        eps: vectors shorter than this are divided by it: the zero vector scores 0.

    Returns:
        e (..., T, S), in [-s, s].

    Raises:
        ValueError: query and key differ in width.

    Source: Graves et al. 2014, "Neural Turing Machines", section 3.3.1, equations (5) and (6).
    """
    query = query / query.norm(dim=-1, keepdim=True).clamp(min=eps)
    key = key / key.norm(dim=-1, keepdim=True).clamp(min=eps)
    return attention_scores(query, key, scale=1.0) * scale


class CosineAttention(Alignment):
    """Attention by `cosine_scores`.

    Args:
        scale: s at first.
        learned: train s with the model; as its logarithm, so that it stays positive.

    Raises:
        ValueError: the scale is not positive.

    Source: Graves et al. 2014, "Neural Turing Machines", section 3.3.1; the learned logarithm as in
    Liu et al. 2022, "Swin Transformer V2", section 3.3.
    """

    log_scale: Tensor

    def __init__(self, scale: float = 10.0, *, learned: bool = True) -> None:
        super().__init__()
        if scale <= 0:
            raise ValueError(f"scale must be positive, got {scale}")
        log_scale = torch.tensor(scale).log()
        if learned:
            self.log_scale = nn.Parameter(log_scale)
        else:
            self.register_buffer("log_scale", log_scale)

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """Score every key (..., S, d) against every query (..., T, d): (..., T, S)."""
        return cosine_scores(query, key, self.log_scale.exp())
