"""Learning rates: values by hand, shape of the curves, and what torch's scheduler makes of them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from flower_transformer.training.schedules import (
    cosine,
    cosine_scheduler,
    linear_warmup,
    linear_warmup_scheduler,
    noam,
    noam_scheduler,
)


def rates(optimizer: torch.optim.Optimizer, scheduler: torch.optim.lr_scheduler.LambdaLR) -> list:
    """The rates of the first six updates."""
    found = []
    for _ in range(6):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found


def optimizer(lr: float) -> torch.optim.Optimizer:
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)


def test_noam_by_hand() -> None:
    # width 4: 1/2 * min(1 / sqrt s, s / 8) for warm-up over 4 steps
    steps = [noam(step, d_model=4, warmup_steps=4) for step in (1, 2, 4, 16)]
    assert steps == pytest.approx([1 / 16, 1 / 8, 1 / 4, 1 / 8])
    # the base model of the paper peaks at step 4000 with (512 * 4000) ** -0.5
    assert noam(4000, d_model=512, warmup_steps=4000) == pytest.approx(6.98771e-4, rel=1e-5)


@given(d_model=st.integers(1, 1024), warmup_steps=st.integers(1, 1000))
def test_noam_is_highest_at_the_end_of_the_warm_up(d_model: int, warmup_steps: int) -> None:
    top = noam(warmup_steps, d_model=d_model, warmup_steps=warmup_steps)
    assert top == pytest.approx((d_model * warmup_steps) ** -0.5)
    for step in {1, max(1, warmup_steps - 1), warmup_steps + 1, 10 * warmup_steps}:
        assert 0 < noam(step, d_model=d_model, warmup_steps=warmup_steps) <= top * (1 + 1e-12)


def test_linear_warmup_by_hand() -> None:
    assert [linear_warmup(step, warmup_steps=4) for step in (1, 2, 4, 5, 100)] == [
        0.25,
        0.5,
        1,
        1,
        1,
    ]
    assert linear_warmup(1, warmup_steps=0) == 1


def test_cosine_by_hand() -> None:
    # 2 steps of warm-up, then 4 of a half cosine from 1 to 0.2: 0.2 + 0.4 (1 + cos(pi / 4 * k))
    steps = [cosine(step, n_steps=6, warmup_steps=2, floor=0.2) for step in range(1, 9)]
    root = 0.4 * 0.5**0.5
    assert steps == pytest.approx([0.5, 1, 0.6 + root, 0.6, 0.6 - root, 0.2, 0.2, 0.2])


@given(n_steps=st.integers(1, 50), share=st.floats(0, 0.9), floor=st.floats(0, 1))
def test_cosine_rises_then_falls_to_its_floor(n_steps: int, share: float, floor: float) -> None:
    warmup = int(share * n_steps)
    curve = [
        cosine(step, n_steps=n_steps, warmup_steps=warmup, floor=floor)
        for step in range(1, n_steps + 3)
    ]
    assert curve[:warmup] == sorted(curve[:warmup])
    assert curve[warmup:] == sorted(curve[warmup:], reverse=True)
    assert curve[-1] == pytest.approx(floor)
    assert max(curve) <= 1


def test_schedulers_give_the_first_update_step_one() -> None:
    first = optimizer(1.0)
    assert rates(first, noam_scheduler(first, d_model=4, warmup_steps=4)) == pytest.approx(
        [noam(step, d_model=4, warmup_steps=4) for step in range(1, 7)]
    )
    second = optimizer(0.5)
    assert rates(second, linear_warmup_scheduler(second, warmup_steps=2)) == [0.25] + [0.5] * 5
    third = optimizer(2.0)
    found = rates(third, cosine_scheduler(third, n_steps=5, warmup_steps=1, floor=0.1))
    assert found == pytest.approx(
        [2 * cosine(step, n_steps=5, warmup_steps=1, floor=0.1) for step in range(1, 7)]
    )


def test_cosine_equals_torch() -> None:
    ours, theirs = optimizer(1.0), optimizer(1.0)
    torch_scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(theirs, T_max=6, eta_min=0.1)
    expected = rates(theirs, torch_scheduler)
    # torch's first update has the full rate: its step 0 is the peak that ours reaches at step w
    found = rates(ours, cosine_scheduler(ours, n_steps=7, warmup_steps=1, floor=0.1))
    assert found == pytest.approx(expected)


def test_errors_name_the_values() -> None:
    for rate in (
        lambda: noam(0, d_model=4, warmup_steps=4),
        lambda: linear_warmup(0, warmup_steps=4),
        lambda: cosine(0, n_steps=4),
        lambda: cosine(0, n_steps=4, warmup_steps=2),
    ):
        with pytest.raises(ValueError, match="counted from 1, got 0"):
            rate()
    with pytest.raises(ValueError, match="d_model 0, warmup_steps 4"):
        noam(1, d_model=0, warmup_steps=4)
    with pytest.raises(ValueError, match="negative, got -1"):
        linear_warmup(1, warmup_steps=-1)
    with pytest.raises(ValueError, match="warmup_steps 4, n_steps 4"):
        cosine(1, n_steps=4, warmup_steps=4)
    with pytest.raises(ValueError, match=r"\[0, 1\], got 1\.5"):
        cosine(1, n_steps=4, floor=1.5)
