"""Filters by hand, their properties, and what is drawn after them."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from flower_transformer.sampling import (
    GREEDY,
    Sampling,
    choose_tokens,
    keep_min_p,
    keep_top_k,
    keep_top_p,
    next_token_probabilities,
    with_temperature,
)

P = torch.tensor([0.5, 0.3, 0.15, 0.05])
numbers = st.lists(st.floats(-5, 5, width=32), min_size=1, max_size=8)


def kept(logits: torch.Tensor) -> list[bool]:
    return (logits > -math.inf).tolist()


def test_temperature_by_hand() -> None:
    z = torch.tensor([math.log(4.0), 0.0])
    assert with_temperature(z, 1).softmax(-1).tolist() == pytest.approx([0.8, 0.2])
    assert with_temperature(z, 0.5).softmax(-1).tolist() == pytest.approx([16 / 17, 1 / 17])
    assert with_temperature(z, 2).softmax(-1).tolist() == pytest.approx([2 / 3, 1 / 3])
    assert with_temperature(z, 0).softmax(-1).tolist() == [1, 0]


def test_top_k_by_hand() -> None:
    assert kept(keep_top_k(torch.tensor([1.0, 3.0, 2.0]), 2)) == [False, True, True]
    assert kept(keep_top_k(torch.tensor([[1.0, 2.0], [2.0, 1.0]]), 1)) == [
        [False, True],
        [True, False],
    ]
    assert kept(keep_top_k(torch.tensor([1.0, 2.0]), 9)) == [True, True]


@given(z=numbers, k=st.integers(1, 9))
def test_top_k_keeps_k_and_the_largest(z: list[float], k: int) -> None:
    logits = torch.tensor(z)
    chosen = torch.tensor(kept(keep_top_k(logits, k)))
    assert chosen.sum() == min(k, len(z))
    if not chosen.all():
        assert logits[chosen].min() >= logits[~chosen].max()


@given(z=numbers, p=st.floats(0, 1))
def test_top_p_is_the_smallest_set_that_reaches_p(z: list[float], p: float) -> None:
    logits = torch.tensor(z)
    chosen = torch.tensor(kept(keep_top_p(logits, p)))
    masses = logits.double().softmax(-1)
    assert chosen.any()
    assert masses[chosen].sum() >= p - 2e-6
    if chosen.sum() > 1:
        assert masses[chosen].sum() - masses[chosen].min() < p


def test_min_p_by_hand() -> None:
    counts = {0.0: 4, 0.1: 4, 0.11: 3, 0.3: 3, 0.31: 2, 0.6: 2, 0.61: 1, 1.0: 1}
    for min_p, count in counts.items():
        assert sum(kept(keep_min_p(P.log(), min_p))) == count
    assert kept(keep_min_p(torch.tensor([1.0, 1.0, 0.0]), 1.0)) == [True, True, False]


def test_filters_chain_in_order() -> None:
    # of .5 .3 .15 .05 the best three are .526 .316 .158; .8 is reached by two of them
    p = next_token_probabilities(P.log(), Sampling(top_k=3, top_p=0.8))
    assert p.tolist() == pytest.approx([0.625, 0.375, 0, 0])
    p = next_token_probabilities(P.log(), Sampling(temperature=0.5, min_p=0.3))
    assert p.tolist() == pytest.approx([0.25 / 0.34, 0.09 / 0.34, 0, 0])
    p = next_token_probabilities(P.log().half(), Sampling())
    assert p.dtype == torch.float32


def test_draws_follow_the_probabilities() -> None:
    generator = torch.Generator().manual_seed(0)
    rows = P.log().expand(20000, 4)
    drawn = choose_tokens(rows, Sampling(top_k=2), generator=generator)
    shares = torch.bincount(drawn, minlength=4) / len(drawn)
    assert shares.tolist() == pytest.approx([0.625, 0.375, 0, 0], abs=0.01)


def test_a_generator_makes_draws_repeatable() -> None:
    rows = P.log().expand(50, 4)
    first, second = (
        choose_tokens(rows, Sampling(), generator=torch.Generator().manual_seed(3))
        for _ in range(2)
    )
    assert torch.equal(first, second)
    state = torch.get_rng_state()
    choose_tokens(rows, GREEDY)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -0.1}, "temperature must be at least 0, got -0.1"),
        ({"top_k": 0}, "top_k must be at least 1, got 0"),
        ({"top_p": 1.5}, r"top_p must lie in \[0, 1\], got 1.5"),
        ({"min_p": -1.0}, r"min_p must lie in \[0, 1\], got -1.0"),
    ],
)
def test_a_bad_choice_is_refused_before_a_model_runs(
    options: dict[str, float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Sampling(**options)
