r"""GPT: a decoder-only Transformer with learned positions (Radford et al. 2019, Brown et al. 2020).

Legend: B batch, T new tokens, N all tokens so far, V vocabulary, D = d_model.

$h_0 = E[x] + P$, then L pre-norm layers, a last norm, and the logits $h_L E^{\top}$ from the same
table E. The layout is that of GPT-2: GELU by its tanh approximation, biases everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from flower_transformer.blocks import LayerConfig
from flower_transformer.cache import Cache, make_caches, place_tokens
from flower_transformer.embedding import TokenEmbedding
from flower_transformer.models.initialisation import draw_normal, shrink_residuals
from flower_transformer.models.parameter_count import layer_parameters, norm_parameters
from flower_transformer.positional import LearnedPositions
from flower_transformer.stacks import Encoder

GPT2Size = Literal["124M", "355M", "774M", "1558M"]


@dataclass(frozen=True)
class GPTConfig:
    """Sizes of a GPT.

    Attributes:
        n_tokens: V.
        n_positions: the longest text.
        d_model: D; the feed-forward network is 4 D wide inside.
        n_layers: L.
        n_heads: attention heads.
        norm_eps: epsilon of LayerNorm.
        dropout_p: of embeddings, attention weights and sub-layers.
    """

    n_tokens: int
    n_positions: int
    d_model: int
    n_layers: int
    n_heads: int
    norm_eps: float = 1e-5
    dropout_p: float = 0.0

    @classmethod
    def gpt2(cls, size: GPT2Size = "124M") -> GPTConfig:
        """Return a published size of GPT-2.

        The names are the counts of the released weights; the paper's table says 117M, 345M, 762M
        and 1542M.

        Raises:
            ValueError: there is no such size.

        Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", table 2.
        """
        sizes = {
            "124M": (768, 12, 12),
            "355M": (1024, 24, 16),
            "774M": (1280, 36, 20),
            "1558M": (1600, 48, 25),
        }
        if size not in sizes:
            raise ValueError(f"size must be one of {', '.join(sizes)}, got {size!r}")
        d_model, n_layers, n_heads = sizes[size]
        return cls(50257, 1024, d_model, n_layers, n_heads)

    @classmethod
    def gpt3(cls) -> GPTConfig:
        """Return the largest size of GPT-3, 175B.

        Its layers alternate dense and locally banded sparse attention, which changes no count.

        Source: Brown et al. 2020, "Language Models are Few-Shot Learners", table 2.1.
        """
        return cls(n_tokens=50257, n_positions=2048, d_model=12288, n_layers=96, n_heads=96)

    def layer(self) -> LayerConfig:
        """Return the configuration of a layer."""
        return LayerConfig(
            self.d_model,
            self.n_heads,
            4 * self.d_model,
            feed_forward="gelu_tanh",
            norm_eps=self.norm_eps,
            norm_order="pre",
            dropout_p=self.dropout_p,
        )


def parameter_count(config: GPTConfig) -> int:
    """Count the parameters: V D + N D + L (12 D^2 + 13 D) + 2 D, N = n_positions.

    Args:
        config: the sizes.

    Returns:
        The number of parameters; the tied output adds none.
    """
    layer = config.layer()
    embeddings = (config.n_tokens + config.n_positions) * config.d_model
    return embeddings + config.n_layers * layer_parameters(layer) + norm_parameters(layer)


class GPT(nn.Module):
    """The language model GPT: reads tokens, scores the next one at every position.

    Args:
        config: its sizes.

    Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.3.
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.config = config
        self.token_embedding = TokenEmbedding(config.n_tokens, config.d_model, scaled=False)
        self.position_embedding = LearnedPositions(config.n_positions, config.d_model)
        self.dropout = nn.Dropout(config.dropout_p)
        self.stack = Encoder(config.layer(), config.n_layers)
        draw_normal(self.stack)
        shrink_residuals(self.stack)

    def forward(
        self,
        tokens: Tensor,
        *,
        padding_mask: Tensor | None = None,
        caches: Sequence[Cache] | None = None,
    ) -> Tensor:
        """Score the token that follows each token.

        Args:
            tokens: integers (B, T).
            padding_mask: boolean (B, N), True = real token, for all tokens so far; padding may
                stand on either side, and positions count real tokens only.
            caches: of this model (`make_caches`), which hold the N - T tokens before; without
                them N = T.

        Returns:
            Logits (B, T, V). Those of padding mean nothing.

        Raises:
            ValueError: the text is longer than n_positions, or the mask does not fit.
        """
        places = place_tokens(tokens, padding_mask=padding_mask, caches=caches)
        positions = self.position_embedding(places.positions)  # (T, D) or (B, T, D)
        x = self.dropout(self.token_embedding(tokens) + positions)  # (B, T, D)
        x = self.stack(x, causal=True, key_padding_mask=places.key_padding_mask, caches=caches)
        return self.token_embedding.logits(x)  # (B, T, V)

    def make_caches(self) -> list[Cache]:
        """Make an empty cache for each layer."""
        return make_caches(self.config.n_layers)
