r"""Adam written out, decay groups for torch's AdamW, and gradient clipping.

The functions of one step are pure: they return new tensors and show the formula. Training uses
torch's own optimisers, which the tests hold equal to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from flower_transformer.embedding import TokenEmbedding
from flower_transformer.positional import LearnedPositions
from flower_transformer.relative_bias import RelativePositionBias


def adam_step(
    parameter: Tensor,
    gradient: Tensor,
    first: Tensor,
    second: Tensor,
    step: int,
    *,
    lr: float = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""One step of Adam, its epsilon outside the root: the published form, and torch's.

    $$
    \begin{aligned}
    m_t &= \beta_1 m_{t-1} + (1 - \beta_1) g_t \\
    v_t &= \beta_2 v_{t-1} + (1 - \beta_2) g_t \odot g_t \\
    \hat{m}_t &= \frac{m_t}{1 - \beta_1^t} \\
    \hat{v}_t &= \frac{v_t}{1 - \beta_2^t} \\
    \theta_t &= \theta_{t-1} - \alpha \frac{\hat{m}_t}{\sqrt{\hat{v}_t} + \epsilon}
    \end{aligned}
    $$

    Args:
        parameter: theta_{t-1}, of any shape.
        gradient: g_t, like the parameter.
        first: m_{t-1}, running mean of the gradient; zeros at the first step.
        second: v_{t-1}, running mean of its square; zeros at the first step.
        step: t, from 1.
        lr: alpha.
        beta1: beta_1, in [0, 1).
        beta2: beta_2, in [0, 1).
        eps: epsilon, added to the root.

    Returns:
        theta_t, m_t and v_t, in the dtype of the parameter.

    Raises:
        ValueError: the step is below 1, or a beta lies outside [0, 1).

    Source: Kingma and Ba 2015, "Adam: A Method for Stochastic Optimization", algorithm 1.
    """
    mean, square, first, second = _moments(gradient, first, second, step, beta1, beta2)
    return parameter - lr * mean / (square.sqrt() + eps), first, second


def adam_step_eps_inside(
    parameter: Tensor,
    gradient: Tensor,
    first: Tensor,
    second: Tensor,
    step: int,
    *,
    lr: float = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""One step of the variant of Adam whose epsilon stands inside the root.

    $$
    \theta_t = \theta_{t-1} - \alpha \frac{\hat{m}_t}{\sqrt{\hat{v}_t + \epsilon}}
    $$

    Neither the paper nor torch does this. The same number means far less outside the root than
    inside: with a zero gradient 1e-8 inside acts like 1e-4 outside.

    Args:
        parameter: theta_{t-1}, of any shape.
        gradient: g_t, like the parameter.
        first: m_{t-1}, as in `adam_step`.
        second: v_{t-1}, as in `adam_step`.
        step: t, from 1.
        lr: alpha.
        beta1: beta_1, in [0, 1).
        beta2: beta_2, in [0, 1).
        eps: epsilon, added under the root.

    Returns:
        theta_t, m_t and v_t.

    Raises:
        ValueError: what `adam_step` raises.
    """
    mean, square, first, second = _moments(gradient, first, second, step, beta1, beta2)
    return parameter - lr * mean / (square + eps).sqrt(), first, second


def adamw_step(
    parameter: Tensor,
    gradient: Tensor,
    first: Tensor,
    second: Tensor,
    step: int,
    *,
    lr: float = 1e-3,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
    weight_decay: float = 1e-2,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""One step of AdamW: the weights decay beside Adam's step, not through its moments.

    $$
    \theta_t = \theta_{t-1} - \alpha \lambda \theta_{t-1}
        - \alpha \frac{\hat{m}_t}{\sqrt{\hat{v}_t} + \epsilon}
    $$

    The paper multiplies both terms with a schedule and only the second with alpha; here, as in
    torch, the learning rate scales the decay as well.

    Args:
        parameter: theta_{t-1}, of any shape.
        gradient: g_t, like the parameter.
        first: m_{t-1}, as in `adam_step`.
        second: v_{t-1}, as in `adam_step`.
        step: t, from 1.
        lr: alpha.
        beta1: beta_1, in [0, 1).
        beta2: beta_2, in [0, 1).
        eps: epsilon, added to the root.
        weight_decay: lambda.

    Returns:
        theta_t, m_t and v_t.

    Raises:
        ValueError: what `adam_step` raises.

    Source: Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization", algorithm 2.
    """
    decayed = parameter - lr * weight_decay * parameter
    return adam_step(
        decayed, gradient, first, second, step, lr=lr, beta1=beta1, beta2=beta2, eps=eps
    )


def clip_by_global_norm(
    gradients: Sequence[Tensor], *, max_norm: float
) -> tuple[list[Tensor], Tensor]:
    r"""Shrink all gradients together until their common norm is at most max_norm.

    $$
    \mathrm{clip}(g) = \min\left(1, \frac{c}{\lVert g \rVert}\right) g
    $$

    Args:
        gradients: g, in as many tensors as the model has parameters.
        max_norm: c, above 0.

    Returns:
        The clipped gradients, of the same direction, and the norm before clipping. (torch's
        ``clip_grad_norm_``, which the training loop calls, divides by the norm + 1e-6.)

    Raises:
        ValueError: there is no gradient, or max_norm is not above 0.

    Source: Pascanu et al. 2013, "On the difficulty of training Recurrent Neural Networks",
    algorithm 1.
    """
    if not gradients or not max_norm > 0:
        counts = f"{len(gradients)} gradients, max_norm {max_norm}"
        raise ValueError(f"clipping needs gradients and a max_norm above 0, got {counts}")
    norm = torch.stack([gradient.norm() for gradient in gradients]).norm()
    factor = (max_norm / norm).clamp(max=1.0)
    return [factor * gradient for gradient in gradients], norm


def decay_groups(
    model: nn.Module, *, weight_decay: float, decay_embeddings: bool = False
) -> list[dict[str, Any]]:
    """Sort a model's parameters into those that decay and those that do not.

    Matrices and kernels decay. Vectors do not (biases, gains of norms, a class token of shape
    (1, 1, D)); neither do embeddings of tokens and positions, unless asked for. A parameter that
    several modules share appears once; tied to an embedding, it counts as one.

    Args:
        model: parameters that require no gradient are left out.
        weight_decay: decay of the first group; the second has 0.
        decay_embeddings: let the tables of tokens, positions and relative positions decay too.

    Returns:
        Two groups for an optimiser: with decay, and without.

    Raises:
        ValueError: weight_decay is negative.
    """
    if weight_decay < 0:
        raise ValueError(f"weight_decay must not be negative, got {weight_decay}")
    spared_kinds = _NORMS if decay_embeddings else (*_NORMS, *_EMBEDDINGS)
    spared = {
        id(parameter)
        for module in model.modules()
        if isinstance(module, spared_kinds)
        for parameter in module.parameters(recurse=False)
    }
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    decays = [p for p in trained if not _is_vector(p) and id(p) not in spared]
    chosen = {id(parameter) for parameter in decays}
    rest = [parameter for parameter in trained if id(parameter) not in chosen]
    return [
        {"params": decays, "weight_decay": weight_decay},
        {"params": rest, "weight_decay": 0.0},
    ]


def adamw(
    model: nn.Module,
    *,
    lr: float,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 1e-2,
    decay_embeddings: bool = False,
) -> torch.optim.AdamW:
    """Make torch's AdamW with the groups of `decay_groups`.

    Args:
        model: whose parameters to train.
        lr: highest learning rate; 1.0 for `noam_scheduler`.
        betas: the paper of the Transformer takes (0.9, 0.98).
        eps: outside the root; the paper of the Transformer takes 1e-9.
        weight_decay: decay of matrices and kernels.
        decay_embeddings: let embeddings decay as well.

    Returns:
        The optimiser.
    """
    groups = decay_groups(model, weight_decay=weight_decay, decay_embeddings=decay_embeddings)
    return torch.optim.AdamW(groups, lr=lr, betas=betas, eps=eps)


# Those whose gain may have two axes; the package's own norms have vectors.
_NORMS: tuple[type[nn.Module], ...] = (
    nn.LayerNorm,
    nn.RMSNorm,
)
_EMBEDDINGS: tuple[type[nn.Module], ...] = (
    nn.Embedding,
    TokenEmbedding,
    LearnedPositions,
    RelativePositionBias,
)


def _is_vector(parameter: Tensor) -> bool:
    # A weight (1, D) is the matrix of a layer with one output; (1, 1, D) is a vector.
    return parameter.dim() < 2 or (parameter.dim() > 2 and parameter.numel() == parameter.shape[-1])


def _moments(
    gradient: Tensor, first: Tensor, second: Tensor, step: int, beta1: float, beta2: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The bias-corrected moments, then the moments themselves: m-hat, v-hat, m, v."""
    if step < 1:
        raise ValueError(f"steps are counted from 1, got {step}")
    if not (0.0 <= beta1 < 1.0 and 0.0 <= beta2 < 1.0):
        raise ValueError(f"betas must lie in [0, 1): beta1 {beta1}, beta2 {beta2}")
    first = beta1 * first + (1 - beta1) * gradient
    second = beta2 * second + (1 - beta2) * gradient * gradient
    # Both began at 0 and are too small at first; dividing makes them means (section 3).
    return first / (1 - beta1**step), second / (1 - beta2**step), first, second
