"""BLEU: by hand and equal to sacrebleu; accuracy and exact match by hand."""

from __future__ import annotations

import math

import pytest
import sacrebleu
import torch
from hypothesis import given
from hypothesis import strategies as st

from flower_transformer.training.metrics import (
    accuracy,
    bleu_from_counts,
    brevity_penalty,
    corpus_bleu,
    exact_match,
    ngrams,
    split_words,
)

TOKENIZERS = ("13a", "zh", "char", "none")
WORDS = st.sampled_from(
    "the cat sat on mat , . a-b 3-4 1,000.5 don't &amp; (x) U.S. 注意力 机制。 ，值 é “q” ∑".split()
)
SENTENCES = st.lists(WORDS, max_size=12).map(" ".join) | st.text(max_size=20)


def sacre(hypotheses: list[str], references: list[list[str]], tokenize: str = "13a") -> float:
    """sacrebleu wants the references the other way round: the first of every sentence, then ..."""
    streams = [list(stream) for stream in zip(*references, strict=True)]
    bleu = sacrebleu.corpus_bleu(hypotheses, streams, tokenize=tokenize, force=True)
    return float(bleu.score)


def test_bleu_by_hand() -> None:
    # "a b c d e" against "a b c d f": 4/5, 3/4, 2/3, 1/2, product 1/5, no penalty
    score = corpus_bleu(["a b c d e"], [["a b c d f"]])
    assert score == pytest.approx(100 * 0.2**0.25)
    assert score == pytest.approx(sacre(["a b c d e"], [["a b c d f"]]))


def test_an_n_gram_counts_as_often_as_in_one_reference() -> None:
    # the example of Papineni et al., section 2.1: "the" occurs twice at most, so 2 / 7
    hypothesis = "the the the the the the the"
    references = ["the cat is on the mat", "there is a cat on the mat"]
    clipped = ngrams(hypothesis.split(), 1) & (
        ngrams(references[0].split(), 1) | ngrams(references[1].split(), 1)
    )
    assert clipped.total() == 2
    # then no 2-, 3-, 4-gram matches: 1/2, 1/4, 1/8 of a match
    expected = 100 * (2 / 7 * (1 / 2) / 6 * (1 / 4) / 5 * (1 / 8) / 4) ** 0.25
    assert corpus_bleu([hypothesis], [references]) == pytest.approx(expected)
    assert sacre([hypothesis], [references]) == pytest.approx(expected)


def test_brevity_penalty_by_hand() -> None:
    assert brevity_penalty(10, 10) == 1
    assert brevity_penalty(12, 10) == 1
    assert brevity_penalty(5, 10) == pytest.approx(math.exp(-1))
    assert brevity_penalty(0, 10) == 0
    assert brevity_penalty(0, 0) == 1


def test_bleu_of_the_corpus_is_not_the_mean_over_sentences() -> None:
    hypotheses, references = ["a b c d e", "x y z w"], [["a b c d e"], ["p q r s"]]
    mean = (corpus_bleu(hypotheses[:1], references[:1]) + 0.0) / 2
    assert corpus_bleu(hypotheses, references) != pytest.approx(mean)
    assert corpus_bleu(hypotheses, references) == pytest.approx(sacre(hypotheses, references))


def test_limits() -> None:
    assert corpus_bleu(["a b c d"], [["a b c d"]]) == pytest.approx(100)
    assert corpus_bleu(["a b"], [["a b"]]) == 0  # no 4-gram: undefined, 0 by convention
    assert corpus_bleu(["x y z w"], [["a b c d"]]) == 0
    assert corpus_bleu([], []) == 0
    assert bleu_from_counts([4, 3, 2, 1], [5, 4, 3, 2], 5, 5) == pytest.approx(100 * 0.2**0.25)


@pytest.mark.parametrize(
    ("text", "tokenize", "words"),
    [
        ("Hello, world!", "13a", ["Hello", ",", "world", "!"]),
        ("1,000.5 in 3-4 days.", "13a", ["1,000.5", "in", "3", "-", "4", "days", "."]),
        ("a &amp; b &quot;", "13a", ["a", "&", "b", '"']),
        ("don't a-b", "13a", ["don't", "a-b"]),
        ("a-\nb\nc -\n", "13a", ["ab", "c", "-"]),  # a word cut at the end of a line
        ("注意力 is good。", "zh", ["注", "意", "力", "is", "good", "。"]),
        ("注意 a", "char", ["注", "意", "a"]),
        ("a, b.", "none", ["a,", "b."]),
    ],
)
def test_words_by_hand(text: str, tokenize: str, words: list[str]) -> None:
    assert split_words(text, tokenize) == words


@pytest.mark.parametrize("tokenize", TOKENIZERS)
@given(text=SENTENCES)
def test_words_equal_sacrebleu(tokenize: str, text: str) -> None:
    expected = sacrebleu.BLEU(tokenize=tokenize)._preprocess_segment(text).split()
    assert split_words(text, tokenize) == expected


@pytest.mark.parametrize("tokenize", TOKENIZERS)
@given(data=st.data(), n_references=st.integers(1, 3))
def test_bleu_equals_sacrebleu(tokenize: str, data: st.DataObject, n_references: int) -> None:
    hypotheses = data.draw(st.lists(SENTENCES, min_size=1, max_size=5))
    references = [
        data.draw(st.lists(SENTENCES | st.just(one), min_size=n_references, max_size=n_references))
        for one in hypotheses
    ]
    expected = sacre(hypotheses, references, tokenize)
    assert corpus_bleu(hypotheses, references, tokenize=tokenize) == pytest.approx(
        expected, rel=1e-9
    )


def test_accuracy_and_exact_match_by_hand() -> None:
    target = torch.tensor([[1, 2, 3], [4, 5, -100], [6, -100, -100], [-100, -100, -100]])
    prediction = torch.tensor([[1, 2, 0], [4, 5, 9], [6, 9, 9], [9, 9, 9]])
    assert accuracy(prediction, target) == pytest.approx(5 / 6)
    assert exact_match(prediction, target) == pytest.approx(2 / 3)  # the last one is not asked
    assert accuracy(prediction[3:], target[3:]) == 0
    assert exact_match(prediction[3:], target[3:]) == 0


def test_errors_name_the_values() -> None:
    with pytest.raises(ValueError, match="1 hypotheses, 2 lists of references"):
        corpus_bleu(["a"], [["a"], ["b"]])
    with pytest.raises(ValueError, match="hypothesis 0 has 0 references"):
        corpus_bleu(["a"], [[]])
    with pytest.raises(ValueError, match="'13a', 'zh', 'char' or 'none', got 'spm'"):
        corpus_bleu(["a"], [["a"]], tokenize="spm")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"prediction \(2,\), target \(3,\)"):
        accuracy(torch.zeros(2), torch.zeros(3))
