"""The layers of torch.nn: `MultiheadAttention`, `TransformerEncoderLayer` and their stacks.

They keep query, key and value in one matrix, and number their norms in the order of use. Names are
given with a prefix on either side, so that a layer can be a part of something larger.
"""

from __future__ import annotations

from flower_transformer.blocks import LayerConfig
from flower_transformer.convert.correspondence import Correspondence, Match, same_names


def attention_weights(*, bias: bool) -> Correspondence:
    """Match `MultiHeadAttention` with ``nn.MultiheadAttention``.

    Args:
        bias: whether the projections have biases.

    Returns:
        What `import_weights` and `export_weights` take.
    """
    return Correspondence(tuple(_attention("", "", bias)))


def encoder_layer_weights(config: LayerConfig) -> Correspondence:
    """Match `EncoderLayer` with ``nn.TransformerEncoderLayer``.

    Args:
        config: of the layer; with the activation "relu" or "gelu", LayerNorm and unshared heads.

    Returns:
        What `import_weights` and `export_weights` take.

    Raises:
        ValueError: torch has no such layer.
    """
    return Correspondence(tuple(_layer("", "", config, cross_attention=False)))


def decoder_layer_weights(config: LayerConfig) -> Correspondence:
    """Match `DecoderLayer` with ``nn.TransformerDecoderLayer``.

    Args:
        config: as in `encoder_layer_weights`.

    Returns:
        What `import_weights` and `export_weights` take.

    Raises:
        ValueError: torch has no such layer.
    """
    return Correspondence(tuple(_layer("", "", config, cross_attention=True)))


def transformer_weights(config: LayerConfig, *, n_layers: int) -> Correspondence:
    """Match an encoder and a decoder with ``nn.Transformer``, which has no embeddings.

    Args:
        config: as in `encoder_layer_weights`.
        n_layers: number of encoder layers, and of decoder layers.

    Returns:
        What `import_weights` and `export_weights` take; for a module whose ``encoder`` and
        ``decoder`` are an `Encoder` and a `Decoder`, each with ``final_norm=True``, as
        ``nn.ModuleDict({"encoder": ..., "decoder": ...})``.

    Raises:
        ValueError: torch has no such layer.
    """
    matches = []
    for stack in ("encoder", "decoder"):
        matches += same_names(f"{stack}.final_norm", f"{stack}.norm", _endings(config.bias))
        for i in range(n_layers):
            prefix = f"{stack}.layers.{i}."
            matches += _layer(prefix, prefix, config, cross_attention=stack == "decoder")
    return Correspondence(tuple(matches))


def _layer(ours: str, theirs: str, config: LayerConfig, *, cross_attention: bool) -> list[Match]:
    if config.norm != "layer_norm" or config.feed_forward not in ("relu", "gelu"):
        parts = f"norm {config.norm!r} and feed_forward {config.feed_forward!r}"
        raise ValueError(f"torch has layer_norm with relu or gelu, but no layer with {parts}")
    if config.n_kv_heads not in (None, config.n_heads) or config.d_k is not None:
        heads = f"n_kv_heads {config.n_kv_heads}, d_k {config.d_k}"
        raise ValueError(f"torch has no shared heads and no head width: {heads}")
    endings = _endings(config.bias)
    norms = ["attention_residual.norm", "feed_forward_residual.norm"]
    matches = _attention(f"{ours}attention.", f"{theirs}self_attn.", config.bias)
    if cross_attention:
        norms.insert(1, "cross_attention_residual.norm")
        matches += _attention(f"{ours}cross_attention.", f"{theirs}multihead_attn.", config.bias)
    for number, norm in enumerate(norms, start=1):
        matches += same_names(f"{ours}{norm}", f"{theirs}norm{number}", endings)
    matches += same_names(f"{ours}feed_forward.expand", f"{theirs}linear1", endings)
    matches += same_names(f"{ours}feed_forward.contract", f"{theirs}linear2", endings)
    return matches


def _attention(ours: str, theirs: str, bias: bool) -> list[Match]:
    matches = same_names(f"{ours}project_output", f"{theirs}out_proj", _endings(bias))
    for ending in _endings(bias):
        parts = tuple(f"{ours}project_{name}.{ending}" for name in ("query", "key", "value"))
        matches.append(Match(f"{theirs}in_proj_{ending}", parts))
    return matches


def _endings(bias: bool) -> tuple[str, ...]:
    return ("weight", "bias") if bias else ("weight",)
