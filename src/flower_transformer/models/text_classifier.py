r"""A text classifier: an encoder, its vectors pooled into one, and a linear map.

Legend: B batch, T length, V vocabulary, D = d_model, K classes.

Padding is left out of the pooling, not averaged in as zeros: a text scores the same in any batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from torch import Tensor, nn

from flower_transformer.blocks import LayerConfig
from flower_transformer.cache import place_tokens
from flower_transformer.embedding import TokenEmbedding
from flower_transformer.masks import require_boolean
from flower_transformer.models.parameter_count import (
    layer_parameters,
    linear_parameters,
    norm_parameters,
)
from flower_transformer.positional import SinusoidalPositions
from flower_transformer.residual import NormOrder
from flower_transformer.stacks import Encoder

Pooling = Literal["mean", "max", "first"]


def mean_pool(x: Tensor, real: Tensor | None = None) -> Tensor:
    r"""Average the vectors of the real tokens.

    $$
    c = \frac{\sum_{t=1}^{n} m_t x_t}{\sum_{t=1}^{n} m_t}
    $$

    Args:
        x: (..., T, D).
        real: m, boolean (..., T), True = real token; None: all are.

    Returns:
        c (..., D); 0 for a text without a real token. Padding has no influence, even if it holds
        NaN.

    Raises:
        ValueError: the mask is no boolean (..., T).
    """
    if real is None:
        return x.mean(dim=-2)
    _check_mask(x, real)
    total = x.masked_fill(~real.unsqueeze(-1), 0.0).sum(dim=-2)
    return total / real.sum(dim=-1, keepdim=True).clamp(min=1)


def max_pool(x: Tensor, real: Tensor | None = None) -> Tensor:
    """Take the largest of each feature over the real tokens.

    Args:
        x: (..., T, D).
        real: boolean (..., T), True = real token; None: all are.

    Returns:
        (..., D); 0 for a text without a real token.

    Raises:
        ValueError: the mask is no boolean (..., T).
    """
    if real is None:
        return x.amax(dim=-2)
    _check_mask(x, real)
    largest = x.masked_fill(~real.unsqueeze(-1), float("-inf")).amax(dim=-2)
    return largest.masked_fill(~real.any(dim=-1, keepdim=True), 0.0)


@dataclass(frozen=True)
class TextClassifierConfig:
    """Sizes and choices of a text classifier.

    Attributes:
        n_tokens: V.
        n_classes: K.
        d_model: D.
        n_layers: L.
        n_heads: attention heads.
        d_ff: inner width of the feed-forward network.
        pooling: "mean" or "max" over the real tokens, or the "first" token.
        norm_order: "pre" or "post".
        dropout_p: of embeddings, attention weights, sub-layers and the pooled vector.

    Raises:
        ValueError: the pooling is unknown.
    """

    n_tokens: int
    n_classes: int
    d_model: int
    n_layers: int
    n_heads: int
    d_ff: int
    pooling: Pooling = "mean"
    norm_order: NormOrder = "pre"
    dropout_p: float = 0.0

    def __post_init__(self) -> None:
        """Refuse an unknown pooling."""
        if self.pooling not in get_args(Pooling):
            raise ValueError(f"pooling must be one of {get_args(Pooling)}, got {self.pooling!r}")

    def layer(self) -> LayerConfig:
        """Return the configuration of a layer."""
        return LayerConfig(
            self.d_model,
            self.n_heads,
            self.d_ff,
            norm_order=self.norm_order,
            dropout_p=self.dropout_p,
        )


def parameter_count(config: TextClassifierConfig) -> int:
    """Count the parameters: V D, L layers, 2 D of a last norm if pre-norm, and (D + 1) K.

    Args:
        config: the sizes.

    Returns:
        The number of parameters.
    """
    layer = config.layer()
    last_norm = norm_parameters(layer) if config.norm_order == "pre" else 0
    layers = config.n_layers * layer_parameters(layer) + last_norm
    head = linear_parameters(config.d_model, config.n_classes)
    return config.n_tokens * config.d_model + layers + head


class TextClassifier(nn.Module):
    """Classify texts with a Transformer encoder.

    Args:
        config: its sizes and choices.

    Source: the encoder of Vaswani et al. 2017, "Attention Is All You Need", section 3.
    """

    def __init__(self, config: TextClassifierConfig) -> None:
        super().__init__()
        self.config = config
        self.token_embedding = TokenEmbedding(config.n_tokens, config.d_model)
        self.positions = SinusoidalPositions(config.d_model)
        self.dropout = nn.Dropout(config.dropout_p)
        self.encoder = Encoder(config.layer(), config.n_layers)
        self.head = nn.Linear(config.d_model, config.n_classes)

    def forward(self, tokens: Tensor, *, padding_mask: Tensor | None = None) -> Tensor:
        """Classify texts.

        Args:
            tokens: integers (B, T).
            padding_mask: boolean (B, T), True = real token; on the right if the first token is
                what is pooled.

        Returns:
            Logits (B, K).

        Raises:
            ValueError: the mask does not fit.
        """
        places = place_tokens(tokens, padding_mask=padding_mask)
        x = self.token_embedding(tokens)  # (B, T, D)
        x = self.dropout(x + self.positions(places.positions, dtype=x.dtype))
        x = self.encoder(x, key_padding_mask=padding_mask)
        logits: Tensor = self.head(self.dropout(self._pool(x, padding_mask)))  # (B, D) -> (B, K)
        return logits

    def _pool(self, x: Tensor, real: Tensor | None) -> Tensor:
        if self.config.pooling == "first":
            return x[:, 0]
        return (mean_pool if self.config.pooling == "mean" else max_pool)(x, real)


def _check_mask(x: Tensor, real: Tensor) -> None:
    require_boolean("real", real)
    if real.shape != x.shape[:-1]:
        raise ValueError(f"real has shape {tuple(real.shape)}, x has {tuple(x.shape)}")
