r"""Learning rates as functions of the step, and torch schedulers made of them.

The functions are pure: step s = 1, 2, ... is the s-th update of the weights, and the first one
already has a rate above 0. The builders wrap them in torch's ``LambdaLR``, whose own count begins
at 0, and multiply the optimiser's learning rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR


def noam(step: int, *, d_model: int, warmup_steps: int) -> float:
    r"""The rate of the original Transformer: up in a line, down with the root of the step.

    $$
    lrate = d_{model}^{-0.5} \cdot \min(step^{-0.5}, step \cdot warmup\_steps^{-1.5})
    $$

    Args:
        step: number of the update, from 1.
        d_model: width of the model.
        warmup_steps: step at which the rate is highest, (d_model * warmup_steps) ** -0.5.

    Returns:
        The learning rate itself, not a factor.

    Raises:
        ValueError: an argument is below 1; the formula has no value at step 0.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 5.3, equation (3).
    """
    _check_step(step)
    if d_model < 1 or warmup_steps < 1:
        raise ValueError(f"must be at least 1: d_model {d_model}, warmup_steps {warmup_steps}")
    return float(d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))


def linear_warmup(step: int, *, warmup_steps: int) -> float:
    r"""From 1 / warmup_steps up to 1 in a line, and 1 from there on.

    $$
    r = \min\left(1, \frac{s}{w}\right)
    $$

    Args:
        step: s, number of the update, from 1.
        warmup_steps: w; 0 for no warm-up.

    Returns:
        The factor of the highest learning rate, in (0, 1].

    Raises:
        ValueError: the step is below 1, or warmup_steps negative.
    """
    _check_step(step)
    if warmup_steps < 0:
        raise ValueError(f"warmup_steps must not be negative, got {warmup_steps}")
    return min(1.0, step / max(1, warmup_steps))


def cosine(step: int, *, n_steps: int, warmup_steps: int = 0, floor: float = 0.0) -> float:
    r"""Linear warm-up, then half a cosine down to the floor.

    $$
    r = r_{min} + \frac{1}{2}(1 - r_{min})\left(1 + \cos\frac{\pi (s - w)}{n - w}\right)
    $$

    holds for $w \leq s \leq n$; before it is $s / w$, afterwards $r_{min}$.

    Args:
        step: s, number of the update, from 1.
        n_steps: n, the step at which the floor is reached.
        warmup_steps: w, the step at which the rate is highest; 0 for no warm-up.
        floor: r_min, the lowest factor, in [0, 1].

    Returns:
        The factor of the highest learning rate, in [0, 1].

    Raises:
        ValueError: the step is below 1, the floor outside [0, 1], or the warm-up is negative or
            not shorter than n_steps.

    Source: Loshchilov and Hutter 2017, "SGDR: Stochastic Gradient Descent with Warm Restarts",
    section 3, equation (5), without restarts.
    """
    if not 0 <= warmup_steps < n_steps:
        counts = f"warmup_steps {warmup_steps}, n_steps {n_steps}"
        raise ValueError(f"the warm-up must be shorter than the training: {counts}")
    if not 0.0 <= floor <= 1.0:
        raise ValueError(f"floor must lie in [0, 1], got {floor}")
    if step <= warmup_steps:
        return linear_warmup(step, warmup_steps=warmup_steps)
    _check_step(step)
    done = min(1.0, (step - warmup_steps) / (n_steps - warmup_steps))
    return floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2


def noam_scheduler(optimizer: Optimizer, *, d_model: int, warmup_steps: int) -> LambdaLR:
    """Let an optimiser whose learning rate is 1.0 follow `noam`.

    Args:
        optimizer: its learning rate is a factor of the published rate: 1.0 in the paper.
        d_model: width of the model.
        warmup_steps: step at which the rate is highest.

    Returns:
        A scheduler; call its ``step`` after each update of the weights.

    Raises:
        ValueError: what `noam` raises.
    """
    return _scheduler(optimizer, partial(noam, d_model=d_model, warmup_steps=warmup_steps))


def linear_warmup_scheduler(optimizer: Optimizer, *, warmup_steps: int) -> LambdaLR:
    """Let an optimiser's learning rate follow `linear_warmup`.

    Args:
        optimizer: its learning rate is the highest one.
        warmup_steps: step from which the rate is the highest.

    Returns:
        A scheduler; call its ``step`` after each update of the weights.

    Raises:
        ValueError: what `linear_warmup` raises.
    """
    return _scheduler(optimizer, partial(linear_warmup, warmup_steps=warmup_steps))


def cosine_scheduler(
    optimizer: Optimizer, *, n_steps: int, warmup_steps: int = 0, floor: float = 0.0
) -> LambdaLR:
    """Let an optimiser's learning rate follow `cosine`.

    Args:
        optimizer: its learning rate is the highest one.
        n_steps: step at which the floor is reached.
        warmup_steps: step at which the rate is highest.
        floor: the lowest factor.

    Returns:
        A scheduler; call its ``step`` after each update of the weights.

    Raises:
        ValueError: what `cosine` raises.
    """
    rate = partial(cosine, n_steps=n_steps, warmup_steps=warmup_steps, floor=floor)
    return _scheduler(optimizer, rate)


def _scheduler(optimizer: Optimizer, rate: Callable[[int], float]) -> LambdaLR:
    # LambdaLR asks for the factor of update 0, 1, ...; ours are counted from 1
    return LambdaLR(optimizer, lambda updates_done: rate(updates_done + 1))


def _check_step(step: int) -> None:
    if step < 1:
        raise ValueError(f"steps are counted from 1, got {step}")
