r"""How many parameters a layer has, by formula; the models add their embeddings and heads.

Legend: D = d_model, H query heads, G key/value heads, d_k head width, F = d_ff.

The counts come from the configuration alone, and the tests compare them with those of the modules.
"""

from __future__ import annotations

from typing import get_args

from torch import nn

from flower_transformer.blocks import LayerConfig
from flower_transformer.feedforward import Gate


def linear_parameters(n_in: int, n_out: int, *, bias: bool = True) -> int:
    """Count a linear map: n_in * n_out, and n_out for the bias."""
    return n_in * n_out + n_out * bias


def norm_parameters(config: LayerConfig) -> int:
    """Count a norm: D for RMSNorm and for a LayerNorm without bias, else 2 D."""
    return config.d_model * (1 + (config.norm == "layer_norm" and config.bias))


def attention_parameters(config: LayerConfig) -> int:
    """Count the four projections of attention: 2 D d_k (H + G), and the biases."""
    n_kv_heads = config.n_heads if config.n_kv_heads is None else config.n_kv_heads
    d_k = config.d_model // config.n_heads if config.d_k is None else config.d_k
    width, kv_width = config.n_heads * d_k, n_kv_heads * d_k
    return (
        linear_parameters(config.d_model, width, bias=config.bias)  # query
        + 2 * linear_parameters(config.d_model, kv_width, bias=config.bias)  # key, value
        + linear_parameters(width, config.d_model, bias=config.bias)  # output
    )


def feed_forward_parameters(config: LayerConfig) -> int:
    """Count the feed-forward network: 2 D F, or 3 D F with a gate, and the biases."""
    n_in = 2 if config.feed_forward in get_args(Gate) else 1
    return n_in * linear_parameters(
        config.d_model, config.d_ff, bias=config.bias
    ) + linear_parameters(config.d_ff, config.d_model, bias=config.bias)


def layer_parameters(config: LayerConfig, *, cross_attention: bool = False) -> int:
    """Count a layer: attention and feed-forward network with a norm each.

    Args:
        config: that of the layer.
        cross_attention: count a decoder layer, which has another attention and norm.

    Returns:
        The number of parameters; 12 D^2 + 13 D for a layer of GPT-2.
    """
    attention = attention_parameters(config) + norm_parameters(config)
    feed_forward = feed_forward_parameters(config) + norm_parameters(config)
    return attention * (1 + cross_attention) + feed_forward


def count_parameters(model: nn.Module) -> int:
    """Count the parameters that a module has; a shared one once."""
    return sum(parameter.numel() for parameter in model.parameters())
