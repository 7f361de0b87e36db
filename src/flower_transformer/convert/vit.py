"""ViT of Hugging Face: `ViTForImageClassification`, with the names that transformers 5 gives.

Files from before carry older names; transformers itself renames them when it loads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flower_transformer.convert.config_numbers import require
from flower_transformer.convert.correspondence import Correspondence, Match, same_names
from flower_transformer.models.vit import ViTConfig

LAYER_NAMES = {
    "attention_residual.norm": "layernorm_before",
    "feed_forward_residual.norm": "layernorm_after",
    "attention.project_query": "attention.q_proj",
    "attention.project_key": "attention.k_proj",
    "attention.project_value": "attention.v_proj",
    "attention.project_output": "attention.o_proj",
    "feed_forward.expand": "mlp.fc1",
    "feed_forward.contract": "mlp.fc2",
}


def vit_config(numbers: Mapping[str, Any], *, n_classes: int) -> ViTConfig:
    """Read a configuration; dropout, which is no matter of weights, stays 0.

    Args:
        numbers: the content of ``config.json``.
        n_classes: K, how many labels it lists.

    Returns:
        Our configuration.

    Raises:
        ValueError: it describes a variant that `ViT` is not.
    """
    require(numbers, hidden_act="gelu", qkv_bias=True)
    return ViTConfig(
        image_size=numbers["image_size"],
        patch_size=numbers["patch_size"],
        n_classes=n_classes,
        d_model=numbers["hidden_size"],
        n_layers=numbers["num_hidden_layers"],
        n_heads=numbers["num_attention_heads"],
        d_ff=numbers["intermediate_size"],
        n_channels=numbers["num_channels"],
        norm_eps=numbers["layer_norm_eps"],
    )


def vit_weights(config: ViTConfig) -> Correspondence:
    """Match the weights of `ViT` with those of ``ViTForImageClassification``.

    Args:
        config: ours.

    Returns:
        What `import_weights` and `export_weights` take.
    """
    embeddings = "vit.embeddings"
    matches = [
        Match(f"{embeddings}.cls_token", ("class_token",)),
        Match(f"{embeddings}.position_embeddings", ("position_embedding.weight",), extra_axis=True),
        *same_names("patch_embedding.project", f"{embeddings}.patch_embeddings.projection"),
        *same_names("encoder.final_norm", "vit.layernorm"),
        *same_names("head", "classifier"),
    ]
    for i in range(config.n_layers):
        for ours, theirs in LAYER_NAMES.items():
            matches += same_names(f"encoder.layers.{i}.{ours}", f"vit.layers.{i}.{theirs}")
    return Correspondence(tuple(matches))
