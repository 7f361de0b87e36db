"""Which device a notebook runs on, and what makes its numbers repeatable there."""

from __future__ import annotations

import os

import torch

DEVICES = ("cpu", "cuda")


def pick_device() -> torch.device:
    """Return the device that the environment variable FLOWER_DEVICE names; the CPU when unset.

    Returns:
        torch.device("cpu") or torch.device("cuda").

    Raises:
        ValueError: FLOWER_DEVICE is neither "cpu" nor "cuda".
        RuntimeError: it is "cuda" and no CUDA device is there. Falling back to the CPU would
            make a run on the GPU look passed that never happened.
    """
    name = os.environ.get("FLOWER_DEVICE", "") or "cpu"
    if name not in DEVICES:
        raise ValueError(f"FLOWER_DEVICE is {name!r}, expected one of {', '.join(DEVICES)}")
    if name == "cuda" and not torch.cuda.is_available():
        raise RuntimeError("FLOWER_DEVICE is 'cuda', but torch finds no CUDA device")
    return torch.device(name)


def set_deterministic(seed: int) -> None:
    """Seed every generator and switch off what makes two runs differ.

    One thread, so that sums are taken in one order on every machine; no TF32, so that float32
    means float32 on a GPU; deterministic kernels only. Draw random tensors on the CPU and move
    them: the generators of CPU and GPU give different streams for one seed.

    Args:
        seed: seed of torch's generators.
    """
    # read by cuBLAS when it starts; without it deterministic mode refuses matrix products
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
