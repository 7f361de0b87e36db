"""Rotary positions: rotations by hand, the two layouts, and what the scores depend on."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from parity import normal

from flower_transformer.rotary import (
    LinearScaling,
    Llama3Scaling,
    NTKScaling,
    RotaryEmbedding,
    half_split_to_interleaved,
    interleaved_to_half_split,
    rotary_encoding,
    rotary_frequencies,
    rotate,
)

LAYOUTS = ("interleaved", "half_split")


# --- by hand --------------------------------------------------------------------------------------


def test_frequencies_by_hand() -> None:
    assert rotary_frequencies(4).tolist() == pytest.approx([1, 0.01])
    assert rotary_frequencies(6, base=1000).tolist() == pytest.approx([1, 0.1, 0.01])
    assert rotary_frequencies(2, base=7).tolist() == [1]


def test_a_quarter_turn_by_hand() -> None:
    x, cos, sin = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([0.0, 1.0]), torch.ones(2)
    sin[1] = 0  # the first pair turns by 90 degrees, the second not at all
    assert rotate(x, cos, sin, layout="interleaved").tolist() == [-2, 1, 3, 4]
    assert rotate(x, cos, sin, layout="half_split").tolist() == [-3, 2, 1, 4]


def test_complex_numbers_turn_the_same() -> None:
    x, positions = normal(2, 5, 6), torch.arange(5)
    angles = positions[:, None] * rotary_frequencies(6, dtype=torch.float64)
    turned = torch.view_as_complex(x.unflatten(-1, (3, 2))) * torch.polar(
        torch.ones_like(angles), angles
    )
    expected = torch.view_as_real(turned).flatten(-2)
    torch.testing.assert_close(rotary_encoding(x, positions), expected)


# --- layouts --------------------------------------------------------------------------------------


def test_permutation_by_hand() -> None:
    x = torch.arange(6)
    assert interleaved_to_half_split(x).tolist() == [0, 2, 4, 1, 3, 5]
    assert half_split_to_interleaved(torch.tensor([0, 2, 4, 1, 3, 5])).tolist() == x.tolist()


@given(half=st.integers(1, 5), seed=st.integers(0, 2**31), position=st.integers(0, 1000))
def test_layouts_agree_under_the_permutation(half: int, seed: int, position: int) -> None:
    x, positions = normal(3, 2 * half, seed=seed), position + torch.arange(3)
    interleaved = rotary_encoding(x, positions, layout="interleaved")
    half_split = rotary_encoding(interleaved_to_half_split(x), positions, layout="half_split")
    torch.testing.assert_close(half_split_to_interleaved(half_split), interleaved)


# --- properties -----------------------------------------------------------------------------------


@given(
    layout=st.sampled_from(LAYOUTS),
    m=st.integers(0, 300),
    n=st.integers(0, 300),
    shift=st.integers(0, 300),
    seed=st.integers(0, 2**31),
)
def test_scores_depend_on_the_distance_only(
    layout: str, m: int, n: int, shift: int, seed: int
) -> None:
    query, key = normal(1, 8, seed=seed), normal(1, 8, seed=seed + 1)

    def score(i: int, j: int) -> torch.Tensor:
        q = rotary_encoding(query, torch.tensor([i]), layout=layout)
        return (q * rotary_encoding(key, torch.tensor([j]), layout=layout)).sum()

    torch.testing.assert_close(score(m, n), score(m + shift, n + shift))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_lengths_are_kept_and_position_0_changes_nothing(layout: str) -> None:
    x = normal(4, 5, 8)
    turned = rotary_encoding(x, torch.arange(5), layout=layout)
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    assert torch.equal(turned[:, 0], x[:, 0])


# --- scaling --------------------------------------------------------------------------------------


def test_linear_scaling_divides_the_positions() -> None:
    x, positions = normal(5, 8), torch.arange(5)
    scaled = rotary_encoding(x, 4 * positions, scaling=LinearScaling(4.0))
    torch.testing.assert_close(scaled, rotary_encoding(x, positions))


def test_ntk_scaling_slows_the_slowest_pair_only() -> None:
    plain, scaled = rotary_frequencies(8), rotary_frequencies(8, scaling=NTKScaling(4.0))
    assert scaled[0] == plain[0]
    torch.testing.assert_close(scaled[-1], plain[-1] / 4)
    # base 10000 * 4^(8/6) = 63496.04
    torch.testing.assert_close(scaled, rotary_frequencies(8, base=63496.042))
    assert rotary_frequencies(2, scaling=NTKScaling(4.0)).tolist() == [1]


def test_llama_3_scaling_by_hand() -> None:
    """Within 8192 tokens, fewer than 1 turn is slow, more than 4 are fast."""
    scaling = Llama3Scaling()
    plain = rotary_frequencies(128, base=500000.0, dtype=torch.float64)
    scaled = rotary_frequencies(128, base=500000.0, scaling=scaling, dtype=torch.float64)
    turns = 8192 * plain / (2 * math.pi)
    assert torch.equal(scaled[turns > 4], plain[turns > 4])
    assert torch.equal(scaled[turns < 1], plain[turns < 1] / 8)
    between = (turns >= 1) & (turns <= 4)
    assert int(between.sum()) == 6  # pairs slow down by 500000^(1/64): 64 ln 4 / ln 500000 = 6.8
    assert (scaled[between] < plain[between]).all()
    assert (scaled[between] > plain[between] / 8).all()
    # one pair, which turns 5 / 2 pi = 0.796 times in 5 tokens: that much of it is kept
    blended = Llama3Scaling(original_length=5, low_frequency_factor=0, high_frequency_factor=1)
    kept = 5 / (2 * math.pi)
    frequency = rotary_frequencies(2, scaling=blended).item()
    assert frequency == pytest.approx(kept + (1 - kept) / 8)


# --- the module -----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("scaling", [None, LinearScaling(2.0), NTKScaling(2.0), Llama3Scaling()])
def test_module_equals_function(layout: str, scaling: object) -> None:
    x = normal(2, 3, 5, 8).float()  # (B, H, T, d)
    module = RotaryEmbedding(8, layout=layout, base=500.0, scaling=scaling)
    options = {"layout": layout, "base": 500.0, "scaling": scaling}
    for positions in (torch.arange(3, 8), torch.tensor([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]])):
        turned = module(positions).apply(x)
        for b in range(2):
            own = positions if positions.dim() == 1 else positions[b]
            torch.testing.assert_close(turned[b], rotary_encoding(x[b], own, **options))


def test_module_has_nothing_to_move_or_save() -> None:
    module = RotaryEmbedding(8, layout="half_split")
    before = module(torch.arange(300))
    assert not list(module.parameters())
    assert not list(module.buffers())
    after = module.half()(torch.arange(300))
    assert torch.equal(before.cos, after.cos)
    assert after.cos.dtype == torch.float32


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_dtype_of_the_input_is_kept(dtype: torch.dtype) -> None:
    x = normal(1, 1, 400, 8).to(dtype)
    exact = rotary_encoding(x.double(), torch.arange(400), layout="half_split")
    for turned in (
        rotary_encoding(x, torch.arange(400), layout="half_split"),
        RotaryEmbedding(8, layout="half_split")(torch.arange(400)).apply(x),
    ):
        assert turned.dtype == dtype
        torch.testing.assert_close(turned.double(), exact, rtol=0.02, atol=0.02)


def test_errors_name_both_values() -> None:
    with pytest.raises(ValueError, match="even head width, got d_k 5"):
        rotary_frequencies(5)
    with pytest.raises(ValueError, match="even head width, got d_k 0"):
        RotaryEmbedding(0, layout="half_split")
    with pytest.raises(ValueError, match=r"float32 or float64, got torch\.bfloat16"):
        rotary_frequencies(4, dtype=torch.bfloat16)
    with pytest.raises(ValueError, match="x has width 6, the angles turn 2 pairs"):
        rotate(torch.zeros(3, 6), torch.zeros(3, 2), torch.zeros(3, 2), layout="interleaved")
    with pytest.raises(ValueError, match=r"'interleaved', 'half_split'.*got 'halves'"):
        rotary_encoding(torch.zeros(3, 4), torch.arange(3), layout="halves")
    with pytest.raises(ValueError, match="got 'neox'"):
        RotaryEmbedding(4, layout="neox")
