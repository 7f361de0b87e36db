r"""Attention from any scores: softmax over the keys, then the average of the values.

Legend: T query length, S key length, d_v width of values, "..." leading axes, usually (B,).

The attentions of recurrent translation models differ in their scores only: `additive` (Bahdanau),
`multiplicative` (Luong) and `cosine`. What they share is here.
"""

from __future__ import annotations

from typing import Literal, overload

from torch import Tensor, nn

from flower_transformer.masks import silence_unused
from flower_transformer.scaled_dot_product import masked_softmax


def attend(scores: Tensor, value: Tensor, *, may_attend: Tensor | None = None) -> Tensor:
    r"""Average the values by the softmax of their scores.

    $$
    c_i = \sum_{j=1}^{m} \alpha_{ij} h_j, \qquad
    \alpha_{ij} = \frac{\exp(e_{ij})}{\sum_{k=1}^{m} \exp(e_{ik})}
    $$

    Args:
        scores: e (..., T, S).
        value: h (..., S, d_v).
        may_attend: boolean, broadcastable to (..., T, S), True = may attend; None allows all.

    Returns:
        c (..., T, d_v), the contexts. A query that may attend to nothing gets exactly 0.

    Raises:
        ValueError: scores and value differ in S, or the mask is not boolean or does not fit.

    Source: Bahdanau et al. 2015, "Neural Machine Translation by Jointly Learning to Align and
    Translate", section 3.1, equations (5) and (6).
    """
    if scores.shape[-1] != value.shape[-2]:
        raise ValueError(f"{scores.shape[-1]} scores a query, but {value.shape[-2]} values")
    weights = masked_softmax(scores, may_attend)  # (..., T, S)
    value = value if may_attend is None else silence_unused(value, may_attend)
    return weights @ value


class Alignment(nn.Module):
    """A module that scores keys against queries, and attends by these scores.

    A subclass says how to score: it defines `scores`.
    """

    def scores(self, query: Tensor, key: Tensor) -> Tensor:
        """Score every key (..., S, d) against every query (..., T, d): (..., T, S)."""
        raise NotImplementedError

    @overload
    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor | None = None,
        *,
        may_attend: Tensor | None = None,
        return_weights: Literal[False] = False,
    ) -> Tensor: ...

    @overload
    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor | None = None,
        *,
        may_attend: Tensor | None = None,
        return_weights: Literal[True],
    ) -> tuple[Tensor, Tensor]: ...

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor | None = None,
        *,
        may_attend: Tensor | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Attend from the query to the key.

        Args:
            query: (..., T, d_query), the states of the decoder.
            key: (..., S, d_key), the states of the encoder.
            value: (..., S, d_v); the key when left out.
            may_attend: boolean, broadcastable to (..., T, S), True = may attend: padding is
                (B, 1, S). Padded states have no influence, whatever they hold.
            return_weights: also return the weights.

        Returns:
            (..., T, d_v); with return_weights the pair of it and the weights (..., T, S).
        """
        value = key if value is None else value
        key = key if may_attend is None else silence_unused(key, may_attend)
        scores = self.scores(query, key)  # (..., T, S)
        context = attend(scores, value, may_attend=may_attend)  # (..., T, d_v)
        return (context, masked_softmax(scores, may_attend)) if return_weights else context
