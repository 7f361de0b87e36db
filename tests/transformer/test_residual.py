"""Residual connections and the two places of the norm."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from flower_transformer.norms import LayerNorm, layer_norm
from flower_transformer.residual import Residual, post_norm, pre_norm, residual


def double(x: torch.Tensor) -> torch.Tensor:
    return 2 * x


def halve(x: torch.Tensor) -> torch.Tensor:
    return x / 2


def square(x: torch.Tensor) -> torch.Tensor:
    return x**2


def test_by_hand() -> None:
    x = torch.tensor([4.0])
    assert residual(x, square).item() == 20  # 4 + 16
    assert post_norm(x, square, halve).item() == 10  # (4 + 16) / 2
    assert pre_norm(x, square, halve).item() == 8  # 4 + (4 / 2)^2


def test_gradient_of_the_residual_is_one_plus_that_of_the_sublayer() -> None:
    x = torch.tensor([4.0], requires_grad=True)
    residual(x, square).backward()
    assert x.grad.item() == 9


@pytest.mark.parametrize("norm_order", ["pre", "post"])
def test_module_equals_function(norm_order: str) -> None:
    module = Residual(LayerNorm(6), norm_order=norm_order, dropout_p=0.5).eval()
    x = torch.randn(2, 3, 6)
    function = pre_norm if norm_order == "pre" else post_norm
    torch.testing.assert_close(module(x, double), function(x, double, layer_norm))


def test_dropout_spares_the_residual() -> None:
    torch.manual_seed(0)
    module = Residual(nn.Identity(), norm_order="pre", dropout_p=0.5)
    added = module(torch.full((1000,), 10.0), torch.ones_like) - 10
    assert set(added.tolist()) == {0.0, 2.0}


def test_errors_name_the_value() -> None:
    with pytest.raises(ValueError, match="'pre' or 'post', got 'sandwich'"):
        Residual(nn.Identity(), norm_order="sandwich")
