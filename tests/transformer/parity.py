"""What the tests of layers and stacks share: random weights, torch's layers with the same ones."""

from __future__ import annotations

import torch
from torch import nn

from flower_transformer.attention import MultiHeadAttention
from flower_transformer.blocks import DecoderLayer, EncoderLayer, LayerConfig

BOUNDS = {torch.float32: 1e-5, torch.float64: 1e-10}


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def draw(module: nn.Module, seed: int = 0) -> None:
    """Give every weight a random value, norms and biases too: nothing may hide behind 0 and 1."""
    with torch.no_grad():
        for i, parameter in enumerate(module.parameters()):
            parameter.copy_(normal(*parameter.shape, seed=seed + i) / parameter.shape[-1] ** 0.5)


def copy_attention(theirs: nn.MultiheadAttention, ours: MultiHeadAttention) -> None:
    projections = (ours.project_query, ours.project_key, ours.project_value)
    theirs.in_proj_weight.copy_(torch.cat([layer.weight for layer in projections]))
    theirs.out_proj.weight.copy_(ours.project_output.weight)
    if theirs.in_proj_bias is not None:
        theirs.in_proj_bias.copy_(torch.cat([layer.bias for layer in projections]))
        theirs.out_proj.bias.copy_(ours.project_output.bias)


@torch.no_grad()
def copy_layer(theirs: nn.Module, ours: EncoderLayer | DecoderLayer) -> None:
    """Copy the weights of a layer into torch's layer of the same kind."""
    copy_attention(theirs.self_attn, ours.attention)
    norms = [ours.attention_residual.norm, ours.feed_forward_residual.norm]
    if isinstance(ours, DecoderLayer):
        copy_attention(theirs.multihead_attn, ours.cross_attention)
        norms.insert(1, ours.cross_attention_residual.norm)
    for i, norm in enumerate(norms, start=1):
        getattr(theirs, f"norm{i}").load_state_dict(norm.state_dict())
    theirs.linear1.load_state_dict(ours.feed_forward.expand.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.contract.state_dict())


def torch_layer(kind: type[nn.Module], config: LayerConfig, dtype: torch.dtype) -> nn.Module:
    return kind(
        config.d_model,
        config.n_heads,
        config.d_ff,
        dropout=config.dropout_p,
        activation=config.feed_forward,
        layer_norm_eps=config.norm_eps,
        batch_first=True,
        norm_first=config.norm_order == "pre",
        bias=config.bias,
        dtype=dtype,
    )


def assert_same(
    ours: torch.Tensor,
    theirs: torch.Tensor,
    valid: torch.Tensor,
    inputs: list[torch.Tensor],
    bound: float,
) -> None:
    """Equal outputs at valid places, and equal gradients of them for all inputs."""
    torch.testing.assert_close(ours[valid], theirs[valid], rtol=bound, atol=bound)
    weights = normal(*ours[valid].shape, seed=11, dtype=ours.dtype)
    for a, b in zip(
        torch.autograd.grad((ours[valid] * weights).sum(), inputs, retain_graph=True),
        torch.autograd.grad((theirs[valid] * weights).sum(), inputs, retain_graph=True),
        strict=True,
    ):
        torch.testing.assert_close(a, b, rtol=10 * bound, atol=10 * bound)


class GrowingCache:
    """The simplest cache: everything so far, side by side."""

    def __init__(self) -> None:
        self.seen: list[tuple[torch.Tensor, torch.Tensor]] = []

    def update(self, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.seen.append((key, value))
        keys, values = zip(*self.seen, strict=True)
        return torch.cat(keys, dim=-2), torch.cat(values, dim=-2)
