"""Attention from scores: what additive, multiplicative and cosine attention share."""

from __future__ import annotations

import math

import pytest
import torch
from parity import normal

from flower_transformer.additive import AdditiveAttention
from flower_transformer.alignment import Alignment, attend
from flower_transformer.cosine import CosineAttention
from flower_transformer.multiplicative import MultiplicativeAttention
from flower_transformer.scaled_dot_product import scaled_dot_product_attention

MODULES = {
    "additive": lambda: AdditiveAttention(6, 6, 4),
    "dot": lambda: MultiplicativeAttention(6, 6, "dot"),
    "general": lambda: MultiplicativeAttention(6, 6, "general"),
    "concat": lambda: MultiplicativeAttention(6, 6, "concat"),
    "cosine": lambda: CosineAttention(),
    "cosine, fixed": lambda: CosineAttention(learned=False),
}


def test_attend_by_hand() -> None:
    scores = torch.tensor([[0.0, math.log(3)], [0.0, 0.0]])
    value = torch.tensor([[4.0], [8.0]])
    torch.testing.assert_close(attend(scores, value), torch.tensor([[7.0], [6.0]]))
    may_attend = torch.tensor([[True, False], [False, False]])
    assert attend(scores, value, may_attend=may_attend).tolist() == [[4], [0]]


def test_dot_scores_over_the_root_are_scaled_attention() -> None:
    query, key = normal(2, 3, 6), normal(2, 5, 6, seed=1)
    module = MultiplicativeAttention(6, 6, "dot")
    torch.testing.assert_close(
        module(query / math.sqrt(6), key), scaled_dot_product_attention(query, key, key)
    )


@pytest.mark.parametrize("kind", MODULES)
def test_modules(kind: str) -> None:
    torch.manual_seed(0)
    module = MODULES[kind]().double()  # moved after construction
    query, key, value = normal(2, 3, 6), normal(2, 5, 6, seed=1), normal(2, 5, 7, seed=2)
    context, weights = module(query, key, value, return_weights=True)
    assert torch.equal(context, module(query, key, value))
    torch.testing.assert_close(context, weights @ value)
    torch.testing.assert_close(weights, module.scores(query, key).softmax(dim=-1))
    assert module(query, key).shape == (2, 3, 6)
    for gradient in (
        torch.autograd.grad(
            module(query, key).square().sum(), list(module.parameters()), allow_unused=False
        )
        if list(module.parameters())
        else ()
    ):
        assert gradient.abs().max() > 0


@pytest.mark.parametrize("kind", MODULES)
def test_padding_has_no_influence(kind: str) -> None:
    module = MODULES[kind]().double()
    query, key = normal(2, 3, 6), normal(2, 5, 6, seed=1)
    real = torch.arange(5) < torch.tensor([5, 3])[:, None]  # (B, S)
    expected = module(query[1], key[1, :3])
    key[1, 3:] = math.nan
    context, weights = module(query, key, may_attend=real[:, None], return_weights=True)
    torch.testing.assert_close(context[1], expected)
    assert (weights[1, :, 3:] == 0).all()
    if list(module.parameters()):
        for gradient in torch.autograd.grad(context.sum(), list(module.parameters())):
            assert gradient.isfinite().all()


@pytest.mark.parametrize("kind", MODULES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_stays_finite(kind: str, dtype: torch.dtype) -> None:
    module = MODULES[kind]().to(dtype)
    query, key = normal(2, 3, 6).to(dtype), normal(2, 5, 6, seed=1).to(dtype)
    key[0, 0] = 0
    mask = normal(2, 3, 5, seed=2) > 0
    mask[0, 0] = False
    for may_attend in (None, mask):
        context = module(query, key, may_attend=may_attend)
        assert context.dtype == dtype
        assert context.isfinite().all()


def test_a_subclass_must_say_how_to_score() -> None:
    with pytest.raises(NotImplementedError):
        Alignment()(torch.zeros(1, 2), torch.zeros(1, 2))


def test_errors_name_both_values() -> None:
    with pytest.raises(ValueError, match="4 scores a query, but 5 values"):
        attend(torch.zeros(3, 4), torch.zeros(5, 2))
