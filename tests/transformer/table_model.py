"""A language model whose next token depends on the last one by a table that a test writes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from flower_transformer.cache import Cache


class TableModel(nn.Module):
    """Probabilities of the next token, one row for each last token."""

    def __init__(self, probabilities: list[list[float]]) -> None:
        super().__init__()
        self.logits = torch.tensor(probabilities).log()
        self.n_read = 0  # how many tokens it was given in all
        self.eval()

    def forward(
        self,
        tokens: Tensor,
        *,
        padding_mask: Tensor | None = None,
        caches: Sequence[Cache] | None = None,
    ) -> Tensor:
        self.n_read += tokens.numel()
        return self.logits[tokens]

    def make_caches(self) -> list[Cache]:
        return []
