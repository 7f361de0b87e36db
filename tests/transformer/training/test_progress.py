"""The bar is on a terminal, and nowhere else."""

from __future__ import annotations

import pytest
import torch

from flower_transformer.training.progress import progress_bar


def test_no_bar_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("epoch 1/2", 3) as advance:
        advance(torch.tensor(1.0))
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


def test_the_bar_counts_and_shows_the_loss(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("epoch 1/2", 3, done=1, show=True) as advance:
        advance(torch.tensor(0.5))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "epoch 1/2" in captured.err
    assert "2/3" in captured.err
    assert "loss 0.500" in captured.err
