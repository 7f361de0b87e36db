"""What the weights of the published models are before training."""

from __future__ import annotations

import torch
from torch import nn

from flower_transformer.stacks import Encoder


@torch.no_grad()
def draw_normal(model: nn.Module, *, std: float = 0.02) -> None:
    """Draw the weights of all linear maps from N(0, std^2), and set their biases to 0.

    Args:
        model: any module; norms and embeddings are left as they are.
        std: 0.02 in BERT, GPT and Llama.

    Source: Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training",
    section 4.1.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=std)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


@torch.no_grad()
def shrink_residuals(stack: Encoder) -> None:
    r"""Divide the weights that write to the residual stream by $\sqrt{N}$, N their number.

    The stream is a sum of N terms; so its variance does not grow with the depth.

    Args:
        stack: L layers, which have N = 2 L such weights.

    Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.3.
    """
    n_residuals = 2 * len(stack.layers)
    for name, parameter in stack.named_parameters():
        if name.endswith(("project_output.weight", "contract.weight")):
            parameter.div_(n_residuals**0.5)
