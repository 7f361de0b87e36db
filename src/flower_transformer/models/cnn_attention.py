r"""A convolutional network with channel and spatial attention, CBAM (Woo et al. 2018).

Legend: B batch, C channels, h and w height and width, r reduction of the channels, K classes.

Where a Transformer weighs tokens by their match with a query, CBAM weighs the channels of a feature
map, and then its places, by numbers between 0 and 1 that it computes from the map itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from flower_transformer.models.parameter_count import linear_parameters


def channel_attention(x: Tensor, w_0: Tensor, w_1: Tensor) -> Tensor:
    r"""Weigh the channels by a small network that sees their means and their maxima.

    $$
    M_c(F) = \sigma(W_1(\mathrm{ReLU}(W_0(F^c_{avg}))) + W_1(\mathrm{ReLU}(W_0(F^c_{max}))))
    $$

    Args:
        x: F (B, C, h, w); F_avg and F_max (B, C) are its mean and maximum over all places.
        w_0: W_0 (C / r, C).
        w_1: W_1 (C, C / r).

    Returns:
        M_c (B, C, 1, 1), between 0 and 1.

    Raises:
        ValueError: the weights do not fit the channels.

    Source: Woo et al. 2018, "CBAM: Convolutional Block Attention Module", section 3, equation (2).
    """
    n_channels = x.shape[1]
    if w_0.shape[1] != n_channels or w_1.shape != w_0.shape[::-1]:
        shapes = f"w_0 {tuple(w_0.shape)}, w_1 {tuple(w_1.shape)}"
        raise ValueError(f"weights must be (C / r, C) and (C, C / r), C = {n_channels}: {shapes}")
    pooled = torch.stack((x.mean(dim=(2, 3)), x.amax(dim=(2, 3))))  # (2, B, C)
    scores = (F.relu(pooled @ w_0.T) @ w_1.T).sum(dim=0)  # (B, C)
    return scores.sigmoid()[..., None, None]


def spatial_attention(x: Tensor, kernel: Tensor) -> Tensor:
    r"""Weigh the places by a convolution over the mean and the maximum of their channels.

    $$
    M_s(F) = \sigma(f^{7 \times 7}([F^s_{avg}; F^s_{max}]))
    $$

    Args:
        x: F (B, C, h, w); F_avg and F_max (B, 1, h, w) are its mean and maximum over the channels.
        kernel: of the convolution f, (1, 2, k, k) with k odd; k = 7 in the paper. The border is
            padded with zeros.

    Returns:
        M_s (B, 1, h, w), between 0 and 1.

    Raises:
        ValueError: the kernel has another shape, or k is even.

    Source: Woo et al. 2018, section 3, equation (3).
    """
    k = kernel.shape[-1]
    if kernel.shape != (1, 2, k, k) or k % 2 == 0:
        raise ValueError(f"kernel must be (1, 2, k, k), k odd, got {tuple(kernel.shape)}")
    pooled = torch.cat((x.mean(dim=1, keepdim=True), x.amax(dim=1, keepdim=True)), dim=1)
    return F.conv2d(pooled, kernel, padding=k // 2).sigmoid()  # (B, 2, h, w) -> (B, 1, h, w)


class CBAM(nn.Module):
    r"""Both attentions, one after the other: $F' = M_c(F) \odot F$, $F'' = M_s(F') \odot F'$.

    Args:
        n_channels: C, a multiple of `reduction`.
        reduction: r.
        kernel_size: k of the spatial attention, odd.

    Raises:
        ValueError: a size does not fit.

    Source: Woo et al. 2018, section 3, equation (1); the weights have no biases.
    """

    def __init__(self, n_channels: int, *, reduction: int = 16, kernel_size: int = 7) -> None:
        super().__init__()
        if reduction < 1 or n_channels < reduction or n_channels % reduction:
            sizes = f"n_channels {n_channels}, reduction {reduction}"
            raise ValueError(f"the reduction must divide the channels: {sizes}")
        if kernel_size < 1 or kernel_size % 2 == 0:
            raise ValueError(f"kernel_size must be odd, got {kernel_size}")
        self.w_0 = nn.Parameter(torch.empty(n_channels // reduction, n_channels))
        self.w_1 = nn.Parameter(torch.empty(n_channels, n_channels // reduction))
        self.kernel = nn.Parameter(torch.empty(1, 2, kernel_size, kernel_size))
        for weight in self.parameters():
            nn.init.kaiming_uniform_(weight, a=5**0.5)

    def forward(self, x: Tensor) -> Tensor:
        """Weigh a feature map (B, C, h, w); the shape stays."""
        x = channel_attention(x, self.w_0, self.w_1) * x
        return spatial_attention(x, self.kernel) * x


@dataclass(frozen=True)
class CNNAttentionConfig:
    """Sizes of a convolutional classifier.

    Attributes:
        n_classes: K.
        n_channels: channels of the images.
        widths: C of each block; after each the image is half as high and wide.
        reduction: r of the channel attention.
        kernel_size: k of the spatial attention.
    """

    n_classes: int
    n_channels: int = 1
    widths: tuple[int, ...] = (16, 32)
    reduction: int = 4
    kernel_size: int = 7


def parameter_count(config: CNNAttentionConfig) -> int:
    """Count the parameters: blocks of two convolutions, two norms and CBAM, and a linear map.

    Args:
        config: the sizes.

    Returns:
        The number of parameters. A block from n to C channels has 9 n C + 9 C^2 + n C + 4 C, and
        2 C^2 / r + 2 k^2 for its attention.
    """
    total, n_in = 0, config.n_channels
    for width in config.widths:
        convolutions = 9 * n_in * width + 9 * width**2 + n_in * width  # the last: the short cut
        attention = 2 * width**2 // config.reduction + 2 * config.kernel_size**2
        total += convolutions + 4 * width + attention
        n_in = width
    return total + linear_parameters(n_in, config.n_classes)


class ResidualBlock(nn.Module):
    """Two convolutions, weighed by CBAM, added to their input.

    Args:
        n_in: channels of the input.
        n_out: channels of the output.
        reduction: r of the channel attention.
        kernel_size: k of the spatial attention.

    Source: He et al. 2016, "Deep Residual Learning for Image Recognition", figure 2; Woo et al.
    2018, figure 3 (where CBAM stands in it).
    """

    def __init__(self, n_in: int, n_out: int, *, reduction: int, kernel_size: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(n_in, n_out, 3, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(n_out)
        self.second = nn.Conv2d(n_out, n_out, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(n_out)
        self.attention = CBAM(n_out, reduction=reduction, kernel_size=kernel_size)
        self.short_cut = nn.Conv2d(n_in, n_out, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, n_in, h, w) to (B, n_out, h, w)."""
        y = F.relu(self.first_norm(self.first(x)))
        y = self.attention(self.second_norm(self.second(y)))
        return F.relu(self.short_cut(x) + y)


class CNNAttention(nn.Module):
    """An image classifier of residual blocks with CBAM.

    Args:
        config: its sizes.

    Source: Woo et al. 2018, "CBAM: Convolutional Block Attention Module".
    """

    def __init__(self, config: CNNAttentionConfig) -> None:
        super().__init__()
        self.config = config
        n_ins = (config.n_channels, *config.widths[:-1])
        self.blocks = nn.ModuleList(
            ResidualBlock(n_in, n_out, reduction=config.reduction, kernel_size=config.kernel_size)
            for n_in, n_out in zip(n_ins, config.widths, strict=True)
        )
        self.head = nn.Linear(config.widths[-1], config.n_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Classify images (B, C, h, w): logits (B, K)."""
        x = images
        for block in self.blocks:
            x = F.max_pool2d(block(x), 2)  # (B, C, h, w) -> (B, C', h / 2, w / 2)
        logits: Tensor = self.head(x.mean(dim=(2, 3)))  # (B, C') -> (B, K)
        return logits
