"""Checkpoints: weights in safetensors, everything else with torch.save, written all or not at all.

A checkpoint is a folder ``step-00000120`` with ``model.safetensors`` and ``state.pt``. It is
written under another name and renamed when it is complete, so that a crash leaves the one before.
Nothing in it is code: the state is read with ``weights_only=True``.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_model, save_model
from torch import nn

WEIGHTS, STATE = "model.safetensors", "state.pt"
_UNFINISHED = ".unfinished"


def save_weights(model: nn.Module, path: Path) -> None:
    """Write the weights of a model to a safetensors file.

    Args:
        model: weights that two of its modules share are written once.
        path: of the file. What was there is replaced at once: a reader finds the old weights or
            the new ones, never a half.
    """
    unfinished = path.with_name(path.name + _UNFINISHED)
    save_model(model, str(unfinished))
    _flush(unfinished)
    os.replace(unfinished, path)


def load_weights(model: nn.Module, path: Path) -> None:
    """Read the weights of a model, which stays on its device.

    Args:
        model: of the same configuration.
        path: a file of `save_weights`.

    Raises:
        RuntimeError: a weight is missing, left over, or of another shape.
    """
    load_model(model, path)


def save_checkpoint(
    folder: Path, step: int, model: nn.Module, state: dict[str, Any], *, keep: int = 2
) -> Path:
    """Write a checkpoint, and remove the oldest ones.

    Args:
        folder: of the checkpoints; made if it is not there.
        step: number of updates so far; names the checkpoint.
        model: whose weights to write.
        state: numbers, strings, tensors and lists, tuples and dicts of them.
        keep: how many checkpoints to keep.

    Returns:
        The folder of the checkpoint.

    Raises:
        ValueError: keep is below 1.
    """
    if keep < 1:
        raise ValueError(f"keep must be at least 1, got {keep}")
    unfinished, target = folder / _UNFINISHED, folder / f"step-{step:08d}"
    shutil.rmtree(unfinished, ignore_errors=True)  # of a run that was interrupted
    unfinished.mkdir(parents=True)
    save_model(model, str(unfinished / WEIGHTS))
    torch.save(state, unfinished / STATE)
    for name in (WEIGHTS, STATE):
        _flush(unfinished / name)
    shutil.rmtree(target, ignore_errors=True)
    os.replace(unfinished, target)
    for old in _checkpoints(folder)[:-keep]:
        shutil.rmtree(old)
    return target


def newest_checkpoint(folder: Path) -> Path | None:
    """Return the checkpoint of the highest step, or None if there is none.

    Args:
        folder: of the checkpoints; need not exist.
    """
    found = _checkpoints(folder)
    return found[-1] if found else None


def load_checkpoint(path: Path, model: nn.Module) -> dict[str, Any]:
    """Read a checkpoint: the weights into the model, the state as it was given.

    Args:
        path: folder of the checkpoint.
        model: of the same configuration; it stays on its device.

    Returns:
        The state. Its tensors are in the memory of the CPU, wherever they were; an optimiser
        moves them to its parameters.

    Raises:
        RuntimeError: a weight is missing, left over, or of another shape.
    """
    load_weights(model, path / WEIGHTS)
    state: dict[str, Any] = torch.load(
        path / STATE, weights_only=True, map_location=lambda storage, _: storage
    )
    return state


def random_state(device: torch.device) -> dict[str, Any]:
    """Return where the generators of Python, torch and the device stand.

    Args:
        device: that the model computes on.
    """
    state = {"python": random.getstate(), "torch": torch.get_rng_state()}
    module = torch.get_device_module(device)
    if hasattr(module, "get_rng_state"):  # the device has a generator of its own
        state["device"] = module.get_rng_state(device)
    return state


def set_random_state(state: dict[str, Any], device: torch.device) -> None:
    """Set the generators to where they stood.

    Args:
        state: of `random_state`.
        device: that the model computes on; a state of another kind of device says nothing about
            its generator, which is then left alone.
    """
    random.setstate(state["python"])
    torch.set_rng_state(state["torch"])
    module = torch.get_device_module(device)
    if "device" in state and hasattr(module, "set_rng_state"):
        module.set_rng_state(state["device"], device)


def _checkpoints(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("step-*") if (path / STATE).is_file())


def _flush(path: Path) -> None:
    """Have the file's content on the disk before its name is."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
