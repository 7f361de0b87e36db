"""Known ways to get positions, norms and layers wrong, each reported against a public project.

The number in a test's name is its row in the project's list of pitfalls.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from parity import GrowingCache, copy_layer, draw, normal, torch_layer
from torch import nn

from flower_transformer.blocks import DecoderLayer, EncoderLayer, LayerConfig
from flower_transformer.embedding import TokenEmbedding
from flower_transformer.feedforward import FeedForward, gelu, gelu_tanh
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
from flower_transformer.stacks import Decoder, Encoder

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
CONFIG = LayerConfig(d_model=8, n_heads=2, d_ff=12)


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
