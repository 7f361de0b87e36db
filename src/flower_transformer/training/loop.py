"""The training loop: epochs of steps; evaluate, save, stop early, go on where it stopped.

A run that is interrupted and resumed on a CPU ends with the same bits as one that is not. For that
the batches of an epoch must depend on its number only, as those of `data.shuffled_batches` do;
everything else, random generators included, is in the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sized
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Generic

import torch
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler

from flower_transformer.training.checkpoint import (
    load_checkpoint,
    newest_checkpoint,
    random_state,
    save_checkpoint,
    save_weights,
    set_random_state,
)
from flower_transformer.training.distributed import (
    gather_from_processes,
    n_processes,
    process_number,
    without_wrapper,
)
from flower_transformer.training.early_stopping import EarlyStopping
from flower_transformer.training.losses import token_weighted_mean
from flower_transformer.training.progress import progress_bar
from flower_transformer.training.steps import B, BatchLoss, evaluate, training_step


@dataclass(frozen=True)
class TrainingConfig:
    """How to train.

    Attributes:
        n_epochs: the most epochs.
        accumulate: micro-batches to an update of the weights; the last update of an epoch may
            have fewer.
        max_norm: clip the norm of all gradients to this; None for no clipping.
        autocast_dtype: torch.bfloat16 or torch.float16 for mixed precision (float16 with a scaled
            loss); None for the model's own precision.
        checkpoint_every: updates between two checkpoints; one at the end of each epoch in any case.
        show_progress: whether to show a bar; None for where stderr is a terminal.
    """

    n_epochs: int
    accumulate: int = 1
    max_norm: float | None = 1.0
    autocast_dtype: torch.dtype | None = None
    checkpoint_every: int | None = None
    show_progress: bool | None = None

    def __post_init__(self) -> None:
        """Refuse counts below 1."""
        for name in ("n_epochs", "accumulate", "checkpoint_every"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, got {value}")


@dataclass(frozen=True)
class EpochRecord:
    """What is known of an epoch when it is over.

    Attributes:
        epoch: its number, from 0.
        n_steps: updates since the beginning of the training.
        loss: mean over the tokens of the epoch, while the weights changed.
        evaluation_loss: afterwards; None without evaluation.
        step_losses: loss of each update of the epoch.
    """

    epoch: int
    n_steps: int
    loss: float
    evaluation_loss: float | None
    step_losses: list[float]


class Trainer(Generic[B]):
    """Repeats `training_step` over epochs, evaluates, saves, and resumes.

    Attributes:
        n_steps: updates so far.
        history: one record for each epoch that is over.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        batch_loss: BatchLoss[B],
        config: TrainingConfig,
        *,
        scheduler: LRScheduler | None = None,
        early_stopping: EarlyStopping | None = None,
        folder: Path | None = None,
    ) -> None:
        """Bring together what training needs; nothing runs yet.

        Args:
            model: on its device, perhaps wrapped by `data_parallel`.
            optimizer: of its parameters.
            batch_loss: the sum of the losses of a batch's tokens.
            config: how to train.
            scheduler: of the learning rate, moved after each update.
            early_stopping: is given the evaluation loss of each epoch.
            folder: for checkpoints and, with early stopping, ``best.safetensors``, the weights of
                the best evaluation; None to save nothing.
        """
        self.model, self.optimizer, self.batch_loss = model, optimizer, batch_loss
        self.config, self.scheduler, self.early_stopping = config, scheduler, early_stopping
        self.folder = folder
        self.device = next(model.parameters()).device
        self.scaler = GradScaler(self.device.type, enabled=config.autocast_dtype == torch.float16)
        self.n_steps = 0
        self.history: list[EpochRecord] = []
        self._step_losses: list[Tensor] = []  # of the epoch that runs
        self._step_tokens: list[int] = []
        self._random_state: dict[str, Any] | None = None  # to go on from

    def fit(
        self, batches: Callable[[int], Iterable[B]], evaluation: Iterable[B] | None = None
    ) -> list[EpochRecord]:
        """Train to the last epoch, or until early stopping ends it.

        Args:
            batches: given the number of an epoch, from 0, its micro-batches; of several processes
                each has its own, and all have as many.
            evaluation: batches to evaluate on after each epoch; a list, or anything that can be
                gone through again and again.

        Returns:
            The history, with the epochs before an interruption.

        Raises:
            ValueError: an epoch has no batch, or there is early stopping without evaluation.
        """
        if self.early_stopping is not None and evaluation is None:
            raise ValueError("early stopping needs an evaluation, got None")
        self.model.train()
        while len(self.history) < self.config.n_epochs and not self._has_stopped():
            self._run_epoch(batches)
            self._end_epoch(evaluation)
        return self.history

    def save(self) -> None:
        """Write a checkpoint of this moment into the folder, if there is one."""
        if self.folder is None:
            return
        random_states = gather_from_processes(random_state(self.device))
        if process_number() != 0:
            return
        state = {
            "n_steps": self.n_steps,
            "history": [asdict(record) for record in self.history],
            "step_losses": torch.stack(self._step_losses) if self._step_losses else torch.zeros(0),
            "step_tokens": self._step_tokens,
            "random": random_states,
            "parts": {name: part.state_dict() for name, part in self._parts().items()},
        }
        save_checkpoint(self.folder, self.n_steps, without_wrapper(self.model), state)

    def resume(self) -> bool:
        """Go on from the newest checkpoint in the folder, if there is one.

        Returns:
            Whether there was one.

        Raises:
            ValueError: it was written by another number of processes, or by a trainer with a
                scheduler or early stopping where this one has none, or the other way round.
            RuntimeError: its weights do not fit the model.
        """
        newest = None if self.folder is None else newest_checkpoint(self.folder)
        if newest is None:
            return False
        state = load_checkpoint(newest, without_wrapper(self.model))
        if len(state["random"]) != n_processes():
            counts = f"{len(state['random'])} processes, now there are {n_processes()}"
            raise ValueError(f"{newest} was written by {counts}")
        if set(state["parts"]) != set(self._parts()):
            names = f"{sorted(state['parts'])}, this trainer has {sorted(self._parts())}"
            raise ValueError(f"{newest} was written by a trainer with {names}")
        self.n_steps = state["n_steps"]
        self.history = [EpochRecord(**record) for record in state["history"]]
        self._step_losses = list(state["step_losses"].to(self.device))
        self._step_tokens = state["step_tokens"]
        self._random_state = state["random"][process_number()]
        for name, part in self._parts().items():
            part.load_state_dict(state["parts"][name])
        return True

    def _run_epoch(self, batches: Callable[[int], Iterable[B]]) -> None:
        epoch, done, config = len(self.history), len(self._step_losses), self.config
        self._restore_random_state()
        of_epoch = batches(epoch)
        stream = iter(of_epoch)
        if done:
            for _ in islice(stream, done * config.accumulate):  # seen before the interruption
                pass
            self._restore_random_state()  # making them may have drawn numbers
        self._random_state = None

        n_steps = -(-len(of_epoch) // config.accumulate) if isinstance(of_epoch, Sized) else None
        show = False if process_number() else config.show_progress
        name = f"epoch {epoch + 1}/{config.n_epochs}"
        with progress_bar(name, n_steps, done=done, show=show) as advance:
            while micro_batches := list(islice(stream, config.accumulate)):
                result = training_step(
                    self.model,
                    self.optimizer,
                    micro_batches,
                    self.batch_loss,
                    max_norm=config.max_norm,
                    autocast_dtype=config.autocast_dtype,
                    scaler=self.scaler,
                )
                if self.scheduler is not None and result.updated:
                    self.scheduler.step()
                self.n_steps += 1
                self._step_losses.append(result.loss)
                self._step_tokens.append(result.n_tokens)
                advance(result.loss)
                if config.checkpoint_every and self.n_steps % config.checkpoint_every == 0:
                    self.save()

    def _end_epoch(self, evaluation: Iterable[B] | None) -> None:
        epoch = len(self.history)
        if not self._step_losses:
            raise ValueError(f"epoch {epoch} has 0 batches")
        losses = torch.stack(self._step_losses)
        tokens = torch.tensor(self._step_tokens, device=self.device)
        loss = float(token_weighted_mean(losses.double(), tokens))
        evaluation_loss = None
        if evaluation is not None:
            evaluation_loss = evaluate(
                self.model, evaluation, self.batch_loss, autocast_dtype=self.config.autocast_dtype
            )
        self.history.append(
            EpochRecord(epoch, self.n_steps, loss, evaluation_loss, losses.tolist())
        )
        self._step_losses, self._step_tokens = [], []
        if self.early_stopping is not None and evaluation_loss is not None:
            improved = self.early_stopping.update(evaluation_loss)
            if improved and self.folder is not None and process_number() == 0:
                self.folder.mkdir(parents=True, exist_ok=True)
                save_weights(without_wrapper(self.model), self.folder / "best.safetensors")
        self.save()

    def _has_stopped(self) -> bool:
        return self.early_stopping is not None and self.early_stopping.should_stop

    def _restore_random_state(self) -> None:
        if self._random_state is not None:
            set_random_state(self._random_state, self.device)

    def _parts(self) -> dict[str, Any]:
        """Everything besides the model that has a state of its own."""
        parts = {
            "optimizer": self.optimizer,
            "scheduler": self.scheduler,
            "scaler": self.scaler,
            "early_stopping": self.early_stopping,
        }
        return {name: part for name, part in parts.items() if part is not None}
