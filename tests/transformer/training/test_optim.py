"""Adam written out, decay groups and clipping: values by hand, and parity with torch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from parity import normal
from torch import nn

from flower_transformer.attention import MultiHeadAttention
from flower_transformer.embedding import TokenEmbedding
from flower_transformer.norms import RMSNorm
from flower_transformer.positional import LearnedPositions
from flower_transformer.relative_bias import RelativePositionBias
from flower_transformer.training.optim import (
    adam_step,
    adam_step_eps_inside,
    adamw,
    adamw_step,
    clip_by_global_norm,
    decay_groups,
)

SEEDS = st.integers(0, 2**31)
ZERO = torch.zeros(2)


def test_first_step_of_adam_by_hand() -> None:
    # after correction m-hat = g and v-hat = g^2: the step is lr * g / (|g| + eps)
    gradient = torch.tensor([3.0, -0.5])
    parameter, first, second = adam_step(ZERO, gradient, ZERO, ZERO, 1, lr=0.1, eps=0.5)
    torch.testing.assert_close(parameter, torch.tensor([-0.1 * 3 / 3.5, 0.05]))
    torch.testing.assert_close(first, 0.1 * gradient)
    torch.testing.assert_close(second, 0.001 * gradient.square())


def test_where_epsilon_stands_shows() -> None:
    gradient = torch.tensor([3.0, 0.0])
    inside, *_ = adam_step_eps_inside(ZERO, gradient, ZERO, ZERO, 1, lr=0.1, eps=16.0)
    torch.testing.assert_close(inside, torch.tensor([-0.1 * 3 / 5, 0.0]))  # sqrt(9 + 16) = 5
    outside, *_ = adam_step(ZERO, gradient, ZERO, ZERO, 1, lr=0.1, eps=16.0)
    torch.testing.assert_close(outside, torch.tensor([-0.1 * 3 / 19, 0.0]))  # 3 + 16 = 19


def test_decay_of_adamw_does_not_pass_through_the_moments() -> None:
    parameter, first, second = adamw_step(
        torch.full((2,), 2.0), ZERO, ZERO, ZERO, 1, lr=0.1, weight_decay=0.5
    )
    torch.testing.assert_close(parameter, torch.full((2,), 2.0 - 0.1 * 0.5 * 2.0))
    assert first.tolist() == second.tolist() == [0, 0]


@given(
    seed=SEEDS,
    lr=st.floats(1e-4, 1),
    betas=st.tuples(st.floats(0, 0.99), st.floats(0, 0.999)),
    eps=st.floats(1e-8, 1),
    weight_decay=st.floats(0, 0.5),
)
def test_steps_equal_torch(
    seed: int, lr: float, betas: tuple[float, float], eps: float, weight_decay: float
) -> None:
    start = normal(3, seed=seed)
    adam, adamw_ = nn.Parameter(start.clone()), nn.Parameter(start.clone())
    optimizers = [
        torch.optim.Adam([adam], lr=lr, betas=betas, eps=eps),
        torch.optim.AdamW([adamw_], lr=lr, betas=betas, eps=eps, weight_decay=weight_decay),
    ]
    options = {"lr": lr, "beta1": betas[0], "beta2": betas[1], "eps": eps}
    zero = torch.zeros_like(start)
    ours, ours_w = (start, zero, zero), (start, zero, zero)
    for step in range(1, 4):
        gradient = normal(3, seed=seed + step)
        adam.grad, adamw_.grad = gradient.clone(), gradient.clone()
        for optimizer in optimizers:
            optimizer.step()
        ours = adam_step(ours[0], gradient, *ours[1:], step, **options)
        ours_w = adamw_step(
            ours_w[0], gradient, *ours_w[1:], step, weight_decay=weight_decay, **options
        )
        torch.testing.assert_close(ours[0], adam.data, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(ours_w[0], adamw_.data, rtol=1e-9, atol=1e-9)


def test_clipping_by_hand() -> None:
    gradients = [torch.tensor([3.0]), torch.tensor([[0.0, 4.0]])]
    clipped, norm = clip_by_global_norm(gradients, max_norm=1.0)
    assert norm.item() == 5
    torch.testing.assert_close(clipped, [torch.tensor([0.6]), torch.tensor([[0.0, 0.8]])])
    unchanged, _ = clip_by_global_norm(gradients, max_norm=6.0)
    torch.testing.assert_close(unchanged, gradients)
    zero, norm = clip_by_global_norm([torch.zeros(2)], max_norm=1.0)
    assert zero[0].tolist() == [0, 0]
    assert norm.item() == 0


@given(seed=SEEDS, max_norm=st.floats(0.01, 10))
def test_clipping_equals_torch(seed: int, max_norm: float) -> None:
    parameters = [nn.Parameter(torch.zeros(2, 3).double()), nn.Parameter(torch.zeros(4).double())]
    for number, parameter in enumerate(parameters):
        parameter.grad = normal(*parameter.shape, seed=seed + number)
    gradients = [parameter.grad.clone() for parameter in parameters]
    clipped, norm = clip_by_global_norm(gradients, max_norm=max_norm)
    theirs = nn.utils.clip_grad_norm_(parameters, max_norm)
    torch.testing.assert_close(norm, theirs)
    for parameter, gradient in zip(parameters, clipped, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-5, atol=0)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        self.hidden = nn.Linear(4, 4)
        self.norm = nn.LayerNorm((2, 4))  # a norm's gain of two axes
        self.frozen = nn.Linear(4, 4).requires_grad_(False)
        self.output = nn.Linear(4, 5)
        self.output.weight = self.embedding.weight


def names(model: nn.Module, group: dict) -> set[str]:
    ids = {id(parameter) for parameter in group["params"]}
    assert len(ids) == len(group["params"])  # each once, the tied one too
    return {name for name, parameter in model.named_parameters() if id(parameter) in ids}


def test_decay_groups() -> None:
    model = Model()
    decays, rest = decay_groups(model, weight_decay=0.1)
    assert (decays["weight_decay"], rest["weight_decay"]) == (0.1, 0.0)
    assert names(model, decays) == {"hidden.weight"}
    assert names(model, rest) == {
        "embedding.weight",
        "hidden.bias",
        "norm.weight",
        "norm.bias",
        "output.bias",
    }
    decays, rest = decay_groups(model, weight_decay=0.1, decay_embeddings=True)
    assert names(model, decays) == {"hidden.weight", "embedding.weight"}


class OwnModules(nn.Module):
    """What the package's models are made of."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = TokenEmbedding(5, 4)
        self.positions = LearnedPositions(6, 4)
        self.bias = RelativePositionBias(2, bidirectional=True)
        self.class_token = nn.Parameter(torch.zeros(1, 1, 4))
        self.norm = RMSNorm(4)
        self.attention = MultiHeadAttention(4, 2)
        self.kernel = nn.Conv2d(3, 4, 2)
        self.score = nn.Linear(4, 1, bias=False)


def test_decay_groups_of_the_package() -> None:
    model = OwnModules()
    decays, rest = decay_groups(model, weight_decay=0.1)
    projections = {
        f"attention.project_{name}.weight" for name in ("query", "key", "value", "output")
    }
    assert names(model, decays) == projections | {"kernel.weight", "score.weight"}
    tables = {"tokens.weight", "positions.weight", "bias.weight"}
    assert tables | {"class_token", "norm.weight"} <= names(model, rest)
    decays, _ = decay_groups(model, weight_decay=0.1, decay_embeddings=True)
    assert tables <= names(model, decays)


def test_adamw_decays_the_first_group_only() -> None:
    model = nn.Linear(2, 2)
    weight, bias = model.weight.detach().clone(), model.bias.detach().clone()
    optimizer = adamw(model, lr=0.1, weight_decay=0.5)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    torch.testing.assert_close(model.weight.detach(), weight * (1 - 0.1 * 0.5))
    assert torch.equal(model.bias.detach(), bias)


def test_errors_name_the_values() -> None:
    with pytest.raises(ValueError, match="counted from 1, got 0"):
        adam_step(ZERO, ZERO, ZERO, ZERO, 0)
    with pytest.raises(ValueError, match=r"beta1 1\.0, beta2 0\.5"):
        adam_step(ZERO, ZERO, ZERO, ZERO, 1, beta1=1.0, beta2=0.5)
    with pytest.raises(ValueError, match=r"0 gradients, max_norm 1\.0"):
        clip_by_global_norm([], max_norm=1.0)
    with pytest.raises(ValueError, match=r"negative, got -0\.1"):
        decay_groups(nn.Linear(1, 1), weight_decay=-0.1)
