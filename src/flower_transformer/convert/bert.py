"""BERT of Hugging Face: `BertModel` and `BertForPreTraining`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flower_transformer.convert.config_numbers import require
from flower_transformer.convert.correspondence import Correspondence, Match, same_names
from flower_transformer.models.bert import BERTConfig

LAYER_NAMES = {
    "attention.project_query": "attention.self.query",
    "attention.project_key": "attention.self.key",
    "attention.project_value": "attention.self.value",
    "attention.project_output": "attention.output.dense",
    "attention_residual.norm": "attention.output.LayerNorm",
    "feed_forward.expand": "intermediate.dense",
    "feed_forward.contract": "output.dense",
    "feed_forward_residual.norm": "output.LayerNorm",
}


def bert_config(numbers: Mapping[str, Any]) -> BERTConfig:
    """Read a configuration; dropout, which is no matter of weights, stays 0.

    Args:
        numbers: the content of ``config.json``.

    Returns:
        Our configuration.

    Raises:
        ValueError: it describes a variant that `BERT` is not.
    """
    require(
        numbers,
        hidden_act="gelu",
        is_decoder=False,
        position_embedding_type="absolute",
        tie_word_embeddings=True,
    )
    return BERTConfig(
        n_tokens=numbers["vocab_size"],
        n_positions=numbers["max_position_embeddings"],
        d_model=numbers["hidden_size"],
        n_layers=numbers["num_hidden_layers"],
        n_heads=numbers["num_attention_heads"],
        d_ff=numbers["intermediate_size"],
        n_segments=numbers["type_vocab_size"],
        norm_eps=numbers["layer_norm_eps"],
    )


def bert_weights(config: BERTConfig) -> Correspondence:
    """Match the weights of `BERT` with those of ``BertModel``.

    Args:
        config: ours.

    Returns:
        What `import_weights` and `export_weights` take.
    """
    return Correspondence(tuple(_body(config, "", "")), ignored=_TABLES)


def bert_pre_training_weights(config: BERTConfig) -> Correspondence:
    """Match the weights of `BERTForPreTraining` with those of ``BertForPreTraining``.

    Args:
        config: ours.

    Returns:
        What `import_weights` and `export_weights` take.
    """
    matches = [
        *_body(config, "body.", "bert."),
        *same_names("token_dense", "cls.predictions.transform.dense"),
        *same_names("token_norm", "cls.predictions.transform.LayerNorm"),
        Match("cls.predictions.bias", ("token_bias",)),
        *same_names("next_sentence", "cls.seq_relationship"),
    ]
    aliases = {
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    }
    return Correspondence(tuple(matches), aliases, ignored=_TABLES)


_TABLES = ("embeddings.position_ids", "embeddings.token_type_ids")  # 0, 1, 2 ..., in older files


def _body(config: BERTConfig, ours: str, theirs: str) -> list[Match]:
    tables = {"token": "word", "segment": "token_type", "position": "position"}
    matches = [
        *same_names(f"{ours}embedding_norm", f"{theirs}embeddings.LayerNorm"),
        *same_names(f"{ours}pooler", f"{theirs}pooler.dense"),
    ]
    for name, their_name in tables.items():
        matches += same_names(
            f"{ours}{name}_embedding", f"{theirs}embeddings.{their_name}_embeddings", ["weight"]
        )
    for i in range(config.n_layers):
        for name, their_name in LAYER_NAMES.items():
            matches += same_names(
                f"{ours}encoder.layers.{i}.{name}", f"{theirs}encoder.layer.{i}.{their_name}"
            )
    return matches
