r"""Encoder and decoder layers, for either order of the norm. Their stacks are in `stacks`.

Legend: B batch, T length of the text at hand, S length of what is attended to (the text itself and
what a cache holds; in a decoder also the encoder's output), D = d_model.

One `EncoderLayer` serves BERT (every token sees every token) and, with ``causal=True``, GPT and
Llama; a `DecoderLayer` has cross-attention between its two sub-layers. What the models differ in is
their `LayerConfig`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal, cast, get_args

from torch import Tensor, nn

from flower_transformer.attention import KeyValueCache, MultiHeadAttention
from flower_transformer.feedforward import Activation, FeedForward, Gate, GatedFeedForward
from flower_transformer.norms import LayerNorm, RMSNorm
from flower_transformer.residual import NormOrder, Residual
from flower_transformer.rotary import Rotation
from flower_transformer.scaled_dot_product import Path

Norm = Literal["layer_norm", "rms_norm"]


@dataclass(frozen=True)
class LayerConfig:
    """What the layers of a stack have in common.

    Attributes:
        d_model: D.
        n_heads: query heads.
        d_ff: inner width of the feed-forward network.
        n_kv_heads: key/value heads; n_heads when None.
        d_k: head width; d_model / n_heads when None.
        bias: biases in all projections, and in LayerNorm.
        feed_forward: an activation ("relu", "gelu", "gelu_tanh", "swish") or a gate ("glu",
            "reglu", "geglu", "swiglu", "bilinear").
        norm: "layer_norm" or "rms_norm".
        norm_eps: epsilon of the norm.
        norm_order: "post" as in 2017, or "pre".
        dropout_p: of attention weights, of inner feed-forward numbers and of each sub-layer.
        path: of attention, "fused" or "reference".
    """

    d_model: int
    n_heads: int
    d_ff: int
    n_kv_heads: int | None = None
    d_k: int | None = None
    bias: bool = True
    feed_forward: Activation | Gate = "relu"
    norm: Norm = "layer_norm"
    norm_eps: float = 1e-5
    norm_order: NormOrder = "post"
    dropout_p: float = 0.0
    path: Path = "fused"

    def make_attention(self) -> MultiHeadAttention:
        """Make an attention sub-layer."""
        return MultiHeadAttention(
            self.d_model,
            self.n_heads,
            n_kv_heads=self.n_kv_heads,
            d_k=self.d_k,
            bias=self.bias,
            dropout_p=self.dropout_p,
            path=self.path,
        )

    def make_feed_forward(self) -> FeedForward | GatedFeedForward:
        """Make a feed-forward sub-layer."""
        if self.feed_forward in get_args(Gate):
            return GatedFeedForward(
                self.d_model,
                self.d_ff,
                gate=cast(Gate, self.feed_forward),
                bias=self.bias,
                dropout_p=self.dropout_p,
            )
        return FeedForward(
            self.d_model,
            self.d_ff,
            activation=cast(Activation, self.feed_forward),
            bias=self.bias,
            dropout_p=self.dropout_p,
        )

    def make_norm(self) -> LayerNorm | RMSNorm:
        """Make a norm.

        Raises:
            ValueError: the norm is unknown.
        """
        if self.norm == "layer_norm":
            return LayerNorm(self.d_model, eps=self.norm_eps, bias=self.bias)
        if self.norm == "rms_norm":
            return RMSNorm(self.d_model, eps=self.norm_eps)
        raise ValueError(f"norm must be one of {get_args(Norm)}, got {self.norm!r}")

    def make_residual(self) -> Residual:
        """Make the residual connection, norm included, around one sub-layer."""
        return Residual(self.make_norm(), norm_order=self.norm_order, dropout_p=self.dropout_p)


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward network, each in a residual connection with a norm.

    Args:
        config: sizes and choices.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.1, "Encoder".
    """

    def __init__(self, config: LayerConfig) -> None:
        super().__init__()
        self.attention = config.make_attention()
        self.attention_residual = config.make_residual()
        self.feed_forward = config.make_feed_forward()
        self.feed_forward_residual = config.make_residual()

    def forward(
        self,
        x: Tensor,
        *,
        may_attend: Tensor | None = None,
        causal: bool = False,
        key_padding_mask: Tensor | None = None,
        score_bias: Tensor | None = None,
        rotation: Rotation | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Apply the layer; the arguments after x are those of `MultiHeadAttention`.

        Args:
            x: (B, T, D).
            may_attend: boolean, broadcastable to (B, H, T, S), True = may attend.
            causal: no token attends to a later one.
            key_padding_mask: boolean (B, S), True = real token.
            score_bias: added to the scores (`flower_transformer.relative_bias`).
            rotation: rotary positions (`flower_transformer.rotary`).
            cache: earlier keys and values of this layer.

        Returns:
            (B, T, D).
        """
        attend = partial(
            self.attention,
            may_attend=may_attend,
            causal=causal,
            key_padding_mask=key_padding_mask,
            score_bias=score_bias,
            rotation=rotation,
            cache=cache,
        )
        x = self.attention_residual(x, attend)
        output: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return output


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention to the encoder's output, and a feed-forward network.

    Args:
        config: sizes and choices.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.1, "Decoder".
    """

    def __init__(self, config: LayerConfig) -> None:
        super().__init__()
        self.attention = config.make_attention()
        self.attention_residual = config.make_residual()
        self.cross_attention = config.make_attention()
        self.cross_attention_residual = config.make_residual()
        self.feed_forward = config.make_feed_forward()
        self.feed_forward_residual = config.make_residual()

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
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Apply the layer. No token attends to a later one of its own text.

        Args:
            x: (B, T, D).
            memory: the encoder's output (B, S, D).
            may_attend: boolean, broadcastable to (B, H, T, T), True = may attend; for
                self-attention, on top of causality.
            key_padding_mask: boolean (B, T), True = real token of x.
            memory_padding_mask: boolean (B, S), True = real token of the memory.
            score_bias: for self-attention only: queries and keys of cross-attention count
                different texts, and have no distance.
            rotation: rotary positions, for self-attention only, for the same reason.
            cache: earlier keys and values of this layer's self-attention.

        Returns:
            (B, T, D).
        """
        attend = partial(
            self.attention,
            may_attend=may_attend,
            causal=True,
            key_padding_mask=key_padding_mask,
            score_bias=score_bias,
            rotation=rotation,
            cache=cache,
        )
        look_at_memory = partial(
            self.cross_attention, key=memory, key_padding_mask=memory_padding_mask
        )
        x = self.attention_residual(x, attend)
        x = self.cross_attention_residual(x, look_at_memory)
        output: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return output
