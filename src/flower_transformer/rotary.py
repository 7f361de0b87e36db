r"""Rotary position embedding, RoPE (Su et al. 2021): positions as rotations of queries and keys.

Legend: T length, d = d_k head width (even), "..." leading axes, usually (B, H).

d / 2 pairs of numbers turn like the hands of clocks, each at its own speed; a score then depends
on the distance of two positions only. Which numbers form pair i differs between codebases and is
named wherever it matters:

    "interleaved"   (x_2i, x_2i+1)      neighbours: the paper, GPT-J, the original Llama code
    "half_split"    (x_i, x_i+d/2)      one from each half: GPT-NeoX, Hugging Face

The two are equal up to the order of the columns (`interleaved_to_half_split`), and silently wrong
when mixed.

Angles are never computed below float32: in bfloat16 position 257 is position 256. For that reason
no module here holds a table, which ``.half()`` would round; nor can a table outlive its base.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

Layout = Literal["interleaved", "half_split"]


@dataclass(frozen=True)
class LinearScaling:
    """Positions divided by a factor: a text `factor` times as long uses the angles known before.

    Source: Chen et al. 2023, "Extending Context Window of Large Language Models via Position
    Interpolation", section 2.3.
    """

    factor: float


@dataclass(frozen=True)
class NTKScaling:
    """Base times factor^(d / (d - 2)): the slowest pair slows by `factor`, the fastest not at all.

    Source: Peng et al. 2023, "YaRN: Efficient Context Window Extension of Large Language Models",
    section 3.1 (the "NTK-aware" interpolation), equation (16).
    """

    factor: float


@dataclass(frozen=True)
class Llama3Scaling:
    """Slow pairs divided by `factor`, fast ones kept, those in between blended.

    A pair that turns fewer than `low_frequency_factor` times within `original_length` tokens is
    slow, one that turns more than `high_frequency_factor` times is fast.

    Source: Llama Team 2024, "The Llama 3 Herd of Models", section 3.4.2, and the code of Llama 3.1.
    """

    factor: float = 8.0
    low_frequency_factor: float = 1.0
    high_frequency_factor: float = 4.0
    original_length: int = 8192


Scaling = LinearScaling | NTKScaling | Llama3Scaling


def rotary_frequencies(
    d_k: int,
    *,
    base: float = 10000.0,
    scaling: Scaling | None = None,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Tensor:
    r"""How far each pair turns from one position to the next: $\theta_i = base^{-2i/d}$.

    Args:
        d_k: d, the head width.
        base: 10000 in the paper; larger for longer texts.
        scaling: how the frequencies are stretched for longer texts, if at all.
        dtype: of the result, float32 or float64.
        device: where they are made.

    Returns:
        (d / 2,), radians a position, for i = 0 .. d / 2 - 1.

    Raises:
        ValueError: d_k is odd or < 2, or the dtype is narrower than float32.

    Source: Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding",
    section 3.2.2, equation (15), which counts i from 1.
    """
    if d_k < 2 or d_k % 2:
        raise ValueError(f"rotary positions need an even head width, got d_k {d_k}")
    if dtype not in (torch.float32, torch.float64):
        raise ValueError(f"angles are computed in float32 or float64, got {dtype}")
    if isinstance(scaling, NTKScaling) and d_k > 2:
        base = base * scaling.factor ** (d_k / (d_k - 2))
    exponents = torch.arange(0, d_k, 2, dtype=dtype, device=device) / d_k  # 2i / d
    frequencies = 1.0 / base**exponents
    if isinstance(scaling, LinearScaling):
        return frequencies / scaling.factor
    if isinstance(scaling, Llama3Scaling):
        low, high = scaling.low_frequency_factor, scaling.high_frequency_factor
        turns = scaling.original_length / (2 * math.pi / frequencies)
        kept = ((turns - low) / (high - low)).clamp(0, 1)  # 0: slow, 1: fast
        return (1 - kept) * frequencies / scaling.factor + kept * frequencies
    return frequencies


def rotate(x: Tensor, cos: Tensor, sin: Tensor, *, layout: Layout) -> Tensor:
    r"""Turn every pair of numbers by its angle.

    Interleaved, with k = d / 2 pairs and i = 1 .. k:

    $$
    \begin{aligned}
    y_{2i-1} &= x_{2i-1} \cos \phi_i - x_{2i} \sin \phi_i \\
    y_{2i} &= x_{2i-1} \sin \phi_i + x_{2i} \cos \phi_i
    \end{aligned}
    $$

    Half-split:

    $$
    \begin{aligned}
    y_i &= x_i \cos \phi_i - x_{i+k} \sin \phi_i \\
    y_{i+k} &= x_i \sin \phi_i + x_{i+k} \cos \phi_i
    \end{aligned}
    $$

    Args:
        x: (..., T, d), pairs laid out as `layout` says.
        cos: cosines of the angles, phi, broadcastable to (..., T, d / 2).
        sin: their sines.
        layout: "interleaved" or "half_split".

    Returns:
        The turned pairs (..., T, d), in the layout and the dtype of x.

    Raises:
        ValueError: the width of x is not twice that of the angles, or the layout is unknown.

    Source: Su et al. 2021, section 3.2.2, equations (14) and (34).
    """
    if x.shape[-1] != 2 * cos.shape[-1]:
        raise ValueError(f"x has width {x.shape[-1]}, the angles turn {cos.shape[-1]} pairs")
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    if layout == "interleaved":
        a, b = x[..., 0::2], x[..., 1::2]  # (..., T, d / 2) each
        pairs = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)  # (..., T, d / 2, 2)
        return pairs.flatten(-2)
    if layout == "half_split":
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)
    raise ValueError(f"layout must be one of {get_args(Layout)}, got {layout!r}")


def rotary_encoding(
    x: Tensor,
    positions: Tensor,
    *,
    layout: Layout = "interleaved",
    base: float = 10000.0,
    scaling: Scaling | None = None,
) -> Tensor:
    r"""Turn the queries or keys at given positions: $f(x_m, m) = R^d_{\Theta,m}\, x_m$.

    Pair i of the token at position m turns by $m\,\theta_i$, so that
    $f(q, m)^{\top} f(k, n) = q^{\top} R^d_{\Theta,n-m}\, k$.

    Args:
        x: (..., T, d), queries or keys.
        positions: (T,), or (..., T) when sequences differ.
        layout: which numbers form a pair.
        base: see `rotary_frequencies`.
        scaling: see `rotary_frequencies`.

    Returns:
        (..., T, d) in the dtype of x. The angles are computed in float32, for float64 x in float64.

    Raises:
        ValueError: as `rotary_frequencies` and `rotate`.

    Source: Su et al. 2021, section 3.2.2, equations (14) to (16).
    """
    dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    frequencies = rotary_frequencies(
        x.shape[-1], base=base, scaling=scaling, dtype=dtype, device=x.device
    )
    angles = positions.to(dtype).unsqueeze(-1) * frequencies  # (..., T, 1) * (d / 2,)
    return rotate(x, angles.cos(), angles.sin(), layout=layout)


class Rotation(NamedTuple):
    """The cosines and sines of one forward pass, shared by all of its layers.

    Attributes:
        cos: (1, T, d / 2) or (B, 1, T, d / 2): the axis of size 1 is that of the heads.
        sin: as cos.
        layout: which numbers form a pair.
    """

    cos: Tensor
    sin: Tensor
    layout: Layout

    def apply(self, x: Tensor) -> Tensor:
        """Turn queries or keys (B, H, T, d) with `rotate`."""
        return rotate(x, self.cos, self.sin, layout=self.layout)


class RotaryEmbedding(nn.Module):
    """Positions to the rotation of queries and keys. Has no weights and keeps no table.

    The result is that of `rotary_encoding` with angles in float32 whatever the dtype of the model:
    so were the published models trained.

    Args:
        d_k: d, the head width.
        layout: "interleaved" or "half_split"; weights trained for one are wrong for the other.
        base: see `rotary_frequencies`.
        scaling: see `rotary_frequencies`.

    Raises:
        ValueError: d_k is odd or < 2, or the layout is unknown.

    Source: Su et al. 2021, "RoFormer", section 3.2.2.
    """

    def __init__(
        self,
        d_k: int,
        *,
        layout: Layout,
        base: float = 10000.0,
        scaling: Scaling | None = None,
    ) -> None:
        super().__init__()
        if d_k < 2 or d_k % 2:
            raise ValueError(f"rotary positions need an even head width, got d_k {d_k}")
        if layout not in get_args(Layout):
            raise ValueError(f"layout must be one of {get_args(Layout)}, got {layout!r}")
        self.d_k = d_k
        self.layout: Layout = layout
        self.base = base
        self.scaling = scaling

    def forward(self, positions: Tensor) -> Rotation:
        """Compute the rotation of tokens at the given positions.

        Args:
            positions: integers (T,), or (B, T) when sequences differ (left padding).

        Returns:
            The rotation that `MultiHeadAttention` takes.
        """
        frequencies = rotary_frequencies(
            self.d_k, base=self.base, scaling=self.scaling, device=positions.device
        )
        # (..., T) -> (..., 1, T, 1), times (d / 2,): all heads turn alike
        angles = positions[..., None, :, None].to(frequencies.dtype) * frequencies
        return Rotation(angles.cos(), angles.sin(), self.layout)


def interleaved_to_half_split(x: Tensor) -> Tensor:
    """Reorder the last axis from one layout to the other: [0, 1, 2, 3] -> [0, 2, 1, 3].

    The rows of a projection's weight move alike, head by head: put them on the last axis first.

    Args:
        x: (..., d), pairs as neighbours.

    Returns:
        (..., d), pairs split over the halves.
    """
    return torch.cat((x[..., 0::2], x[..., 1::2]), dim=-1)


def half_split_to_interleaved(x: Tensor) -> Tensor:
    """Undo `interleaved_to_half_split`: [0, 2, 1, 3] -> [0, 1, 2, 3].

    Args:
        x: (..., d), pairs split over the halves.

    Returns:
        (..., d), pairs as neighbours.
    """
    return torch.stack(x.chunk(2, dim=-1), dim=-1).flatten(-2)
