r"""Normalisation: LayerNorm, RMSNorm, and BatchNorm over sequences to compare them with.

Legend: B batch, T length, D = d_model, "..." leading axes, usually (B, T).

LayerNorm and RMSNorm look at one token at a time, the D numbers of the last axis; BatchNorm at one
feature at a time, over all tokens of the batch. Variances are biased (divided by n, not n - 1), and
eps stands inside the root. Inputs in half precision are normalised in float32.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from flower_transformer.masks import require_boolean


def layer_norm(
    x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, *, eps: float = 1e-5
) -> Tensor:
    r"""Shift and scale the features of each token to mean 0 and variance 1.

    $$
    \mathrm{LayerNorm}(x) =
    \gamma \odot \frac{x - \mathbb{E}[x]}{\sqrt{\mathrm{Var}[x] + \epsilon}} + \beta
    $$

    Mean and variance run over the d features of one token.

    Args:
        x: (..., D), d = D.
        weight: gamma (D,); 1 when left out.
        bias: beta (D,); 0 when left out.
        eps: epsilon, inside the root.

    Returns:
        (..., D) in the dtype of x.

    Raises:
        ValueError: weight or bias is not (D,).

    Source: Ba et al. 2016, "Layer Normalization", section 3, equations (3) and (4); eps as in
    common code.
    """
    _check_width(x, weight=weight, bias=bias)
    wide = _at_least_float32(x)
    centred = wide - wide.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)
    return _affine((centred / (variance + eps).sqrt()).to(x.dtype), weight, bias)


def rms_norm(x: Tensor, weight: Tensor | None = None, *, eps: float = 1e-6) -> Tensor:
    r"""Scale the features of each token to mean square 1, without shifting them.

    $$
    \mathrm{RMSNorm}(x) = \frac{x}{\sqrt{\frac{1}{d} \sum_{i=1}^{d} x_i^2 + \epsilon}} \odot \gamma
    $$

    Args:
        x: (..., D), d = D.
        weight: gamma (D,), the factor itself (some models store gamma - 1); 1 when left out.
        eps: epsilon, inside the root.

    Returns:
        (..., D) in the dtype of x.

    Raises:
        ValueError: the weight is not (D,).

    Source: Zhang and Sennrich 2019, "Root Mean Square Layer Normalization", section 4, equation
    (4); eps as in the code of Llama.
    """
    _check_width(x, weight=weight)
    wide = _at_least_float32(x)
    mean_square = wide.square().mean(dim=-1, keepdim=True)
    return _affine((wide * (mean_square + eps).rsqrt()).to(x.dtype), weight, None)


def batch_norm(
    x: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    real: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    r"""Shift and scale each feature to mean 0 and variance 1 over all real tokens of the batch.

    $$
    \begin{aligned}
    y_{ij} &= \gamma_j \frac{x_{ij} - \mu_j}{\sqrt{v_j + \epsilon}} + \beta_j \\
    \mu_j &= \frac{1}{n} \sum_{i=1}^{n} x_{ij} \\
    v_j &= \frac{1}{n} \sum_{i=1}^{n} (x_{ij} - \mu_j)^2
    \end{aligned}
    $$

    Args:
        x: (..., D); mean and variance of feature j run over all n real tokens i.
        weight: gamma (D,); 1 when left out.
        bias: beta (D,); 0 when left out.
        real: boolean (...), True = real token; padding has no part in the statistics.
        eps: epsilon, inside the root.

    Returns:
        (..., D) in the dtype of x; what stands at padded places means nothing.

    Raises:
        ValueError: weight or bias is not (D,), or the mask is not boolean or not (...).

    Source: Ioffe and Szegedy 2015, "Batch Normalization", section 3, algorithm 1.
    """
    mean, variance = _token_moments(x, real)
    return _normalise(x, mean, variance, weight, bias, eps)


class LayerNorm(nn.Module):
    """The module of `layer_norm`, computed by torch's kernel (equal: tested).

    Args:
        d_model: D.
        eps: epsilon, inside the root.
        bias: learn a shift as well as a factor.

    Raises:
        ValueError: d_model < 1.

    Source: Ba et al. 2016, "Layer Normalization", section 3.
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5, bias: bool = True) -> None:
        super().__init__()
        _check_size(d_model)
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Normalise (..., D)."""
        _check_width(x, weight=self.weight)
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


class RMSNorm(nn.Module):
    """The module of `rms_norm`.

    Args:
        d_model: D.
        eps: epsilon, inside the root.

    Raises:
        ValueError: d_model < 1.

    Source: Zhang and Sennrich 2019, "Root Mean Square Layer Normalization", section 4.
    """

    def __init__(self, d_model: int, *, eps: float = 1e-6) -> None:
        super().__init__()
        _check_size(d_model)
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise (..., D)."""
        return rms_norm(x, self.weight, eps=self.eps)


class SequenceBatchNorm(nn.Module):
    """The module of `batch_norm`: statistics of the batch in training, running ones in evaluation.

    Args:
        d_model: D.
        eps: epsilon, inside the root.
        momentum: share of the newest batch in the running statistics.

    Raises:
        ValueError: d_model < 1.

    Source: Ioffe and Szegedy 2015, "Batch Normalization", section 3. As in torch's BatchNorm1d the
    running variance is the unbiased one.
    """

    running_mean: Tensor
    running_variance: Tensor

    def __init__(self, d_model: int, *, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        _check_size(d_model)
        self.eps = eps
        self.momentum = momentum
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.register_buffer("running_mean", torch.zeros(d_model))
        self.register_buffer("running_variance", torch.ones(d_model))

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """Normalise (B, T, D).

        Args:
            x: (B, T, D).
            real: boolean (B, T), True = real token.

        Returns:
            (B, T, D).
        """
        if not self.training:
            return _normalise(
                x, self.running_mean, self.running_variance, self.weight, self.bias, self.eps
            )
        mean, variance = _token_moments(x, real)
        with torch.no_grad():
            n = x[..., 0].numel() if real is None else int(real.sum())
            unbiased = variance * (n / max(n - 1, 1))
            self.running_mean.lerp_(mean.to(self.running_mean.dtype), self.momentum)
            self.running_variance.lerp_(unbiased.to(self.running_variance.dtype), self.momentum)
        return _normalise(x, mean, variance, self.weight, self.bias, self.eps)


def _token_moments(x: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
    """Mean and biased variance of each feature over the real tokens, (D,) each."""
    if real is None:
        real = torch.ones(x.shape[:-1], dtype=torch.bool, device=x.device)
    require_boolean("real", real)
    if real.shape != x.shape[:-1]:
        raise ValueError(f"real has shape {tuple(real.shape)}, x has {tuple(x.shape)}")
    tokens = _at_least_float32(x[real])  # (..., D) -> (n, D): the real ones only
    n = max(len(tokens), 1)  # no token at all: mean 0, variance 0
    mean = tokens.sum(dim=0) / n
    return mean, (tokens - mean).square().sum(dim=0) / n


def _normalise(
    x: Tensor,
    mean: Tensor,
    variance: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Tensor:
    _check_width(x, weight=weight, bias=bias)
    normal = (_at_least_float32(x) - mean) / (variance + eps).sqrt()
    return _affine(normal.to(x.dtype), weight, bias)


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def _at_least_float32(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _check_width(x: Tensor, **parameters: Tensor | None) -> None:
    for name, parameter in parameters.items():
        if parameter is not None and parameter.shape != x.shape[-1:]:
            raise ValueError(f"{name} has shape {tuple(parameter.shape)}, x has {tuple(x.shape)}")


def _check_size(d_model: int) -> None:
    if d_model < 1:
        raise ValueError(f"d_model must be positive, got {d_model}")
