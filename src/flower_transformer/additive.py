r"""Additive attention (Bahdanau et al. 2015).

Legend: T query length, S key length, d_s and d_h the widths of queries and keys, a the hidden
width, "..." leading axes, usually (B,).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from flower_transformer.alignment import Alignment


def additive_scores(query: Tensor, key: Tensor, w: Tensor, u: Tensor, v: Tensor) -> Tensor:
    r"""Score a key by a small network that sees it and the query.

    $$
    e_{ij} = v^{\top} \tanh(W s_i + U h_j)
    $$

    The paper writes $s_{i-1}$: the query of step i is the decoder's state before it.

    Args:
        query: s (..., T, d_s), states of the decoder.
        key: h (..., S, d_h), states of the encoder.
        w: W (a, d_s).
        u: U (a, d_h).
        v: (a,).

    Returns:
        e (..., T, S).

    Raises:
        ValueError: a weight does not fit the states, or they differ in a.

    Source: Bahdanau et al. 2015, "Neural Machine Translation by Jointly Learning to Align and
    Translate", section 3.1 and appendix A.1.2.
    """
    for name, weight, states in (("w", w, query), ("u", u, key)):
        if weight.shape != (*v.shape, states.shape[-1]):
            shapes = f"{tuple(weight.shape)}, v is {tuple(v.shape)}, its states {states.shape[-1]}"
            raise ValueError(f"{name} must be (a, width of its states): got {shapes}")
    # (..., T, 1, a) + (..., 1, S, a) -> (..., T, S, a): every query with every key
    hidden = torch.tanh((query @ w.T).unsqueeze(-2) + (key @ u.T).unsqueeze(-3))
    return hidden @ v


class AdditiveAttention(Alignment):
    """Attention by `additive_scores`.

    Args:
        d_query: d_s, the width of the decoder's states.
        d_key: d_h, the width of the encoder's states.
        d_hidden: a, the width of the network between them.

    Raises:
        ValueError: a size is < 1.

    Source: Bahdanau et al. 2015, section 3.1.
    """

    def __init__(self, d_query: int, d_key: int, d_hidden: int) -> None:
        super().__init__()
        if min(d_query, d_key, d_hidden) < 1:
            sizes = f"d_query {d_query}, d_key {d_key}, d_hidden {d_hidden}"
            raise ValueError(f"sizes must be positive: {sizes}")
        self.project_query = nn.Linear(d_query, d_hidden, bias=False)  # W
        self.project_key = nn.Linear(d_key, d_hidden, bias=False)  # U
        self.v = nn.Parameter(torch.empty(d_hidden))
        nn.init.uniform_(self.v, -(d_hidden**-0.5), d_hidden**-0.5)

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """Score every key (..., S, d_h) against every query (..., T, d_s): (..., T, S)."""
        w, u = self.project_query.weight, self.project_key.weight
        return additive_scores(query, key, w, u, self.v)
