r"""The Transformer of 2017: an encoder reads a text, a decoder writes one (Vaswani et al. 2017).

Legend: B batch, S length of the source, T length of the target (when generating: of its new
tokens), V_s and V_t vocabularies, D = d_model.

Both texts are embedded, times $\sqrt{D}$, and sinusoidal positions are added. The logits come from
the table of the target. With ``tied`` it is the table of the source as well, as in the paper, which
has one vocabulary for both languages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from flower_transformer.blocks import LayerConfig
from flower_transformer.cache import Cache, make_caches, place_tokens
from flower_transformer.embedding import TokenEmbedding
from flower_transformer.models.parameter_count import layer_parameters, norm_parameters
from flower_transformer.positional import SinusoidalPositions
from flower_transformer.residual import NormOrder
from flower_transformer.stacks import Decoder, Encoder


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes and choices of a Transformer.

    Attributes:
        n_source_tokens: V_s.
        n_target_tokens: V_t.
        d_model: D.
        n_layers: number of encoder layers, and of decoder layers.
        n_heads: attention heads.
        d_ff: inner width of the feed-forward networks.
        tied: one table for both texts.
        norm_order: "post" as in the paper, or "pre".
        dropout_p: of embeddings, attention weights and sub-layers.

    Raises:
        ValueError: the vocabularies are tied and differ in size.
    """

    n_source_tokens: int
    n_target_tokens: int
    d_model: int
    n_layers: int
    n_heads: int
    d_ff: int
    tied: bool = False
    norm_order: NormOrder = "post"
    dropout_p: float = 0.0

    def __post_init__(self) -> None:
        """Refuse two vocabularies in one table."""
        if self.tied and self.n_source_tokens != self.n_target_tokens:
            sizes = f"n_source_tokens {self.n_source_tokens}, n_target_tokens"
            raise ValueError(f"one table for two vocabularies: {sizes} {self.n_target_tokens}")

    @classmethod
    def base(cls, n_tokens: int = 37000) -> TransformerConfig:
        """Return the base model, with the shared English and German vocabulary by default.

        Source: Vaswani et al. 2017, table 3 and section 5.1.
        """
        return cls(n_tokens, n_tokens, 512, 6, 8, 2048, tied=True, dropout_p=0.1)

    @classmethod
    def big(cls, n_tokens: int = 37000) -> TransformerConfig:
        """Return the big model.

        Source: Vaswani et al. 2017, table 3.
        """
        return cls(n_tokens, n_tokens, 1024, 6, 16, 4096, tied=True, dropout_p=0.3)

    def layer(self) -> LayerConfig:
        """Return the configuration of a layer."""
        return LayerConfig(
            self.d_model,
            self.n_heads,
            self.d_ff,
            norm_order=self.norm_order,
            dropout_p=self.dropout_p,
        )


def parameter_count(config: TransformerConfig) -> int:
    """Count the parameters: the tables, encoder and decoder layers, two last norms if pre-norm.

    Args:
        config: the sizes.

    Returns:
        The number of parameters.
    """
    layer = config.layer()
    n_vectors = config.n_target_tokens + (0 if config.tied else config.n_source_tokens)
    layers = layer_parameters(layer) + layer_parameters(layer, cross_attention=True)
    last_norms = 2 * norm_parameters(layer) if config.norm_order == "pre" else 0
    return n_vectors * config.d_model + config.n_layers * layers + last_norms


class Transformer(nn.Module):
    """The encoder-decoder Transformer.

    Args:
        config: its sizes and choices.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        layer = config.layer()
        self.target_embedding = TokenEmbedding(config.n_target_tokens, config.d_model)
        self.source_embedding = (
            self.target_embedding
            if config.tied
            else TokenEmbedding(config.n_source_tokens, config.d_model)
        )
        self.positions = SinusoidalPositions(config.d_model)
        self.dropout = nn.Dropout(config.dropout_p)
        self.encoder = Encoder(layer, config.n_layers)
        self.decoder = Decoder(layer, config.n_layers)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        *,
        source_mask: Tensor | None = None,
        target_mask: Tensor | None = None,
    ) -> Tensor:
        """Score the token that follows each token of the target, given the source.

        Args:
            source: integers (B, S).
            target: integers (B, T): BOS and what has been written so far.
            source_mask: boolean (B, S), True = real token.
            target_mask: boolean (B, T), True = real token.

        Returns:
            Logits (B, T, V_t).
        """
        memory = self.encode(source, source_mask=source_mask)
        return self.decode(target, memory, source_mask=source_mask, target_mask=target_mask)

    def encode(self, source: Tensor, *, source_mask: Tensor | None = None) -> Tensor:
        """Read a source (B, S): a vector for each token, (B, S, D)."""
        places = place_tokens(source, padding_mask=source_mask)
        x = self._embed(source, self.source_embedding, places.positions)
        memory: Tensor = self.encoder(x, key_padding_mask=source_mask)
        return memory

    def decode(
        self,
        target: Tensor,
        memory: Tensor,
        *,
        source_mask: Tensor | None = None,
        target_mask: Tensor | None = None,
        caches: Sequence[Cache] | None = None,
    ) -> Tensor:
        """Score the token that follows each token of the target.

        Args:
            target: integers (B, T), with caches the new tokens only.
            memory: of `encode`, (B, S, D).
            source_mask: boolean (B, S), True = real token.
            target_mask: boolean (B, N), True = real token, for all tokens so far.
            caches: of this model (`make_caches`), which hold the tokens before.

        Returns:
            Logits (B, T, V_t).
        """
        places = place_tokens(target, padding_mask=target_mask, caches=caches)
        x = self.decoder(
            self._embed(target, self.target_embedding, places.positions),
            memory,
            key_padding_mask=places.key_padding_mask,
            memory_padding_mask=source_mask,
            caches=caches,
        )
        return self.target_embedding.logits(x)

    def given(self, source: Tensor, *, source_mask: Tensor | None = None) -> GivenSource:
        """Read a source once, and become a language model of its target, for `generate`.

        Args:
            source: integers (B, S).
            source_mask: boolean (B, S), True = real token.

        Returns:
            What scores targets of this source.
        """
        return GivenSource(self, self.encode(source, source_mask=source_mask), source_mask)

    def make_caches(self) -> list[Cache]:
        """Make an empty cache for the self-attention of each decoder layer."""
        return make_caches(self.config.n_layers)

    def _embed(self, tokens: Tensor, table: TokenEmbedding, positions: Tensor) -> Tensor:
        x: Tensor = table(tokens)  # (B, T, D)
        dropped: Tensor = self.dropout(x + self.positions(positions, dtype=x.dtype))
        return dropped


@dataclass(frozen=True)
class GivenSource:
    """A Transformer whose source is fixed: a language model of the target.

    Attributes:
        model: the Transformer.
        memory: what its encoder made of the source, (B, S, D).
        source_mask: boolean (B, S), True = real token.
    """

    model: Transformer
    memory: Tensor
    source_mask: Tensor | None

    @property
    def training(self) -> bool:
        """Whether dropout is on."""
        return self.model.training

    def __call__(
        self,
        tokens: Tensor,
        *,
        padding_mask: Tensor | None = None,
        caches: Sequence[Cache] | None = None,
    ) -> Tensor:
        """Score the next token, see `Transformer.decode`.

        Args:
            tokens: (B, T), or (B * K, T) with K targets of each source next to each other, as in
                beam search.
            padding_mask: boolean, True = real token, for all tokens so far.
            caches: those of `make_caches`.

        Returns:
            Logits (B, T, V_t), or (B * K, T, V_t).

        Raises:
            ValueError: the number of targets is no multiple of the number of sources.
        """
        if len(tokens) % len(self.memory):
            raise ValueError(f"{len(tokens)} targets are no multiple of {len(self.memory)} sources")
        n_beams = len(tokens) // len(self.memory)
        memory, mask = self.memory, self.source_mask
        if n_beams > 1:
            memory = memory.repeat_interleave(n_beams, dim=0)  # (B, S, D) -> (B * K, S, D)
            mask = None if mask is None else mask.repeat_interleave(n_beams, dim=0)
        return self.model.decode(
            tokens, memory, source_mask=mask, target_mask=padding_mask, caches=caches
        )

    def make_caches(self) -> list[Cache]:
        """Make an empty cache for each decoder layer."""
        return self.model.make_caches()
