"""Encoder and decoder layers: equal to torch's, for both orders of the norm."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from parity import BOUNDS, assert_same, copy_layer, draw, normal, torch_layer
from torch import nn

from flower_transformer.blocks import DecoderLayer, EncoderLayer, LayerConfig
from flower_transformer.feedforward import FeedForward, GatedFeedForward
from flower_transformer.masks import (
    block_mask,
    causal_mask,
    combine,
    padding_mask,
    window_mask,
)
from flower_transformer.norms import LayerNorm, RMSNorm
from flower_transformer.relative_bias import ALiBi
from flower_transformer.rotary import RotaryEmbedding

SMALL = LayerConfig(d_model=12, n_heads=3, d_ff=20)
LLAMA = LayerConfig(
    d_model=12,
    n_heads=6,
    n_kv_heads=2,
    d_ff=20,
    bias=False,
    feed_forward="swiglu",
    norm="rms_norm",
    norm_order="pre",
)

CONFIGS = st.builds(
    LayerConfig,
    d_model=st.just(12),
    n_heads=st.sampled_from([1, 2, 3]),
    d_ff=st.integers(1, 20),
    bias=st.booleans(),
    feed_forward=st.sampled_from(["relu", "gelu"]),
    norm_eps=st.sampled_from([1e-5, 0.1]),
    norm_order=st.sampled_from(["pre", "post"]),
    path=st.sampled_from(["reference", "fused"]),
)


# --- parity with torch ----------------------------------------------------------------------------


@given(config=CONFIGS, causal=st.booleans(), dtype=st.sampled_from(list(BOUNDS)))
def test_encoder_layer_parity(config: LayerConfig, causal: bool, dtype: torch.dtype) -> None:
    ours = EncoderLayer(config).to(dtype).eval()
    draw(ours)
    theirs = torch_layer(nn.TransformerEncoderLayer, config, dtype).eval()
    copy_layer(theirs, ours)
    x = normal(2, 5, 12, dtype=dtype).requires_grad_()
    real = padding_mask(torch.tensor([5, 3]), 5)
    output = ours(x, causal=causal, key_padding_mask=real)
    past = ~causal_mask(5) if causal else None  # torch: True = may NOT attend
    expected = theirs(x, src_mask=past, src_key_padding_mask=~real)
    assert_same(output, expected, real, [x], BOUNDS[dtype])
    with torch.no_grad():  # torch's fast path
        fast = theirs(x, src_key_padding_mask=~real)[real]
        output = ours(x, key_padding_mask=real)[real]
        torch.testing.assert_close(output, fast, rtol=BOUNDS[dtype], atol=BOUNDS[dtype])


@given(config=CONFIGS, dtype=st.sampled_from(list(BOUNDS)))
def test_decoder_layer_parity(config: LayerConfig, dtype: torch.dtype) -> None:
    ours = DecoderLayer(config).to(dtype).eval()
    draw(ours)
    theirs = torch_layer(nn.TransformerDecoderLayer, config, dtype).eval()
    copy_layer(theirs, ours)
    x = normal(2, 4, 12, dtype=dtype).requires_grad_()
    memory = normal(2, 5, 12, seed=1, dtype=dtype).requires_grad_()
    real, real_memory = padding_mask(torch.tensor([4, 2]), 4), padding_mask(torch.tensor([3, 5]), 5)
    output = ours(x, memory, key_padding_mask=real, memory_padding_mask=real_memory)
    expected = theirs(
        x,
        memory,
        tgt_mask=~causal_mask(4),
        tgt_key_padding_mask=~real,
        memory_key_padding_mask=~real_memory,
    )
    assert_same(output, expected, real, [x, memory], BOUNDS[dtype])


@pytest.mark.parametrize("norm_order", ["pre", "post"])
@pytest.mark.parametrize("dtype", BOUNDS)
def test_gradients_of_all_weights_equal_torchs(norm_order: str, dtype: torch.dtype) -> None:
    config = replace(SMALL, norm_order=norm_order)
    ours = DecoderLayer(config).to(dtype)
    draw(ours)
    theirs = torch_layer(nn.TransformerDecoderLayer, config, dtype)
    copy_layer(theirs, ours)
    x, memory = normal(2, 4, 12, dtype=dtype), normal(2, 5, 12, seed=1, dtype=dtype)
    ours(x, memory).square().sum().backward()
    theirs(x, memory, tgt_mask=~causal_mask(4)).square().sum().backward()
    expected = torch_layer(nn.TransformerDecoderLayer, config, dtype)
    with torch.no_grad():  # the gradients are copied as the weights were
        for parameter in ours.parameters():
            parameter.copy_(parameter.grad)
    copy_layer(expected, ours)
    for ours_gradient, parameter in zip(expected.parameters(), theirs.parameters(), strict=True):
        bound = 10 * BOUNDS[dtype]
        torch.testing.assert_close(ours_gradient, parameter.grad, rtol=bound, atol=bound)


# --- what the layers are made of ------------------------------------------------------------------


@pytest.mark.parametrize("norm_order", ["pre", "post"])
def test_encoder_layer_step_by_step(norm_order: str) -> None:
    layer = EncoderLayer(replace(SMALL, norm_order=norm_order)).double()
    draw(layer)
    x = normal(2, 5, 12)
    first, second = layer.attention_residual.norm, layer.feed_forward_residual.norm
    if norm_order == "pre":
        y = x + layer.attention(first(x))
        expected = y + layer.feed_forward(second(y))
    else:
        y = first(x + layer.attention(x))
        expected = second(y + layer.feed_forward(y))
    torch.testing.assert_close(layer(x), expected)


def test_llama_block_step_by_step() -> None:
    layer = EncoderLayer(LLAMA).double()
    draw(layer)
    x, rotation = normal(2, 5, 12), RotaryEmbedding(2, layout="half_split")(torch.arange(5))
    first, second = layer.attention_residual.norm, layer.feed_forward_residual.norm
    assert isinstance(first, RMSNorm)
    assert layer.attention.n_kv_heads == 2
    assert not any("bias" in name for name, _ in layer.named_parameters())
    y = x + layer.attention(first(x), causal=True, rotation=rotation)
    torch.testing.assert_close(
        layer(x, causal=True, rotation=rotation), y + layer.feed_forward(second(y))
    )


def test_config_chooses_the_parts() -> None:
    assert isinstance(SMALL.make_feed_forward(), FeedForward)
    assert isinstance(replace(SMALL, feed_forward="geglu").make_feed_forward(), GatedFeedForward)
    assert isinstance(SMALL.make_norm(), LayerNorm)
    norm = replace(SMALL, norm="rms_norm", norm_eps=0.25).make_norm()
    assert isinstance(norm, RMSNorm)
    assert norm.eps == 0.25
    assert replace(SMALL, bias=False).make_norm().bias is None
    wide = replace(SMALL, d_k=7, n_kv_heads=1, path="reference").make_attention()
    assert wide.project_query.out_features == 21
    assert wide.project_key.out_features == 7
    assert wide.path == "reference"
    with pytest.raises(FrozenInstanceError):
        SMALL.d_model = 3
    with pytest.raises(ValueError, match=r"'layer_norm', 'rms_norm'.*got 'batch_norm'"):
        EncoderLayer(replace(SMALL, norm="batch_norm"))
    with pytest.raises(ValueError, match="got 'silu'"):
        EncoderLayer(replace(SMALL, feed_forward="silu"))


def test_dropout_in_training_only() -> None:
    torch.manual_seed(0)
    x = normal(2, 5, 12, dtype=torch.float32)
    for layer, inputs in (
        (EncoderLayer(replace(SMALL, dropout_p=0.5)), (x,)),
        (DecoderLayer(replace(SMALL, dropout_p=0.5)), (x, x)),
    ):
        assert not torch.equal(layer(*inputs), layer(*inputs))
        layer.eval()
        assert torch.equal(layer(*inputs), layer(*inputs))


def test_decoder_sees_no_later_token_and_all_of_the_memory() -> None:
    layer = DecoderLayer(SMALL).double()
    x, memory = normal(1, 4, 12), normal(1, 5, 12, seed=1)
    before = layer(x, memory)
    for t in range(4):
        changed = x.clone()
        changed[:, t] += 1
        after = layer(changed, memory)
        assert torch.equal(before[:, :t], after[:, :t])
        assert (before[:, t:] != after[:, t:]).any(dim=-1).all()
    memory[:, -1] += 1
    assert (layer(x, memory) != before).any(dim=-1).all()


# --- masks and precisions -------------------------------------------------------------------------


def every_mask() -> dict[str, torch.Tensor | None]:
    """Masks for (2, 6, 5, 5), with queries that may attend to nothing."""
    real = padding_mask(torch.tensor([5, 0]), 5)[:, None, None, :]
    left = real.flip(-1)
    return {
        "none": None,
        "causal": causal_mask(5),
        "window": window_mask(5, window=2),
        "block": block_mask(torch.tensor([0, 0, 1, 1, 2])),
        "padding": real,
        "left padding and causal": combine(left, causal_mask(5)),
        "nothing": torch.zeros(5, 5, dtype=torch.bool),
    }


@pytest.mark.parametrize("kind", every_mask())
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("path", ["reference", "fused"])
@pytest.mark.parametrize("position", ["none", "rotary", "alibi"])
def test_half_precision_gives_no_nan(
    kind: str, dtype: torch.dtype, path: str, position: str
) -> None:
    torch.manual_seed(0)
    exact = EncoderLayer(replace(LLAMA, path=path)).eval()
    x, positions = normal(2, 5, 12, dtype=torch.float32), torch.arange(5)
    options: dict[str, object] = {"may_attend": every_mask()[kind]}
    if position == "rotary":
        options["rotation"] = RotaryEmbedding(2, layout="half_split")(positions)
    if position == "alibi":
        options["score_bias"] = ALiBi(6)(positions, positions)
    expected = exact(x, **options)
    output = exact.to(dtype)(x.to(dtype), **options)  # moved after construction
    assert output.dtype == dtype
    assert output.isfinite().all()
    torch.testing.assert_close(output.float(), expected, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_decoder_in_half_precision_gives_no_nan(dtype: torch.dtype) -> None:
    layer = DecoderLayer(SMALL).to(dtype)
    x, memory = normal(2, 4, 12, dtype=dtype), normal(2, 5, 12, dtype=dtype)
    nothing = padding_mask(torch.tensor([5, 0]), 5)
    assert layer(x, memory, memory_padding_mask=nothing).isfinite().all()


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_every_part_moves(device: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    layer = EncoderLayer(LLAMA).to(device)
    x, positions = normal(2, 5, 12, dtype=torch.float32).to(device), torch.arange(5, device=device)
    output = layer(
        x,
        causal=True,
        rotation=RotaryEmbedding(2, layout="half_split")(positions),
        score_bias=ALiBi(6).to(device)(positions, positions),
        key_padding_mask=padding_mask(torch.tensor([5, 2], device=device), 5),
    )
    assert output.device.type == device
