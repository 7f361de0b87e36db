r"""BERT: an encoder that sees both sides, and its two pre-training tasks (Devlin et al. 2019).

Legend: B batch, T length, V vocabulary, D = d_model.

A token's vector is the sum of three tables (token, segment, position), normalised; L post-norm
layers follow, with the exact (erf) GELU. `BERT` is this body, with the pooler that reads a whole
text off its first token; `BERTForPreTraining` puts the heads of the two tasks on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from flower_transformer.blocks import LayerConfig
from flower_transformer.cache import place_tokens
from flower_transformer.embedding import TokenEmbedding
from flower_transformer.feedforward import gelu
from flower_transformer.models.initialisation import draw_normal
from flower_transformer.models.parameter_count import (
    layer_parameters,
    linear_parameters,
    norm_parameters,
)
from flower_transformer.positional import LearnedPositions
from flower_transformer.stacks import Encoder


@dataclass(frozen=True)
class BERTConfig:
    """Sizes of a BERT.

    Attributes:
        n_tokens: V.
        n_positions: the longest text.
        d_model: D.
        n_layers: L.
        n_heads: attention heads.
        d_ff: inner width of the feed-forward network.
        n_segments: number of segments: 2, as a text is one sentence or a pair.
        norm_eps: epsilon of LayerNorm.
        dropout_p: of embeddings, attention weights and sub-layers.
    """

    n_tokens: int
    n_positions: int
    d_model: int
    n_layers: int
    n_heads: int
    d_ff: int
    n_segments: int = 2
    norm_eps: float = 1e-12
    dropout_p: float = 0.0

    @classmethod
    def base(cls) -> BERTConfig:
        """Return BERT-base, with the vocabulary of its uncased English model.

        Source: Devlin et al. 2019, "BERT", section 3.
        """
        return cls(30522, 512, 768, 12, 12, 3072)

    @classmethod
    def large(cls) -> BERTConfig:
        """Return BERT-large, with the vocabulary of its uncased English model.

        Source: Devlin et al. 2019, "BERT", section 3.
        """
        return cls(30522, 512, 1024, 24, 16, 4096)

    def layer(self) -> LayerConfig:
        """Return the configuration of a layer."""
        return LayerConfig(
            self.d_model,
            self.n_heads,
            self.d_ff,
            feed_forward="gelu",
            norm_eps=self.norm_eps,
            norm_order="post",
            dropout_p=self.dropout_p,
        )


def parameter_count(config: BERTConfig, *, heads: bool = False) -> int:
    """Count the parameters: three tables and their norm, L layers, and the pooler D^2 + D.

    Args:
        config: the sizes.
        heads: count those of `BERTForPreTraining`: D^2 + D, a norm and V biases for the masked
            tokens, whose table is tied, and 2 D + 2 for the next sentence.

    Returns:
        The number of parameters.
    """
    layer = config.layer()
    n_vectors = config.n_tokens + config.n_segments + config.n_positions
    dense = linear_parameters(config.d_model, config.d_model)
    body = n_vectors * config.d_model + norm_parameters(layer) + dense
    body += config.n_layers * layer_parameters(layer)
    masked = dense + norm_parameters(layer) + config.n_tokens
    return body + heads * (masked + linear_parameters(config.d_model, 2))


class BERTOutput(NamedTuple):
    """What the body makes of a text.

    Attributes:
        hidden: (B, T, D), a vector for each token.
        pooled: (B, D), one for the text.
    """

    hidden: Tensor
    pooled: Tensor


class BERT(nn.Module):
    """The body of BERT.

    Args:
        config: its sizes.

    Source: Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for Language
    Understanding", section 3; the pooler is in its code only.
    """

    def __init__(self, config: BERTConfig) -> None:
        super().__init__()
        self.config = config
        layer = config.layer()
        self.token_embedding = TokenEmbedding(config.n_tokens, config.d_model, scaled=False)
        self.segment_embedding = TokenEmbedding(config.n_segments, config.d_model, scaled=False)
        self.position_embedding = LearnedPositions(config.n_positions, config.d_model)
        self.embedding_norm = layer.make_norm()
        self.dropout = nn.Dropout(config.dropout_p)
        self.encoder = Encoder(layer, config.n_layers)
        self.pooler = nn.Linear(config.d_model, config.d_model)
        draw_normal(self)

    def forward(
        self,
        tokens: Tensor,
        *,
        segments: Tensor | None = None,
        padding_mask: Tensor | None = None,
    ) -> BERTOutput:
        """Read texts.

        Args:
            tokens: integers (B, T), [CLS] first.
            segments: integers (B, T), 0 for the first sentence and 1 for the second; all 0 when
                left out.
            padding_mask: boolean (B, T), True = real token; padding on the right, as the pooler
                reads the first token.

        Returns:
            Vectors of the tokens, those of padding without meaning, and of the texts.

        Raises:
            ValueError: a text is longer than n_positions, or the mask does not fit.
        """
        places = place_tokens(tokens, padding_mask=padding_mask)
        segments = torch.zeros_like(tokens) if segments is None else segments
        x = self.token_embedding(tokens) + self.segment_embedding(segments)  # (B, T, D)
        x = x + self.position_embedding(places.positions)
        x = self.dropout(self.embedding_norm(x))
        hidden = self.encoder(x, key_padding_mask=padding_mask)  # (B, T, D)
        pooled = torch.tanh(self.pooler(hidden[:, 0]))  # (B, T, D) -> (B, D)
        return BERTOutput(hidden, pooled)


class BERTForPreTraining(nn.Module):
    """BERT with its two heads: which token was masked, and whether the second sentence follows.

    Args:
        config: its sizes.

    Source: Devlin et al. 2019, "BERT", section 3.1.
    """

    def __init__(self, config: BERTConfig) -> None:
        super().__init__()
        self.config = config
        self.body = BERT(config)
        self.token_dense = nn.Linear(config.d_model, config.d_model)
        self.token_norm = config.layer().make_norm()
        self.token_bias = nn.Parameter(torch.zeros(config.n_tokens))
        self.next_sentence = nn.Linear(config.d_model, 2)
        draw_normal(self)

    def forward(
        self,
        tokens: Tensor,
        *,
        segments: Tensor | None = None,
        padding_mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Score both tasks.

        Args:
            tokens: integers (B, T), some of them masked.
            segments: integers (B, T).
            padding_mask: boolean (B, T), True = real token.

        Returns:
            Logits of the token at each place (B, T, V), and of "follows" and "does not" (B, 2).
        """
        hidden, pooled = self.body(tokens, segments=segments, padding_mask=padding_mask)
        hidden = self.token_norm(gelu(self.token_dense(hidden)))  # (B, T, D)
        token_logits = self.body.token_embedding.logits(hidden) + self.token_bias  # (B, T, V)
        return token_logits, self.next_sentence(pooled)
