"""Two processes give what one gives with batches twice as large; one alone is left in peace."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from distributed_script import train
from small_model import SmallModel, batch_loss, batches_of
from torch.nn.parallel import DistributedDataParallel

from flower_transformer.training.data import TextBatch
from flower_transformer.training.distributed import (
    averaging,
    data_parallel,
    gather_from_processes,
    n_processes,
    own_share,
    process_group,
    process_number,
    sum_over_processes,
    without_wrapper,
)
from flower_transformer.training.early_stopping import EarlyStopping
from flower_transformer.training.loop import Trainer, TrainingConfig
from flower_transformer.training.optim import adamw

CPU = torch.device("cpu")
SCRIPT = Path(__file__).with_name("distributed_script.py")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each of two processes ends with."""
    folder = tmp_path_factory.mktemp("two")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", "2", str(SCRIPT), str(folder)]
    run = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert run.returncode == 0, run.stderr
    return [torch.load(folder / f"result-{number}.pt", weights_only=True) for number in (0, 1)]


def test_two_processes_equal_one_with_the_doubled_batch(results: list[dict[str, Any]]) -> None:
    """The shares differ in their number of tokens: a mean of two means would be another."""

    def both_shares(epoch: int) -> list[TextBatch]:
        return batches_of(epoch, batch_size=3)[:10]  # two processes accumulate two each

    model = SmallModel(dropout_p=0.0).double()
    config = TrainingConfig(n_epochs=2, accumulate=4, max_norm=0.5)
    alone = Trainer(model, adamw(model, lr=0.05), batch_loss, config)
    history = alone.fit(both_shares, batches_of(99, batch_size=1))
    for result in results:
        for name, value in model.state_dict().items():
            torch.testing.assert_close(result["plain"][name], value, rtol=1e-9, atol=1e-12)
        losses = [[record.loss, record.evaluation_loss] for record in history]
        torch.testing.assert_close(torch.tensor(result["losses"]), torch.tensor(losses))


def test_both_processes_hold_the_same_weights(results: list[dict[str, Any]]) -> None:
    for kind in ("plain", "whole", "parts"):
        for name, value in results[0][kind].items():
            assert torch.equal(value, results[1][kind][name])
    assert results[0]["losses"] == results[1]["losses"]


def test_two_processes_resume_each_with_its_own_dropout(results: list[dict[str, Any]]) -> None:
    for name, value in results[0]["whole"].items():
        assert torch.equal(value, results[0]["parts"][name])


def test_alone_everything_passes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    with process_group(CPU):
        model = SmallModel()
        assert n_processes() == 1
        assert process_number() == 0
        assert data_parallel(model) is model
        assert without_wrapper(model) is model
        assert own_share([1, 2, 3]) == [1, 2, 3]
        assert sum_over_processes(torch.tensor(2)).item() == 2
        assert gather_from_processes("a") == ["a"]
        with averaging(model, last=False):
            pass


@pytest.mark.parametrize(("number", "share"), [(0, [0, 3]), (1, [1, 4]), (2, [2, 5])])
def test_shares_of_whole_rounds(
    monkeypatch: pytest.MonkeyPatch, number: int, share: list[int]
) -> None:
    monkeypatch.setattr("torch.distributed.is_initialized", lambda: True)
    monkeypatch.setattr("torch.distributed.get_world_size", lambda: 3)
    monkeypatch.setattr("torch.distributed.get_rank", lambda: number)
    assert own_share(range(8)) == range(share[0], 6, 3)
    assert list(own_share(list(range(8)))) == share
    assert own_share(range(8), even=False) == range(number, 8, 3)


@pytest.fixture
def group_of_one(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    variables = {"RANK": 0, "WORLD_SIZE": 1, "LOCAL_RANK": 0, "MASTER_PORT": port}
    for name, value in {**variables, "MASTER_ADDR": "localhost"}.items():
        monkeypatch.setenv(name, str(value))
    with process_group(CPU):
        yield


@pytest.mark.usefixtures("group_of_one")
def test_a_group_of_one_trains_as_without_a_group(tmp_path: Path) -> None:
    assert n_processes() == 1
    wrapped = train(tmp_path, n_epochs=1, dropout_p=0.0)
    assert isinstance(wrapped.model, DistributedDataParallel)
    with averaging(wrapped.model, last=False):
        assert not wrapped.model.require_backward_grad_sync
    with averaging(wrapped.model, last=True):
        assert wrapped.model.require_backward_grad_sync
    model = SmallModel(dropout_p=0.0).double()
    config = TrainingConfig(n_epochs=1, accumulate=2, max_norm=0.5)
    plain = Trainer(
        model, adamw(model, lr=0.05), batch_loss, config, early_stopping=EarlyStopping(patience=5)
    )
    plain.fit(lambda epoch: batches_of(epoch, batch_size=3), batches_of(99, batch_size=1))
    for name, value in model.state_dict().items():
        torch.testing.assert_close(without_wrapper(wrapped.model).state_dict()[name], value)


def test_another_number_of_processes_cannot_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(tmp_path, n_epochs=1, dropout_p=0.0)
    monkeypatch.setattr("flower_transformer.training.loop.n_processes", lambda: 2)
    with pytest.raises(ValueError, match="written by 1 processes, now there are 2"):
        train(tmp_path, n_epochs=2, dropout_p=0.0)
