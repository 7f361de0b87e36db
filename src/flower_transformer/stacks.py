r"""The encoder and the decoder: layers one above the other.

Legend: B batch, T length of the text at hand, S length of what is attended to, D = d_model, N
layers.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from flower_transformer.attention import KeyValueCache
from flower_transformer.blocks import DecoderLayer, EncoderLayer, LayerConfig
from flower_transformer.rotary import Rotation


class Encoder(nn.Module):
    """N encoder layers, and a norm at the end where the layers leave their output without one.

    With ``causal=True`` it is the body of decoder-only models.

    Args:
        config: sizes and choices of every layer.
        n_layers: N.
        final_norm: end with a norm. When left out: for pre-norm layers, as their sums grow from
            layer to layer and nothing else normalises the last. Post-norm layers end with one
            each; torch's ``nn.Transformer`` adds another all the same.

    Raises:
        ValueError: n_layers < 1.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.1; Radford et al. 2019,
    "Language Models are Unsupervised Multitask Learners", section 2.3 (the final norm).
    """

    def __init__(
        self, config: LayerConfig, n_layers: int, *, final_norm: bool | None = None
    ) -> None:
        super().__init__()
        _check_layers(n_layers)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(n_layers))
        self.final_norm = _final_norm(config, final_norm)

    def forward(
        self,
        x: Tensor,
        *,
        may_attend: Tensor | None = None,
        causal: bool = False,
        key_padding_mask: Tensor | None = None,
        score_bias: Tensor | None = None,
        rotation: Rotation | None = None,
        caches: Sequence[KeyValueCache] | None = None,
    ) -> Tensor:
        """Apply all layers; each gets the same masks, biases and rotation, see `EncoderLayer`.

        Args:
            x: (B, T, D).
            may_attend: boolean, broadcastable to (B, H, T, S), True = may attend.
            causal: no token attends to a later one.
            key_padding_mask: boolean (B, S), True = real token.
            score_bias: added to the scores of every layer.
            rotation: rotary positions.
            caches: one for each layer.

        Returns:
            (B, T, D).

        Raises:
            ValueError: the number of caches is not N.
        """
        for layer, cache in zip(self.layers, _one_each(caches, len(self.layers)), strict=True):
            x = layer(
                x,
                may_attend=may_attend,
                causal=causal,
                key_padding_mask=key_padding_mask,
                score_bias=score_bias,
                rotation=rotation,
                cache=cache,
            )
        output: Tensor = self.final_norm(x)
        return output


class Decoder(nn.Module):
    """N decoder layers, and a norm at the end as in `Encoder`.

    Args:
        config: sizes and choices of every layer.
        n_layers: N.
        final_norm: see `Encoder`.

    Raises:
        ValueError: n_layers < 1.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.1.
    """

    def __init__(
        self, config: LayerConfig, n_layers: int, *, final_norm: bool | None = None
    ) -> None:
        super().__init__()
        _check_layers(n_layers)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(n_layers))
        self.final_norm = _final_norm(config, final_norm)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        *,
        may_attend: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        memory_padding_mask: Tensor | None = None,
        score_bias: Tensor | None = None,
        rotation: Rotation | None = None,
        caches: Sequence[KeyValueCache] | None = None,
    ) -> Tensor:
        """Apply all layers; each looks at the same memory, see `DecoderLayer`.

        Args:
            x: (B, T, D).
            memory: the encoder's output (B, S, D).
            may_attend: boolean, broadcastable to (B, H, T, T), for self-attention.
            key_padding_mask: boolean (B, T), True = real token of x.
            memory_padding_mask: boolean (B, S), True = real token of the memory.
            score_bias: for self-attention.
            rotation: for self-attention.
            caches: one for each layer's self-attention.

        Returns:
            (B, T, D).

        Raises:
            ValueError: the number of caches is not N.
        """
        for layer, cache in zip(self.layers, _one_each(caches, len(self.layers)), strict=True):
            x = layer(
                x,
                memory,
                may_attend=may_attend,
                key_padding_mask=key_padding_mask,
                memory_padding_mask=memory_padding_mask,
                score_bias=score_bias,
                rotation=rotation,
                cache=cache,
            )
        output: Tensor = self.final_norm(x)
        return output


def _final_norm(config: LayerConfig, wanted: bool | None) -> nn.Module:
    wanted = config.norm_order == "pre" if wanted is None else wanted
    return config.make_norm() if wanted else nn.Identity()


def _one_each(
    caches: Sequence[KeyValueCache] | None, n_layers: int
) -> Sequence[KeyValueCache | None]:
    if caches is None:
        return [None] * n_layers
    if len(caches) != n_layers:
        raise ValueError(f"{len(caches)} caches for {n_layers} layers")
    return caches


def _check_layers(n_layers: int) -> None:
    if n_layers < 1:
        raise ValueError(f"n_layers must be positive, got {n_layers}")
