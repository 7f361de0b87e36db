"""One update: micro-batches equal the batch that they make up, in every precision."""

from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_model import SmallModel, batch_loss, batches_of, counting_sequences
from torch import nn
from torch.amp.grad_scaler import GradScaler

from flower_transformer.training.data import TextBatch, collate_texts
from flower_transformer.training.losses import cross_entropy
from flower_transformer.training.steps import evaluate, training_step


def sgd(model: nn.Module, lr: float = 1.0) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), lr=lr)


def weights(model: nn.Module) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters()]


def test_a_step_is_the_gradient_of_the_mean_loss() -> None:
    model = SmallModel(dropout_p=0).double()
    plain = copy.deepcopy(model)
    batch = batches_of(0)[0]
    loss = cross_entropy(plain(batch.inputs), batch.labels)
    loss.backward()
    sgd(plain).step()
    result = training_step(model, sgd(model), [batch], batch_loss)
    torch.testing.assert_close(result.loss, loss.detach())
    assert result.n_tokens == batch.n_tokens
    assert result.updated
    torch.testing.assert_close(weights(model), weights(plain))


@given(sizes=st.lists(st.integers(1, 6), min_size=1, max_size=4), seed=st.integers(0, 100))
def test_micro_batches_equal_one_batch(sizes: list[int], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    sequences = counting_sequences()
    order = torch.randperm(len(sequences), generator=generator)[: sum(sizes)].tolist()
    chosen = [sequences[index] for index in order]
    micro, start = [], 0
    for size in sizes:
        micro.append(collate_texts(chosen[start : start + size], pad_id=0))
        start += size
    whole_model = SmallModel(dropout_p=0).double()
    parts_model = copy.deepcopy(whole_model)
    whole = training_step(
        whole_model, sgd(whole_model), [collate_texts(chosen, pad_id=0)], batch_loss, max_norm=0.5
    )
    parts = training_step(parts_model, sgd(parts_model), micro, batch_loss, max_norm=0.5)
    torch.testing.assert_close(parts.loss, whole.loss)
    torch.testing.assert_close(parts.gradient_norm, whole.gradient_norm)
    assert parts.n_tokens == whole.n_tokens
    torch.testing.assert_close(weights(parts_model), weights(whole_model))


def test_clipping_bounds_the_step() -> None:
    model = SmallModel(dropout_p=0)
    before = weights(model)
    result = training_step(model, sgd(model), batches_of(0)[:1], batch_loss, max_norm=0.01)
    assert result.gradient_norm > 0.01  # the norm before clipping
    moved = torch.stack([(a - b).norm() for a, b in zip(weights(model), before, strict=True)])
    assert moved.norm().item() == pytest.approx(0.01, rel=1e-3)


def test_a_batch_without_a_token_changes_nothing() -> None:
    model = SmallModel()
    before = weights(model)
    batch = TextBatch(torch.zeros(1, 2).long(), torch.full((1, 2), -100), torch.ones(1, 2).bool())
    result = training_step(model, sgd(model), [batch], batch_loss)
    assert result.loss.item() == 0
    torch.testing.assert_close(weights(model), before)


def test_bfloat16_autocast_keeps_float32_weights_and_learns() -> None:
    model, plain = SmallModel(dropout_p=0), SmallModel(dropout_p=0)
    seen: list[torch.dtype] = []
    model.hidden.register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))
    options = {"max_norm": 1.0}
    for batch in batches_of(0) * 3:
        last = training_step(
            model,
            sgd(model, 0.5),
            [batch],
            batch_loss,
            autocast_dtype=torch.bfloat16,
            **options,
        )
        exact = training_step(plain, sgd(plain, 0.5), [batch], batch_loss, **options)
    assert set(seen) == {torch.bfloat16}
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert last.loss.dtype == torch.float32
    assert last.loss.item() == pytest.approx(exact.loss.item(), rel=0.05)


def test_an_overflow_skips_the_update_and_lowers_the_scale() -> None:
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 2.0)
    scaler = GradScaler("cpu", init_scale=2.0**10)

    def loss(model: nn.Module, batch: TextBatch) -> torch.Tensor:
        return model(torch.full((1, 1), float("inf"))).sum()

    result = training_step(model, sgd(model), batches_of(0)[:1], loss, scaler=scaler, max_norm=1.0)
    assert not result.updated
    assert model.weight.item() == 2.0
    assert scaler.get_scale() == 2.0**9


def test_evaluation_is_a_mean_over_tokens_without_dropout() -> None:
    model = SmallModel(dropout_p=0.5)
    batches = batches_of(0)
    model.eval()
    losses = [batch_loss(model, batch).item() for batch in batches]
    expected = sum(losses) / sum(batch.n_tokens for batch in batches)
    model.train()
    assert evaluate(model, batches, batch_loss) == pytest.approx(expected, rel=1e-6)
    assert model.training
    assert evaluate(model, iter(batches), batch_loss) == evaluate(model, batches, batch_loss)
    half = evaluate(model, batches, batch_loss, autocast_dtype=torch.bfloat16)
    assert half == pytest.approx(expected, rel=0.02)


def test_errors_name_the_values() -> None:
    model = SmallModel()
    with pytest.raises(ValueError, match="at least 1 batch, got 0"):
        training_step(model, sgd(model), [], batch_loss)
    used_up = iter(batches_of(0)[:1])
    next(used_up)
    with pytest.raises(ValueError, match="0 tokens to evaluate on"):
        evaluate(model, used_up, batch_loss)
