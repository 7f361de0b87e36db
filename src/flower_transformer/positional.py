r"""Absolute positions: which they are, and the vectors added to the embeddings for them.

Legend: B batch, T length, S key length, D = d_model.

Positions are integers, (T,) for all sequences alike or (B, T) for each its own. They are always
given, never counted by a module: with a cache they start later, with left padding they start
elsewhere in each row. Positions as rotations are in `rotary`, as score biases in `relative_bias`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from flower_transformer.masks import require_boolean


def consecutive_positions(
    n: int, *, start: int = 0, device: torch.device | str | None = None
) -> Tensor:
    """Count the positions of n tokens that follow `start` earlier ones.

    Args:
        n: number of tokens.
        start: how many tokens came before: the length of the cache.
        device: where they are made.

    Returns:
        Integers (n,): start .. start + n - 1.

    Raises:
        ValueError: n or start is negative.
    """
    if n < 0 or start < 0:
        raise ValueError(f"positions count from 0: n {n}, start {start}")
    return torch.arange(start, start + n, device=device)


def positions_from_mask(real: Tensor) -> Tensor:
    """Count the real tokens of padded sequences, wherever the padding is.

        real        0 0 1 1 1   (padding on the left, as for generating in a batch)
        positions   0 0 0 1 2

    Args:
        real: boolean (..., S), True = real token.

    Returns:
        Integers (..., S). Padding before the first token has position 0, and has no influence as
        long as it is masked.

    Raises:
        ValueError: the mask is not boolean.
    """
    require_boolean("real", real)
    return (real.cumsum(dim=-1) - 1).clamp(min=0)


def sinusoidal_encoding(
    positions: Tensor,
    d_model: int,
    *,
    base: float = 10000.0,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    r"""Sines and cosines of d_model / 2 frequencies, from one position a radian to one in `base`.

    $$
    \begin{aligned}
    PE_{(pos, 2i)} &= \sin(pos / 10000^{2i / d_{\text{model}}}) \\
    PE_{(pos, 2i+1)} &= \cos(pos / 10000^{2i / d_{\text{model}}})
    \end{aligned}
    $$

    An odd width ends with a sine whose cosine has no room.

    Args:
        positions: pos, any shape (..., T).
        d_model: D, the width; odd ones too.
        base: in place of 10000.
        dtype: of the result. The angles are computed in float64 and rounded once, at the end.

    Returns:
        PE (..., T, D), at most 1 in absolute value.

    Raises:
        ValueError: d_model < 1.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.5.
    """
    if d_model < 1:
        raise ValueError(f"d_model must be positive, got {d_model}")
    even = torch.arange(0, d_model, 2, dtype=torch.float64, device=positions.device)  # 2i
    angles = positions.double().unsqueeze(-1) / base ** (even / d_model)  # (..., T, ceil(D / 2))
    # (..., T, D / 2, 2) -> (..., T, D): sine and cosine of one frequency are neighbours
    encoding = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)
    return encoding[..., :d_model].to(dtype)


class SinusoidalPositions(nn.Module):
    """The module of `sinusoidal_encoding`. Has no weights and keeps no table.

    Args:
        d_model: D.
        base: in place of 10000.

    Raises:
        ValueError: d_model < 1.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.5.
    """

    def __init__(self, d_model: int, *, base: float = 10000.0) -> None:
        super().__init__()
        if d_model < 1:
            raise ValueError(f"d_model must be positive, got {d_model}")
        self.d_model = d_model
        self.base = base

    def forward(self, positions: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Give the vectors of some positions.

        Args:
            positions: integers (T,) or (B, T).
            dtype: of the result: that of the embeddings it is added to.

        Returns:
            (T, D) or (B, T, D).
        """
        return sinusoidal_encoding(positions, self.d_model, base=self.base, dtype=dtype)


class LearnedPositions(nn.Module):
    """One learned vector for each position; there is none beyond the last.

    Args:
        n_positions: the longest text, in tokens.
        d_model: D.

    Raises:
        ValueError: a size is < 1.

    Source: Gehring et al. 2017, "Convolutional Sequence to Sequence Learning", section 3.1.
    """

    def __init__(self, n_positions: int, d_model: int) -> None:
        super().__init__()
        if n_positions < 1 or d_model < 1:
            sizes = f"n_positions {n_positions}, d_model {d_model}"
            raise ValueError(f"sizes must be positive: {sizes}")
        self.weight = nn.Parameter(torch.empty(n_positions, d_model))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, positions: Tensor) -> Tensor:
        """Look the vectors of some positions up.

        Args:
            positions: integers (T,) or (B, T).

        Returns:
            (T, D) or (B, T, D), in the dtype of the weight.

        Raises:
            ValueError: a position lies outside 0 .. n_positions - 1.
        """
        if positions.numel():
            low, high = int(positions.min()), int(positions.max())
            if low < 0 or high >= len(self.weight):
                reach = f"0..{len(self.weight) - 1}"
                raise ValueError(f"positions run from {low} to {high}, the table holds {reach}")
        return self.weight[positions]
