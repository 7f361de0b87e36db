"""Looking at attention weights changes nothing."""

from __future__ import annotations

import torch
from torch import nn

from flower_transformer.attention import MultiHeadAttention
from flower_transformer.attention_maps import attention_maps
from flower_transformer.blocks import LayerConfig
from flower_transformer.stacks import Decoder

CONFIG = LayerConfig(d_model=12, n_heads=3, d_ff=20)


def test_maps_of_a_decoder() -> None:
    decoder = Decoder(CONFIG, 2)
    x, memory = torch.randn(2, 4, 12), torch.randn(2, 5, 12)
    plain = decoder(x, memory)
    with attention_maps(decoder) as maps:
        watched = decoder(x, memory)
    assert torch.equal(plain, watched)
    assert {name: tuple(weights.shape) for name, weights in maps.items()} == {
        "layers.0.attention": (2, 3, 4, 4),
        "layers.0.cross_attention": (2, 3, 4, 5),
        "layers.1.attention": (2, 3, 4, 4),
        "layers.1.cross_attention": (2, 3, 4, 5),
    }
    first = maps["layers.0.attention"]
    _, expected = decoder.layers[0].attention(x, causal=True, return_weights=True)
    torch.testing.assert_close(first, expected)
    assert not first.requires_grad


def test_the_newest_run_is_kept_and_the_hooks_go() -> None:
    module, x = MultiHeadAttention(4, 2), torch.randn(1, 3, 4)
    model = nn.Sequential(module, nn.Identity())
    with attention_maps(model) as maps:
        model(x)
        output, weights = module(x[:, :2], return_weights=True)  # the caller's own wish
    assert torch.equal(maps["0"], weights)
    assert weights.shape == (1, 2, 2, 2)
    assert isinstance(module(x), torch.Tensor)
    with attention_maps(module) as maps:
        module(x)
    assert list(maps) == [""]
    assert output.shape == (1, 2, 4)
