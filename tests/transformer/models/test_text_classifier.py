"""The text classifier: pooling by hand, and padding that changes nothing."""

from __future__ import annotations

import math

import pytest
import torch
from parity import draw

from flower_transformer.models.text_classifier import (
    TextClassifier,
    TextClassifierConfig,
    max_pool,
    mean_pool,
)

X = torch.tensor([[1.0, -8.0], [3.0, -4.0], [math.nan, 99.0]])
REAL = torch.tensor([True, True, False])


def test_pooling_by_hand() -> None:
    assert mean_pool(X, REAL).tolist() == [2, -6]
    assert max_pool(X, REAL).tolist() == [3, -4]
    assert mean_pool(X[:2]).tolist() == [2, -6]
    assert max_pool(X[:2]).tolist() == [3, -4]


def test_a_text_without_a_token_is_0() -> None:
    nothing = torch.zeros(3, dtype=torch.bool)
    assert mean_pool(X, nothing).tolist() == max_pool(X, nothing).tolist() == [0, 0]


def test_gradients_of_padding_are_0() -> None:
    for pool in (mean_pool, max_pool):
        x = X.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(pool(x, REAL).sum(), x)
        assert gradient[2].tolist() == [0, 0]
        assert gradient.isfinite().all()


def test_errors() -> None:
    with pytest.raises(ValueError, match=r"real has shape \(2,\), x has \(3, 2\)"):
        mean_pool(X, REAL[:2])
    with pytest.raises(ValueError, match="real must be boolean"):
        max_pool(X, REAL.int())
    with pytest.raises(ValueError, match="got 'sum'"):
        TextClassifierConfig(5, 2, 4, 1, 1, 4, pooling="sum")


@torch.no_grad()
@pytest.mark.parametrize("norm_order", ["pre", "post"])
@pytest.mark.parametrize("pooling", ["mean", "max", "first"])
def test_padding_changes_nothing(pooling: str, norm_order: str) -> None:
    config = TextClassifierConfig(11, 3, 8, 2, 2, 16, pooling=pooling, norm_order=norm_order)
    model = TextClassifier(config)
    draw(model)
    text = torch.randint(11, (2, 6), generator=torch.Generator().manual_seed(0))
    real = torch.tensor([[True] * 4 + [False] * 2, [True] * 6])
    logits = model(text, padding_mask=real)
    assert logits.shape == (2, 3)
    torch.testing.assert_close(logits[:1], model(text[:1, :4]))
    torch.testing.assert_close(logits[1:], model(text[1:]))
