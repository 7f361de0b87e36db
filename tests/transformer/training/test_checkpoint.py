"""Checkpoints: what is written comes back, and a crash leaves the one before."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from torch import nn

from flower_transformer.training import checkpoint
from flower_transformer.training.checkpoint import (
    load_checkpoint,
    load_weights,
    newest_checkpoint,
    random_state,
    save_checkpoint,
    save_weights,
    set_random_state,
)

CPU = torch.device("cpu")


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 3)
        self.output = nn.Linear(3, 5)
        self.output.weight = self.embedding.weight
        self.register_buffer("scale", torch.ones(()))


def test_weights_come_back(tmp_path: Path) -> None:
    model, other = Tied(), Tied()
    save_weights(model, tmp_path / "a.safetensors")
    load_weights(other, tmp_path / "a.safetensors")
    assert other.output.weight is other.embedding.weight
    for name, value in model.state_dict().items():
        assert torch.equal(value, other.state_dict()[name])
    assert [path.name for path in tmp_path.iterdir()] == ["a.safetensors"]


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    save_weights(nn.Linear(2, 2), tmp_path / "a.safetensors")
    with pytest.raises(RuntimeError, match="size mismatch"):
        load_weights(nn.Linear(3, 2), tmp_path / "a.safetensors")
    with pytest.raises(RuntimeError, match="bias"):
        load_weights(nn.Linear(2, 2, bias=False), tmp_path / "a.safetensors")


def test_checkpoint_comes_back(tmp_path: Path) -> None:
    model, other = nn.Linear(2, 2), nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    state = {"step": 1, "optimizer": optimizer.state_dict(), "random": random_state(CPU)}
    path = save_checkpoint(tmp_path / "new" / "folder", 1, model, state)
    assert sorted(file.name for file in path.iterdir()) == ["model.safetensors", "state.pt"]
    loaded = load_checkpoint(path, other)
    assert torch.equal(other.weight, model.weight)
    assert loaded["step"] == 1
    resumed = torch.optim.AdamW(other.parameters(), lr=0.5)
    resumed.load_state_dict(loaded["optimizer"])
    assert resumed.param_groups[0]["lr"] == 0.1
    first, second = (o.state_dict()["state"][0]["exp_avg"] for o in (optimizer, resumed))
    assert torch.equal(first, second)


def test_newest_is_the_highest_step_and_old_ones_go(tmp_path: Path) -> None:
    assert newest_checkpoint(tmp_path / "nowhere") is None
    for step in (9, 10, 100):
        save_checkpoint(tmp_path, step, nn.Linear(1, 1), {}, keep=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000010", "step-00000100"]
    newest = newest_checkpoint(tmp_path)
    assert newest is not None
    assert newest.name == "step-00000100"
    save_checkpoint(tmp_path, 100, nn.Linear(1, 1), {"again": True})
    assert load_checkpoint(newest, nn.Linear(1, 1)) == {"again": True}
    with pytest.raises(ValueError, match="at least 1, got 0"):
        save_checkpoint(tmp_path, 1, nn.Linear(1, 1), {}, keep=0)


def test_a_crash_while_writing_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = nn.Linear(1, 1)
    before = save_checkpoint(tmp_path, 1, model, {"step": 1})
    save_weights(model, tmp_path / "best.safetensors")
    weights = (tmp_path / "best.safetensors").read_bytes()

    def crash(*_: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "_flush", crash)
        with pytest.raises(OSError, match="disk full"):
            save_checkpoint(tmp_path, 2, nn.Linear(1, 1), {"step": 2})
        with pytest.raises(OSError, match="disk full"):
            save_weights(nn.Linear(1, 1), tmp_path / "best.safetensors")
    assert newest_checkpoint(tmp_path) == before
    assert load_checkpoint(before, nn.Linear(1, 1)) == {"step": 1}
    assert (tmp_path / "best.safetensors").read_bytes() == weights
    after = save_checkpoint(tmp_path, 2, model, {"step": 2})  # the half-written one is no obstacle
    assert newest_checkpoint(tmp_path) == after


class Anything:
    """Stands for an object whose unpickling could run code."""


def test_a_state_that_could_run_code_is_refused(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, 1, nn.Linear(1, 1), {"what": Anything()})
    with pytest.raises(Exception, match="Weights only load failed"):
        load_checkpoint(path, nn.Linear(1, 1))


def test_generators_go_on_where_they_stood() -> None:
    state = random_state(CPU)
    drawn = torch.rand(3), random.random()
    set_random_state(state, CPU)
    again = torch.rand(3), random.random()
    assert torch.equal(drawn[0], again[0])
    assert drawn[1] == again[1]


def test_a_device_with_its_own_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    class Module:
        state = torch.tensor([1])

        def get_rng_state(self, device: torch.device) -> torch.Tensor:
            return self.state

        def set_rng_state(self, state: torch.Tensor, device: torch.device) -> None:
            self.state = state

    module = Module()
    monkeypatch.setattr(torch, "get_device_module", lambda device: module)
    state = random_state(torch.device("cuda"))
    module.state = torch.tensor([2])
    set_random_state(state, torch.device("cuda"))
    assert module.state.item() == 1
