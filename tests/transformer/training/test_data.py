"""Batches: padding and shifting by hand, orders and splits as properties."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from flower_transformer.training.data import (
    batches_of_similar_length,
    batches_within_budget,
    collate_pairs,
    collate_texts,
    lengths_of_padded,
    next_token_labels,
    pad,
    shuffled_batches,
    split_by_key,
)

SEEDS = st.integers(0, 2**31)
LENGTHS = st.lists(st.integers(1, 9), max_size=30)


def flat(batches: list[list[int]]) -> list[int]:
    return [index for batch in batches for index in batch]


# --- padding and shifting -------------------------------------------------------------------------


def test_pad_by_hand() -> None:
    tokens, lengths = pad([[5, 6, 7], [], [8]], pad_id=9)
    assert tokens.tolist() == [[5, 6, 7], [9, 9, 9], [8, 9, 9]]
    assert lengths.tolist() == [3, 0, 1]
    assert tokens.dtype == torch.long


def test_next_token_labels_by_hand() -> None:
    inputs, labels = next_token_labels(
        torch.tensor([[5, 6, 7], [8, 9, 0], [4, 0, 0]]), torch.tensor([3, 2, 1])
    )
    assert inputs.tolist() == [[5, 6], [8, 9], [4, 0]]
    assert labels.tolist() == [[6, 7], [9, -100], [-100, -100]]


def test_collate_texts_by_hand() -> None:
    batch = collate_texts([[5, 6, 7], [8, 9], [4]], pad_id=0)
    assert batch.inputs.tolist() == [[5, 6], [8, 9], [4, 0]]
    assert batch.labels.tolist() == [[6, 7], [9, -100], [-100, -100]]
    assert batch.padding_mask.int().tolist() == [[1, 1], [1, 1], [1, 0]]
    assert batch.n_tokens == 3


def test_collate_pairs_by_hand() -> None:
    batch = collate_pairs([([7], [5, 6]), ([8, 9], [4])], pad_id=0, bos_id=1, eos_id=2)
    assert batch.source.tolist() == [[7, 0], [8, 9]]
    assert batch.source_mask.int().tolist() == [[1, 0], [1, 1]]
    assert batch.inputs.tolist() == [[1, 5, 6], [1, 4, 2]]
    assert batch.labels.tolist() == [[5, 6, 2], [4, 2, -100]]
    assert batch.padding_mask.int().tolist() == [[1, 1, 1], [1, 1, 1]]
    assert batch.n_tokens == 5


def test_batches_move() -> None:
    device = torch.device("meta")
    batch = collate_pairs([([7], [5])], pad_id=0, bos_id=1, eos_id=2).to(device)
    assert {batch.source.device, batch.source_mask.device, batch.labels.device} == {device}


@given(
    sequences=st.lists(st.lists(st.integers(0, 5), max_size=5), min_size=1, max_size=5),
    pad_id=st.integers(0, 5),
)
def test_whatever_the_padding_id_is(sequences: list[list[int]], pad_id: int) -> None:
    """An id that also stands for a token, the padding itself, changes neither labels nor mask."""
    batch = collate_texts(sequences, pad_id=pad_id)
    apart = collate_texts(sequences, pad_id=99)
    assert torch.equal(batch.labels, apart.labels)
    assert torch.equal(batch.padding_mask, apart.padding_mask)
    assert batch.n_tokens == sum(max(0, len(sequence) - 1) for sequence in sequences)
    for row, sequence in enumerate(sequences):
        assert batch.labels[row][: len(sequence[1:])].tolist() == sequence[1:]


def test_lengths_of_padded_by_hand() -> None:
    rows = torch.tensor([[5, 6, 2, 0], [5, 2, 0, 0], [5, 6, 7, 2]])
    assert lengths_of_padded(rows, pad_id=0, eos_id=2).tolist() == [3, 2, 4]
    shared = torch.tensor([[5, 6, 2, 2], [5, 2, 2, 2], [5, 6, 7, 2], [5, 6, 7, 8], [2, 5, 2, 2]])
    assert lengths_of_padded(shared, pad_id=2, eos_id=2).tolist() == [3, 2, 4, 4, 3]


# --- order ----------------------------------------------------------------------------------------


@given(lengths=LENGTHS, size=st.integers(1, 7), seed=SEEDS)
def test_every_example_is_in_one_batch(lengths: list[int], size: int, seed: int) -> None:
    everything = list(range(len(lengths)))
    for batches in (
        shuffled_batches(len(lengths), batch_size=size, seed=seed),
        batches_of_similar_length(lengths, batch_size=size, seed=seed),
        batches_within_budget(lengths, max_tokens=9 + size, seed=seed),
    ):
        assert sorted(flat(batches)) == everything
        assert all(batches)


@given(lengths=LENGTHS, size=st.integers(1, 7), seed=SEEDS)
def test_batches_hold_similar_lengths(lengths: list[int], size: int, seed: int) -> None:
    batches = batches_of_similar_length(lengths, batch_size=size, seed=seed)
    assert sum(len(batch) < size for batch in batches) <= 1
    spans = sorted(
        (min(lengths[i] for i in batch), max(lengths[i] for i in batch)) for batch in batches
    )
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


@given(lengths=LENGTHS, budget=st.integers(9, 40), seed=SEEDS)
def test_batches_keep_to_their_budget(lengths: list[int], budget: int, seed: int) -> None:
    for batch in batches_within_budget(lengths, max_tokens=budget, seed=seed):
        assert len(batch) * max(lengths[i] for i in batch) <= budget


def test_order_depends_on_seed_and_epoch_only() -> None:
    lengths = [1, 2, 3, 4] * 10
    for make in (
        lambda **order: shuffled_batches(40, batch_size=4, **order),
        lambda **order: batches_of_similar_length(lengths, batch_size=4, **order),
        lambda **order: batches_within_budget(lengths, max_tokens=12, **order),
    ):
        first = make(seed=1, epoch=2)
        torch.manual_seed(99)
        assert make(seed=1, epoch=2) == first
        assert make(seed=1, epoch=3) != first
        assert make(seed=2, epoch=2) != first


# --- splits ---------------------------------------------------------------------------------------


@given(keys=st.lists(st.sampled_from("abcdefghij"), max_size=60), seed=SEEDS)
def test_no_key_is_in_two_parts(keys: list[str], seed: int) -> None:
    parts = split_by_key(keys, shares=(0.6, 0.2, 0.2), seed=seed)
    assert sorted(flat(parts)) == list(range(len(keys)))
    sets = [{keys[index] for index in part} for part in parts]
    assert sum(map(len, sets)) == len(set(keys))
    assert parts == [sorted(part) for part in parts]


def test_shares_are_of_the_different_keys() -> None:
    keys = [str(number) for number in range(100)] + ["0"] * 50
    parts = split_by_key(keys, shares=(0.7, 0.2, 0.1), seed=3)
    assert [len({keys[index] for index in part}) for part in parts] == [70, 20, 10]


def test_split_does_not_depend_on_the_order_of_the_examples() -> None:
    keys = [str(number) for number in range(50)]
    chosen = [{keys[index] for index in part} for part in split_by_key(keys, seed=1)]
    reverse = keys[::-1]
    assert chosen == [{reverse[index] for index in part} for part in split_by_key(reverse, seed=1)]
    assert split_by_key(keys, seed=1) != split_by_key(keys, seed=2)


def test_errors_name_the_values() -> None:
    with pytest.raises(ValueError, match="at least 1 sequence, got 0"):
        collate_texts([], pad_id=0)
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        shuffled_batches(3, batch_size=0, seed=0)
    with pytest.raises(ValueError, match="max_tokens must be at least 1, got 0"):
        batches_within_budget([], max_tokens=0, seed=0)
    with pytest.raises(ValueError, match="an example has 5 tokens, max_tokens is 4"):
        batches_within_budget([1, 5], max_tokens=4, seed=0)
    for shares in ((0.5, 0.6), (1.5, -0.5), ()):
        with pytest.raises(ValueError, match="sum to 1, got"):
            split_by_key(["a"], shares=shares)
