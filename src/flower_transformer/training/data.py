"""From lists of token ids to padded batches, in a seeded order, from splits that do not leak.

Legend: B batch, T length of the inputs, S length of the source.

Which tokens are real is decided by the lengths of the sequences, never by comparing with the
padding id: the id may be shared with the end of the sequence. Labels are the inputs shifted by one,
done here and nowhere else; -100 marks what the loss ignores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import torch
from torch import Tensor

from flower_transformer.masks import padding_mask
from flower_transformer.training.losses import IGNORE_INDEX


@dataclass(frozen=True)
class TextBatch:
    """Sequences for a language model; every mask: True = real token.

    Attributes:
        inputs: (B, T), what the model reads.
        labels: (B, T), the token after each input, or -100 where there is none.
        padding_mask: boolean (B, T), which inputs are real: a ``key_padding_mask``.
    """

    inputs: Tensor
    labels: Tensor
    padding_mask: Tensor

    @property
    def n_tokens(self) -> int:
        """How many labels count."""
        return int((self.labels != IGNORE_INDEX).sum())

    def to(self, device: torch.device) -> Self:
        """Return the same batch with its tensors on the device."""
        return type(self)(**{f.name: getattr(self, f.name).to(device) for f in fields(self)})


@dataclass(frozen=True)
class PairBatch(TextBatch):
    """Pairs for an encoder and decoder: the fields of `TextBatch` describe the target.

    Attributes:
        source: (B, S), what the encoder reads.
        source_mask: boolean (B, S), which of its tokens are real.
    """

    source: Tensor
    source_mask: Tensor


def pad(sequences: Sequence[Sequence[int]], *, pad_id: int) -> tuple[Tensor, Tensor]:
    """Write sequences of different lengths into one tensor, padded on the right.

    Args:
        sequences: B lists of token ids.
        pad_id: what fills the rest of a row.

    Returns:
        The tokens (B, T), T the longest length, and the lengths (B,).

    Raises:
        ValueError: there is no sequence.
    """
    if not sequences:
        raise ValueError("a batch needs at least 1 sequence, got 0")
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    tokens = torch.full((len(sequences), int(lengths.max())), pad_id, dtype=torch.long)
    for row, sequence in zip(tokens, sequences, strict=True):
        row[: len(sequence)] = torch.tensor(sequence, dtype=torch.long)
    return tokens, lengths


def next_token_labels(tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Split sequences into inputs and labels, the one shift of the package.

    The label of input t is token t + 1: [5, 6, 7] gives the inputs [5, 6] and the labels [6, 7].
    A model's output at t is compared with the label at t; nothing may be shifted again.

    Args:
        tokens: (B, T + 1), padded on the right with anything.
        lengths: (B,), number of real tokens in each row.

    Returns:
        Inputs (B, T) and labels (B, T), -100 from where the next token is not real.
    """
    real = padding_mask(lengths, tokens.shape[-1])  # (B, T + 1)
    return tokens[:, :-1], tokens.masked_fill(~real, IGNORE_INDEX)[:, 1:]


def lengths_of_padded(tokens: Tensor, *, pad_id: int, eos_id: int) -> Tensor:
    """Find the lengths of rows that come already padded on the right.

    Args:
        tokens: (B, T); a row is real tokens, its end-of-sequence token, then padding.
        pad_id: what the padding consists of.
        eos_id: the end of a sequence. Where it is the same id, the first of a row's last run of
            it is that end and belongs to the sequence: [5, EOS, PAD, PAD] has length 2.

    Returns:
        (B,): how many tokens of each row are real.
    """
    trailing = (tokens == pad_id).flip(-1).cumprod(-1).sum(-1)  # length of the last run
    if pad_id == eos_id:
        trailing = (trailing - 1).clamp(min=0)
    return tokens.shape[-1] - trailing


def collate_texts(sequences: Sequence[Sequence[int]], *, pad_id: int) -> TextBatch:
    """Make a batch for a language model.

    Args:
        sequences: B lists of token ids, with their begin and end tokens if they have any; one
            with fewer than 2 tokens has nothing to predict.
        pad_id: padding of the inputs; may be the id of another token.

    Returns:
        Inputs, labels and mask of shape (B, T), T one less than the longest length.

    Raises:
        ValueError: there is no sequence.
    """
    tokens, lengths = pad(sequences, pad_id=pad_id)
    inputs, labels = next_token_labels(tokens, lengths)
    # As far as there are inputs: a row that ends before T + 1 has its last token among them.
    return TextBatch(
        inputs, labels, padding_mask(lengths.clamp(max=inputs.shape[1]), inputs.shape[1])
    )


def collate_pairs(
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]], *, pad_id: int, bos_id: int, eos_id: int
) -> PairBatch:
    """Make a batch for an encoder and decoder, with teacher forcing.

    The decoder reads BOS, y_1, ..., y_n and is to answer y_1, ..., y_n, EOS.

    Args:
        pairs: B pairs of source and target, lists of token ids. The source is taken as it is, the
            target is given its BOS and EOS here.
        pad_id: padding of source and inputs; may be the id of another token.
        bos_id: begin of a target.
        eos_id: end of a target.

    Returns:
        The batch; T is the longest target and one token more.

    Raises:
        ValueError: there is no pair.
    """
    source, source_lengths = pad([source for source, _ in pairs], pad_id=pad_id)
    target = collate_texts([[bos_id, *target, eos_id] for _, target in pairs], pad_id=pad_id)
    return PairBatch(
        inputs=target.inputs,
        labels=target.labels,
        padding_mask=target.padding_mask,
        source=source,
        source_mask=padding_mask(source_lengths, source.shape[1]),
    )


def shuffled_batches(
    n_examples: int, *, batch_size: int, seed: int, epoch: int = 0
) -> list[list[int]]:
    """Deal the examples out to batches at random.

    Args:
        n_examples: how many examples there are.
        batch_size: how many make a batch; the last one may be smaller.
        seed: seed of the order.
        epoch: every epoch has another order, which depends on seed and epoch only.

    Returns:
        Batches of indices; each index occurs once.

    Raises:
        ValueError: the batch size is below 1.
    """
    _check_size("batch_size", batch_size)
    return _cut(_order(n_examples, seed, epoch), batch_size)


def batches_of_similar_length(
    lengths: Sequence[int], *, batch_size: int, seed: int, epoch: int = 0
) -> list[list[int]]:
    """Put examples of similar length together, so that little is padded.

    Examples are sorted by length, equal lengths in random order, cut into batches, and the
    batches shuffled.

    Args:
        lengths: length of each example.
        batch_size: how many make a batch; one batch may be smaller.
        seed: seed of the order.
        epoch: every epoch has another order, which depends on seed and epoch only.

    Returns:
        Batches of indices; each index occurs once.

    Raises:
        ValueError: the batch size is below 1.
    """
    _check_size("batch_size", batch_size)
    return _shuffled(_cut(_by_length(lengths, seed, epoch), batch_size), seed, epoch)


def batches_within_budget(
    lengths: Sequence[int], *, max_tokens: int, seed: int, epoch: int = 0
) -> list[list[int]]:
    """Fill each batch up to a number of tokens, padding included: few long examples or many short.

    Args:
        lengths: length of each example.
        max_tokens: the most that a batch may hold, its size times its longest length.
        seed: seed of the order.
        epoch: every epoch has another order, which depends on seed and epoch only.

    Returns:
        Batches of indices; each index occurs once.

    Raises:
        ValueError: an example is longer than max_tokens.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 5.1.
    """
    _check_size("max_tokens", max_tokens)
    if lengths and max(lengths) > max_tokens:
        raise ValueError(f"an example has {max(lengths)} tokens, max_tokens is {max_tokens}")
    batches: list[list[int]] = []
    for index in _by_length(lengths, seed, epoch):  # ascending: the newest is the longest
        if batches and (len(batches[-1]) + 1) * lengths[index] <= max_tokens:
            batches[-1].append(index)
        else:
            batches.append([index])
    return _shuffled(batches, seed, epoch)


def split_by_key(
    keys: Sequence[str], *, shares: Sequence[float] = (0.8, 0.1, 0.1), seed: int = 0
) -> list[list[int]]:
    """Split examples so that those with one key stay together.

    A random split of examples leaks where examples repeat: a sentence with three translations ends
    up in training and test. With the sentence as key it is in one of them.

    Args:
        keys: what must not be shared between two parts, one for each example: the sentence
            itself, a document's name, an author.
        shares: share of the different keys that each part gets; they sum to 1.
        seed: seed of the split. The split does not depend on the order of the examples.

    Returns:
        Ascending indices of the examples of each part.

    Raises:
        ValueError: a share is negative, or the shares do not sum to 1.
    """
    if min(shares, default=0.0) < 0 or abs(sum(shares) - 1) > 1e-9:
        raise ValueError(f"shares must be at least 0 and sum to 1, got {tuple(shares)}")
    different = sorted(set(keys))
    order = _order(len(different), seed, 0)
    ends = [round(sum(shares[: part + 1]) * len(order)) for part in range(len(shares))]
    part_of: dict[str, int] = {}
    for part, (start, end) in enumerate(zip([0, *ends], ends, strict=False)):
        part_of.update((different[index], part) for index in order[start:end])
    parts: list[list[int]] = [[] for _ in shares]
    for index, key in enumerate(keys):
        parts[part_of[key]].append(index)
    return parts


def _order(n: int, seed: int, epoch: int) -> list[int]:
    generator = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
    order: list[int] = torch.randperm(n, generator=generator).tolist()
    return order


def _by_length(lengths: Sequence[int], seed: int, epoch: int) -> list[int]:
    # sorting is stable: equal lengths keep their random order
    return sorted(_order(len(lengths), seed, epoch), key=lambda index: lengths[index])


def _shuffled(batches: list[list[int]], seed: int, epoch: int) -> list[list[int]]:
    return [batches[index] for index in _order(len(batches), seed, epoch)]


def _cut(indices: Sequence[int], size: int) -> list[list[int]]:
    return [list(indices[start : start + size]) for start in range(0, len(indices), size)]


def _check_size(name: str, size: int) -> None:
    if size < 1:
        raise ValueError(f"{name} must be at least 1, got {size}")
