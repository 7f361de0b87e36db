r"""From the scores of the next token to a token: temperature, top-k, top-p, min-p.

Legend: B batch, V vocabulary. Everything works on the last axis; "..." are leading axes.

The filters take logits and set those they drop to -inf, so that they chain; each keeps at least one
token. `Sampling` says which to use, `next_token_probabilities` applies them in this order:
temperature, top-k, top-p, min-p.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

# A sum of probabilities within this of a limit counts as having reached it: .5 + .3 reaches .8.
TOLERANCE = 1e-6


def _check_k(k: int) -> None:
    if k < 1:
        raise ValueError(f"top_k must be at least 1, got {k}")


def _check_share(name: str, share: float | None) -> None:
    if share is not None and not 0.0 <= share <= 1.0:
        raise ValueError(f"{name} must lie in [0, 1], got {share}")


@dataclass(frozen=True)
class Sampling:
    """How to choose the next token.

    Attributes:
        temperature: see `with_temperature`; 0 takes the most likely token.
        top_k: see `keep_top_k`; None keeps all.
        top_p: see `keep_top_p`; None keeps all.
        min_p: see `keep_min_p`; None keeps all.

    Raises:
        ValueError: a value lies outside its range.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None

    def __post_init__(self) -> None:
        """Refuse what the filters refuse, before a model runs."""
        if self.temperature < 0:
            raise ValueError(f"temperature must be at least 0, got {self.temperature}")
        if self.top_k is not None:
            _check_k(self.top_k)
        _check_share("top_p", self.top_p)
        _check_share("min_p", self.min_p)


GREEDY = Sampling(temperature=0.0)


def with_temperature(logits: Tensor, temperature: float) -> Tensor:
    r"""Divide the logits: below 1 the likely become likelier, above 1 less so.

    $$
    p_i = \frac{\exp(z_i / \tau)}{\sum_j \exp(z_j / \tau)}
    $$

    The limit for 0 is reached exactly: all but the first of the largest logits are dropped.

    Args:
        logits: z (..., V).
        temperature: tau.

    Returns:
        Logits (..., V).

    Raises:
        ValueError: the temperature is negative.

    Source: Ackley et al. 1985, "A Learning Algorithm for Boltzmann Machines".
    """
    if temperature < 0:
        raise ValueError(f"temperature must be at least 0, got {temperature}")
    return keep_top_k(logits, 1) if temperature == 0 else logits / temperature


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """Keep the k largest logits; of equal ones, those that come first.

    Args:
        logits: (..., V).
        k: how many; all if there are fewer.

    Returns:
        Logits (..., V), exactly min(k, V) of them not dropped.

    Raises:
        ValueError: k < 1.

    Source: Fan et al. 2018, "Hierarchical Neural Story Generation", section 5.4.
    """
    _check_k(k)
    order = logits.argsort(dim=-1, descending=True, stable=True)
    dropped = torch.ones_like(logits, dtype=torch.bool).scatter(-1, order[..., :k], False)
    return logits.masked_fill(dropped, float("-inf"))


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    r"""Keep the smallest set of most likely tokens whose probabilities sum to at least p.

    $$
    \sum_{x \in V^{(p)}} P(x) \geq p
    $$

    Probabilities .5, .3, .15, .05 keep 1 token at p = .5, 2 at .6 and at .8, 3 at .85. The sum is
    taken in float64, and one within 1e-6 of p has reached it.

    Args:
        logits: (..., V).
        p: between 0 (the most likely token only) and 1 (all tokens).

    Returns:
        Logits (..., V).

    Raises:
        ValueError: p lies outside [0, 1].

    Source: Holtzman et al. 2020, "The Curious Case of Neural Text Degeneration", section 3.1.
    """
    _check_share("top_p", p)
    if p == 1:
        return logits
    order = logits.argsort(dim=-1, descending=True, stable=True)
    sorted_p = logits.gather(-1, order).double().softmax(dim=-1)
    before = sorted_p.cumsum(dim=-1) - sorted_p  # what the more likely tokens sum to
    dropped = before >= p - TOLERANCE
    dropped[..., 0] = False
    return logits.masked_fill(dropped.scatter(-1, order, dropped), float("-inf"))


def keep_min_p(logits: Tensor, min_p: float) -> Tensor:
    r"""Keep the tokens that are at least min_p times as likely as the most likely one.

    $$
    V_{\min} = \{ x : P(x) \geq p_{\text{base}} \cdot \max_{v} P(v) \}
    $$

    Args:
        logits: (..., V).
        min_p: p_base, between 0 (all tokens) and 1 (the most likely one, and those equal to it).

    Returns:
        Logits (..., V). A ratio within 1e-6 of min_p has reached it.

    Raises:
        ValueError: min_p lies outside [0, 1].

    Source: Nguyen et al. 2025, "Turning Up the Heat: Min-p Sampling for Creative and Coherent LLM
    Outputs", section 3.
    """
    _check_share("min_p", min_p)
    ratio = (logits.double() - logits.double().amax(dim=-1, keepdim=True)).exp()
    return logits.masked_fill(ratio < min_p - TOLERANCE, float("-inf"))


def next_token_probabilities(logits: Tensor, sampling: Sampling) -> Tensor:
    """Apply temperature and filters.

    Args:
        logits: (..., V).
        sampling: which.

    Returns:
        Probabilities (..., V) in float32 at least; each row sums to 1.
    """
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    logits = with_temperature(logits, sampling.temperature)
    if sampling.top_k is not None:
        logits = keep_top_k(logits, sampling.top_k)
    if sampling.top_p is not None:
        logits = keep_top_p(logits, sampling.top_p)
    if sampling.min_p is not None:
        logits = keep_min_p(logits, sampling.min_p)
    return logits.softmax(dim=-1)


def choose_tokens(
    logits: Tensor, sampling: Sampling, *, generator: torch.Generator | None = None
) -> Tensor:
    """Choose the next token of each row.

    Args:
        logits: (B, V).
        sampling: how.
        generator: of random numbers, on the device of the logits; torch's own when left out.

    Returns:
        Tokens (B,). With temperature 0 no random number is drawn.
    """
    if sampling.temperature == 0:
        return logits.argmax(dim=-1)
    probabilities = next_token_probabilities(logits, sampling)
    return torch.multinomial(probabilities, 1, generator=generator).squeeze(-1)
