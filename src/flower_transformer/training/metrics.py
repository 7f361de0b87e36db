r"""BLEU of a corpus, equal to sacrebleu's, and shares of right answers.

Legend: c length of all hypotheses together, r of the references, both in words.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from torch import Tensor

from flower_transformer.training.losses import IGNORE_INDEX

Splitting = Literal["13a", "zh", "char", "none"]
MAX_ORDER = 4


def corpus_bleu(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    tokenize: Splitting = "13a",
) -> float:
    r"""BLEU of all sentences together, on a scale of 0 to 100.

    $$
    \mathrm{BLEU} = 100 \cdot \mathrm{BP} \cdot
        \exp\left(\frac{1}{4} \sum_{n=1}^{4} \log p_n\right)
    $$

    $p_n$ is the share of the hypotheses' n-grams that occur in a reference of the same sentence, an
    n-gram counting at most as often as in the reference where it is most frequent. Matches and
    n-grams are summed over the corpus first and divided once. An order without a match counts as
    half a match, the next such order as a quarter and so on (sacrebleu's ``smooth_method="exp"``).

    Args:
        hypotheses: one translation a sentence.
        references: for each sentence its references, at least one.
        tokenize: how words are found, with sacrebleu's names: "13a" for European languages, "zh"
            for Chinese (each character a word), "char" for characters, "none" for text that is
            split already.

    Returns:
        The score of ``sacrebleu.corpus_bleu`` with the same tokenizer; 0 where no word matches.

    Raises:
        ValueError: there are not as many hypotheses as lists of references, a list is empty, or
            the tokenizer is unknown.

    Source: Papineni et al. 2002, "BLEU: a Method for Automatic Evaluation of Machine Translation",
    section 2.3; Post 2018, "A Call for Clarity in Reporting BLEU Scores".
    """
    if len(hypotheses) != len(references):
        counts = f"{len(hypotheses)} hypotheses, {len(references)} lists of references"
        raise ValueError(f"each hypothesis needs its references, got {counts}")
    matches, totals = [0] * MAX_ORDER, [0] * MAX_ORDER
    n_hypothesis = n_reference = 0
    for number, (hypothesis, alternatives) in enumerate(zip(hypotheses, references, strict=True)):
        if not alternatives:
            raise ValueError(f"hypothesis {number} has 0 references, it needs at least 1")
        words = split_words(hypothesis, tokenize)
        reference_words = [split_words(reference, tokenize) for reference in alternatives]
        n_hypothesis += len(words)
        # the reference of the closest length; of two, the shorter
        n_reference += min(
            map(len, reference_words), key=lambda length: (abs(length - len(words)), length)
        )
        for order in range(1, MAX_ORDER + 1):
            found = ngrams(words, order)
            allowed: Counter[tuple[str, ...]] = Counter()
            for one in reference_words:
                allowed |= ngrams(one, order)  # the larger count of each n-gram
            matches[order - 1] += (found & allowed).total()  # the smaller count of each
            totals[order - 1] += found.total()
    return bleu_from_counts(matches, totals, n_hypothesis, n_reference)


def bleu_from_counts(
    matches: Sequence[int], totals: Sequence[int], n_hypothesis: int, n_reference: int
) -> float:
    """BLEU from what was counted, see `corpus_bleu`.

    Args:
        matches: for each order n = 1, 2, ..., how many n-grams match.
        totals: how many n-grams the hypotheses have.
        n_hypothesis: c, words of the hypotheses.
        n_reference: r, words of the references.

    Returns:
        The score from 0 to 100. It is 0 where nothing matches, and where the hypotheses are too
        short to have an n-gram of some order: use longer sentences then, or more.
    """
    if not any(matches) or not all(totals):
        return 0.0
    log_precisions, no_match = 0.0, 0
    for match, total in zip(matches, totals, strict=True):
        no_match += match == 0
        log_precisions += math.log((match or 0.5**no_match) / total)
    score = math.exp(log_precisions / len(matches))
    return 100.0 * brevity_penalty(n_hypothesis, n_reference) * score


def brevity_penalty(n_hypothesis: int, n_reference: int) -> float:
    r"""The factor that keeps a short translation from winning by precision alone.

    $$
    \mathrm{BP} = \begin{cases}
        1 & \text{if } c > r \\
        e^{1 - r/c} & \text{if } c \leq r
    \end{cases}
    $$

    Args:
        n_hypothesis: c, words of the hypotheses.
        n_reference: r, words of the references.

    Returns:
        A factor in [0, 1]; 0 for no word at all.

    Source: Papineni et al. 2002, "BLEU: a Method for Automatic Evaluation of Machine Translation",
    section 2.3.
    """
    if n_hypothesis == 0:
        return float(n_reference == 0)
    return min(1.0, math.exp(1 - n_reference / n_hypothesis))


def ngrams(words: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    """Count the runs of ``order`` words.

    Args:
        words: of one sentence.
        order: n.

    Returns:
        How often each n-gram occurs; empty for a sentence shorter than n.
    """
    return Counter(zip(*(words[start:] for start in range(order)), strict=False))


def split_words(text: str, tokenize: Splitting = "13a") -> list[str]:
    """Find the words of a sentence as sacrebleu does.

    Args:
        text: one sentence.
        tokenize: "13a", "zh", "char" or "none", see `corpus_bleu`.

    Returns:
        The words; punctuation is one word a mark, except inside numbers (1,000.5).

    Raises:
        ValueError: the tokenizer is unknown.
    """
    text = text.rstrip()
    if tokenize == "none":
        return text.split()
    if tokenize == "char":
        return [char for char in text if not char.isspace()]
    if tokenize == "zh":
        return _split_punctuation(_CHINESE.sub(r" \g<0> ", text.strip()))
    if tokenize == "13a":
        text = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
        for entity, char in (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")):
            text = text.replace(entity, char)
        return _split_punctuation(f" {text} ")
    raise ValueError(f"tokenize must be '13a', 'zh', 'char' or 'none', got {tokenize!r}")


def accuracy(prediction: Tensor, target: Tensor) -> float:
    """Share of the targets that are predicted right.

    Args:
        prediction: integers (...).
        target: integers of the same shape; -100 does not count.

    Returns:
        A share in [0, 1]; 0 where nothing counts.

    Raises:
        ValueError: the shapes differ.
    """
    counts, right = _compare(prediction, target)
    return float((right & counts).sum() / counts.sum().clamp(min=1))


def exact_match(prediction: Tensor, target: Tensor) -> float:
    """Share of the sequences of which every token that counts is predicted right.

    Args:
        prediction: integers (..., T).
        target: integers of the same shape; -100 does not count.

    Returns:
        A share in [0, 1] of the sequences with a target that counts; 0 if there is none.

    Raises:
        ValueError: the shapes differ.
    """
    counts, right = _compare(prediction, target)
    asked = counts.any(dim=-1)
    solved = (right | ~counts).all(dim=-1) & asked
    return float(solved.sum() / asked.sum().clamp(min=1))


# ASCII punctuation except the apostrophe, and . , - which numbers contain.
_MARKS = re.compile(r'[!"#$%&()*+/:;<=>?@\[\\\]^_`{|}~]')
_SEPARATIONS = (
    (re.compile(r"([^0-9])([.,])"), r"\1 \2 "),  # full stop and comma, unless after a digit
    (re.compile(r"([.,])([^0-9])"), r" \1 \2"),  # or unless before one
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),  # a dash after a digit
)
# What sacrebleu's "zh" sets apart: Chinese characters, and symbols and punctuation near them.
_CHINESE = re.compile(
    "[\u2001-\u2a6d\u2e80-\u2fdf\u2ff0-\u303f\u3100-\u312f\u31a0-\u31ef\u3200-\u4db5\u4e00-\u9fbb"
    "\uf900-\ufa2d\ufa30-\ufa6a\ufa70-\ufad9\ufe10-\ufe1f\ufe30-\ufe4f\uff00-\uffef]"
)


def _split_punctuation(text: str) -> list[str]:
    text = _MARKS.sub(r" \g<0> ", text)
    for pattern, replacement in _SEPARATIONS:
        text = pattern.sub(replacement, text)
    return text.split()


def _compare(prediction: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    if prediction.shape != target.shape:
        shapes = f"prediction {tuple(prediction.shape)}, target {tuple(target.shape)}"
        raise ValueError(f"prediction and target must have one shape, got {shapes}")
    return target != IGNORE_INDEX, prediction == target
