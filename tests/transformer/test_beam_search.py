"""Beam search: against all texts there are, with caches, and the published length penalty."""

from __future__ import annotations

import itertools
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import V, small_gpt, small_llama
from table_model import TableModel

from flower_transformer.beam_search import beam_search, gnmt_penalty, mean_penalty

CYCLE = TableModel([[0, 1, 0], [0, 0, 1], [1, 0, 0]])  # 0 -> 1 -> 2 -> 0


def tokens(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(V, shape, generator=torch.Generator().manual_seed(seed))


def test_penalties_by_hand() -> None:
    assert gnmt_penalty(1, alpha=0.6) == 1
    assert gnmt_penalty(7, alpha=1) == 2
    assert gnmt_penalty(19, alpha=0.5) == 2
    assert gnmt_penalty(9, alpha=0) == mean_penalty(9, alpha=0) == 1
    assert mean_penalty(9) == 9
    assert mean_penalty(9, alpha=0.5) == 3


def all_texts(model: TableModel, last: int, n_new: int, eos: int) -> dict[tuple[int, ...], float]:
    """Every text that ends with EOS or has n_new tokens, with its log-probability."""
    found = {}
    for length in range(1, n_new + 1):
        for text in itertools.product(range(3), repeat=length):
            if eos in text[:-1] or (text[-1] != eos and length < n_new):
                continue
            found[text] = sum(
                float(model.logits[a].log_softmax(-1)[b])
                for a, b in zip((last, *text), text, strict=False)
            )
    return found


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**31),
    n_new=st.integers(1, 3),
    penalty=st.sampled_from([gnmt_penalty, mean_penalty, partial(gnmt_penalty, alpha=0.0)]),
)
def test_a_beam_wide_enough_finds_the_best_of_all_texts(
    seed: int, n_new: int, penalty: partial[float]
) -> None:
    generator = torch.Generator().manual_seed(seed)
    model = TableModel(torch.rand(3, 3, generator=generator).clamp(min=0.01).tolist())
    found = beam_search(
        model,
        torch.tensor([[0], [1]]),
        n_beams=27,
        n_new=n_new,
        eos_token=2,
        length_penalty=penalty,
    )
    for last, hypotheses in enumerate(found):
        texts = all_texts(model, last, n_new, eos=2)
        assert {tuple(h.tokens) for h in hypotheses} == set(texts)
        for h in hypotheses:
            assert h.log_probability == pytest.approx(texts[tuple(h.tokens)], abs=1e-5)
            assert h.score == pytest.approx(h.log_probability / penalty(len(h.tokens)))
        scores = [h.score for h in hypotheses]
        assert scores == sorted(scores, reverse=True)


@torch.no_grad()
@pytest.mark.parametrize("model", [small_gpt(), small_llama(window=3)])
def test_beams_are_reordered_with_their_caches(model: torch.nn.Module) -> None:
    real = torch.tensor([[False, False, True, True], [True] * 4])
    options = {"n_beams": 3, "n_new": 6, "eos_token": 1, "prompt_mask": real}
    cached = beam_search(model, tokens(2, 4), **options)
    uncached = beam_search(model, tokens(2, 4), **options, cached=False)
    for ours, theirs in zip(cached, uncached, strict=True):
        assert [h.tokens for h in ours] == [h.tokens for h in theirs]
        assert [h.score for h in ours] == pytest.approx([h.score for h in theirs], abs=1e-4)
    for prompt, mask, hypotheses in zip(tokens(2, 4), real, cached, strict=True):
        for h in hypotheses:  # what the search says of a text is what the model says of it
            text = torch.tensor([[*prompt[mask].tolist(), *h.tokens]])
            log_p = model(text).log_softmax(-1)[0, -len(h.tokens) - 1 : -1]
            total = log_p.gather(-1, torch.tensor(h.tokens)[:, None]).sum()
            assert h.log_probability == pytest.approx(float(total), abs=1e-4)


def test_a_text_without_end_is_a_result_too() -> None:
    [[best]] = beam_search(CYCLE, torch.tensor([[0]]), n_beams=1, n_new=3, eos_token=5)
    assert best.tokens == [1, 2, 0]
    assert best.log_probability == 0
    assert best.score == 0


def test_errors() -> None:
    with pytest.raises(ValueError, match="n_beams 0, n_new 1"):
        beam_search(CYCLE, torch.tensor([[0]]), n_beams=0, n_new=1)
    with pytest.raises(ValueError, match="training mode"):
        beam_search(small_gpt().train(), torch.tensor([[0]]), n_beams=1, n_new=1)
