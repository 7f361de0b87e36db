r"""Cross entropy over the tokens that count, with label smoothing, and perplexity.

Legend: K classes (the vocabulary), N targets that count; "..." stands for any leading axes, usually
(B, T). A target of -100 (``IGNORE_INDEX``) does not count: padding, or a prompt.

Two conventions of label smoothing are in use. Both move a mass $\epsilon$ away from the target:
`cross_entropy` spreads it over all K classes, the target among them (Szegedy et al. 2016, torch),
`cross_entropy_over_others` over the K - 1 others (fairseq).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

IGNORE_INDEX = -100


def smoothed_targets(target: Tensor, n_classes: int, *, epsilon: float) -> Tensor:
    r"""The smoothed distribution, its mass spread over all K classes.

    $$
    q_k = (1 - \epsilon)\,\delta_{k,y} + \frac{\epsilon}{K}
    $$

    Args:
        target: y, integers (...) in 0..K-1.
        n_classes: K.
        epsilon: the mass that is spread, in [0, 1).

    Returns:
        q (..., K) in torch's default dtype; each row sums to 1, the target keeps
            1 - epsilon + epsilon / K.

    Raises:
        ValueError: epsilon lies outside [0, 1).

    Source: Szegedy et al. 2016, "Rethinking the Inception Architecture for Computer Vision",
    section 7.
    """
    _check_epsilon(epsilon)
    one_hot = F.one_hot(target, n_classes).to(torch.get_default_dtype())
    return (1 - epsilon) * one_hot + epsilon / n_classes


def smoothed_targets_over_others(target: Tensor, n_classes: int, *, epsilon: float) -> Tensor:
    r"""The smoothed distribution, its mass spread over the K - 1 classes that are not the target.

    $$
    q_k = (1 - \epsilon)\,\delta_{k,y} + \frac{\epsilon}{K - 1}(1 - \delta_{k,y})
    $$

    Args:
        target: y, integers (...) in 0..K-1.
        n_classes: K, at least 2.
        epsilon: the mass that is spread, in [0, 1).

    Returns:
        q (..., K) in torch's default dtype; each row sums to 1, the target keeps 1 - epsilon.

    Raises:
        ValueError: epsilon lies outside [0, 1), or there is no other class.
    """
    _check_epsilon(epsilon)
    _check_others(n_classes)
    one_hot = F.one_hot(target, n_classes).to(torch.get_default_dtype())
    return (1 - epsilon) * one_hot + epsilon / (n_classes - 1) * (1 - one_hot)


def cross_entropy(
    logits: Tensor, target: Tensor, *, epsilon: float = 0.0, reduction: str = "mean"
) -> Tensor:
    r"""Mean negative log-probability of the targets that count, smoothed over all classes.

    $$
    L = \frac{1}{N} \sum_{i=1}^{N} \left( -(1 - \epsilon) \log p_{i,y_i}
        - \frac{\epsilon}{K} \sum_{k=1}^{K} \log p_{i,k} \right), \quad p_i = \mathrm{softmax}(z_i)
    $$

    Args:
        logits: z (..., K), before the softmax.
        target: y (...), integers in 0..K-1, or -100 where nothing counts.
        epsilon: mass of label smoothing, in [0, 1); 0 gives the plain cross entropy.
        reduction: "mean" over the targets that count, or their "sum".

    Returns:
        A scalar, in float32 at least. Where nothing counts it is 0 with gradient 0, not 0 / 0, and
        logits beside an ignored target have no influence even if they hold NaN.

    Raises:
        ValueError: the shapes of logits and target do not fit, the target holds no integers,
            epsilon lies outside [0, 1), or the reduction is unknown.

    Source: Szegedy et al. 2016, "Rethinking the Inception Architecture for Computer Vision",
    section 7; Vaswani et al. 2017, "Attention Is All You Need", section 5.4 (epsilon = 0.1).
    """
    _check_epsilon(epsilon)
    log_p, log_p_target = _log_probabilities(logits, target)
    loss = (epsilon - 1) * log_p_target  # (N,)
    if epsilon:
        loss = loss - epsilon * log_p.mean(dim=-1)
    return _reduce(loss, reduction)


def cross_entropy_over_others(
    logits: Tensor, target: Tensor, *, epsilon: float, reduction: str = "mean"
) -> Tensor:
    r"""Cross entropy with the other label smoothing, over the K - 1 classes besides the target.

    $$
    L = \frac{1}{N} \sum_{i=1}^{N} \left( -(1 - \epsilon) \log p_{i,y_i}
        - \frac{\epsilon}{K - 1} \sum_{k \neq y_i} \log p_{i,k} \right)
    $$

    It equals `cross_entropy` with $\epsilon K / (K - 1)$ in place of $\epsilon$.

    Args:
        logits: z (..., K), before the softmax; $p_i = \mathrm{softmax}(z_i)$.
        target: y (...), integers in 0..K-1, or -100 where nothing counts.
        epsilon: mass of label smoothing, in [0, 1).
        reduction: "mean" over the targets that count, or their "sum".

    Returns:
        A scalar, as `cross_entropy` gives it.

    Raises:
        ValueError: what `cross_entropy` raises, or there is no other class.
    """
    _check_epsilon(epsilon)
    n_classes = logits.shape[-1]
    _check_others(n_classes)
    log_p, log_p_target = _log_probabilities(logits, target)
    loss = (epsilon - 1) * log_p_target  # (N,)
    if epsilon:
        loss = loss - epsilon / (n_classes - 1) * (log_p.sum(dim=-1) - log_p_target)
    return _reduce(loss, reduction)


def perplexity(logits: Tensor, target: Tensor) -> Tensor:
    r"""How many equally likely tokens the model is as unsure as: the exponential of the loss.

    $$
    \mathrm{PP} = \exp\left(-\frac{1}{N} \sum_{i=1}^{N} \log p_{i,y_i}\right)
    $$

    Args:
        logits: z (..., K); $p_i = \mathrm{softmax}(z_i)$.
        target: y (...), integers in 0..K-1, or -100 where nothing counts.

    Returns:
        A scalar between 1 (certain and right) and infinity; K for uniform logits. Label smoothing
        has no place here: the exponential of a smoothed loss is not a perplexity.

    Raises:
        ValueError: what `cross_entropy` raises.
    """
    return cross_entropy(logits, target).exp()


def token_weighted_mean(losses: Tensor, n_tokens: Tensor) -> Tensor:
    r"""Mean over tokens from the means of micro-batches; not the mean of the means.

    $$
    L = \frac{\sum_{b} n_b \ell_b}{\sum_{b} n_b}
    $$

    Args:
        losses: l_b (M,), the mean loss of each of M micro-batches.
        n_tokens: n_b (M,), how many tokens each mean is over.

    Returns:
        A scalar; 0 where there is no token at all. One token at 4.0 and three at 1.0 give 1.75;
        the mean of the means would be 2.5.

    Raises:
        ValueError: the shapes differ.
    """
    if losses.shape != n_tokens.shape:
        shapes = f"losses {tuple(losses.shape)}, n_tokens {tuple(n_tokens.shape)}"
        raise ValueError(f"one loss and one count a micro-batch, got {shapes}")
    total = n_tokens.sum()
    return (losses * n_tokens).sum() / total.masked_fill(total == 0, 1)


def _log_probabilities(logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Log-probabilities (N, K) of the rows that count, and those of their targets (N,)."""
    if logits.shape[:-1] != target.shape:
        shapes = f"{tuple(logits.shape)}, target {tuple(target.shape)}"
        raise ValueError(f"logits must have the target's shape and one more axis: logits {shapes}")
    if target.is_floating_point() or target.dtype == torch.bool:
        raise ValueError(f"target must hold integers, got {target.dtype}")
    # The other rows are left out before the softmax, so that a NaN in one sends nothing back.
    counts = target != IGNORE_INDEX
    logits, target = logits[counts], target[counts].long()  # (..., K) -> (N, K), (...) -> (N,)
    dtype = torch.promote_types(logits.dtype, torch.float32)  # halves are summed in float32
    log_p = logits.log_softmax(dim=-1, dtype=dtype)
    return log_p, log_p.gather(-1, target.unsqueeze(-1)).squeeze(-1)


def _reduce(loss: Tensor, reduction: str) -> Tensor:
    if reduction == "sum":
        return loss.sum()
    if reduction == "mean":
        return loss.sum() / max(1, loss.numel())
    raise ValueError(f"reduction must be 'mean' or 'sum', got {reduction!r}")


def _check_epsilon(epsilon: float) -> None:
    if not 0.0 <= epsilon < 1.0:
        raise ValueError(f"epsilon must lie in [0, 1), got {epsilon}")


def _check_others(n_classes: int) -> None:
    if n_classes < 2:
        raise ValueError(f"smoothing over the other classes needs at least 2, got {n_classes}")
