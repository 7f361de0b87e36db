"""ViT of transformers, with copied weights: logits and gradients."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from peers import DTYPES, assert_parity, assert_round_trip, make_peer, transformers

from flower_transformer.convert.correspondence import import_weights
from flower_transformer.convert.vit import vit_config, vit_weights
from flower_transformer.models.vit import ViT


def peer(dtype: torch.dtype, seed: int, n_classes: int, **sizes: int) -> torch.nn.Module:
    config = transformers.ViTConfig(intermediate_size=14, num_labels=n_classes, **sizes)
    return make_peer(transformers.ViTForImageClassification, config, dtype, seed)


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=8)
@given(
    n_layers=st.integers(1, 2),
    n_heads=st.integers(1, 3),
    width=st.integers(4, 6),
    side=st.integers(1, 3),
    patch=st.integers(1, 4),
    n_channels=st.integers(1, 3),
    n_classes=st.integers(2, 4),
    seed=st.integers(0, 2**31),
)
def test_parity(
    dtype: torch.dtype,
    n_layers: int,
    n_heads: int,
    width: int,
    side: int,
    patch: int,
    n_channels: int,
    n_classes: int,
    seed: int,
) -> None:
    theirs = peer(
        dtype,
        seed,
        n_classes,
        num_hidden_layers=n_layers,
        num_attention_heads=n_heads,
        hidden_size=n_heads * width,
        image_size=side * patch,
        patch_size=patch,
        num_channels=n_channels,
    )
    config = vit_config(theirs.config.to_dict(), n_classes=n_classes)
    ours = ViT(config).to(dtype).eval()
    import_weights(ours, theirs.state_dict(), vit_weights(config))
    images = torch.randn(
        2,
        n_channels,
        side * patch,
        side * patch,
        generator=torch.Generator().manual_seed(seed),
        dtype=torch.float64,
    ).to(dtype)
    assert_parity(
        ours,
        theirs,
        vit_weights(config),
        lambda model: model(images),
        lambda model: model(images).logits,
        dtype,
    )


def test_round_trip() -> None:
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 8}
    theirs = peer(torch.float32, 0, 3, image_size=4, patch_size=2, **sizes)
    config = vit_config(theirs.config.to_dict(), n_classes=3)
    assert_round_trip(ViT(config), theirs, vit_weights(config))


def test_other_variants_are_refused() -> None:
    numbers = transformers.ViTConfig().to_dict()
    with pytest.raises(ValueError, match="qkv_bias is False, supported is True"):
        vit_config(numbers | {"qkv_bias": False}, n_classes=2)
