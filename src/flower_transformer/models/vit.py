r"""ViT: an image as a text of patches (Dosovitskiy et al. 2021).

Legend: B batch, C channels, h and w height and width in pixels, P patch size, N patches,
D = d_model, K classes.

An image is cut into N = h w / P^2 patches, each mapped to a vector; a learned class token goes in
front, positions are added, L pre-norm layers follow, and the class is read off the class token.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from flower_transformer.blocks import LayerConfig
from flower_transformer.models.initialisation import draw_normal
from flower_transformer.models.parameter_count import (
    layer_parameters,
    linear_parameters,
    norm_parameters,
)
from flower_transformer.positional import LearnedPositions, consecutive_positions
from flower_transformer.stacks import Encoder


@dataclass(frozen=True)
class ViTConfig:
    """Sizes of a ViT.

    Attributes:
        image_size: h = w.
        patch_size: P, a divisor of image_size.
        n_classes: K.
        d_model: D.
        n_layers: L.
        n_heads: attention heads.
        d_ff: inner width of the feed-forward network.
        n_channels: C.
        norm_eps: epsilon of LayerNorm.
        dropout_p: of embeddings, attention weights and sub-layers.

    Raises:
        ValueError: the patches do not fill the image.
    """

    image_size: int
    patch_size: int
    n_classes: int
    d_model: int
    n_layers: int
    n_heads: int
    d_ff: int
    n_channels: int = 3
    norm_eps: float = 1e-6
    dropout_p: float = 0.0

    def __post_init__(self) -> None:
        """Refuse sizes that do not fit."""
        if self.patch_size < 1 or self.image_size % self.patch_size:
            sizes = f"image_size {self.image_size}, patch_size {self.patch_size}"
            raise ValueError(f"the patches do not fill the image: {sizes}")

    @classmethod
    def base16(cls, *, n_classes: int = 1000) -> ViTConfig:
        """Return ViT-B/16 for images of 224 pixels.

        Source: Dosovitskiy et al. 2021, table 1.
        """
        return cls(224, 16, n_classes, 768, 12, 12, 3072)

    @classmethod
    def large16(cls, *, n_classes: int = 1000) -> ViTConfig:
        """Return ViT-L/16 for images of 224 pixels.

        Source: Dosovitskiy et al. 2021, table 1.
        """
        return cls(224, 16, n_classes, 1024, 24, 16, 4096)

    @classmethod
    def huge14(cls, *, n_classes: int = 1000) -> ViTConfig:
        """Return ViT-H/14 for images of 224 pixels.

        Source: Dosovitskiy et al. 2021, table 1.
        """
        return cls(224, 14, n_classes, 1280, 32, 16, 5120)

    @property
    def n_patches(self) -> int:
        """N = (h / P)^2."""
        return (self.image_size // self.patch_size) ** 2

    def layer(self) -> LayerConfig:
        """Return the configuration of a layer."""
        return LayerConfig(
            self.d_model,
            self.n_heads,
            self.d_ff,
            feed_forward="gelu",
            norm_eps=self.norm_eps,
            norm_order="pre",
            dropout_p=self.dropout_p,
        )


def parameter_count(config: ViTConfig) -> int:
    """Count the parameters: (C P^2 + 1) D of the patches, D, (N + 1) D, L layers, 2 D, (D + 1) K.

    Args:
        config: the sizes.

    Returns:
        The number of parameters.
    """
    layer = config.layer()
    patch = linear_parameters(config.n_channels * config.patch_size**2, config.d_model)
    class_token_and_positions = (1 + config.n_patches + 1) * config.d_model
    layers = config.n_layers * layer_parameters(layer) + norm_parameters(layer)
    head = linear_parameters(config.d_model, config.n_classes)
    return patch + class_token_and_positions + layers + head


class PatchEmbedding(nn.Module):
    """Map each patch of an image to a vector, by one linear map for all.

    A convolution whose stride is the size of its kernel is such a map.

    Args:
        n_channels: C.
        patch_size: P.
        d_model: D.

    Source: Dosovitskiy et al. 2021, section 3.1, equation (1).
    """

    def __init__(self, n_channels: int, patch_size: int, d_model: int) -> None:
        super().__init__()
        self.project = nn.Conv2d(n_channels, d_model, patch_size, stride=patch_size)
        fan_in = n_channels * patch_size**2
        nn.init.normal_(self.project.weight, std=fan_in**-0.5)
        nn.init.zeros_(self.project.bias)  # type: ignore[arg-type]

    def forward(self, images: Tensor) -> Tensor:
        """Map images (B, C, h, w) to patches (B, N, D), row by row."""
        x: Tensor = self.project(images)  # (B, C, h, w) -> (B, D, h / P, w / P)
        return x.flatten(2).transpose(1, 2)  # -> (B, D, N) -> (B, N, D)


class ViT(nn.Module):
    """The image classifier ViT.

    Args:
        config: its sizes.

    Source: Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words: Transformers for Image
    Recognition at Scale", section 3.1.
    """

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.config = config
        self.patch_embedding = PatchEmbedding(config.n_channels, config.patch_size, config.d_model)
        self.class_token = nn.Parameter(torch.zeros(1, 1, config.d_model))
        self.position_embedding = LearnedPositions(config.n_patches + 1, config.d_model)
        self.dropout = nn.Dropout(config.dropout_p)
        self.encoder = Encoder(config.layer(), config.n_layers)
        self.head = nn.Linear(config.d_model, config.n_classes)
        draw_normal(self.encoder)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, images: Tensor) -> Tensor:
        """Classify images.

        Args:
            images: (B, C, h, w).

        Returns:
            Logits (B, K).

        Raises:
            ValueError: the images have another size or number of channels than the model's.
        """
        side = self.config.image_size
        if images.shape[1:] != (self.config.n_channels, side, side):
            expected = f"(B, {self.config.n_channels}, {side}, {side})"
            raise ValueError(f"images must be {expected}, got {tuple(images.shape)}")
        patches = self.patch_embedding(images)  # (B, N, D)
        first = self.class_token.expand(len(images), -1, -1)  # (1, 1, D) -> (B, 1, D)
        x = torch.cat((first, patches), dim=1)  # (B, N + 1, D)
        positions = consecutive_positions(x.shape[1], device=x.device)
        x = self.encoder(self.dropout(x + self.position_embedding(positions)))
        logits: Tensor = self.head(x[:, 0])  # (B, N + 1, D) -> (B, D) -> (B, K)
        return logits
