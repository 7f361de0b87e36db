"""Known ways to get a Transformer wrong, each reported against a public project.

The number in a test's name is its row in the project's list of pitfalls.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from parity import GrowingCache, copy_layer, draw, torch_layer
from torch import nn

from flower_transformer.attention import MultiHeadAttention, scaled_dot_product_attention
from flower_transformer.blocks import DecoderLayer, EncoderLayer, LayerConfig
from flower_transformer.embedding import TokenEmbedding
from flower_transformer.feedforward import FeedForward, gelu, gelu_tanh
from flower_transformer.grouped_query import grouped_query_attention
from flower_transformer.masks import additive_mask, causal_mask, combine, window_mask
from flower_transformer.norms import LayerNorm, RMSNorm, layer_norm, rms_norm
from flower_transformer.positional import (
    LearnedPositions,
    positions_from_mask,
    sinusoidal_encoding,
)
from flower_transformer.relative_bias import ALiBi, RelativePositionBias, alibi_slopes
from flower_transformer.rotary import (
    RotaryEmbedding,
    interleaved_to_half_split,
    rotary_encoding,
)
from flower_transformer.scaled_dot_product import attention_weights, masked_attention
from flower_transformer.stacks import Decoder, Encoder

PATHS = ("reference", "fused")
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
CONFIG = LayerConfig(d_model=8, n_heads=2, d_ff=12)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("return_weights", [False, True])
@pytest.mark.parametrize("path", PATHS)
def test_pitfall_01_row_with_every_key_masked_is_zero(path: str, return_weights: bool) -> None:
    """pytorch #103749, #41508: NaN forward and in the gradient."""
    inputs = [normal(2, 3, seed=seed).requires_grad_() for seed in range(3)]
    may_attend = torch.tensor([[True, False], [False, False]])
    result = scaled_dot_product_attention(
        *inputs, may_attend=may_attend, path=path, return_weights=return_weights
    )
    if return_weights:
        output, weights = result
        assert weights.tolist() == [[1, 0], [0, 0]]
        loss = output.square().sum() + weights.square().sum()
    else:
        output = result
        loss = output.square().sum()
    assert output[1].tolist() == [0, 0, 0]
    torch.testing.assert_close(output[0], inputs[2][0])
    with torch.autograd.set_detect_anomaly(True):  # no NaN on the way either
        query, key, value = torch.autograd.grad(loss, inputs)
    for gradient in (query, key, value):
        assert gradient.isfinite().all()
    assert query[1].tolist() == [0, 0, 0]
    assert value[1].tolist() == [0, 0, 0]


def test_pitfall_01_kernels_never_see_such_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """They differ in what they make of it, by device and precision; so none is given one."""
    seen: list[torch.Tensor] = []

    def kernel(query: torch.Tensor, *rest: torch.Tensor, **options: float) -> torch.Tensor:
        seen.append(rest[2])
        return torch.full_like(query, math.inf)  # whatever it makes of the row is not used

    monkeypatch.setattr(F, "scaled_dot_product_attention", kernel)
    may_attend = torch.tensor([[True, False], [False, False]])
    x = normal(2, 3)
    output = scaled_dot_product_attention(x, x, x, may_attend=may_attend, path="fused")
    assert seen[0].any(dim=-1).all()
    assert seen[0][0].tolist() == [True, False]
    assert output[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("path", PATHS)
def test_pitfall_02_asking_for_weights_changes_nothing(path: str) -> None:
    """pytorch #160064."""
    module = MultiHeadAttention(8, 2, path=path).double()
    x = normal(2, 4, 8)
    real = torch.tensor([[True] * 4, [False] * 4])  # the second sequence is all padding
    plain = module(x, key_padding_mask=real)
    with_weights, weights = module(x, key_padding_mask=real, return_weights=True)
    assert torch.equal(plain, with_weights)
    assert (plain[1] == 0).all()
    assert (weights[1] == 0).all()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_pitfall_03_masking_works_in_every_precision(path: str, dtype: torch.dtype) -> None:
    """fairseq #3575, apex #1105: -1e9 overflows float16."""
    query, key, value = (normal(3, 4, seed=seed).to(dtype) for seed in range(3))
    may_attend = torch.tensor([[True, False, False], [True, True, False], [False] * 3])
    output = scaled_dot_product_attention(query, key, value, may_attend=may_attend, path=path)
    assert output.dtype == dtype
    assert output.isfinite().all()
    torch.testing.assert_close(output[0], value[0])  # only the first key is seen
    assert (output[2] == 0).all()
    additive = masked_attention(query, key, value, additive_mask(may_attend, dtype))
    assert torch.equal(additive[2], output[2])
    torch.testing.assert_close(additive, output, rtol=0.02, atol=0.02)


def test_pitfall_04_masks_are_combined_as_booleans() -> None:
    """Two additive masks of finfo.min add up to -inf, and the row to NaN."""
    lowest = torch.full((1, 2), torch.finfo(torch.float32).min)
    assert (lowest + lowest).softmax(dim=-1).isnan().all()  # the fault itself
    blocked = torch.zeros(1, 2, dtype=torch.bool)
    weights = attention_weights(
        torch.ones(1, 3), torch.ones(2, 3), may_attend=combine(blocked, blocked)
    )
    assert weights.tolist() == [[0, 0]]


@pytest.mark.parametrize("path", PATHS)
def test_pitfall_05_true_means_may_attend_everywhere(path: str) -> None:
    """rasbt/LLMs-from-scratch PR #1062, pytorch PR #170415: mask polarity mixed up."""
    module = MultiHeadAttention(8, 2, path=path).double()
    x = normal(1, 6, 8)
    for t in range(6):
        changed = x.clone()
        changed[:, t] += 1
        for options in ({"causal": True}, {"may_attend": causal_mask(6)}):
            before, after = module(x, **options), module(changed, **options)
            assert torch.equal(before[:, :t], after[:, :t])
            assert (before[:, t:] != after[:, t:]).any(dim=-1).all()
    # the three ways to hide the last token are one
    real = torch.tensor([[True] * 5 + [False]])
    hidden = module(x[:, :3], x[:, :5])
    torch.testing.assert_close(module(x[:, :3], x, key_padding_mask=real), hidden)
    torch.testing.assert_close(module(x[:, :3], x, may_attend=real), hidden)


def test_pitfall_06_boolean_mask_is_not_added() -> None:
    """litgpt #1672: weights [.5761, .2119, .2119] instead of [1, 0, 0]."""
    may_attend = torch.tensor([[True, False, False]])
    weights = attention_weights(torch.zeros(1, 2), torch.zeros(3, 2), may_attend=may_attend)
    assert weights.tolist() == [[1, 0, 0]]
    with pytest.raises(ValueError, match=r"must be boolean .* got torch.float32"):
        attention_weights(torch.zeros(1, 2), torch.zeros(3, 2), may_attend=may_attend.float())
    with pytest.raises(ValueError, match=r"must be floating, got torch\.bool"):
        masked_attention(torch.zeros(1, 2), torch.zeros(3, 2), torch.zeros(3, 2), may_attend)


@pytest.mark.parametrize("path", PATHS)
def test_pitfall_07_causal_mask_is_aligned_with_the_last_key(path: str) -> None:
    """pytorch #108108, flash-attention #517."""
    rows = scaled_dot_product_attention(
        torch.zeros(2, 3), torch.zeros(5, 3), torch.eye(5), may_attend=causal_mask(2, 5), path=path
    )
    torch.testing.assert_close(rows, torch.tensor([[0.25] * 4 + [0.0], [0.2] * 5]))


@pytest.mark.parametrize("return_weights", [False, True])
@pytest.mark.parametrize("path", PATHS)
def test_pitfall_08_nan_in_padding_does_not_spread(path: str, return_weights: bool) -> None:
    """pytorch #101967."""
    query, key, value = (normal(3, 4, seed=seed) for seed in range(3))
    expected = scaled_dot_product_attention(query, key[:2], value[:2])
    key[2], value[2] = math.nan, math.nan
    inputs = [tensor.requires_grad_() for tensor in (query, key, value)]
    real = torch.tensor([True, True, False])
    result = scaled_dot_product_attention(
        *inputs, may_attend=real, path=path, return_weights=return_weights
    )
    output = result[0] if return_weights else result
    torch.testing.assert_close(output, expected)
    loss = output.sum() + (result[1].sum() if return_weights else 0)
    for gradient in torch.autograd.grad(loss, inputs):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("path", PATHS)
def test_pitfall_08_limit_a_key_that_some_query_sees_must_be_finite(path: str) -> None:
    """The documented limit: 0 * NaN = NaN where one query may attend and another may not."""
    value = torch.tensor([[1.0], [math.nan]])
    output = scaled_dot_product_attention(
        torch.zeros(2, 2), torch.zeros(2, 2), value, may_attend=causal_mask(2), path=path
    )
    assert output.isnan().all()


@pytest.mark.parametrize("path", PATHS)
def test_pitfall_09_no_dropout_in_evaluation(path: str) -> None:
    """pytorch #124464, timm PR #1978, torchtune #1791."""
    module = MultiHeadAttention(4, 1, dropout_p=0.5, path=path)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.eye(4))
    ones = torch.ones(1, 4, 4)
    module.eval()
    for _ in range(5):
        assert module(ones).tolist() == ones.tolist()
    module.train()
    torch.manual_seed(0)
    assert not torch.equal(module(ones), ones)


def test_pitfall_10_odd_width_of_the_sinusoid() -> None:
    """BERT-pytorch #78."""
    encoding = sinusoidal_encoding(torch.tensor([1]), 5)
    assert encoding[0].tolist() == pytest.approx(
        [0.84147, 0.54030, 0.02512, 0.99968, 0.00063], abs=5e-6
    )


def test_pitfall_11_rope_layouts_are_named() -> None:
    """transformers #25199, flash-attention #288, and case O-13."""
    x, one = torch.tensor([[1.0, 2.0, 3.0, 4.0]]), torch.tensor([1])
    interleaved = rotary_encoding(x, one, layout="interleaved")
    half_split = rotary_encoding(x, one, layout="half_split")
    assert interleaved[0].tolist() == pytest.approx([-1.1426, 1.9221, 2.9599, 4.0298], abs=5e-5)
    assert half_split[0].tolist() == pytest.approx([-1.9841, 1.9599, 2.4624, 4.0198], abs=5e-5)
    permuted = rotary_encoding(interleaved_to_half_split(x), one, layout="half_split")
    torch.testing.assert_close(permuted, interleaved_to_half_split(interleaved))

    query, key = normal(1, 4), normal(1, 4, seed=1)

    def score(layout: str, m: int, n: int) -> float:
        turned = rotary_encoding(query, torch.tensor([m]), layout=layout)
        return (turned * rotary_encoding(key, torch.tensor([n]), layout=layout)).sum().item()

    for layout in ("interleaved", "half_split"):
        assert score(layout, 5, 2) == pytest.approx(score(layout, 8, 5))
        assert score(layout, 5, 2) != pytest.approx(score(layout, 5, 3))
    assert score("interleaved", 5, 2) != pytest.approx(score("half_split", 5, 2))


@pytest.mark.parametrize("dtype", DTYPES)
def test_pitfall_12_rope_angles_in_float32(dtype: torch.dtype) -> None:
    """transformers PR #29285: bfloat16 rounds position 257 to 256."""
    module = RotaryEmbedding(2, layout="half_split").to(dtype)
    cos = module(torch.tensor([257])).cos
    assert cos.item() == pytest.approx(0.8193, abs=5e-5)
    for turned in (
        module(torch.tensor([257])).apply(torch.tensor([[[1.0, 0.0]]], dtype=dtype))[0],
        rotary_encoding(torch.tensor([[1.0, 0.0]], dtype=dtype), torch.tensor([257])),
    ):
        assert turned[0, 0].item() == pytest.approx(0.8193, abs=2e-3)


def test_pitfall_13_no_table_outlives_its_base_or_offset() -> None:
    """rotary-embedding-torch #11."""
    x = torch.tensor([[0.0, 1.0, 0.0, 0.0]])  # half split: the second pair, at angle 0
    for base, expected in ((1e4, 0.0099998), (5e5, 0.0014142), (1e4, 0.0099998)):
        module = RotaryEmbedding(4, layout="half_split", base=base)
        assert module(torch.tensor([1])).sin[0, 0, 1].item() == pytest.approx(expected, abs=5e-8)
        turned = rotary_encoding(x, torch.tensor([1]), layout="half_split", base=base)
        assert turned[0, 3].item() == pytest.approx(expected, abs=5e-8)
    long = module(torch.arange(10))
    assert torch.equal(
        module(torch.arange(7, 10)).cos, long.cos[:, 7:]
    )  # one length, another offset
    assert torch.equal(module(torch.arange(3)).cos, long.cos[:, :3])


@pytest.mark.parametrize("split", [(1, 5), (3, 3), (1, 1, 1, 1, 1, 1)])
@pytest.mark.parametrize("position", ["sinusoidal", "learned", "rotary", "alibi", "t5"])
def test_pitfall_14_a_cache_keeps_offset_and_mask(split: tuple[int, ...], position: str) -> None:
    """rasbt/LLMs-from-scratch PR #697, #925: every split of 6 tokens gives the same."""
    encoder, x = Encoder(CONFIG, 2).double(), normal(2, 6, 8)
    rotary, learned = RotaryEmbedding(4, layout="half_split"), LearnedPositions(6, 8).double()
    bias = {
        "alibi": ALiBi(2).double(),
        "t5": RelativePositionBias(2, bidirectional=False, n_buckets=4, max_distance=5).double(),
    }

    def run(start: int, stop: int, caches: list[GrowingCache] | None) -> torch.Tensor:
        positions, y = torch.arange(start, stop), x[:, start:stop]
        options: dict[str, torch.Tensor] = {}
        if position == "sinusoidal":
            y = y + sinusoidal_encoding(positions, 8, dtype=torch.float64)
        elif position == "learned":
            y = y + learned(positions)
        elif position == "rotary":
            options["rotation"] = rotary(positions)
        else:
            options["score_bias"] = bias[position](positions, torch.arange(stop))
        return encoder(y, causal=True, caches=caches, **options)

    full, caches, steps, start = run(0, 6, None), [GrowingCache(), GrowingCache()], [], 0
    for length in split:
        steps.append(run(start, start + length, caches))
        start += length
    torch.testing.assert_close(torch.cat(steps, dim=1), full, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("position", ["sinusoidal", "learned", "rotary", "alibi", "t5"])
def test_pitfall_15_left_padding_does_not_shift_positions(position: str) -> None:
    """transformers #22161."""
    real = torch.tensor([[False, False, True, True, True]])
    positions = positions_from_mask(real)
    assert positions[real].tolist() == [0, 1, 2]
    encoder, x = Encoder(CONFIG, 2).double(), normal(1, 5, 8)
    rotary, learned = RotaryEmbedding(4, layout="interleaved"), LearnedPositions(5, 8).double()
    bias = {"alibi": ALiBi(2).double(), "t5": RelativePositionBias(2, bidirectional=False).double()}

    def run(y: torch.Tensor, positions: torch.Tensor, real: torch.Tensor | None) -> torch.Tensor:
        options: dict[str, torch.Tensor] = {}
        if position == "sinusoidal":
            y = y + sinusoidal_encoding(positions, 8, dtype=torch.float64)
        elif position == "learned":
            y = y + learned(positions)
        elif position == "rotary":
            options["rotation"] = rotary(positions)
        else:
            options["score_bias"] = bias[position](positions, positions)
        return encoder(y, causal=True, key_padding_mask=real, **options)

    padded, alone = run(x, positions, real), run(x[:, 2:], torch.arange(3), None)
    torch.testing.assert_close(padded[:, 2:], alone, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("path", PATHS)
def test_pitfall_16_sliding_window_counts_the_token_itself(path: str) -> None:
    """litgpt #2182, transformers #37574."""
    mask = window_mask(4, window=2)
    assert mask.int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    module, x = MultiHeadAttention(8, 2, path=path).double(), normal(1, 4, 8)
    output = module(x, may_attend=mask)  # a prompt longer than the window
    for t in range(4):
        window = x[:, max(0, t - 1) : t + 1]
        torch.testing.assert_close(output[:, t : t + 1], module(x[:, t : t + 1], window))


@pytest.mark.parametrize("path", PATHS)
def test_pitfall_17_query_heads_share_keys_in_order(path: str) -> None:
    """onnx PR #7274."""
    value = torch.tensor([[[0.0]], [[1.0]]])  # each key head says which it is
    heads = grouped_query_attention(torch.zeros(4, 1, 2), torch.zeros(2, 1, 2), value, path=path)
    assert heads.flatten().tolist() == [0, 0, 1, 1]
    query, key, value = normal(1, 4, 3, 2), normal(1, 2, 5, 2, seed=1), normal(1, 2, 5, 2, seed=2)
    torch.testing.assert_close(
        grouped_query_attention(query, key, value, path=path),
        F.scaled_dot_product_attention(query, key, value, enable_gqa=True),
    )


def test_pitfall_18_layer_norm_is_biased_with_eps_inside_the_root() -> None:
    """annotated-transformer #119, BERT-pytorch #30, and case O-12."""
    for norm in (layer_norm, LayerNorm(4)):
        x = torch.tensor([1.0, 0.0, 0.0, 0.0])
        expected = [1.7320, -0.5773, -0.5773, -0.5773]
        assert norm(x).tolist() == pytest.approx(expected, abs=1e-4)  # not 1.5, -0.5, -0.5, -0.5
        # nearly constant: eps outside the root would give 1.693
        assert norm(torch.tensor([0.001, 0.0, 0.0, 0.0]))[0].item() == pytest.approx(
            0.235, abs=5e-4
        )


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_pitfall_19_norm_order(kind: type[EncoderLayer | DecoderLayer]) -> None:
    """annotated-transformer #1, #13; pytorch #61165."""
    x, memory = normal(2, 3, 8), normal(2, 4, 8, seed=1)
    more = (memory,) if kind is DecoderLayer else ()
    for norm_order in ("pre", "post"):
        layer = kind(replace(CONFIG, norm_order=norm_order)).double()
        with torch.no_grad():
            for name, parameter in layer.named_parameters():
                if "norm" not in name:
                    parameter.zero_()
        output = layer(x, *more)
        if norm_order == "pre":
            assert torch.equal(output, x)
        else:
            torch.testing.assert_close(output, layer_norm(x), rtol=1e-4, atol=1e-4)
    for stack in (Encoder, Decoder):
        assert isinstance(stack(replace(CONFIG, norm_order="pre"), 2).final_norm, LayerNorm)


def test_pitfall_20_rms_norm() -> None:
    """lmdeploy PR #2842, vllm PR #31464: computed in float32, the weight is the factor."""
    x = torch.tensor([3.0, 4.0])
    assert rms_norm(x, eps=0.0).tolist() == pytest.approx([0.8485, 1.1314], abs=5e-5)
    assert RMSNorm(2, eps=0.0)(x).tolist() == pytest.approx([0.8485, 1.1314], abs=5e-5)
    assert rms_norm(x, torch.zeros(2)).tolist() == [0, 0]
    large = torch.tensor([300.0, 400.0], dtype=torch.float16)  # 400^2 is beyond float16
    assert rms_norm(large).tolist() == pytest.approx([0.8485, 1.1314], abs=1e-3)
    assert rms_norm(large).dtype == torch.float16


def test_pitfall_21_the_two_gelus_are_named() -> None:
    """nanoGPT #2, PR #274: GPT-2 uses the tanh form."""
    one = torch.ones(1)
    assert gelu(one).item() == pytest.approx(0.841345, abs=5e-7)
    assert gelu_tanh(one).item() == pytest.approx(0.841192, abs=5e-7)
    for activation, expected in (("gelu", 0.841345), ("gelu_tanh", 0.841192)):
        module = FeedForward(1, 1, activation=activation, bias=False)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.fill_(1.0)
        assert module(one).item() == pytest.approx(expected, abs=5e-7)


def test_pitfall_22_alibi_slopes_for_other_than_powers_of_two() -> None:
    """mlx PR #3071."""
    assert alibi_slopes(6).tolist() == [1 / 4, 1 / 16, 1 / 64, 1 / 256, 1 / 2, 1 / 8]
    assert alibi_slopes(8)[0].item() == 1 / 2


def test_pitfall_32_the_output_is_the_embedding(tmp_path: Path) -> None:
    """annotated-transformer's tie cell, espnet #3454."""

    class Tiny(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = TokenEmbedding(5, 4)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.embedding.logits(self.embedding(tokens))

    model, tokens = Tiny(), torch.tensor([0, 3])
    weight = model.embedding.weight
    assert [name for name, _ in model.named_parameters()] == ["embedding.weight"]
    assert list(model.state_dict()) == ["embedding.weight"]
    torch.save(model.state_dict(), tmp_path / "weights.pt")
    other = Tiny()
    other.load_state_dict(torch.load(tmp_path / "weights.pt", weights_only=True))
    assert torch.equal(other(tokens), model(tokens))
    assert model.double().embedding.weight is weight
    with torch.no_grad():
        weight[3] = 0  # one weight: both ends change
    assert (model.embedding(tokens)[1] == 0).all()
    assert (model(tokens)[:, 3] == 0).all()


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_pitfall_33_torchs_fast_path_is_compared_at_valid_places() -> None:
    """pytorch #97111, #86120: in eval without gradients it writes 0 at padded places."""
    ours, real = Encoder(CONFIG, 2).double().eval(), torch.tensor([[True] * 3, [True, True, False]])
    draw(ours)
    layer = torch_layer(nn.TransformerEncoderLayer, CONFIG, torch.float64)
    theirs = nn.TransformerEncoder(layer, 2).eval()
    for mine, other in zip(ours.layers, theirs.layers, strict=True):
        copy_layer(other, mine)
    x = normal(2, 3, 8)
    with torch.no_grad():
        fast = theirs(x, src_key_padding_mask=~real)
        output = ours(x, key_padding_mask=real)
    assert (fast[~real] == 0).all()  # the fault itself
    assert (output[~real] != 0).all()
    torch.testing.assert_close(output[real], fast[real], rtol=1e-10, atol=1e-10)


def test_pitfall_35_no_relative_bias_in_cross_attention() -> None:
    """transformers PR #8518."""
    layer, x, memory = DecoderLayer(CONFIG).double(), normal(1, 3, 8), normal(1, 5, 8, seed=1)
    seen: dict[str, object] = {}

    def look(name: str) -> None:
        layer.get_submodule(name).register_forward_pre_hook(
            lambda module, args, options: seen.update({name: options.get("score_bias")}),
            with_kwargs=True,
        )

    look("attention")
    look("cross_attention")
    bias = ALiBi(2).double()(torch.arange(3), torch.arange(3))
    biased = layer(x, memory, score_bias=bias)
    assert seen == {"attention": bias, "cross_attention": None}
    assert not torch.allclose(biased, layer(x, memory))
    # with self-attention silenced nothing is left of the bias
    with torch.no_grad():
        layer.attention.project_output.weight.zero_()
    assert torch.equal(layer(x, memory, score_bias=bias), layer(x, memory))


@pytest.mark.parametrize("path", PATHS)
def test_case_o_09_the_blocked_mask_must_be_negated(path: str) -> None:
    """pytorch #109072: triu(1) means "blocked" to one function and "may attend" to another."""
    query, key, eye = normal(3, 4), normal(3, 4, seed=1), torch.eye(3, dtype=torch.float64)
    blocked = torch.ones(3, 3).triu(1) == 1
    rows = scaled_dot_product_attention(query, key, eye, may_attend=~blocked, path=path)
    assert rows[0].tolist() == [1, 0, 0]
    torch.testing.assert_close(
        rows, scaled_dot_product_attention(query, key, eye, may_attend=causal_mask(3), path=path)
    )


@pytest.mark.parametrize("path", PATHS)
def test_case_o_10_an_empty_row_is_zero(path: str) -> None:
    """pytorch #24816, #26098, #103963: NaN, zeros or a uniform average, depending on the path."""
    may_attend = torch.ones(3, 3, dtype=torch.bool)
    may_attend[1] = False
    x = normal(3, 4).requires_grad_()
    output = scaled_dot_product_attention(x, x, x, may_attend=may_attend, path=path)
    assert output[1].tolist() == [0] * 4
    assert torch.autograd.grad(output.sum(), x)[0].isfinite().all()


@pytest.mark.parametrize("path", PATHS)
def test_case_o_11_one_query_sees_all_earlier_keys(path: str) -> None:
    """pytorch #108108, executorch #22426: a mask anchored at the top left sees the oldest only."""
    rows = scaled_dot_product_attention(
        torch.zeros(1, 2), torch.zeros(5, 2), torch.eye(5), may_attend=causal_mask(1, 5), path=path
    )
    torch.testing.assert_close(rows, torch.full((1, 5), 0.2))
