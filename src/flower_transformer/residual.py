r"""Residual connections, and where the norm stands: before or after.

Legend: B batch, T length, D = d_model; x is (..., D), usually (B, T, D).

The two orders are different functions with the same weights. Post-norm is the 2017 Transformer and
BERT; pre-norm is GPT-2, Llama and ViT, whose residual stream no norm ever touches, so that a stack
of pre-norm layers ends with a norm of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from torch import Tensor, nn

NormOrder = Literal["pre", "post"]
Sublayer = Callable[[Tensor], Tensor]


def residual(x: Tensor, sublayer: Sublayer) -> Tensor:
    """Add what a sub-layer makes of x to x: y = x + F(x).

    Args:
        x: (..., D).
        sublayer: F, from (..., D) to (..., D).

    Returns:
        (..., D).

    Source: He et al. 2016, "Deep Residual Learning for Image Recognition", equation (1).
    """
    return x + sublayer(x)


def post_norm(x: Tensor, sublayer: Sublayer, norm: Sublayer) -> Tensor:
    """Normalise the sum: y = Norm(x + F(x)).

    Args:
        x: (..., D).
        sublayer: F, from (..., D) to (..., D).
        norm: from (..., D) to (..., D).

    Returns:
        (..., D), normalised.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.1.
    """
    return norm(residual(x, sublayer))


def pre_norm(x: Tensor, sublayer: Sublayer, norm: Sublayer) -> Tensor:
    """Normalise what the sub-layer sees: y = x + F(Norm(x)).

    Args:
        x: (..., D).
        sublayer: F, from (..., D) to (..., D).
        norm: from (..., D) to (..., D).

    Returns:
        (..., D), the sum as it is.

    Source: Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture", section 3.
    """
    return x + sublayer(norm(x))


class Residual(nn.Module):
    """A residual connection with its norm and its dropout, around any sub-layer.

    Args:
        norm: the norm, whose weights this module holds.
        norm_order: "pre" (`pre_norm`) or "post" (`post_norm`).
        dropout_p: probability of dropping a number that the sub-layer adds, in training.

    Raises:
        ValueError: the order is unknown.

    Source: Vaswani et al. 2017, "Attention Is All You Need", sections 3.1 and 5.4 (dropout).
    """

    def __init__(self, norm: nn.Module, *, norm_order: NormOrder, dropout_p: float = 0.0) -> None:
        super().__init__()
        if norm_order not in get_args(NormOrder):
            raise ValueError(f"norm_order must be 'pre' or 'post', got {norm_order!r}")
        self.norm = norm
        self.norm_order: NormOrder = norm_order
        self.dropout = nn.Dropout(dropout_p)

    def forward(self, x: Tensor, sublayer: Sublayer) -> Tensor:
        """Apply a sub-layer.

        Args:
            x: (B, T, D).
            sublayer: from (B, T, D) to (B, T, D).

        Returns:
            (B, T, D).
        """
        if self.norm_order == "pre":
            return pre_norm(x, lambda y: self.dropout(sublayer(y)), self.norm)
        return post_norm(x, lambda y: self.dropout(sublayer(y)), self.norm)
