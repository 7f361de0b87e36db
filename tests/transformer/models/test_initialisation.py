"""First weights: which are drawn, with what spread, and which are left alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from flower_transformer.blocks import LayerConfig
from flower_transformer.models.initialisation import draw_normal, shrink_residuals
from flower_transformer.stacks import Encoder


def test_linear_maps_are_drawn_and_nothing_else() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(200, 200), nn.LayerNorm(200), nn.Linear(200, 100, bias=False))
    draw_normal(model, std=0.5)
    for layer in (model[0], model[2]):
        assert layer.weight.std().item() == pytest.approx(0.5, rel=0.03)
        assert layer.weight.mean().item() == pytest.approx(0, abs=0.01)
    assert not model[0].bias.any()
    assert (model[1].weight == 1).all()


def test_what_writes_to_the_stream_is_divided_by_the_root_of_their_number() -> None:
    stack = Encoder(LayerConfig(8, 2, 16, norm_order="pre"), 2)
    before = {name: p.detach().clone() for name, p in stack.named_parameters()}
    shrink_residuals(stack)
    for name, parameter in stack.named_parameters():
        writes = "project_output.weight" in name or "contract.weight" in name
        assert torch.equal(parameter, before[name] / 2 if writes else before[name])
