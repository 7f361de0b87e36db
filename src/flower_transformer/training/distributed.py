"""One model on several processes: torch's DistributedDataParallel, started with torchrun.

    torchrun --nproc-per-node 2 train.py

Each process computes the gradient of its own batches; DistributedDataParallel averages them. What
is here joins the processes, deals out the batches and adds numbers up; alone, a process passes
through all of it unchanged, so that one script serves both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

T = TypeVar("T")


@contextmanager
def process_group(device: torch.device) -> Iterator[None]:
    """Join the processes that torchrun started, for the length of a ``with`` block.

    Args:
        device: kind of device to compute on; each process of a machine takes another one of it.
    """
    if "RANK" not in os.environ:  # not started by torchrun
        yield
        return
    torch.get_device_module(device).set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group()
    try:
        yield
    finally:
        dist.destroy_process_group()


def n_processes() -> int:
    """Return how many processes train together; 1 for one alone."""
    return dist.get_world_size() if dist.is_initialized() else 1


def process_number() -> int:
    """Return which of them this one is, from 0; number 0 prints and saves."""
    return dist.get_rank() if dist.is_initialized() else 0


def data_parallel(model: nn.Module) -> nn.Module:
    """Wrap a model so that its gradients are averaged over the processes; alone, leave it.

    Args:
        model: on its device already; process 0's weights become everybody's.
    """
    return DistributedDataParallel(model) if dist.is_initialized() else model


def without_wrapper(model: nn.Module) -> nn.Module:
    """Return the model itself, whose names of weights are those of a single process."""
    return model.module if isinstance(model, DistributedDataParallel) else model


def averaging(model: nn.Module, *, last: bool) -> AbstractContextManager[Any]:
    """Average gradients only in the last backward pass before an update.

    Args:
        model: wrapped or not.
        last: whether an update follows.
    """
    if isinstance(model, DistributedDataParallel) and not last:
        return model.no_sync()
    return nullcontext()


def own_share(items: Sequence[T], *, even: bool = True) -> Sequence[T]:
    """Take every n-th item, beginning with this process's number.

    Args:
        items: the same ones in every process.
        even: drop what is left after dealing out whole rounds. In training every process must make
            the same number of steps, or they wait for each other for ever; for evaluation take
            False, and nothing is dropped.

    Returns:
        The items of this process; the processes' shares do not overlap.
    """
    end = len(items) - len(items) % n_processes() if even else len(items)
    return items[process_number() : end : n_processes()]


def sum_over_processes(value: Tensor) -> Tensor:
    """Add up a tensor of every process.

    Args:
        value: of one shape and dtype everywhere, on the device that the process computes on.

    Returns:
        The sum, the same in every process.
    """
    total = value.clone()
    if dist.is_initialized():
        dist.all_reduce(total)
    return total


def gather_from_processes(value: T) -> list[T]:
    """Collect an object of every process, in the order of their numbers.

    Args:
        value: what this process contributes.
    """
    values = [value] * n_processes()
    if dist.is_initialized():
        dist.all_gather_object(values, value)
    return values
