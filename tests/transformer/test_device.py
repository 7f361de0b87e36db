"""The device is the one that was asked for, and two runs give the same numbers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from flower_transformer.device import pick_device, set_deterministic


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.use_deterministic_algorithms(False)
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", [None, "", "cpu"])
def test_cpu_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch, name: str | None) -> None:
    monkeypatch.delenv("FLOWER_DEVICE", raising=False)
    if name is not None:
        monkeypatch.setenv("FLOWER_DEVICE", name)
    assert pick_device() == torch.device("cpu")


def test_unknown_device_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWER_DEVICE", "gpu")
    with pytest.raises(ValueError, match="FLOWER_DEVICE is 'gpu', expected one of cpu, cuda"):
        pick_device()


def test_missing_gpu_is_an_error_not_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOWER_DEVICE", "cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RuntimeError, match="finds no CUDA device"):
        pick_device()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert pick_device() == torch.device("cuda")


def test_same_seed_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    draws = []
    for seed in (3, 3, 4):
        set_deterministic(seed)
        draws.append(torch.randn(5))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    assert torch.are_deterministic_algorithms_enabled()
    assert torch.get_num_threads() == 1
    assert not torch.backends.cuda.matmul.allow_tf32
    assert not torch.backends.cudnn.allow_tf32
