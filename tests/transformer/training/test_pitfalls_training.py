"""Known ways to get training wrong, each reported against a public project.

The number in a test's name is its row in the project's list of pitfalls.
"""

from __future__ import annotations

import copy
import math
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from small_model import SmallModel, batch_loss, counting_sequences
from torch import nn
from torch.amp.grad_scaler import GradScaler

from flower_transformer.training.checkpoint import load_weights, save_weights
from flower_transformer.training.data import (
    TextBatch,
    collate_pairs,
    collate_texts,
    lengths_of_padded,
    next_token_labels,
)
from flower_transformer.training.losses import (
    cross_entropy,
    cross_entropy_over_others,
    token_weighted_mean,
)
from flower_transformer.training.optim import adamw
from flower_transformer.training.schedules import noam
from flower_transformer.training.steps import training_step

IGNORED = torch.tensor([-100])


def test_pitfall_23_label_smoothing_does_not_count_padding() -> None:
    """pytorch #73205; annotated-transformer #39, #109."""
    logits, target = torch.tensor([[2.0, 0.0, 0.0]]), torch.tensor([0])
    loss = cross_entropy(logits, target, epsilon=0.1)
    assert loss.item() == pytest.approx(0.37288, abs=5e-6)
    with_padding = torch.cat([logits, torch.tensor([[5.0, -3.0, 1.0]])])
    padded = cross_entropy(with_padding, torch.cat([target, IGNORED]), epsilon=0.1)
    assert torch.equal(padded, loss)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("smoothed", [cross_entropy, cross_entropy_over_others])
@pytest.mark.parametrize("value", [2.0, math.nan, math.inf])
def test_pitfall_23_a_batch_of_padding_gives_zero(
    smoothed: type, reduction: str, value: float
) -> None:
    """torch's own mean over nothing is NaN; the gradient is finite whatever the logits hold."""
    logits = torch.full((2, 3), value, requires_grad=True)
    loss = smoothed(logits, IGNORED.expand(2), epsilon=0.1, reduction=reduction)
    loss.backward()
    assert loss.item() == 0
    assert logits.grad is not None
    assert logits.grad.tolist() == [[0, 0, 0], [0, 0, 0]]


def test_pitfall_23_a_probability_of_zero_is_not_infinite_without_smoothing() -> None:
    """annotated-transformer #109: log of a probability that has become 0 in float32."""
    logits = torch.tensor([[200.0, 0.0]])
    assert torch.log(logits.softmax(dim=-1))[0, 1] == -math.inf  # the fault itself
    assert cross_entropy(logits, torch.tensor([1])).item() == pytest.approx(200)


def test_pitfall_24_micro_batches_are_weighted_by_tokens() -> None:
    """transformers PR #34191, torchtune PR #1875."""
    losses, n_tokens = torch.tensor([4.0, 1.0]), torch.tensor([1, 3])
    assert token_weighted_mean(losses, n_tokens).item() == 1.75
    assert losses.mean().item() == 2.5  # the fault itself


def test_pitfall_24_the_step_weighs_them_too() -> None:
    """A weight that adds the loss of each token: 1 token at 4.0 and 3 at 1.0."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.ones_(model.weight)

    def loss(model: nn.Module, batch: TextBatch) -> torch.Tensor:
        values = model(batch.inputs[..., None].float()).squeeze(-1)  # one loss a token
        return values.masked_fill(batch.labels == -100, 0).sum()

    def batch(value: int, n_tokens: int) -> TextBatch:
        labels = torch.full((1, 4), -100)
        labels[:, :n_tokens] = 0
        return TextBatch(torch.full((1, 4), value), labels, labels == 0)

    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    result = training_step(model, optimizer, [batch(4, 1), batch(1, 3)], loss)
    assert result.loss.item() == 1.75
    assert model.weight.item() == 1 - 1.75


def test_pitfall_25_labels_are_shifted_once() -> None:
    """transformers #47394, #27517."""
    sequences = [[5, 6, 7, 8], [1, 2, 3]]
    batch = collate_texts(sequences, pad_id=0)
    following = torch.tensor([[6, 7, 8], [2, 3, 0]])
    logits = 100 * F.one_hot(following, 9).float()
    assert cross_entropy(logits, batch.labels).item() == pytest.approx(0, abs=1e-6)
    # not shifted, and shifted twice
    assert cross_entropy(logits, batch.inputs).item() > 50
    assert cross_entropy(logits[:, :-1], batch.labels[:, 1:]).item() > 50
    pairs = collate_pairs([([4], [5, 6])], pad_id=0, bos_id=1, eos_id=2)
    assert (pairs.inputs.tolist(), pairs.labels.tolist()) == ([[1, 5, 6]], [[5, 6, 2]])


def test_pitfall_26_padding_may_share_the_id_of_the_end() -> None:
    """transformers #23530: every EOS was ignored, and models never learned to stop."""
    eos = pad = 2
    rows = torch.tensor([[5, eos, pad, pad], [5, 6, 7, eos]])
    lengths = lengths_of_padded(rows, pad_id=pad, eos_id=eos)
    assert lengths.tolist() == [2, 4]
    assert next_token_labels(rows, lengths)[1].tolist() == [[eos, -100, -100], [6, 7, eos]]
    batch = collate_texts([[5, eos], [5, 6, 7, eos]], pad_id=pad)
    assert batch.labels.tolist() == [[eos, -100, -100], [6, 7, eos]]
    assert batch.padding_mask.int().tolist() == [[1, 1, 0], [1, 1, 1]]


def test_pitfall_32_tied_weights_stay_tied(tmp_path: Path) -> None:
    """espnet #3454: identity, one entry among the parameters, through saving and a step."""
    model = SmallModel()
    optimizer = adamw(model, lr=0.1)
    assert sum(parameter.shape == (11, 16) for parameter in model.parameters()) == 1
    groups = optimizer.param_groups
    assert sum(len(group["params"]) for group in groups) == len(list(model.parameters()))
    batch = collate_texts(counting_sequences(), pad_id=0)
    training_step(model, optimizer, [batch], batch_loss)
    save_weights(model, tmp_path / "model.safetensors")
    loaded = SmallModel(seed=1)
    load_weights(loaded, tmp_path / "model.safetensors")
    assert loaded.output.weight is loaded.embedding.weight
    assert torch.equal(loaded.output.weight, model.output.weight)


def test_pitfall_34_gradients_are_unscaled_before_they_are_clipped() -> None:
    """lightning #9599: clipped at the scale of the loss, the step would be 1 / 65536 as long."""
    plain = SmallModel(dropout_p=0)
    mixed = copy.deepcopy(plain)
    before = [parameter.detach().clone() for parameter in plain.parameters()]
    batch = collate_texts(counting_sequences(), pad_id=0)
    norms = []
    for model, scaler in ((plain, None), (mixed, GradScaler("cpu", init_scale=2.0**16))):
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        result = training_step(model, optimizer, [batch], batch_loss, max_norm=0.1, scaler=scaler)
        assert result.updated
        norms.append(result.gradient_norm.item())
    assert norms[0] == pytest.approx(norms[1], rel=1e-5)
    assert norms[0] > 0.1
    for model in (plain, mixed):
        steps = [
            (parameter.detach() - old).norm()
            for parameter, old in zip(model.parameters(), before, strict=True)
        ]
        assert torch.stack(steps).norm().item() == pytest.approx(0.1, rel=1e-3)


def test_warm_up_begins_above_zero() -> None:
    """nanoGPT PR #578, Kyubyong/transformer #89: the first update had the rate 0."""
    assert noam(1, d_model=512, warmup_steps=4000) > 0
    with pytest.raises(ValueError, match="counted from 1, got 0"):
        noam(0, d_model=512, warmup_steps=4000)
