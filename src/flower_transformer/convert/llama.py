"""Llama and Mistral of Hugging Face: `LlamaForCausalLM`, `MistralForCausalLM`.

Their rotary pairs are split over the halves of a head, as ours; the files that Meta distributes
have them interleaved, and differ in the rows of the query and key projections.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flower_transformer.convert.config_numbers import require
from flower_transformer.convert.correspondence import Correspondence, Match, same_names
from flower_transformer.models.llama import LlamaConfig
from flower_transformer.rotary import LinearScaling, Llama3Scaling, Scaling

LAYER_NAMES = {
    "attention_residual.norm": "input_layernorm",
    "feed_forward_residual.norm": "post_attention_layernorm",
    "attention.project_query": "self_attn.q_proj",
    "attention.project_key": "self_attn.k_proj",
    "attention.project_value": "self_attn.v_proj",
    "attention.project_output": "self_attn.o_proj",
    "feed_forward.gate": "mlp.gate_proj",
    "feed_forward.expand": "mlp.up_proj",
    "feed_forward.contract": "mlp.down_proj",
}


def llama_config(numbers: Mapping[str, Any]) -> LlamaConfig:
    """Read a configuration.

    Args:
        numbers: the content of ``config.json``, with ``rope_parameters`` or, as older files have
            it, with ``rope_theta`` and ``rope_scaling``.

    Returns:
        Our configuration.

    Raises:
        ValueError: it describes a variant that `Llama` is not.
    """
    require(numbers, hidden_act="silu", attention_bias=False, mlp_bias=False)
    rope = numbers.get("rope_parameters") or {
        "rope_theta": numbers.get("rope_theta", 10000.0),
        **(numbers.get("rope_scaling") or {}),
    }
    return LlamaConfig(
        n_tokens=numbers["vocab_size"],
        d_model=numbers["hidden_size"],
        n_layers=numbers["num_hidden_layers"],
        n_heads=numbers["num_attention_heads"],
        n_kv_heads=numbers.get("num_key_value_heads") or numbers["num_attention_heads"],
        d_ff=numbers["intermediate_size"],
        d_k=numbers.get("head_dim"),
        norm_eps=numbers["rms_norm_eps"],
        rotary_base=rope["rope_theta"],
        rotary_scaling=_scaling(rope),
        window=numbers.get("sliding_window"),
        tied=numbers.get("tie_word_embeddings", False),
    )


def llama_weights(config: LlamaConfig) -> Correspondence:
    """Match the weights of `Llama` with those of ``LlamaForCausalLM``.

    Args:
        config: ours.

    Returns:
        What `import_weights` and `export_weights` take.
    """
    matches = [
        Match("model.embed_tokens.weight", ("token_embedding.weight",)),
        Match("model.norm.weight", ("stack.final_norm.weight",)),
    ]
    for i in range(config.n_layers):
        for ours, theirs in LAYER_NAMES.items():
            matches += same_names(
                f"stack.layers.{i}.{ours}", f"model.layers.{i}.{theirs}", ["weight"]
            )
    if config.tied:
        aliases = {"lm_head.weight": "model.embed_tokens.weight"}
    else:
        matches.append(Match("lm_head.weight", ("output.weight",)))
        aliases = {}
    return Correspondence(tuple(matches), aliases, ignored=("rotary_emb.inv_freq",))


def _scaling(rope: Mapping[str, Any]) -> Scaling | None:
    require(rope, rope_type=("default", "linear", "llama3"))
    kind = rope.get("rope_type", "default")
    if kind == "linear":
        return LinearScaling(rope["factor"])
    if kind == "llama3":
        return Llama3Scaling(
            factor=rope["factor"],
            low_frequency_factor=rope["low_freq_factor"],
            high_frequency_factor=rope["high_freq_factor"],
            original_length=rope["original_max_position_embeddings"],
        )
    return None
