"""Feed-forward networks: activations and gates by hand, modules equal to their formulas."""

from __future__ import annotations

import math
import pickle

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from parity import normal

from flower_transformer.feedforward import (
    ACTIVATIONS,
    GATES,
    FeedForward,
    GatedFeedForward,
    bilinear,
    feed_forward,
    gated_feed_forward,
    geglu,
    gelu,
    gelu_tanh,
    glu,
    reglu,
    relu,
    swiglu,
    swish,
)

SEEDS = st.integers(0, 2**31)


# --- activations ----------------------------------------------------------------------------------


def test_activations_by_hand() -> None:
    x = torch.tensor([-1.0, 0.0, 2.0], dtype=torch.float64)
    assert relu(x).tolist() == [0, 0, 2]
    # Phi(1) = .8413447, Phi(2) = .9772499
    assert gelu(x).tolist() == pytest.approx([-0.1586553, 0, 1.9544997], abs=1e-7)
    assert gelu_tanh(x).tolist() == pytest.approx([-0.1588080, 0, 1.9545977], abs=1e-7)
    sigma = [1 / (1 + math.e), 0.5, 1 / (1 + math.exp(-2))]
    assert swish(x).tolist() == pytest.approx([-sigma[0], 0, 2 * sigma[2]])


@given(seed=SEEDS)
def test_activations_equal_torch(seed: int) -> None:
    x = (3 * normal(50, seed=seed)).requires_grad_()
    for ours, theirs in (
        (relu(x), F.relu(x)),
        (gelu(x), F.gelu(x)),
        (gelu_tanh(x), F.gelu(x, approximate="tanh")),
        (swish(x), F.silu(x)),
    ):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
        torch.testing.assert_close(
            torch.autograd.grad(ours.sum(), x)[0], torch.autograd.grad(theirs.sum(), x)[0]
        )


def test_the_two_gelus_differ_by_at_most_5e_4() -> None:
    x = torch.linspace(-8, 8, 100001, dtype=torch.float64)
    gap = (gelu(x) - gelu_tanh(x)).abs().max().item()
    assert gap == pytest.approx(4.73e-4, abs=1e-6)


# --- the plain network ----------------------------------------------------------------------------


def test_feed_forward_by_hand() -> None:
    w_1, b_1 = torch.tensor([[1.0, -1.0]]), torch.tensor([0.0, 1.0])
    w_2, b_2 = torch.tensor([[2.0], [3.0]]), torch.tensor([10.0])
    # x = 2: inner (2, -1) -> (2, 0), output 2 * 2 + 10; x = -1: inner (-1, 2) -> (0, 2)
    output = feed_forward(torch.tensor([[2.0], [-1.0]]), w_1, b_1, w_2, b_2)
    assert output.tolist() == [[14], [16]]


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("bias", [True, False])
def test_module_equals_formula(activation: str, bias: bool) -> None:
    module = FeedForward(4, 6, activation=activation, bias=bias).double()
    x = normal(2, 3, 4)
    formula = feed_forward(
        x,
        module.expand.weight.T,
        module.expand.bias,
        module.contract.weight.T,
        module.contract.bias,
        activation=activation,
    )
    torch.testing.assert_close(module(x), formula, rtol=1e-10, atol=1e-10)


def test_each_token_by_itself() -> None:
    module, x = FeedForward(4, 6).double(), normal(2, 3, 4)
    torch.testing.assert_close(module(x)[1, 2], module(x[1, 2]))


# --- gates ----------------------------------------------------------------------------------------


@given(seed=SEEDS)
def test_gates_are_their_formulas(seed: int) -> None:
    x, w, v = normal(3, 4, seed=seed), normal(4, 5, seed=seed + 1), normal(4, 5, seed=seed + 2)
    b, c = normal(5, seed=seed + 3), normal(5, seed=seed + 4)
    gate, value = x @ w + b, x @ v + c
    for function, expected in (
        (glu, gate.sigmoid() * value),
        (reglu, F.relu(gate) * value),
        (geglu, F.gelu(gate) * value),
        (swiglu, F.silu(gate) * value),
        (bilinear, gate * value),
    ):
        torch.testing.assert_close(function(x, w, v, b, c), expected)
    torch.testing.assert_close(glu(x, w, v), (x @ w).sigmoid() * (x @ v))
    # torch's glu gates by the second half
    torch.testing.assert_close(glu(x, w, v, b, c), F.glu(torch.cat((value, gate), dim=-1)))


def test_the_first_matrix_is_the_gate() -> None:
    # W = 0 closes ReLU's gate, V = 0 leaves nothing to let through; only sigma(0) = 1/2
    one, zero = torch.ones(1, 1), torch.zeros(1, 1)
    assert reglu(one, zero, one).item() == 0
    assert glu(one, zero, 3 * one).item() == 1.5
    assert swiglu(one, 2 * one, 3 * one).item() == pytest.approx(6 / (1 + math.exp(-2)))


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("bias", [True, False])
def test_gated_module_equals_formula(gate: str, bias: bool) -> None:
    module = GatedFeedForward(4, 6, gate=gate, bias=bias).double()
    x = normal(2, 3, 4)
    w, v, w_2 = (layer.weight.T for layer in (module.gate, module.expand, module.contract))
    if bias:
        function = {"glu": glu, "reglu": reglu, "geglu": geglu, "swiglu": swiglu}.get(
            gate, bilinear
        )
        inner = function(x, w, v, module.gate.bias, module.expand.bias)
        formula = inner @ w_2 + module.contract.bias
    else:
        formula = gated_feed_forward(x, w, v, w_2, gate=gate)
    torch.testing.assert_close(module(x), formula, rtol=1e-10, atol=1e-10)


def test_as_many_weights_as_the_plain_network() -> None:
    plain = FeedForward(12, 48, bias=False).parameters()
    gated = GatedFeedForward(12, 32).parameters()  # 8/3 * 12
    assert sum(p.numel() for p in plain) == sum(p.numel() for p in gated) == 8 * 12**2


# --- both -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [FeedForward(4, 6, dropout_p=0.5), GatedFeedForward(4, 6)])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_moves_and_stays_finite(module: torch.nn.Module, dtype: torch.dtype) -> None:
    output = module.to(dtype)(100 * normal(2, 3, 4).to(dtype))
    assert output.dtype == dtype
    assert output.isfinite().all()


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_modules_can_be_pickled(activation: str) -> None:
    module, x = FeedForward(4, 6, activation=activation), normal(2, 4).float()
    assert torch.equal(pickle.loads(pickle.dumps(module))(x), module(x))


@pytest.mark.parametrize("make", [FeedForward, GatedFeedForward])
def test_dropout_in_training_only(make: type[FeedForward | GatedFeedForward]) -> None:
    torch.manual_seed(0)
    module, x = make(4, 64, dropout_p=0.5), normal(2, 4).float()
    assert not torch.equal(module(x), module(x))
    module.eval()
    assert torch.equal(module(x), module(x))


def test_errors_name_the_values() -> None:
    x = torch.zeros(1, 1)
    with pytest.raises(ValueError, match="relu, gelu, gelu_tanh, swish, got 'swiglu'"):
        feed_forward(x, x, None, x, None, activation="swiglu")
    with pytest.raises(ValueError, match="glu, reglu, geglu, swiglu, bilinear, got 'gelu'"):
        gated_feed_forward(x, x, x, x, gate="gelu")
    with pytest.raises(ValueError, match="got 'silu'"):
        FeedForward(4, 6, activation="silu")
    for make in (FeedForward, GatedFeedForward):
        with pytest.raises(ValueError, match="d_model 4, d_ff 0"):
            make(4, 0)
