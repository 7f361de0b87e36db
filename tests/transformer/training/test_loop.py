"""The loop: it learns, stops early, and a resumed run equals an uninterrupted one bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from small_model import N_TOKENS, SmallModel, batch_loss, batches_of
from torch import nn
from torch.utils.data import DataLoader

from flower_transformer.training.checkpoint import load_weights, newest_checkpoint
from flower_transformer.training.data import TextBatch, collate_texts
from flower_transformer.training.early_stopping import EarlyStopping
from flower_transformer.training.loop import EpochRecord, Trainer, TrainingConfig
from flower_transformer.training.optim import adamw
from flower_transformer.training.schedules import cosine_scheduler
from flower_transformer.training.steps import evaluate


class Interrupted(Exception):
    """Stands for the power cut."""


def trainer(
    folder: Path | None = None,
    *,
    device: str = "cpu",
    n_epochs: int = 3,
    seed: int = 0,
    patience: int | None = None,
    fail_at: int | None = None,
    **config: object,
) -> Trainer[TextBatch]:
    """A trainer with all its parts; ``fail_at`` interrupts it in that call of the loss."""
    model = SmallModel(seed=seed).to(device)
    optimizer = adamw(model, lr=0.05)
    calls = 0

    def loss(model: nn.Module, batch: TextBatch) -> torch.Tensor:
        nonlocal calls
        calls += 1
        if calls == fail_at:
            raise Interrupted
        return batch_loss(model, batch)

    options = {"accumulate": 2, "checkpoint_every": 2, **config}
    return Trainer(
        model,
        optimizer,
        loss,
        TrainingConfig(n_epochs=n_epochs, **options),  # type: ignore[arg-type]
        scheduler=cosine_scheduler(optimizer, n_steps=5 * n_epochs, warmup_steps=2),
        early_stopping=None if patience is None else EarlyStopping(patience=patience),
        folder=folder,
    )


def same(first: Trainer[TextBatch], second: Trainer[TextBatch]) -> bool:
    """Bit for bit: weights, moments, rates, records, and what the generators will draw next."""
    ours, theirs = first.model.state_dict(), second.model.state_dict()
    moments = [
        [
            value
            for state in one.optimizer.state_dict()["state"].values()
            for value in state.values()
        ]
        for one in (first, second)
    ]
    return (
        all(torch.equal(ours[name], theirs[name]) for name in ours)
        and all(torch.equal(a, b) for a, b in zip(*moments, strict=True))
        and first.optimizer.param_groups[0]["lr"] == second.optimizer.param_groups[0]["lr"]
        and first.history == second.history
        and first.n_steps == second.n_steps
    )


def test_learns_to_count() -> None:
    """The loss falls to a third and 80 % of the numbers are followed by the right one; the margin:
    with six seeds it fell to 0.4 % at most, and all were right with probability 0.98.
    """
    run = trainer(n_epochs=20, checkpoint_every=None)
    history = run.fit(batches_of, batches_of(99))
    assert [record.epoch for record in history] == list(range(20))
    # 33 sequences, 4 in a micro-batch, 2 of those in a step: 9 micro-batches, 5 steps
    assert [record.n_steps for record in history] == [5 * epoch for epoch in range(1, 21)]
    assert len(history[0].step_losses) == 5
    assert history[-1].loss < history[0].loss / 3
    batch = collate_texts([list(range(N_TOKENS))], pad_id=0)
    run.model.eval()
    right = run.model(batch.inputs).argmax(dim=-1) == batch.labels
    assert right.float().mean() >= 0.8


def test_the_loss_of_an_epoch_is_a_mean_over_tokens() -> None:
    run = trainer(n_epochs=1, accumulate=1)
    (record,) = run.fit(batches_of)
    counts = torch.tensor([float(batch.n_tokens) for batch in batches_of(0)])
    expected = (torch.tensor(record.step_losses) * counts).sum() / counts.sum()
    assert record.loss == pytest.approx(expected.item())
    assert record.evaluation_loss is None


@pytest.mark.parametrize("fail_at", [1, 6, 9, 10, 13, 27])
@pytest.mark.parametrize("dtype", [None, torch.bfloat16])
def test_a_resumed_run_equals_an_uninterrupted_one(
    tmp_path: Path, fail_at: int, dtype: torch.dtype | None
) -> None:
    options = {"patience": 10, "autocast_dtype": dtype}
    whole = trainer(**options)
    whole.fit(batches_of, batches_of(99))
    after_whole = torch.rand(3)

    interrupted = trainer(tmp_path, fail_at=fail_at, **options)
    with pytest.raises(Interrupted):
        interrupted.fit(batches_of, batches_of(99))
    torch.manual_seed(1234)
    resumed = trainer(tmp_path, seed=7, **options)  # other weights, until they are loaded
    torch.rand(5)
    had_checkpoint = resumed.resume()
    assert had_checkpoint == (fail_at > 4)  # 2 updates of 2 micro-batches
    if not had_checkpoint:
        resumed = trainer(tmp_path, **options)
    else:
        torch.rand(5)  # neither draws before the run nor between the two count
    resumed.fit(batches_of, batches_of(99))
    assert same(resumed, whole)
    assert torch.equal(torch.rand(3), after_whole)


def test_a_loader_that_draws_numbers_resumes_too(tmp_path: Path) -> None:
    """An iterator over a DataLoader draws from torch's generator when it begins."""

    def loader(epoch: int) -> DataLoader[TextBatch]:
        return DataLoader(batches_of(epoch), batch_size=None)  # type: ignore[arg-type]

    whole = trainer()
    whole.fit(loader)
    with pytest.raises(Interrupted):
        trainer(tmp_path, fail_at=15).fit(loader)
    resumed = trainer(tmp_path)
    assert resumed.resume()
    resumed.fit(loader)
    assert same(resumed, whole)


def test_resuming_a_finished_run_changes_nothing(tmp_path: Path) -> None:
    run = trainer(tmp_path)
    run.fit(batches_of)
    resumed = trainer(tmp_path, seed=3)
    assert resumed.resume()
    resumed.fit(batches_of)
    assert same(resumed, run)


def test_nothing_to_resume(tmp_path: Path) -> None:
    assert not trainer(tmp_path).resume()
    assert not trainer(None).resume()


def test_stops_on_a_plateau_and_keeps_the_best_weights(tmp_path: Path) -> None:
    run = trainer(tmp_path, n_epochs=50, patience=2)
    for group in run.optimizer.param_groups:
        group["lr"] = group["initial_lr"] = 0.0  # nothing improves after the first epoch
    run.scheduler = None
    history = run.fit(batches_of, batches_of(99))
    assert len(history) == 3
    best = SmallModel(seed=5)
    load_weights(best, tmp_path / "best.safetensors")
    assert evaluate(best, batches_of(99), batch_loss) == history[0].evaluation_loss
    # a stopped run stays stopped
    resumed = trainer(tmp_path, n_epochs=50, patience=2)
    resumed.scheduler = None
    assert resumed.resume()
    assert len(resumed.fit(batches_of, batches_of(99))) == 3


def test_the_best_weights_are_kept_when_later_ones_are_worse(tmp_path: Path) -> None:
    backwards = [
        TextBatch(batch.inputs.flip(0), batch.labels.flip(-1), batch.padding_mask)
        for batch in batches_of(99)
    ]  # the better the model learns to count, the worse it does here
    run = trainer(tmp_path, n_epochs=50, patience=2)
    history = run.fit(batches_of, backwards)
    losses = [record.evaluation_loss for record in history]
    assert losses == sorted(losses)
    assert len(history) == 3
    best = SmallModel(seed=5)
    load_weights(best, tmp_path / "best.safetensors")
    assert evaluate(best, backwards, batch_loss) == losses[0]


def test_float16_scales_the_loss_and_skips_the_schedule_on_overflow(tmp_path: Path) -> None:
    run = trainer(tmp_path, n_epochs=1, autocast_dtype=torch.float16)
    assert run.scaler.is_enabled()
    run.scaler._init_scale = 2.0**40  # overflows in the first steps
    run.fit(batches_of)
    assert run.scheduler is not None
    assert run.scheduler.last_epoch < run.n_steps
    resumed = trainer(tmp_path, n_epochs=1, autocast_dtype=torch.float16)
    assert resumed.resume()
    assert resumed.scaler.state_dict() == run.scaler.state_dict()


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", [None, torch.bfloat16, torch.float16])
def test_on_a_gpu(tmp_path: Path, dtype: torch.dtype | None) -> None:
    """Its generator and its optimiser's state are in the checkpoint too."""
    options = {"device": "cuda", "autocast_dtype": dtype}
    whole = trainer(**options)  # type: ignore[arg-type]
    history = whole.fit(batches_of, batches_of(99))
    assert history[-1].loss < history[0].loss
    with pytest.raises(Interrupted):
        trainer(tmp_path, fail_at=13, **options).fit(  # type: ignore[arg-type]
            batches_of, batches_of(99)
        )
    resumed = trainer(tmp_path, seed=7, **options)  # type: ignore[arg-type]
    assert resumed.resume()
    resumed.fit(batches_of, batches_of(99))
    for name, value in whole.model.state_dict().items():
        torch.testing.assert_close(resumed.model.state_dict()[name], value, rtol=1e-4, atol=1e-5)


def test_batches_may_come_one_by_one() -> None:
    def stream(epoch: int) -> Iterator[TextBatch]:
        yield from batches_of(epoch)

    listed = trainer(n_epochs=1)
    listed.fit(batches_of)
    streamed = trainer(n_epochs=1)
    streamed.fit(stream)
    assert same(listed, streamed)


def test_shows_progress(capsys: pytest.CaptureFixture[str]) -> None:
    trainer(n_epochs=1, show_progress=True).fit(batches_of)
    assert "epoch 1/1" in capsys.readouterr().err
    trainer(n_epochs=1).fit(batches_of)
    assert capsys.readouterr().err == ""


def test_records_are_plain() -> None:
    (record,) = trainer(n_epochs=1).fit(batches_of)
    assert isinstance(record, EpochRecord)
    assert all(isinstance(loss, float) for loss in record.step_losses)


def test_errors_name_the_values(tmp_path: Path) -> None:
    for name in ("n_epochs", "accumulate", "checkpoint_every"):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
            TrainingConfig(**{"n_epochs": 1, name: 0})
    with pytest.raises(ValueError, match="needs an evaluation, got None"):
        trainer(patience=1).fit(batches_of)
    with pytest.raises(ValueError, match="epoch 0 has 0 batches"):
        trainer().fit(lambda epoch: [])
    trainer(tmp_path, n_epochs=1).fit(batches_of)
    with pytest.raises(ValueError, match=r"\['optimizer', .*, this trainer has \['early_stop"):
        trainer(tmp_path, patience=1).resume()
    assert newest_checkpoint(tmp_path) is not None
