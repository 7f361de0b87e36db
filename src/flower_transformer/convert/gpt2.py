"""GPT-2 of Hugging Face: `GPT2LMHeadModel`.

Its linear maps hold their matrices transposed, (in, out), with query, key and value in one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flower_transformer.convert.config_numbers import require
from flower_transformer.convert.correspondence import Correspondence, Match, same_names
from flower_transformer.models.gpt import GPTConfig


def gpt2_config(numbers: Mapping[str, Any]) -> GPTConfig:
    """Read a configuration; dropout, which is no matter of weights, stays 0.

    Args:
        numbers: the content of ``config.json``.

    Returns:
        Our configuration.

    Raises:
        ValueError: it describes a variant that `GPT` is not.
    """
    require(
        numbers,
        activation_function=("gelu_new", "gelu_pytorch_tanh"),
        n_inner=(None, 4 * numbers["n_embd"]),
        scale_attn_weights=True,
        scale_attn_by_inverse_layer_idx=False,
        add_cross_attention=False,
        tie_word_embeddings=True,
    )
    return GPTConfig(
        n_tokens=numbers["vocab_size"],
        n_positions=numbers["n_positions"],
        d_model=numbers["n_embd"],
        n_layers=numbers["n_layer"],
        n_heads=numbers["n_head"],
        norm_eps=numbers["layer_norm_epsilon"],
    )


def gpt2_weights(config: GPTConfig) -> Correspondence:
    """Match the weights of `GPT` with those of ``GPT2LMHeadModel``.

    Args:
        config: ours.

    Returns:
        What `import_weights` and `export_weights` take.
    """
    matches = [
        Match("transformer.wte.weight", ("token_embedding.weight",)),
        Match("transformer.wpe.weight", ("position_embedding.weight",)),
        *same_names("stack.final_norm", "transformer.ln_f"),
    ]
    for i in range(config.n_layers):
        ours, theirs = f"stack.layers.{i}", f"transformer.h.{i}"
        projections = [f"{ours}.attention.project_{name}" for name in ("query", "key", "value")]
        matches += same_names(f"{ours}.attention_residual.norm", f"{theirs}.ln_1")
        matches += same_names(f"{ours}.feed_forward_residual.norm", f"{theirs}.ln_2")
        matches += _transposed(projections, f"{theirs}.attn.c_attn")
        matches += _transposed([f"{ours}.attention.project_output"], f"{theirs}.attn.c_proj")
        matches += _transposed([f"{ours}.feed_forward.expand"], f"{theirs}.mlp.c_fc")
        matches += _transposed([f"{ours}.feed_forward.contract"], f"{theirs}.mlp.c_proj")
    return Correspondence(
        tuple(matches),
        aliases={"lm_head.weight": "transformer.wte.weight"},
        ignored=(".attn.bias", ".attn.masked_bias"),  # causal masks, in older files
    )


def _transposed(ours: list[str], theirs: str) -> list[Match]:
    weights = tuple(f"{name}.weight" for name in ours)
    biases = tuple(f"{name}.bias" for name in ours)
    return [Match(f"{theirs}.weight", weights, transposed=True), Match(f"{theirs}.bias", biases)]
