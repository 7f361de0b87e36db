"""A model, data and a loss that are small enough to train in a test."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from flower_transformer.training.data import TextBatch, collate_texts, shuffled_batches
from flower_transformer.training.losses import cross_entropy

N_TOKENS = 11


class SmallModel(nn.Module):
    """Predicts the next token from the current one; its dropout draws random numbers."""

    def __init__(self, *, dropout_p: float = 0.1, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = nn.Embedding(N_TOKENS, 16)
        self.hidden = nn.Linear(16, 16)
        self.dropout = nn.Dropout(dropout_p)
        self.output = nn.Linear(16, N_TOKENS)
        self.output.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        return self.output(x + self.dropout(F.relu(self.hidden(x))))


def batch_loss(model: nn.Module, batch: TextBatch) -> Tensor:
    return cross_entropy(model(batch.inputs), batch.labels, reduction="sum")


def counting_sequences() -> list[list[int]]:
    """3, 4, 5, ... from every start and of several lengths: the next token is one more."""
    return [
        [(start + i) % N_TOKENS for i in range(length)]
        for start in range(N_TOKENS)
        for length in (2, 4, 7)
    ]


def batches_of(epoch: int, *, batch_size: int = 4) -> list[TextBatch]:
    sequences = counting_sequences()
    return [
        collate_texts([sequences[index] for index in indices], pad_id=0)
        for indices in shuffled_batches(len(sequences), batch_size=batch_size, seed=5, epoch=epoch)
    ]
