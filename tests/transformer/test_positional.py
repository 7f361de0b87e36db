"""Positions and their vectors."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from flower_transformer.positional import (
    LearnedPositions,
    SinusoidalPositions,
    consecutive_positions,
    positions_from_mask,
    sinusoidal_encoding,
)


def test_positions_by_hand() -> None:
    assert consecutive_positions(3).tolist() == [0, 1, 2]
    assert consecutive_positions(2, start=5).tolist() == [5, 6]
    real = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 0, 0]]).bool()
    assert positions_from_mask(real).tolist() == [[0, 0, 0, 1, 2], [0, 1, 2, 2, 2]]


def test_sinusoid_by_hand() -> None:
    encoding = sinusoidal_encoding(torch.arange(2), 4)
    assert encoding[0].tolist() == [0, 1, 0, 1]
    expected = [math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)]
    torch.testing.assert_close(encoding[1], torch.tensor(expected))


@given(
    position=st.integers(0, 10000),
    d_model=st.integers(1, 9),
    base=st.sampled_from([10.0, 10000.0, 500000.0]),
)
def test_sinusoid_entry_by_entry(position: int, d_model: int, base: float) -> None:
    encoding = sinusoidal_encoding(
        torch.tensor([position]), d_model, base=base, dtype=torch.float64
    )
    assert encoding.shape == (1, d_model)
    for channel in range(d_model):
        function = math.sin if channel % 2 == 0 else math.cos
        expected = function(position / base ** ((channel - channel % 2) / d_model))
        assert encoding[0, channel].item() == pytest.approx(expected, abs=1e-9)


@given(k=st.integers(0, 100))
def test_a_shift_is_one_linear_map(k: int) -> None:
    """PE(pos + k) = M PE(pos), M the rotation of each pair: the same M for all positions."""
    positions = torch.arange(6)
    here = sinusoidal_encoding(positions, 6, dtype=torch.float64)
    there = sinusoidal_encoding(positions + k, 6, dtype=torch.float64)
    shift = torch.zeros(6, 6, dtype=torch.float64)
    for i in range(3):
        angle = k / 10000 ** (2 * i / 6)
        shift[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = torch.tensor(
            [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
        )
    torch.testing.assert_close(there, here @ shift.T)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_sinusoid_is_rounded_once(dtype: torch.dtype) -> None:
    positions = torch.tensor([[257, 4097], [0, 1]])
    exact = sinusoidal_encoding(positions, 5, dtype=torch.float64)
    module = SinusoidalPositions(5).to(dtype)
    for encoding in (sinusoidal_encoding(positions, 5, dtype=dtype), module(positions, dtype)):
        assert encoding.shape == (2, 2, 5)
        assert torch.equal(encoding, exact.to(dtype))
    assert not module.state_dict()


def test_learned_positions_look_up() -> None:
    module = LearnedPositions(4, 3).double()
    positions = torch.tensor([[0, 0, 1], [1, 2, 3]])
    assert torch.equal(module(positions)[1], module.weight[1:])
    assert module(positions).dtype == torch.float64
    assert module(positions[:, :0]).shape == (2, 0, 3)
    module(positions).sum().backward()
    assert module.weight.grad[:, 0].tolist() == [2, 2, 1, 1]


def test_errors_name_both_values() -> None:
    with pytest.raises(ValueError, match=r"from 3 to 4, the table holds 0\.\.3"):
        LearnedPositions(4, 3)(torch.tensor([3, 4]))
    with pytest.raises(ValueError, match=r"from -1 to 2"):
        LearnedPositions(4, 3)(torch.tensor([-1, 2]))
    with pytest.raises(ValueError, match="n_positions 0, d_model 3"):
        LearnedPositions(0, 3)
    with pytest.raises(ValueError, match="d_model must be positive, got 0"):
        SinusoidalPositions(0)
    with pytest.raises(ValueError, match="d_model must be positive, got 0"):
        sinusoidal_encoding(torch.arange(2), 0)
    with pytest.raises(ValueError, match="n 3, start -1"):
        consecutive_positions(3, start=-1)
    with pytest.raises(ValueError, match="real must be boolean"):
        positions_from_mask(torch.ones(2))
