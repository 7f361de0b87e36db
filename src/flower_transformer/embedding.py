r"""Token embeddings, and the output that shares their weights.

Legend: V number of tokens in the vocabulary, D = d_model, "..." leading axes, usually (B, T).
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def embed_tokens(tokens: Tensor, table: Tensor) -> Tensor:
    r"""Look tokens up and scale them: $E[x] \sqrt{d_{\text{model}}}$.

    A table drawn with variance 1 / d_model, as suits the output that shares it, gives vectors of
    length about 1; the factor brings each number to variance 1, the size of the positions that are
    added.

    Args:
        tokens: x, integers (...).
        table: E, (V, D).

    Returns:
        (..., D) in the dtype of the table.

    Raises:
        ValueError: the tokens are no integers.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.4.
    """
    return _look_up(tokens, table) * math.sqrt(table.shape[-1])


class TokenEmbedding(nn.Module):
    r"""The table of a vocabulary, for reading tokens and for scoring the next one.

    `forward` looks tokens up (`embed_tokens`); `logits` multiplies by the same table,
    $h E^{\top}$. The output is tied by construction: there is no second weight that could be
    copied, saved or trained apart from the first.

    Args:
        n_tokens: V.
        d_model: D.
        scaled: multiply by sqrt(d_model), as the 2017 Transformer does and BERT and GPT do not.
        padding_token: its vector is 0 at first and gets no gradient from the look-up.

    Raises:
        ValueError: a size is < 1, or the padding token lies outside the vocabulary.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.4; Press and Wolf 2017,
    "Using the Output Embedding to Improve Language Models".
    """

    def __init__(
        self,
        n_tokens: int,
        d_model: int,
        *,
        scaled: bool = True,
        padding_token: int | None = None,
    ) -> None:
        super().__init__()
        if n_tokens < 1 or d_model < 1:
            raise ValueError(f"sizes must be positive: n_tokens {n_tokens}, d_model {d_model}")
        if padding_token is not None and not 0 <= padding_token < n_tokens:
            raise ValueError(f"padding_token {padding_token} is outside 0..{n_tokens - 1}")
        self.scaled = scaled
        self.padding_token = padding_token
        self.weight = nn.Parameter(torch.empty(n_tokens, d_model))
        nn.init.normal_(self.weight, std=d_model**-0.5 if scaled else 0.02)
        if padding_token is not None:
            nn.init.zeros_(self.weight[padding_token])

    def forward(self, tokens: Tensor) -> Tensor:
        """Look tokens up.

        Args:
            tokens: integers (...).

        Returns:
            (..., D), times sqrt(d_model) if scaled.
        """
        vectors = _look_up(tokens, self.weight, self.padding_token)
        return vectors * math.sqrt(self.weight.shape[-1]) if self.scaled else vectors

    def logits(self, hidden: Tensor) -> Tensor:
        """Score every token of the vocabulary, with the table as output weights.

        Args:
            hidden: (..., D).

        Returns:
            (..., V); never scaled.
        """
        return F.linear(hidden, self.weight)  # (..., D) @ (V, D)^T -> (..., V)


def _look_up(tokens: Tensor, table: Tensor, padding_token: int | None = None) -> Tensor:
    if tokens.dtype not in (torch.int32, torch.int64):
        raise ValueError(f"tokens must be integers (int32 or int64), got {tokens.dtype}")
    return F.embedding(tokens, table, padding_idx=padding_token)
