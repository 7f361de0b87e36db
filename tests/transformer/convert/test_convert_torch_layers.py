"""torch.nn's layers and nn.Transformer, with copied weights: outputs and gradients, both ways."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from parity import BOUNDS, assert_same, draw, normal, torch_layer
from torch import nn

from flower_transformer.attention import MultiHeadAttention
from flower_transformer.blocks import DecoderLayer, EncoderLayer, LayerConfig
from flower_transformer.convert.correspondence import export_weights, import_weights
from flower_transformer.convert.torch_layers import (
    attention_weights,
    decoder_layer_weights,
    encoder_layer_weights,
    transformer_weights,
)
from flower_transformer.masks import padding_mask
from flower_transformer.stacks import Decoder, Encoder


def assert_round_trip(ours: nn.Module, theirs: nn.Module, correspondence: object) -> None:
    back = export_weights(ours, correspondence)
    state = theirs.state_dict()
    assert set(back) == set(state)
    assert all(torch.equal(back[name], state[name]) for name in state)
    theirs.load_state_dict(back)
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters())


@pytest.mark.parametrize("bias", [False, True])
def test_attention(bias: bool) -> None:
    ours = MultiHeadAttention(12, 3, bias=bias).double()
    theirs = nn.MultiheadAttention(12, 3, bias=bias, batch_first=True, dtype=torch.float64)
    draw(theirs)
    import_weights(ours, theirs.state_dict(), attention_weights(bias=bias))
    x = normal(2, 5, 12)
    torch.testing.assert_close(ours(x), theirs(x, x, x)[0], rtol=1e-10, atol=1e-10)
    assert_round_trip(ours, theirs, attention_weights(bias=bias))


configs = st.builds(
    LayerConfig,
    d_model=st.just(12),
    n_heads=st.sampled_from([1, 3]),
    d_ff=st.integers(1, 20),
    bias=st.booleans(),
    feed_forward=st.sampled_from(["relu", "gelu"]),
    norm_order=st.sampled_from(["pre", "post"]),
)


@pytest.mark.parametrize("dtype", BOUNDS)
@settings(max_examples=10)
@given(config=configs, decoder=st.booleans(), seed=st.integers(0, 2**31))
def test_layers(dtype: torch.dtype, config: LayerConfig, decoder: bool, seed: int) -> None:
    theirs = torch_layer(
        nn.TransformerDecoderLayer if decoder else nn.TransformerEncoderLayer, config, dtype
    )
    draw(theirs, seed)
    ours = (DecoderLayer if decoder else EncoderLayer)(config).to(dtype)
    names = (decoder_layer_weights if decoder else encoder_layer_weights)(config)
    import_weights(ours, theirs.state_dict(), names)
    x, memory = (normal(2, 4, 12, seed=seed + i, dtype=dtype).requires_grad_() for i in (1, 2))
    mask = nn.Transformer.generate_square_subsequent_mask(4, dtype=dtype)
    inputs = [x, memory] if decoder else [x]
    outputs = (
        (ours(x, memory), theirs(x, memory, tgt_mask=mask))
        if decoder
        else (ours(x, causal=True), theirs(x, src_mask=mask))
    )
    everywhere = torch.ones(2, 4, dtype=torch.bool)
    assert_same(*outputs, everywhere, inputs, BOUNDS[dtype])
    assert_round_trip(ours, theirs, names)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("norm_order", ["pre", "post"])
def test_the_whole_transformer(norm_order: str, dtype: torch.dtype) -> None:
    config = LayerConfig(12, 3, 20, norm_order=norm_order)
    theirs = nn.Transformer(
        12, 3, 2, 2, 20, dropout=0.0, batch_first=True, norm_first=norm_order == "pre", dtype=dtype
    )
    draw(theirs)
    ours = nn.ModuleDict(
        {
            "encoder": Encoder(config, 2, final_norm=True),
            "decoder": Decoder(config, 2, final_norm=True),
        }
    ).to(dtype)
    names = transformer_weights(config, n_layers=2)
    import_weights(ours, theirs.state_dict(), names)
    x, y = (normal(2, n, 12, seed=n, dtype=dtype).requires_grad_() for n in (5, 4))
    real, target_real = (padding_mask(torch.tensor([n, n - 2]), n) for n in (5, 4))
    memory = ours["encoder"](x, key_padding_mask=real)
    output = ours["decoder"](y, memory, key_padding_mask=target_real, memory_padding_mask=real)
    expected = theirs(
        x,
        y,
        tgt_mask=~torch.ones(4, 4, dtype=torch.bool).tril(),
        src_key_padding_mask=~real,
        tgt_key_padding_mask=~target_real,
        memory_key_padding_mask=~real,
    )
    assert_same(output, expected, target_real, [x, y], BOUNDS[dtype])
    assert_round_trip(ours, theirs, names)


def test_what_torch_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match="norm 'rms_norm' and feed_forward 'relu'"):
        encoder_layer_weights(LayerConfig(8, 2, 16, norm="rms_norm"))
    with pytest.raises(ValueError, match="feed_forward 'swiglu'"):
        decoder_layer_weights(LayerConfig(8, 2, 16, feed_forward="swiglu"))
    with pytest.raises(ValueError, match="n_kv_heads 1"):
        encoder_layer_weights(LayerConfig(8, 2, 16, n_kv_heads=1))
