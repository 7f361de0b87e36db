"""Tokenizers: merges by hand, and every text comes back."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flower_transformer.training.tokenizers import (
    BOS_ID,
    EOS_ID,
    N_BYTES,
    PAD_ID,
    SPECIAL_TOKENS,
    UNK_ID,
    BytePairTokenizer,
    CharacterTokenizer,
    apply_merges,
    load_tokenizer,
    merge,
    save_tokenizer,
    train_merges,
)

TEXTS = [
    "Attention is all you need. The attention of each head.\n",
    "注意力机制：查询、键与值。注意力权重之和为一。",
    "缩放点积注意力 softmax(QK^T/√d_k)V，d_k=64。",
    "def attend(query, key):\n    return query @ key.T  # ∑ 🙂",
]


def code(text: str) -> tuple[int, ...]:
    return tuple(text.encode())


def test_merge_by_hand() -> None:
    assert merge([1, 2, 1, 2, 3], (1, 2), 9) == [9, 9, 3]
    assert merge([1, 1, 1], (1, 1), 9) == [9, 1]
    assert merge([], (1, 1), 9) == []


def test_merges_of_the_paper_by_hand() -> None:
    # The words of Sennrich et al., section 3.2. es and st occur 9 times each; e < s, so es is
    # first. Then es + t (9), then l + o before o + w (7 each), lo + w (7), and e + w before
    # n + e and w + est (6 each).
    texts = ["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3
    es, est, lo, low = range(N_BYTES, N_BYTES + 4)
    assert train_merges(texts, 5) == [
        code("es"),
        (es, ord("t")),
        code("lo"),
        (lo, ord("w")),
        code("ew"),
    ]
    merged = {pair: N_BYTES + number for number, pair in enumerate(train_merges(texts, 4))}
    assert apply_merges(code("lowest"), merged) == [low, est]
    assert apply_merges(code("slow"), merged) == [ord("s"), low]


def test_the_merge_that_was_learned_first_goes_first() -> None:
    ab, bc = N_BYTES, N_BYTES + 1
    assert apply_merges(code("abc"), {code("ab"): ab, code("bc"): bc}) == [ab, ord("c")]
    assert apply_merges(code("abc"), {code("ab"): bc, code("bc"): ab}) == [ord("a"), ab]


def test_training_stops_where_no_pair_occurs_twice() -> None:
    assert train_merges(["abc"], 10) == []
    assert train_merges(["ab", "ab"], 10) == [code("ab")]
    assert train_merges([], 10) == []


def plain_merges(words: dict[str, int], n_merges: int) -> list[tuple[int, int]]:
    """The algorithm as one would write it first: count everything anew for each merge."""
    coded = {word: list(code(word)) for word in words}
    merges: list[tuple[int, int]] = []
    for number in range(n_merges):
        counts: dict[tuple[int, int], int] = {}
        for word, symbols in coded.items():
            for pair in pairwise(symbols):
                counts[pair] = counts.get(pair, 0) + words[word]
        if not counts or max(counts.values()) < 2:
            break
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        merges.append(best)
        coded = {word: merge(symbols, best, N_BYTES + number) for word, symbols in coded.items()}
    return merges


@given(words=st.dictionaries(st.text("abc注", min_size=1, max_size=8), st.integers(1, 4)))
def test_training_equals_counting_anew(words: dict[str, int]) -> None:
    texts = [word for word, count in words.items() for _ in range(count)]
    assert train_merges(texts, 12) == plain_merges(words, 12)


def test_ties_do_not_depend_on_the_order_of_the_texts() -> None:
    expected = train_merges(TEXTS, 60)
    for seed in range(5):
        assert train_merges(random.Random(seed).sample(TEXTS, len(TEXTS)), 60) == expected


@given(text=st.text(), size=st.sampled_from([260, 300, 400]))
def test_byte_pairs_round_trip_any_text(text: str, size: int) -> None:
    tokenizer = BytePairTokenizer.train(TEXTS, vocabulary_size=size)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert all(len(SPECIAL_TOKENS) <= token < tokenizer.vocabulary_size for token in ids)


@pytest.mark.parametrize("text", TEXTS)
def test_byte_pairs_shorten_what_they_have_seen(text: str) -> None:
    tokenizer = BytePairTokenizer.train(TEXTS * 2, vocabulary_size=1000)
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert len(tokenizer.encode(text)) < len(text.encode()) / 2


def test_special_tokens() -> None:
    for tokenizer in (BytePairTokenizer([]), CharacterTokenizer("<>abdenopsu")):
        assert (PAD_ID, BOS_ID, EOS_ID, UNK_ID) == (0, 1, 2, 3)
        ids = tokenizer.encode("ab", bos=True, eos=True)
        assert ids == [BOS_ID, *tokenizer.encode("ab"), EOS_ID]
        assert tokenizer.decode([*ids, PAD_ID]) == "ab"
        # written in a text they are ordinary characters
        assert tokenizer.encode("<eos>") != [EOS_ID]
        assert tokenizer.decode(tokenizer.encode("<eos>")) == "<eos>"


def test_half_a_character_becomes_the_replacement_character() -> None:
    tokenizer = BytePairTokenizer([])
    assert tokenizer.decode(tokenizer.encode("注")[:2]) == "\ufffd"


def test_characters_by_hand() -> None:
    tokenizer = CharacterTokenizer.train(["ba", "注a"])
    assert tokenizer.characters == "ab注"
    assert tokenizer.vocabulary_size == 7
    assert tokenizer.encode("a注?") == [4, 6, UNK_ID]
    assert tokenizer.decode([4, 6, UNK_ID]) == "a注\ufffd"


@given(text=st.text())
def test_characters_round_trip_known_text(text: str) -> None:
    tokenizer = CharacterTokenizer.train([text])
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize(
    "tokenizer",
    [BytePairTokenizer.train(TEXTS, vocabulary_size=300), CharacterTokenizer.train(TEXTS)],
)
def test_saved_and_loaded(tmp_path: Path, tokenizer: BytePairTokenizer) -> None:
    path = tmp_path / "tokenizer.json"
    save_tokenizer(tokenizer, path)
    loaded = load_tokenizer(path)
    assert type(loaded) is type(tokenizer)
    assert loaded.vocabulary_size == tokenizer.vocabulary_size
    for text in TEXTS:
        assert loaded.encode(text) == tokenizer.encode(text)
        assert loaded.decode(loaded.encode(text)) == text


@pytest.mark.parametrize(
    ("content", "kind"), [('{"kind": "words"}', "'words'"), ("[1]", "None"), ("{}", "None")]
)
def test_a_foreign_file_is_an_error(tmp_path: Path, content: str, kind: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(content, "utf-8")
    with pytest.raises(ValueError, match=f"'byte-pair' or 'characters', got {kind}"):
        load_tokenizer(path)


def test_errors_name_the_values() -> None:
    with pytest.raises(ValueError, match="negative, got -1"):
        train_merges([], -1)
    with pytest.raises(ValueError, match="vocabulary_size 259 is below the smallest, 260"):
        BytePairTokenizer.train([], vocabulary_size=259)
    with pytest.raises(ValueError, match=r"merge 1 joins \(256, 257\) of 257 symbols"):
        BytePairTokenizer([(1, 2), (256, 257)])
    with pytest.raises(ValueError, match="3 characters, 2 different ones"):
        CharacterTokenizer("aba")
    for tokenizer in (BytePairTokenizer([]), CharacterTokenizer("a")):
        with pytest.raises(ValueError, match=r"token 300 is outside 0\.\."):
            tokenizer.decode([300])
