"""Stacks of layers: equal to torch's, final norms, caches."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from parity import BOUNDS, GrowingCache, assert_same, copy_layer, draw, normal
from torch import nn

from flower_transformer.blocks import LayerConfig
from flower_transformer.masks import causal_mask, padding_mask
from flower_transformer.norms import LayerNorm, RMSNorm
from flower_transformer.rotary import RotaryEmbedding
from flower_transformer.stacks import Decoder, Encoder

SMALL = LayerConfig(d_model=12, n_heads=3, d_ff=20)


@torch.no_grad()
def torch_transformer(encoder: Encoder, decoder: Decoder, config: LayerConfig) -> nn.Transformer:
    """Torch's model of the same sizes with the same weights."""
    theirs = nn.Transformer(
        config.d_model,
        config.n_heads,
        len(encoder.layers),
        len(decoder.layers),
        config.d_ff,
        dropout=0.0,
        batch_first=True,
        norm_first=config.norm_order == "pre",
        dtype=next(encoder.parameters()).dtype,
    )
    for ours, other in ((encoder, theirs.encoder), (decoder, theirs.decoder)):
        for layer, copy in zip(ours.layers, other.layers, strict=True):
            copy_layer(copy, layer)
        other.norm.load_state_dict(ours.final_norm.state_dict())
    return theirs


@pytest.mark.parametrize("norm_order", ["pre", "post"])
@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
def test_parity_with_torch(norm_order: str, dtype: torch.dtype) -> None:
    config = replace(SMALL, norm_order=norm_order)
    # nn.Transformer ends both stacks with a norm, in either order
    encoder = Encoder(config, 2, final_norm=True).to(dtype)
    decoder = Decoder(config, 3, final_norm=True).to(dtype)
    draw(encoder)
    draw(decoder, seed=100)
    theirs = torch_transformer(encoder, decoder, config)
    source = normal(2, 5, 12, dtype=dtype).requires_grad_()
    target = normal(2, 4, 12, seed=1, dtype=dtype).requires_grad_()
    real, real_target = padding_mask(torch.tensor([5, 3]), 5), padding_mask(torch.tensor([2, 4]), 4)
    memory = encoder(source, key_padding_mask=real)
    output = decoder(target, memory, key_padding_mask=real_target, memory_padding_mask=real)
    expected = theirs(
        source,
        target,
        tgt_mask=~causal_mask(4),  # torch: True = may NOT attend
        src_key_padding_mask=~real,
        tgt_key_padding_mask=~real_target,
        memory_key_padding_mask=~real,
    )
    assert_same(output, expected, real_target, [source, target], BOUNDS[dtype])


def test_a_final_norm_where_the_layers_have_none() -> None:
    for stack in (Encoder, Decoder):
        assert isinstance(stack(SMALL, 1).final_norm, nn.Identity)
        pre = replace(SMALL, norm_order="pre")
        assert isinstance(stack(pre, 1).final_norm, LayerNorm)
        assert isinstance(stack(replace(pre, norm="rms_norm"), 1).final_norm, RMSNorm)
        assert isinstance(stack(pre, 1, final_norm=False).final_norm, nn.Identity)
        assert isinstance(stack(SMALL, 1, final_norm=True).final_norm, LayerNorm)


def test_layers_have_weights_of_their_own() -> None:
    encoder = Encoder(SMALL, 3)
    assert len({id(parameter) for parameter in encoder.parameters()}) == 3 * 16


@pytest.mark.parametrize("split", [(1, 5), (3, 3), (1, 1, 1, 1, 1, 1)])
def test_caches_change_nothing(split: tuple[int, ...]) -> None:
    config = replace(SMALL, n_heads=6, n_kv_heads=2, norm_order="pre")
    encoder, decoder = Encoder(config, 2).double(), Decoder(config, 2).double()
    rotary, x, memory = RotaryEmbedding(2, layout="half_split"), normal(2, 6, 12), normal(2, 3, 12)
    positions = torch.arange(6)
    for stack, more, causal in (
        (encoder, (), {"causal": True}),
        (decoder, (memory,), {}),
    ):
        full = stack(x, *more, rotation=rotary(positions), **causal)
        caches, steps, start = [GrowingCache(), GrowingCache()], [], 0
        for length in split:
            here = slice(start, start + length)
            rotation = rotary(positions[here])
            steps.append(stack(x[:, here], *more, rotation=rotation, caches=caches, **causal))
            start += length
        torch.testing.assert_close(torch.cat(steps, dim=1), full, rtol=1e-10, atol=1e-10)


def test_errors_name_both_values() -> None:
    x = normal(1, 2, 12, dtype=torch.float32)
    with pytest.raises(ValueError, match="1 caches for 2 layers"):
        Encoder(SMALL, 2)(x, caches=[GrowingCache()])
    with pytest.raises(ValueError, match="0 caches for 1 layers"):
        Decoder(SMALL, 1)(x, x, caches=[])
    for stack in (Encoder, Decoder):
        with pytest.raises(ValueError, match="n_layers must be positive, got 0"):
            stack(SMALL, 0)
