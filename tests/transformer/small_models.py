"""Small models with random weights, and a decoder with any kind of position."""

from __future__ import annotations

from collections.abc import Sequence

from parity import draw
from torch import Tensor, nn

from flower_transformer.blocks import LayerConfig
from flower_transformer.cache import Cache, make_caches, place_tokens
from flower_transformer.embedding import TokenEmbedding
from flower_transformer.masks import window_mask
from flower_transformer.models.gpt import GPT, GPTConfig
from flower_transformer.models.llama import Llama, LlamaConfig
from flower_transformer.models.transformer import Transformer, TransformerConfig
from flower_transformer.positional import LearnedPositions, SinusoidalPositions
from flower_transformer.relative_bias import ALiBi, RelativePositionBias
from flower_transformer.rotary import RotaryEmbedding
from flower_transformer.stacks import Encoder

V, D, H = 11, 16, 4
POSITIONS = ("none", "sinusoidal", "learned", "interleaved", "half_split", "alibi", "t5")


def small_gpt(**changes: object) -> GPT:
    sizes = {"n_tokens": V, "n_positions": 24, "d_model": D, "n_layers": 2, "n_heads": H}
    model = GPT(GPTConfig(**sizes | changes))
    draw(model)
    return model.eval()


def small_llama(**changes: object) -> Llama:
    sizes = {"n_tokens": V, "d_model": D, "n_layers": 2, "n_heads": H, "n_kv_heads": 2, "d_ff": 24}
    model = Llama(LlamaConfig(**sizes | changes))
    draw(model)
    return model.eval()


def small_transformer() -> Transformer:
    model = Transformer(TransformerConfig(V, V, D, 2, H, 24, tied=True))
    draw(model)
    return model.eval()


class SmallDecoder(nn.Module):
    """A language model with shared key/value heads, of one kind of position."""

    def __init__(self, kind: str, *, window: int | None = None) -> None:
        super().__init__()
        self.kind, self.window = kind, window
        self.token_embedding = TokenEmbedding(V, D)
        self.stack = Encoder(LayerConfig(D, H, 24, n_kv_heads=2, norm_order="pre"), 2)
        self.added, self.rotary, self.bias = None, None, None
        if kind == "sinusoidal":
            self.added = SinusoidalPositions(D)
        elif kind == "learned":
            self.added = LearnedPositions(24, D)
        elif kind in ("interleaved", "half_split"):
            self.rotary = RotaryEmbedding(D // H, layout=kind)
        elif kind == "alibi":
            self.bias = ALiBi(H)
        elif kind == "t5":
            self.bias = RelativePositionBias(H, bidirectional=False, n_buckets=4, max_distance=6)
        draw(self)
        self.eval()

    def forward(
        self,
        tokens: Tensor,
        *,
        padding_mask: Tensor | None = None,
        caches: Sequence[Cache] | None = None,
    ) -> Tensor:
        places = place_tokens(tokens, padding_mask=padding_mask, caches=caches)
        x = self.token_embedding(tokens)
        if self.added is not None:
            x = x + self.added(places.positions)
        n_query, n_key = tokens.shape[-1], places.key_positions.shape[-1]
        x = self.stack(
            x,
            may_attend=self.window and window_mask(n_query, n_key, window=self.window),
            causal=True,
            key_padding_mask=places.key_padding_mask,
            score_bias=self.bias and self.bias(places.positions, places.key_positions),
            rotation=self.rotary and self.rotary(places.positions),
            caches=caches,
        )
        return self.token_embedding.logits(x)

    def make_caches(self) -> list[Cache]:
        return make_caches(2, window=self.window)
