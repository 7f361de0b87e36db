"""One update of the weights from several micro-batches, and the loss over a data set.

Neither knows model or data. They take a function ``batch_loss(model, batch)`` that returns the
*sum* of the losses of a batch's tokens, and batches that know how many tokens that sum is over; for
images or texts to classify, a token is one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import torch
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler
from torch.optim import Optimizer

from flower_transformer.training.distributed import (
    averaging,
    n_processes,
    sum_over_processes,
    without_wrapper,
)


class Batch(Protocol):
    """What the loop asks of a batch."""

    @property
    def n_tokens(self) -> int:
        """Over how many tokens the batch's loss is summed."""
        ...

    def to(self, device: torch.device) -> Self:
        """Return the batch on a device."""
        ...


B = TypeVar("B", bound=Batch)
BatchLoss = Callable[[nn.Module, B], Tensor]


@dataclass(frozen=True)
class StepResult:
    """What a training step reports.

    Attributes:
        loss: mean over the tokens of all micro-batches and processes, before the update.
        n_tokens: how many tokens that were.
        gradient_norm: norm of all gradients before clipping.
        updated: whether the weights changed; no, if float16 overflowed.
    """

    loss: Tensor
    n_tokens: int
    gradient_norm: Tensor
    updated: bool


def training_step(
    model: nn.Module,
    optimizer: Optimizer,
    batches: Sequence[B],
    batch_loss: BatchLoss[B],
    *,
    max_norm: float | None = None,
    autocast_dtype: torch.dtype | None = None,
    scaler: GradScaler | None = None,
) -> StepResult:
    """Update the weights once, with the gradient of the mean loss over all tokens of the batches.

    The batches are micro-batches: they go through the model one after another and give the same
    gradient as if they were one. The tokens are counted first and every sum is divided by their
    number; the mean of the micro-batches' means would weigh tokens unequally.

    Args:
        model: in training mode, perhaps wrapped in DistributedDataParallel.
        optimizer: of its parameters.
        batches: at least one.
        batch_loss: the sum of the losses of a batch's tokens.
        max_norm: clip the norm of all gradients to this; None for no clipping.
        autocast_dtype: run the model in mixed precision; None for its own precision.
        scaler: scales the loss so that float16 gradients do not vanish. They are unscaled again
            before they are clipped.

    Returns:
        Loss, number of tokens and norm of the gradient.

    Raises:
        ValueError: there is no batch.
    """
    if not batches:
        raise ValueError("a training step needs at least 1 batch, got 0")
    device = next(model.parameters()).device
    scaler = GradScaler(device.type, enabled=False) if scaler is None else scaler
    own_tokens = torch.tensor(sum(batch.n_tokens for batch in batches), device=device)
    n_tokens = int(sum_over_processes(own_tokens))

    optimizer.zero_grad()
    loss = torch.zeros((), device=device)
    for number, batch in enumerate(batches, start=1):
        with averaging(model, last=number == len(batches)):
            with torch.autocast(
                device.type, dtype=autocast_dtype, enabled=autocast_dtype is not None
            ):
                part = batch_loss(model, batch.to(device)) / max(1, n_tokens)
            # DistributedDataParallel averages over the processes, and a sum is wanted
            scaler.scale(part * n_processes()).backward()  # type: ignore[no-untyped-call]
        loss = loss + part.detach()

    scaler.unscale_(optimizer)
    limit = float("inf") if max_norm is None else max_norm
    gradient_norm = nn.utils.clip_grad_norm_(model.parameters(), limit)
    scale = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    updated = scaler.get_scale() >= scale  # it is lowered where a gradient was not finite
    return StepResult(sum_over_processes(loss), n_tokens, gradient_norm, updated)


@torch.no_grad()
def evaluate(
    model: nn.Module,
    batches: Iterable[B],
    batch_loss: BatchLoss[B],
    *,
    autocast_dtype: torch.dtype | None = None,
) -> float:
    """Mean loss over all tokens of the batches, in evaluation mode.

    Args:
        model: is put back into the mode that it was in.
        batches: to evaluate on; of several processes each may have its own.
        batch_loss: the sum of the losses of a batch's tokens.
        autocast_dtype: run the model in mixed precision; None for its own precision.

    Returns:
        The loss.

    Raises:
        ValueError: there is no token to evaluate on, as where an iterator was used up before.
    """
    model = without_wrapper(model)
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    loss, n_tokens = torch.zeros((), dtype=torch.float64, device=device), 0
    for batch in batches:
        with torch.autocast(device.type, dtype=autocast_dtype, enabled=autocast_dtype is not None):
            loss = loss + batch_loss(model, batch.to(device))
        n_tokens += batch.n_tokens
    model.train(was_training)
    totals = sum_over_processes(torch.stack([loss, loss.new_tensor(n_tokens)]))
    if totals[1] == 0:
        raise ValueError("there are 0 tokens to evaluate on")
    return float(totals[0] / totals[1])
