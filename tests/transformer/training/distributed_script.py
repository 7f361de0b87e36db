"""What test_distributed.py starts with torchrun: train on this process's share, save, resume."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from small_model import SmallModel, batch_loss, batches_of

from flower_transformer.training.data import TextBatch
from flower_transformer.training.distributed import (
    data_parallel,
    own_share,
    process_group,
    process_number,
    without_wrapper,
)
from flower_transformer.training.early_stopping import EarlyStopping
from flower_transformer.training.loop import Trainer, TrainingConfig
from flower_transformer.training.optim import adamw


def own_batches(epoch: int) -> list[TextBatch]:
    return list(own_share(batches_of(epoch, batch_size=3)))  # 11 batches: one is left over


def train(folder: Path, *, n_epochs: int, dropout_p: float, seed: int = 0) -> Trainer[TextBatch]:
    """Train a model of double precision; what is in the folder is gone on with."""
    model = data_parallel(SmallModel(dropout_p=dropout_p, seed=seed).double())
    torch.manual_seed(process_number())  # every process its own dropout
    optimizer = adamw(model, lr=0.05)
    config = TrainingConfig(n_epochs=n_epochs, accumulate=2, max_norm=0.5)
    early_stopping = EarlyStopping(patience=5)
    trainer = Trainer(
        model, optimizer, batch_loss, config, early_stopping=early_stopping, folder=folder
    )
    trainer.resume()
    trainer.fit(own_batches, list(own_share(batches_of(99, batch_size=1), even=False)))
    return trainer


def main(folder: Path) -> None:
    with process_group(torch.device("cpu")):
        plain = train(folder / "plain", n_epochs=2, dropout_p=0.0)
        whole = train(folder / "whole", n_epochs=2, dropout_p=0.5)
        train(folder / "parts", n_epochs=1, dropout_p=0.5)
        parts = train(folder / "parts", n_epochs=2, dropout_p=0.5, seed=3)
        result = {
            "plain": without_wrapper(plain.model).state_dict(),
            "whole": without_wrapper(whole.model).state_dict(),
            "parts": without_wrapper(parts.model).state_dict(),
            "losses": [[record.loss, record.evaluation_loss] for record in plain.history],
        }
        torch.save(result, folder / f"result-{process_number()}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
