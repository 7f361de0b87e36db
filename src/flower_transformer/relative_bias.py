r"""Relative positions as a bias on the scores: ALiBi and the buckets of T5.

Legend: H heads, T query length, S key length, "..." leading axes: none, or (B,).

Both give `score_bias`, which attention adds to its scores, and both depend only on how far a key is
from a query. They belong to self-attention: in cross-attention the positions of queries and keys
count different texts.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def alibi_slopes(n_heads: int) -> Tensor:
    r"""How steeply each head forgets: $m_h = 2^{-8h/H}$ for $h = 1, \ldots, H$.

    This holds for H a power of two. Otherwise the largest power of two P below H is taken, and the
    remaining heads get every other slope of 2P heads: 6 heads have 1/4, 1/16, 1/64, 1/256, and then
    1/2, 1/8.

    Args:
        n_heads: H.

    Returns:
        float32 (H,).

    Raises:
        ValueError: n_heads < 1.

    Source: Press et al. 2022, "Train Short, Test Long: Attention with Linear Biases Enables Input
    Length Extrapolation", section 3, and the authors' code for other numbers of heads.
    """
    if n_heads < 1:
        raise ValueError(f"n_heads must be positive, got {n_heads}")
    power = 2 ** int(math.log2(n_heads))
    slopes = [2 ** (-8 * h / power) for h in range(1, power + 1)]
    # the slopes of 2P heads, of which every other one is among the P already
    between = [2 ** (-4 * h / power) for h in range(1, 2 * power + 1, 2)]
    return torch.tensor((slopes + between)[:n_heads])


def alibi_bias(slopes: Tensor, query_positions: Tensor, key_positions: Tensor) -> Tensor:
    r"""Lower the score of a key by its distance.

    $$
    b_{hij} = -m_h |p_i - s_j|
    $$

    Args:
        slopes: m, (H,).
        query_positions: p (..., T).
        key_positions: s (..., S).

    Returns:
        b (..., H, T, S) in the dtype of the slopes.

    Source: Press et al. 2022, section 3. The paper is causal (no key after the query); the absolute
    value extends it to both directions.
    """
    distance = query_positions.unsqueeze(-1) - key_positions.unsqueeze(-2)  # (..., T, S)
    # (H, 1, 1) * (..., 1, T, S) -> (..., H, T, S)
    return -slopes[:, None, None] * distance.abs().unsqueeze(-3)


class ALiBi(nn.Module):
    """The module of `alibi_bias`. Its slopes are a buffer: nothing to learn or to save.

    Args:
        n_heads: H.

    Raises:
        ValueError: n_heads < 1.

    Source: Press et al. 2022, "Train Short, Test Long", section 3.
    """

    slopes: Tensor

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.register_buffer("slopes", alibi_slopes(n_heads), persistent=False)

    def forward(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """Compute the bias of every head.

        Args:
            query_positions: integers (T,) or (B, T).
            key_positions: integers (S,) or (B, S).

        Returns:
            (H, T, S) or (B, H, T, S), the `score_bias` of attention.
        """
        return alibi_bias(self.slopes, query_positions, key_positions)


def relative_position_buckets(
    distance: Tensor, *, bidirectional: bool, n_buckets: int = 32, max_distance: int = 128
) -> Tensor:
    r"""Number the distances between query and key: near ones singly, far ones ever more coarsely.

    Of the n buckets of one direction, the first e = n / 2 hold one distance each; the rest divide
    the distances up to D = `max_distance` evenly on a logarithmic scale, and the last takes all
    beyond. The bucket of the distance d is

    $$
    b = \begin{cases}
        d & d < e \\
        \min\left(n - 1, \left\lfloor e + \frac{\ln(d / e)}{\ln(D / e)} (n - e) \right\rfloor\right)
        & \text{otherwise}
    \end{cases}
    $$

    Args:
        distance: position of the key minus that of the query, integers of any shape.
        bidirectional: keys after the query have buckets of their own, the upper half; otherwise
            they share bucket 0 with the query's own position (causal attention masks them).
        n_buckets: number of buckets in all.
        max_distance: distances from here on share the last bucket of their direction.

    Returns:
        Integers 0 .. n_buckets - 1 of the same shape.

    Raises:
        ValueError: there are too few buckets, or max_distance leaves none to the far ones.

    Source: Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified
    Text-to-Text Transformer", section 2.1, and the authors' code.
    """
    n = n_buckets // 2 if bidirectional else n_buckets  # those of one direction
    single = n // 2
    if single < 1 or max_distance <= single:
        sizes = f"n_buckets {n_buckets}, max_distance {max_distance}"
        raise ValueError(f"{single} distances get a bucket of their own: too few with {sizes}")
    past = distance.abs() if bidirectional else (-distance).clamp(min=0)
    steps = (past.clamp(min=1).float() / single).log() / math.log(max_distance / single)
    far = (single + (steps * (n - single)).long()).clamp(max=n - 1)
    bucket = torch.where(past < single, past, far)
    return bucket + n * (distance > 0) if bidirectional else bucket


class RelativePositionBias(nn.Module):
    """A learned number for each head and bucket of distances, added to the scores.

    T5 shares one such table among all layers of a stack: compute the bias once, pass it to each.

    Args:
        n_heads: H.
        bidirectional: True in an encoder, False in a decoder; see `relative_position_buckets`.
        n_buckets: see `relative_position_buckets`.
        max_distance: see `relative_position_buckets`.

    Raises:
        ValueError: n_heads < 1, or as `relative_position_buckets`.

    Source: Raffel et al. 2020, "Exploring the Limits of Transfer Learning", section 2.1.
    """

    def __init__(
        self, n_heads: int, *, bidirectional: bool, n_buckets: int = 32, max_distance: int = 128
    ) -> None:
        super().__init__()
        if n_heads < 1:
            raise ValueError(f"n_heads must be positive, got {n_heads}")
        self.bidirectional = bidirectional
        self.n_buckets = n_buckets
        self.max_distance = max_distance
        self._buckets(torch.zeros(1, dtype=torch.long))  # refuses impossible sizes here and now
        self.weight = nn.Parameter(torch.empty(n_buckets, n_heads))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """Look the bias of every head up.

        Args:
            query_positions: integers (T,) or (B, T).
            key_positions: integers (S,) or (B, S).

        Returns:
            (H, T, S) or (B, H, T, S), the `score_bias` of attention.
        """
        distance = key_positions.unsqueeze(-2) - query_positions.unsqueeze(-1)  # (..., T, S)
        bias = self.weight[self._buckets(distance)]  # (..., T, S, H)
        return bias.movedim(-1, -3)  # (..., T, S, H) -> (..., H, T, S)

    def _buckets(self, distance: Tensor) -> Tensor:
        return relative_position_buckets(
            distance,
            bidirectional=self.bidirectional,
            n_buckets=self.n_buckets,
            max_distance=self.max_distance,
        )
