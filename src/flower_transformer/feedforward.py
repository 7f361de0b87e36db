r"""Position-wise feed-forward networks: ReLU and GELU, and the gated family of SwiGLU.

Legend: D = d_model, d_ff the inner width, "..." leading axes, usually (B, T). The same network is
applied to every token by itself.

Matrices stand on the right, as published: x W. (A ``nn.Linear`` holds the transpose.)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Activation = Literal["relu", "gelu", "gelu_tanh", "swish"]
Gate = Literal["glu", "reglu", "geglu", "swiglu", "bilinear"]


def relu(x: Tensor) -> Tensor:
    r"""Keep what is positive: $\max(0, x)$.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.3.
    """
    return torch.relu(x)


def gelu(x: Tensor) -> Tensor:
    r"""Weigh x by the chance that a normal number is smaller: $x \, \Phi(x)$.

    $$
    \mathrm{GELU}(x) =
    \frac{x}{2} \odot \left(1 + \mathrm{erf}\left(\frac{x}{\sqrt{2}}\right)\right)
    $$

    Exact; GPT-2 uses the approximation `gelu_tanh`, up to 4.7e-4 away.

    Source: Hendrycks and Gimpel 2016, "Gaussian Error Linear Units (GELUs)", section 2.
    """
    return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))


def gelu_tanh(x: Tensor) -> Tensor:
    r"""The approximation of `gelu` by a tanh.

    $$
    \mathrm{GELU}_{\tanh}(x) =
    \frac{x}{2} \left(1 + \tanh\left(\sqrt{\frac{2}{\pi}} (x + 0.044715 x^3)\right)\right)
    $$

    Source: Hendrycks and Gimpel 2016, "Gaussian Error Linear Units (GELUs)", section 2.
    """
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def swish(x: Tensor) -> Tensor:
    r"""Weigh x by its own sigmoid; also called SiLU.

    $$
    \mathrm{Swish}(x) = x \odot \sigma(x)
    $$

    Source: Ramachandran et al. 2017, "Searching for Activation Functions", section 4, for beta = 1.
    """
    return x * torch.sigmoid(x)


def feed_forward(
    x: Tensor,
    w_1: Tensor,
    b_1: Tensor | None,
    w_2: Tensor,
    b_2: Tensor | None,
    *,
    activation: Activation = "relu",
) -> Tensor:
    r"""Two linear maps with a non-linearity between them.

    $$
    \mathrm{FFN}(x) = \max(0, xW_1 + b_1)W_2 + b_2
    $$

    Args:
        x: (..., D).
        w_1: (D, d_ff).
        b_1: (d_ff,), or None.
        w_2: (d_ff, D).
        b_2: (D,), or None.
        activation: in place of max(0, .): one of "relu", "gelu", "gelu_tanh", "swish".

    Returns:
        (..., D).

    Raises:
        ValueError: the activation is unknown.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.3, equation (2).
    """
    return _linear(_choose("activation", activation, ACTIVATIONS)(_linear(x, w_1, b_1)), w_2, b_2)


def glu(
    x: Tensor, w: Tensor, v: Tensor, b: Tensor | None = None, c: Tensor | None = None
) -> Tensor:
    r"""Gate one linear map by the sigmoid of another.

    $$
    \mathrm{GLU}(x, W, V, b, c) = \sigma(xW + b) \odot (xV + c)
    $$

    Args:
        x: (..., D).
        w: W (D, d_ff), of the gate.
        v: V (D, d_ff), of what is gated.
        b: (d_ff,), or None.
        c: (d_ff,), or None.

    Returns:
        (..., d_ff).

    Source: Shazeer 2020, "GLU Variants Improve Transformer", equation (4), after Dauphin et al.
    2017, "Language Modeling with Gated Convolutional Networks".
    """
    return torch.sigmoid(_linear(x, w, b)) * _linear(x, v, c)


def reglu(
    x: Tensor, w: Tensor, v: Tensor, b: Tensor | None = None, c: Tensor | None = None
) -> Tensor:
    r"""Gate by ReLU.

    $$
    \mathrm{ReGLU}(x, W, V, b, c) = \max(0, xW + b) \odot (xV + c)
    $$

    Arguments as `glu`. Source: Shazeer 2020, equation (5).
    """
    return relu(_linear(x, w, b)) * _linear(x, v, c)


def geglu(
    x: Tensor, w: Tensor, v: Tensor, b: Tensor | None = None, c: Tensor | None = None
) -> Tensor:
    r"""Gate by GELU.

    $$
    \mathrm{GEGLU}(x, W, V, b, c) = \mathrm{GELU}(xW + b) \odot (xV + c)
    $$

    Arguments as `glu`. Source: Shazeer 2020, equation (5).
    """
    return gelu(_linear(x, w, b)) * _linear(x, v, c)


def swiglu(
    x: Tensor, w: Tensor, v: Tensor, b: Tensor | None = None, c: Tensor | None = None
) -> Tensor:
    r"""Gate by Swish.

    $$
    \mathrm{SwiGLU}(x, W, V, b, c) = \mathrm{Swish}(xW + b) \odot (xV + c)
    $$

    Arguments as `glu`. Source: Shazeer 2020, equation (5).
    """
    return swish(_linear(x, w, b)) * _linear(x, v, c)


def bilinear(
    x: Tensor, w: Tensor, v: Tensor, b: Tensor | None = None, c: Tensor | None = None
) -> Tensor:
    r"""No non-linearity.

    $$
    \mathrm{Bilinear}(x, W, V, b, c) = (xW + b) \odot (xV + c)
    $$

    Arguments as `glu`. Source: Shazeer 2020, equation (5).
    """
    return _linear(x, w, b) * _linear(x, v, c)


def gated_feed_forward(
    x: Tensor, w: Tensor, v: Tensor, w_2: Tensor, *, gate: Gate = "swiglu"
) -> Tensor:
    r"""A gated linear unit and a linear map back, without biases.

    $$
    \mathrm{FFN}_{\mathrm{SwiGLU}}(x, W, V, W_2) = (\mathrm{Swish}(xW) \odot xV)W_2
    $$

    Args:
        x: (..., D).
        w: W (D, d_ff), of the gate.
        v: V (D, d_ff), of what is gated.
        w_2: (d_ff, D).
        gate: in place of SwiGLU: "glu", "reglu", "geglu", "swiglu", "bilinear".

    Returns:
        (..., D).

    Raises:
        ValueError: the gate is unknown.

    Source: Shazeer 2020, "GLU Variants Improve Transformer", section 2, equation (6).
    """
    return (_choose("gate", gate, GATES)(x @ w) * (x @ v)) @ w_2


class FeedForward(nn.Module):
    """The module of `feed_forward`.

    Args:
        d_model: D, the width of input and output.
        d_ff: the inner width; 4 * d_model in the paper.
        activation: "relu", "gelu", "gelu_tanh" or "swish".
        bias: add b_1 and b_2.
        dropout_p: probability of dropping an inner number in training.

    Raises:
        ValueError: a size is < 1, or the activation is unknown.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.3.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        activation: Activation = "relu",
        bias: bool = True,
        dropout_p: float = 0.0,
    ) -> None:
        super().__init__()
        _check_sizes(d_model, d_ff)
        self.activation = _kernel(_choose("activation", activation, ACTIVATIONS))
        self.expand = nn.Linear(d_model, d_ff, bias=bias)
        self.contract = nn.Linear(d_ff, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., D) to (..., D), each token by itself."""
        inner = self.dropout(self.activation(self.expand(x)))  # (..., D) -> (..., d_ff)
        output: Tensor = self.contract(inner)
        return output


class GatedFeedForward(nn.Module):
    """The module of `gated_feed_forward`: three matrices instead of two.

    With d_ff = 8/3 d_model in place of 4 d_model it has as many weights as a `FeedForward`.

    Args:
        d_model: D, the width of input and output.
        d_ff: the inner width.
        gate: "glu", "reglu", "geglu", "swiglu" or "bilinear".
        bias: add a bias to each of the three maps. The published formula has none.
        dropout_p: probability of dropping an inner number in training.

    Raises:
        ValueError: a size is < 1, or the gate is unknown.

    Source: Shazeer 2020, "GLU Variants Improve Transformer", section 2.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        gate: Gate = "swiglu",
        bias: bool = False,
        dropout_p: float = 0.0,
    ) -> None:
        super().__init__()
        _check_sizes(d_model, d_ff)
        self.activation = _kernel(_choose("gate", gate, GATES))
        self.gate = nn.Linear(d_model, d_ff, bias=bias)  # W
        self.expand = nn.Linear(d_model, d_ff, bias=bias)  # V
        self.contract = nn.Linear(d_ff, d_model, bias=bias)  # W_2
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., D) to (..., D), each token by itself."""
        inner = self.dropout(self.activation(self.gate(x)) * self.expand(x))  # (..., d_ff)
        output: Tensor = self.contract(inner)
        return output


Elementwise = Callable[[Tensor], Tensor]


def _identity(x: Tensor) -> Tensor:
    return x


ACTIVATIONS: dict[str, Elementwise] = {
    "relu": relu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "swish": swish,
}
GATES: dict[str, Elementwise] = {
    "glu": torch.sigmoid,
    "reglu": relu,
    "geglu": gelu,
    "swiglu": swish,
    "bilinear": _identity,
}
# torch's kernels for the functions written out above: equal (tested), and one pass over memory
_KERNELS: dict[Elementwise, Elementwise] = {
    gelu: F.gelu,
    gelu_tanh: partial(F.gelu, approximate="tanh"),
    swish: F.silu,
}


def _kernel(function: Elementwise) -> Elementwise:
    return _KERNELS.get(function, function)


def _choose(kind: str, name: str, table: dict[str, Elementwise]) -> Elementwise:
    if name not in table:
        raise ValueError(f"{kind} must be one of {', '.join(table)}, got {name!r}")
    return table[name]


def _linear(x: Tensor, w: Tensor, b: Tensor | None) -> Tensor:
    return x @ w if b is None else x @ w + b


def _check_sizes(d_model: int, d_ff: int) -> None:
    if d_model < 1 or d_ff < 1:
        raise ValueError(f"sizes must be positive: d_model {d_model}, d_ff {d_ff}")
