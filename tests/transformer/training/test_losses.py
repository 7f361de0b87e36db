"""Cross entropy and label smoothing: values by hand, properties, and parity with torch."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from flower_transformer.training.losses import (
    IGNORE_INDEX,
    cross_entropy,
    cross_entropy_over_others,
    perplexity,
    smoothed_targets,
    smoothed_targets_over_others,
    token_weighted_mean,
)

EPSILONS = st.sampled_from([0.0, 0.1, 0.5])
SEEDS = st.integers(0, 2**31)


def draw(seed: int, n_tokens: int, n_classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random logits, and targets of which about a third do not count."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n_tokens, n_classes, generator=generator, dtype=torch.float64)
    target = torch.randint(n_classes, (n_tokens,), generator=generator)
    ignored = torch.rand(n_tokens, generator=generator) < 1 / 3
    return logits.requires_grad_(), target.masked_fill(ignored, IGNORE_INDEX)


# --- values by hand -------------------------------------------------------------------------------


def test_plain_cross_entropy_by_hand() -> None:
    # p = [e^2, 1, 1] / (e^2 + 2): -log p_0 = log(e^2 + 2) - 2
    loss = cross_entropy(torch.tensor([2.0, 0.0, 0.0]), torch.tensor(0))
    assert loss.item() == pytest.approx(math.log(math.e**2 + 2) - 2)


def test_two_conventions_by_hand() -> None:
    logits, target = torch.tensor([2.0, 1.0, 0.0]), torch.tensor(0)
    assert cross_entropy(logits, target, epsilon=0.1).item() == pytest.approx(0.50761, abs=5e-6)
    others = cross_entropy_over_others(logits, target, epsilon=0.1)
    assert others.item() == pytest.approx(0.55761, abs=5e-6)


def test_smoothed_targets_by_hand() -> None:
    target = torch.tensor([0, 2])
    over_all = smoothed_targets(target, 3, epsilon=0.3)
    torch.testing.assert_close(over_all, torch.tensor([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]]))
    others = smoothed_targets_over_others(target, 3, epsilon=0.3)
    torch.testing.assert_close(others, torch.tensor([[0.7, 0.15, 0.15], [0.15, 0.15, 0.7]]))


def test_perplexity_by_hand() -> None:
    target = torch.tensor([1, 3, IGNORE_INDEX])
    assert perplexity(torch.zeros(3, 7), target).item() == pytest.approx(7)
    certain = 100 * F.one_hot(torch.tensor([1, 3, 0]), 7).float()
    assert perplexity(certain, target).item() == pytest.approx(1)


def test_token_weighted_mean_by_hand() -> None:
    assert token_weighted_mean(torch.tensor([4.0, 1.0]), torch.tensor([1, 3])).item() == 1.75
    assert token_weighted_mean(torch.tensor([4.0, 1.0]), torch.tensor([0, 0])).item() == 0


# --- properties -----------------------------------------------------------------------------------


@given(seed=SEEDS, n_classes=st.integers(2, 6), epsilon=EPSILONS)
def test_loss_is_the_cross_entropy_with_the_smoothed_targets(
    seed: int, n_classes: int, epsilon: float
) -> None:
    logits, target = draw(seed, 5, n_classes)
    target = target.clamp(min=0)
    for targets, loss in (
        (smoothed_targets, cross_entropy),
        (smoothed_targets_over_others, cross_entropy_over_others),
    ):
        q = targets(target, n_classes, epsilon=epsilon).double()
        torch.testing.assert_close(q.sum(dim=-1), torch.ones(5).double(), rtol=0, atol=1e-6)
        expected = -(q * logits.log_softmax(dim=-1)).sum(dim=-1).mean()
        torch.testing.assert_close(
            loss(logits, target, epsilon=epsilon), expected, rtol=1e-6, atol=0
        )


@given(seed=SEEDS, n_classes=st.integers(2, 6))
def test_one_convention_is_the_other_with_another_epsilon(seed: int, n_classes: int) -> None:
    logits, target = draw(seed, 5, n_classes)
    torch.testing.assert_close(
        cross_entropy_over_others(logits, target, epsilon=0.1),
        cross_entropy(logits, target, epsilon=0.1 * n_classes / (n_classes - 1)),
    )


@given(seed=SEEDS, epsilon=EPSILONS)
def test_micro_batches_give_the_loss_of_the_whole(seed: int, epsilon: float) -> None:
    logits, target = draw(seed, 8, 4)
    parts = [(logits[:2], target[:2]), (logits[2:], target[2:])]
    losses = torch.stack([cross_entropy(*part, epsilon=epsilon) for part in parts])
    counts = torch.stack([(part[1] != IGNORE_INDEX).sum() for part in parts])
    whole = cross_entropy(logits, target, epsilon=epsilon)
    torch.testing.assert_close(token_weighted_mean(losses, counts), whole)


@given(seed=SEEDS, epsilon=EPSILONS)
def test_sum_is_mean_times_count(seed: int, epsilon: float) -> None:
    logits, target = draw(seed, 6, 3)
    count = (target != IGNORE_INDEX).sum()
    for loss in (cross_entropy, cross_entropy_over_others):
        total = loss(logits, target, epsilon=epsilon, reduction="sum")
        torch.testing.assert_close(total, loss(logits, target, epsilon=epsilon) * count)


# --- parity with torch ----------------------------------------------------------------------------


@given(seed=SEEDS, n_classes=st.integers(1, 6), epsilon=EPSILONS)
def test_equals_torch_in_value_and_gradient(seed: int, n_classes: int, epsilon: float) -> None:
    logits, target = draw(seed, 6, n_classes)
    target[0] = 0  # torch has no value where nothing counts
    ours = cross_entropy(logits, target, epsilon=epsilon)
    theirs = F.cross_entropy(logits, target, label_smoothing=epsilon)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(
        torch.autograd.grad(ours, logits), torch.autograd.grad(theirs, logits)
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves_are_summed_in_float32(dtype: torch.dtype) -> None:
    logits = torch.zeros(3000, 2, dtype=dtype)
    loss = cross_entropy(logits, torch.zeros(3000, dtype=torch.long), reduction="sum")
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(3000 * math.log(2), rel=1e-5)


def test_leading_axes_and_small_integers_are_free() -> None:
    logits, target = draw(1, 6, 4)
    folded = cross_entropy(logits.view(2, 3, 4), target.view(2, 3).to(torch.int16))
    torch.testing.assert_close(folded, cross_entropy(logits, target))


def test_errors_name_the_values() -> None:
    logits, target = torch.zeros(2, 3), torch.zeros(2, dtype=torch.long)
    with pytest.raises(ValueError, match=r"logits \(2, 3\), target \(3,\)"):
        cross_entropy(logits, torch.zeros(3, dtype=torch.long))
    with pytest.raises(ValueError, match=r"integers, got torch\.float32"):
        cross_entropy(logits, torch.zeros(2))
    with pytest.raises(ValueError, match=r"\[0, 1\), got 1\.0"):
        cross_entropy(logits, target, epsilon=1.0)
    with pytest.raises(ValueError, match=r"'mean' or 'sum', got 'none'"):
        cross_entropy(logits, target, reduction="none")
    with pytest.raises(ValueError, match="at least 2, got 1"):
        cross_entropy_over_others(torch.zeros(2, 1), target, epsilon=0.1)
    with pytest.raises(ValueError, match=r"losses \(2,\), n_tokens \(3,\)"):
        token_weighted_mean(torch.zeros(2), torch.zeros(3))
