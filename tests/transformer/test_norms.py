"""Norms: by hand, over the right axis, and equal to torch's."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from parity import normal
from torch import nn

from flower_transformer.norms import (
    LayerNorm,
    RMSNorm,
    SequenceBatchNorm,
    batch_norm,
    layer_norm,
    rms_norm,
)

HALF = (torch.float16, torch.bfloat16)


# --- LayerNorm and RMSNorm ------------------------------------------------------------------------


def test_layer_norm_by_hand() -> None:
    # mean 2, biased variance 1
    x = torch.tensor([[1.0, 3.0], [5.0, 5.0]])
    assert layer_norm(x, eps=0.0)[0].tolist() == [-1, 1]
    assert layer_norm(x)[1].tolist() == [0, 0]
    # eps inside the root: 1 / sqrt(1 + 3) = 1/2
    shifted = layer_norm(x, torch.tensor([2.0, 4.0]), torch.tensor([1.0, 0.0]), eps=3.0)
    assert shifted[0].tolist() == [0, 2]


def test_rms_norm_by_hand() -> None:
    # mean square (9 + 16) / 2 = 12.5; with eps 12.5 the root is 5
    x = torch.tensor([3.0, 4.0])
    torch.testing.assert_close(rms_norm(x, eps=0.0), x / math.sqrt(12.5))
    torch.testing.assert_close(rms_norm(x, eps=12.5), torch.tensor([0.6, 0.8]))
    weighed = rms_norm(x, torch.tensor([10.0, 0.0]), eps=12.5)
    torch.testing.assert_close(weighed, torch.tensor([6.0, 0.0]))


@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    eps=st.sampled_from([1e-6, 1e-5, 0.1]),
    seed=st.integers(0, 2**31),
)
def test_parity_with_torch(shape: list[int], eps: float, seed: int) -> None:
    x = normal(*shape, seed=seed).requires_grad_()
    weight, bias = normal(shape[-1], seed=1), normal(shape[-1], seed=2)
    pairs = [
        (layer_norm(x, weight, bias, eps=eps), F.layer_norm(x, shape[-1:], weight, bias, eps)),
        (layer_norm(x, eps=eps), F.layer_norm(x, shape[-1:], eps=eps)),
        (rms_norm(x, weight, eps=eps), F.rms_norm(x, shape[-1:], weight, eps)),
        (rms_norm(x, eps=eps), F.rms_norm(x, shape[-1:], eps=eps)),
    ]
    for ours, theirs in pairs:
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(
            torch.autograd.grad(ours.square().sum(), x)[0],
            torch.autograd.grad(theirs.square().sum(), x)[0],
            rtol=1e-8,
            atol=1e-8,
        )


@pytest.mark.parametrize("bias", [True, False])
def test_modules_equal_functions_and_torch(bias: bool) -> None:
    x = normal(2, 3, 6)
    ours = LayerNorm(6, eps=0.1, bias=bias).double()
    theirs = nn.LayerNorm(6, eps=0.1, bias=bias, dtype=torch.float64)
    rms, torch_rms = RMSNorm(6, eps=0.1).double(), nn.RMSNorm(6, eps=0.1, dtype=torch.float64)
    with torch.no_grad():
        for parameter in (*ours.parameters(), *rms.parameters()):
            parameter.copy_(normal(6, seed=3))
    theirs.load_state_dict(ours.state_dict())  # the same names
    torch_rms.load_state_dict(rms.state_dict())
    torch.testing.assert_close(ours(x), layer_norm(x, ours.weight, ours.bias, eps=0.1))
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(rms(x), rms_norm(x, rms.weight, eps=0.1))
    torch.testing.assert_close(rms(x), torch_rms(x), rtol=1e-10, atol=1e-10)


@given(seed=st.integers(0, 2**31), factor=st.floats(0.1, 100), shift=st.floats(-10, 10))
def test_invariances(seed: int, factor: float, shift: float) -> None:
    x = normal(3, 6, seed=seed)
    torch.testing.assert_close(layer_norm(factor * x + shift, eps=0.0), layer_norm(x, eps=0.0))
    torch.testing.assert_close(rms_norm(factor * x, eps=0.0), rms_norm(x, eps=0.0))
    normalised = layer_norm(x, eps=0.0)
    torch.testing.assert_close(normalised.mean(dim=-1), torch.zeros(3).double())
    torch.testing.assert_close(normalised.var(dim=-1, correction=0), torch.ones(3).double())
    torch.testing.assert_close(rms_norm(x, eps=0.0).square().mean(dim=-1), torch.ones(3).double())
    # without a mean the two are one
    centred = x - x.mean(dim=-1, keepdim=True)
    torch.testing.assert_close(rms_norm(centred, eps=0.1), layer_norm(x, eps=0.1))


@pytest.mark.parametrize("dtype", HALF)
def test_half_precision_is_normalised_in_float32(dtype: torch.dtype) -> None:
    x = 300 * normal(4, 64).to(dtype)  # squares beyond float16
    exact = x.double()
    weight, bias = torch.ones(64, dtype=dtype), torch.zeros(64, dtype=dtype)
    for ours, expected in (
        (layer_norm(x, weight, bias), layer_norm(exact)),
        (LayerNorm(64).to(dtype)(x), layer_norm(exact)),
        (rms_norm(x, weight), rms_norm(exact)),
        (RMSNorm(64).to(dtype)(x), rms_norm(exact)),
        (batch_norm(x, weight, bias), batch_norm(exact)),
        (SequenceBatchNorm(64).to(dtype)(x), batch_norm(exact)),
    ):
        assert ours.dtype == dtype
        torch.testing.assert_close(ours.double(), expected, rtol=0.01, atol=0.01)


# --- BatchNorm over sequences ---------------------------------------------------------------------


def test_batch_norm_by_hand() -> None:
    # the feature has the values 1, 3 and padding 100: mean 2, biased variance 1
    x = torch.tensor([[[1.0], [3.0]], [[100.0], [3.0]], [[1.0], [100.0]]])
    real = torch.tensor([[1, 1], [0, 1], [1, 0]]).bool()
    normalised = batch_norm(x, real=real, eps=0.0)
    assert normalised[real].flatten().tolist() == [-1, 1, 1, -1]
    assert batch_norm(x, real=real, eps=3.0)[0].flatten().tolist() == [-0.5, 0.5]
    nothing = batch_norm(x, real=torch.zeros(3, 2, dtype=torch.bool))
    assert nothing.isfinite().all()


@given(batch=st.integers(1, 4), length=st.integers(1, 4), seed=st.integers(0, 2**31))
def test_padding_has_no_part_in_the_statistics(batch: int, length: int, seed: int) -> None:
    x = normal(batch, length, 3, seed=seed)
    padded = torch.cat((x, torch.full((batch, 2, 3), math.nan).double()), dim=1)
    real = torch.arange(length + 2).expand(batch, -1) < length
    torch.testing.assert_close(batch_norm(padded, real=real)[:, :length], batch_norm(x))


def test_batch_norm_parity_with_torch() -> None:
    ours = SequenceBatchNorm(3, eps=0.1, momentum=0.3).double()
    theirs = nn.BatchNorm1d(3, eps=0.1, momentum=0.3, dtype=torch.float64)
    with torch.no_grad():
        for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            mine.copy_(normal(3, seed=4))
            other.copy_(mine)
    real = torch.arange(5) < torch.tensor([5, 2])[:, None]
    for step in range(3):
        x = normal(2, 5, 3, seed=step)
        torch.testing.assert_close(ours(x, real)[real], theirs(x[real]), rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(ours.running_mean, theirs.running_mean)
        torch.testing.assert_close(ours.running_variance, theirs.running_var)
    ours.eval()
    theirs.eval()
    torch.testing.assert_close(ours(x, real)[real], theirs(x[real]), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(ours(x)[real], theirs(x[real]), rtol=1e-10, atol=1e-10)
    ours.train()
    theirs.train()
    torch.testing.assert_close(ours(x).flatten(0, 1), theirs(x.flatten(0, 1)))


def test_running_statistics_move_and_are_saved() -> None:
    module = SequenceBatchNorm(3)
    module(normal(2, 5, 3).float())
    assert set(module.state_dict()) == {"weight", "bias", "running_mean", "running_variance"}
    assert module.half().running_mean.dtype == torch.float16
    module(normal(2, 5, 3).half())
    assert module.running_mean.dtype == torch.float16


# --- errors ---------------------------------------------------------------------------------------


def test_errors_name_both_values() -> None:
    x = torch.zeros(2, 3)
    for norm in (layer_norm, rms_norm, batch_norm):
        with pytest.raises(ValueError, match=r"weight has shape \(4,\), x has \(2, 3\)"):
            norm(x, torch.ones(4))
    with pytest.raises(ValueError, match=r"bias has shape \(1,\), x has \(2, 3\)"):
        layer_norm(x, torch.ones(3), torch.ones(1))
    with pytest.raises(ValueError, match=r"weight has shape \(4,\), x has \(2, 3\)"):
        LayerNorm(4)(x)
    with pytest.raises(ValueError, match="real must be boolean"):
        batch_norm(x, real=torch.ones(2))
    with pytest.raises(ValueError, match=r"real has shape \(3,\), x has \(2, 3\)"):
        batch_norm(x, real=torch.ones(3, dtype=torch.bool))
    for module in (LayerNorm, RMSNorm, SequenceBatchNorm):
        with pytest.raises(ValueError, match="d_model must be positive, got 0"):
            module(0)
