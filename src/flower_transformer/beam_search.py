r"""Beam search: several texts at once, the best of them at the end.

Legend: B batch, K beams, T length of the prompt, V vocabulary.

A text that reaches EOS is set aside and gives up its place in the beam, so that with one beam the
search is greedy. Longer texts are less likely; what they are divided by is the length penalty, and
the length counts new tokens only, EOS included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import torch
from torch import Tensor

from flower_transformer.generate import LanguageModel, Reader

LengthPenalty = Callable[[int], float]


def gnmt_penalty(length: int, *, alpha: float = 0.6) -> float:
    r"""Length penalty of Google's translation system.

    $$
    lp(n) = \frac{(5 + n)^{\alpha}}{(5 + 1)^{\alpha}}
    $$

    Args:
        length: n, number of tokens; |Y| in the paper.
        alpha: 0 for none, 1 for almost the mean over the tokens.

    Returns:
        What the log-probability is divided by.

    Source: Wu et al. 2016, "Google's Neural Machine Translation System", section 7, equation (14).
    """
    return float(((5 + length) / 6) ** alpha)


def mean_penalty(length: int, *, alpha: float = 1.0) -> float:
    r"""Divide by $n^{\alpha}$: the mean log-probability of a token for alpha = 1.

    Args:
        length: n, number of tokens.
        alpha: 0 for none.

    Returns:
        What the log-probability is divided by.
    """
    return float(length**alpha)


@dataclass(frozen=True)
class Hypothesis:
    """A text that beam search has found.

    Attributes:
        tokens: new tokens, EOS included if the text has ended.
        log_probability: of all of them.
        score: the same divided by the length penalty.
    """

    tokens: list[int]
    log_probability: float
    score: float


@torch.no_grad()
def beam_search(
    model: LanguageModel,
    prompt: Tensor,
    *,
    n_beams: int,
    n_new: int,
    eos_token: int | None = None,
    length_penalty: LengthPenalty = gnmt_penalty,
    prompt_mask: Tensor | None = None,
    cached: bool = True,
) -> list[list[Hypothesis]]:
    r"""Search for the text with the highest $\log P(Y) / lp(n)$.

    In each step every beam is continued by every token, and the most likely continuations are
    kept: K, less those that have ended before. It stops when all K have ended, or after n_new
    tokens, with the unfinished ones among the results.

    Args:
        model: in evaluation mode.
        prompt: integers (B, T), T >= 1.
        n_beams: K.
        n_new: the most tokens to generate.
        eos_token: the token that ends a text.
        length_penalty: `gnmt_penalty`, `mean_penalty`, or ``functools.partial`` of one of them
            with another alpha.
        prompt_mask: boolean (B, T), True = real token; padding on the left.
        cached: keep keys and values.

    Returns:
        For each row of the batch at most K hypotheses, the best first.

    Raises:
        ValueError: n_beams or n_new < 1, or as `generate.stream`.

    Source: Sutskever et al. 2014, "Sequence to Sequence Learning with Neural Networks", section
    3.2; Wu et al. 2016, section 7 (without the coverage penalty).
    """
    if n_beams < 1 or n_new < 1:
        raise ValueError(f"sizes must be positive: n_beams {n_beams}, n_new {n_new}")
    reader = Reader(model, prompt, prompt_mask=prompt_mask, cached=cached)
    n_rows = prompt.shape[0]
    found: list[list[Hypothesis]] = [[] for _ in range(n_rows)]
    log_p = reader.read(prompt).log_softmax(dim=-1, dtype=torch.float64)  # (B, V)
    n_tokens = log_p.shape[-1]
    # All beams begin alike: K copies of each row, of which the first alone is alive.
    first_row = torch.arange(n_rows, device=prompt.device).unsqueeze(-1) * n_beams  # (B, 1)
    rows = (first_row // n_beams).expand(-1, n_beams).flatten()  # (B * K,)
    reader.select(rows)
    log_p = log_p[rows].view(n_rows, n_beams, n_tokens)
    scores = log_p.new_full((n_rows, n_beams), float("-inf"))  # log-probability of each beam
    scores[:, 0] = 0.0
    texts = prompt.new_empty(n_rows, n_beams, 0)

    for length in count(1):  # to n_new at most: there every text ends
        candidates = (scores.unsqueeze(-1) + log_p).flatten(1)  # (B, K, V) -> (B, K * V)
        scores, best = candidates.topk(n_beams, dim=-1)
        beams, tokens = best // n_tokens, best % n_tokens  # (B, K) each
        texts = torch.cat(
            (texts.gather(1, beams.unsqueeze(-1).expand(-1, -1, length - 1)), tokens[..., None]),
            dim=-1,
        )
        for row in range(n_rows):
            n_free = n_beams - len(found[row])
            scores[row, n_free:] = float("-inf")
            for beam in range(n_free):
                log_probability = float(scores[row, beam])
                ended = int(tokens[row, beam]) == eos_token or length == n_new
                if ended and log_probability > float("-inf"):
                    score = log_probability / length_penalty(length)
                    text = texts[row, beam].tolist()
                    found[row].append(Hypothesis(text, log_probability, score))
                    scores[row, beam] = float("-inf")
        if bool((scores == float("-inf")).all()):
            break
        reader.select((first_row + beams).flatten())
        log_p = reader.read(tokens.reshape(-1, 1)).log_softmax(dim=-1, dtype=torch.float64)
        log_p = log_p.view(n_rows, n_beams, n_tokens)
    return [sorted(row, key=lambda h: h.score, reverse=True) for row in found]
