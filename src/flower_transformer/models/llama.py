r"""Llama and Mistral: a decoder-only Transformer with rotary positions (Touvron et al. 2023).

Legend: B batch, T new tokens, N all tokens so far, S keys, V vocabulary, D = d_model.

Against GPT: RMSNorm for LayerNorm, SwiGLU for GELU, rotations of queries and keys for position
vectors, key/value heads shared by groups of query heads, no biases, and an output of its own.
Rotary pairs are split over the halves of a head, as in the weights that Hugging Face distributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from flower_transformer.blocks import LayerConfig
from flower_transformer.cache import Cache, make_caches, place_tokens
from flower_transformer.embedding import TokenEmbedding
from flower_transformer.masks import window_mask
from flower_transformer.models.initialisation import draw_normal
from flower_transformer.models.parameter_count import layer_parameters, norm_parameters
from flower_transformer.rotary import Llama3Scaling, RotaryEmbedding, Scaling
from flower_transformer.stacks import Encoder


@dataclass(frozen=True)
class LlamaConfig:
    """Sizes and choices of a Llama.

    Attributes:
        n_tokens: V.
        d_model: D.
        n_layers: L.
        n_heads: query heads.
        n_kv_heads: key/value heads.
        d_ff: inner width of the feed-forward network.
        d_k: head width; D / n_heads when None.
        norm_eps: epsilon of RMSNorm.
        rotary_base: base of the rotary frequencies.
        rotary_scaling: how they are stretched for longer texts.
        window: how many tokens a query sees, its own included; all when None.
        tied: use the table of the embedding as the output.
    """

    n_tokens: int
    d_model: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    d_ff: int
    d_k: int | None = None
    norm_eps: float = 1e-5
    rotary_base: float = 10000.0
    rotary_scaling: Scaling | None = None
    window: int | None = None
    tied: bool = False

    @classmethod
    def llama2_7b(cls) -> LlamaConfig:
        """Return Llama 2 7B.

        Source: Touvron et al. 2023, "Llama 2: Open Foundation and Fine-Tuned Chat Models".
        """
        return cls(32000, 4096, 32, 32, 32, 11008)

    @classmethod
    def llama3_8b(cls) -> LlamaConfig:
        """Return Llama 3 8B.

        Source: Llama Team 2024, "The Llama 3 Herd of Models", table 3.
        """
        return cls(128256, 4096, 32, 32, 8, 14336, rotary_base=500000.0)

    @classmethod
    def llama3_2_1b(cls) -> LlamaConfig:
        """Return Llama 3.2 1B, whose output is tied and whose rotation is stretched 32 times.

        Source: the configuration released with its weights.
        """
        scaling = Llama3Scaling(factor=32.0)
        return cls(
            128256, 2048, 16, 32, 8, 8192, rotary_base=500000.0, rotary_scaling=scaling, tied=True
        )

    @classmethod
    def mistral_7b(cls) -> LlamaConfig:
        """Return Mistral 7B, which sees a window of 4096 tokens in each layer.

        Source: Jiang et al. 2023, "Mistral 7B", table 1.
        """
        return cls(32000, 4096, 32, 32, 8, 14336, window=4096)

    def layer(self) -> LayerConfig:
        """Return the configuration of a layer."""
        return LayerConfig(
            self.d_model,
            self.n_heads,
            self.d_ff,
            n_kv_heads=self.n_kv_heads,
            d_k=self.d_k,
            bias=False,
            feed_forward="swiglu",
            norm="rms_norm",
            norm_eps=self.norm_eps,
            norm_order="pre",
        )


def parameter_count(config: LlamaConfig) -> int:
    """Count the parameters: V D (twice if not tied), L layers, and D for the last norm.

    Args:
        config: the sizes.

    Returns:
        The number of parameters. A layer has 2 D d_k (H + G) + 3 D d_ff + 2 D.
    """
    layer = config.layer()
    embeddings = config.n_tokens * config.d_model * (1 if config.tied else 2)
    return embeddings + config.n_layers * layer_parameters(layer) + norm_parameters(layer)


class Llama(nn.Module):
    """The language model Llama: reads tokens, scores the next one at every position.

    Args:
        config: its sizes and choices.

    Source: Touvron et al. 2023, "LLaMA: Open and Efficient Foundation Language Models", section
    2.2; Ainslie et al. 2023 (shared key/value heads); Jiang et al. 2023, "Mistral 7B" (window).
    """

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config = config
        layer = config.layer()
        self.token_embedding = TokenEmbedding(config.n_tokens, config.d_model, scaled=False)
        self.stack = Encoder(layer, config.n_layers)
        self.output = (
            None if config.tied else nn.Linear(config.d_model, config.n_tokens, bias=False)
        )
        self.rotary_embedding = RotaryEmbedding(
            config.d_model // config.n_heads if config.d_k is None else config.d_k,
            layout="half_split",
            base=config.rotary_base,
            scaling=config.rotary_scaling,
        )
        draw_normal(self)

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
            ValueError: the mask does not fit.
        """
        places = place_tokens(tokens, padding_mask=padding_mask, caches=caches)
        n_query, n_key = tokens.shape[-1], places.key_positions.shape[-1]
        x = self.stack(
            self.token_embedding(tokens),  # (B, T, D)
            may_attend=self._window(n_query, n_key, tokens.device),
            causal=True,
            key_padding_mask=places.key_padding_mask,
            rotation=self.rotary_embedding(places.positions),
            caches=caches,
        )
        to_logits = self.token_embedding.logits if self.output is None else self.output
        logits: Tensor = to_logits(x)  # (B, T, V)
        return logits

    def make_caches(self) -> list[Cache]:
        """Make an empty cache for each layer, which forgets what has left the window."""
        return make_caches(self.config.n_layers, window=self.config.window)

    def _window(self, n_query: int, n_key: int, device: torch.device) -> Tensor | None:
        window = self.config.window
        if window is None or n_key <= window:  # every key is within reach of every query
            return None
        return window_mask(n_query, n_key, window=window, device=device)
