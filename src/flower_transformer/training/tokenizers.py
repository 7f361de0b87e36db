"""Text to token ids and back: byte-pair encoding, and one token a character.

Both tokenizers begin with the same special tokens, `SPECIAL_TOKENS`, at the ids 0 to 3. They are
never read from a text: "<eos>" in a text is five characters.

Byte-pair encoding starts from the 256 bytes of UTF-8, so that every text of every language can be
written, and joins the most frequent neighbours again and again. The pure functions `train_merges`
and `apply_merges` are the algorithm; their symbols are bytes 0..255 and, from 256 on, one new
symbol a merge.
"""

from __future__ import annotations

import heapq
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>", "<unk>")
PAD_ID, BOS_ID, EOS_ID, UNK_ID = range(4)
N_BYTES = 256

Pair = tuple[int, int]

# A word with the space before it, a run of punctuation with it, or white space: GPT-2's rule
# without its English contractions. Every character falls into one of them; no merge crosses words.
_WORD = re.compile(r" ?\w+| ?[^\s\w]+|\s+(?!\S)|\s+")


def train_merges(texts: Iterable[str], n_merges: int) -> list[Pair]:
    """Learn which neighbours to join: n times the most frequent pair of symbols.

    Args:
        texts: what to learn from.
        n_merges: the most merges to learn; fewer where no pair occurs twice.

    Returns:
        Pairs in the order of learning; pair number i becomes the symbol 256 + i. Of equally
        frequent pairs the one of the smaller symbols is taken, so that the result depends on
        nothing but the words and their counts.

    Raises:
        ValueError: n_merges is negative.

    Source: Sennrich et al. 2016, "Neural Machine Translation of Rare Words with Subword Units",
    section 3.2; on bytes: Radford et al. 2019, "Language Models are Unsupervised Multitask
    Learners", section 2.2.
    """
    if n_merges < 0:
        raise ValueError(f"n_merges must not be negative, got {n_merges}")
    counted = Counter(word for text in texts for word in _WORD.findall(text))
    words = [list(word.encode()) for word in counted]
    frequency = list(counted.values())

    pair_counts: Counter[Pair] = Counter()
    occurs_in: defaultdict[Pair, set[int]] = defaultdict(set)
    for number, word in enumerate(words):
        for pair in pairwise(word):
            pair_counts[pair] += frequency[number]
            occurs_in[pair].add(number)
    # Every change of a count is pushed; an entry whose count is no longer true is passed over.
    queue = [(-count, pair) for pair, count in pair_counts.items()]
    heapq.heapify(queue)

    merges: list[Pair] = []
    while queue and len(merges) < n_merges:
        count, best = heapq.heappop(queue)
        if -count != pair_counts[best]:
            continue
        if -count < 2:
            break
        symbol = N_BYTES + len(merges)
        merges.append(best)
        changed: set[Pair] = set()
        for number in occurs_in.pop(best):
            old, new = words[number], merge(words[number], best, symbol)
            for pair in pairwise(old):
                pair_counts[pair] -= frequency[number]
            for pair in pairwise(new):
                pair_counts[pair] += frequency[number]
                occurs_in[pair].add(number)
            changed.update(pairwise(old), pairwise(new))
            words[number] = new
        for pair in changed:
            heapq.heappush(queue, (-pair_counts[pair], pair))
    return merges


def apply_merges(symbols: Sequence[int], merged: Mapping[Pair, int]) -> list[int]:
    """Join the symbols of a word as in training: always the pair that was learned first.

    Args:
        symbols: the bytes of a word.
        merged: pair -> its symbol; symbols ascend in the order of learning.

    Returns:
        The symbols that are left when no pair can be joined any more.
    """
    word = list(symbols)
    while True:
        known = [(merged[pair], pair) for pair in pairwise(word) if pair in merged]
        if not known:
            return word
        symbol, pair = min(known)
        word = merge(word, pair, symbol)


def merge(symbols: Sequence[int], pair: Pair, symbol: int) -> list[int]:
    """Replace each occurrence of a pair, from left to right.

    Args:
        symbols: of a word.
        pair: two neighbours.
        symbol: what they become.

    Returns:
        The new symbols: [1, 1, 1] with the pair (1, 1) becomes [symbol, 1].
    """
    result: list[int] = []
    at = 0
    while at < len(symbols):
        if tuple(symbols[at : at + 2]) == pair:
            result.append(symbol)
            at += 2
        else:
            result.append(symbols[at])
            at += 1
    return result


class BytePairTokenizer:
    """Byte-pair encoding: 4 special tokens, 256 bytes, then one token a merge.

    Attributes:
        merges: the pairs that were learned, see `train_merges`.
        vocabulary_size: number of token ids.
    """

    def __init__(self, merges: Sequence[Pair]) -> None:
        """Take merges that were learned before.

        Args:
            merges: pairs of symbols, in the order of learning.

        Raises:
            ValueError: a merge joins a symbol that does not exist yet.
        """
        self.merges = [(left, right) for left, right in merges]
        self._pieces = [bytes([byte]) for byte in range(N_BYTES)]
        for number, (left, right) in enumerate(self.merges):
            n_symbols = N_BYTES + number
            if not (0 <= left < n_symbols and 0 <= right < n_symbols):
                raise ValueError(f"merge {number} joins {left, right} of {n_symbols} symbols")
            self._pieces.append(self._pieces[left] + self._pieces[right])
        self._merged = {pair: N_BYTES + number for number, pair in enumerate(self.merges)}
        self._known_words: dict[str, list[int]] = {}
        self.vocabulary_size = len(SPECIAL_TOKENS) + len(self._pieces)

    @classmethod
    def train(cls, texts: Iterable[str], *, vocabulary_size: int) -> BytePairTokenizer:
        """Learn merges from texts.

        Args:
            texts: what to learn from.
            vocabulary_size: the most token ids, special tokens and bytes included.

        Raises:
            ValueError: the size leaves no room for the special tokens and the bytes.
        """
        smallest = len(SPECIAL_TOKENS) + N_BYTES
        if vocabulary_size < smallest:
            raise ValueError(f"vocabulary_size {vocabulary_size} is below the smallest, {smallest}")
        return cls(train_merges(texts, vocabulary_size - smallest))

    def encode(self, text: str, *, bos: bool = False, eos: bool = False) -> list[int]:
        """Write a text as token ids.

        Args:
            text: any text; it is not normalised.
            bos: put the begin token before it.
            eos: put the end token after it.

        Returns:
            Token ids; `decode` gives the same text back.
        """
        symbols = [symbol for word in _WORD.findall(text) for symbol in self._encode_word(word)]
        return _frame([symbol + len(SPECIAL_TOKENS) for symbol in symbols], bos, eos)

    def decode(self, ids: Iterable[int]) -> str:
        """Read token ids.

        Args:
            ids: token ids; special tokens are left out.

        Returns:
            The text. Bytes that are no UTF-8 (a character cut in half) become U+FFFD.
        """
        pieces = [self._pieces[token - len(SPECIAL_TOKENS)] for token in _ordinary(ids, self)]
        return b"".join(pieces).decode(errors="replace")

    def _encode_word(self, word: str) -> list[int]:
        if word not in self._known_words:
            self._known_words[word] = apply_merges(list(word.encode()), self._merged)
        return self._known_words[word]


class CharacterTokenizer:
    """One token a character: 4 special tokens, then the characters.

    Attributes:
        characters: the known characters, each once; the first has the id 4.
        vocabulary_size: number of token ids.
    """

    def __init__(self, characters: str) -> None:
        """Take the characters that can be written.

        Args:
            characters: each once, in the order of their ids.

        Raises:
            ValueError: a character occurs twice.
        """
        self._ids = {char: len(SPECIAL_TOKENS) + at for at, char in enumerate(characters)}
        if len(self._ids) != len(characters):
            counts = f"{len(characters)} characters, {len(self._ids)} different ones"
            raise ValueError(f"each character may occur once, got {counts}")
        self.characters = characters
        self.vocabulary_size = len(SPECIAL_TOKENS) + len(characters)

    @classmethod
    def train(cls, texts: Iterable[str]) -> CharacterTokenizer:
        """Collect the characters of texts, sorted by code point."""
        return cls("".join(sorted({char for text in texts for char in text})))

    def encode(self, text: str, *, bos: bool = False, eos: bool = False) -> list[int]:
        """Write a text as token ids; a character that is not known becomes the unknown token."""
        return _frame([self._ids.get(char, UNK_ID) for char in text], bos, eos)

    def decode(self, ids: Iterable[int]) -> str:
        """Read token ids; the unknown token becomes U+FFFD, other special tokens are left out."""
        return "".join(
            "\ufffd" if token == UNK_ID else self.characters[token - len(SPECIAL_TOKENS)]
            for token in _ordinary(ids, self, also=UNK_ID)
        )


Tokenizer = BytePairTokenizer | CharacterTokenizer


def save_tokenizer(tokenizer: Tokenizer, path: Path) -> None:
    """Write a tokenizer to a JSON file.

    Args:
        tokenizer: either kind.
        path: of the file.
    """
    content: dict[str, object]
    if isinstance(tokenizer, BytePairTokenizer):
        content = {"kind": "byte-pair", "merges": tokenizer.merges}
    else:
        content = {"kind": "characters", "characters": tokenizer.characters}
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")


def load_tokenizer(path: Path) -> Tokenizer:
    """Read what `save_tokenizer` wrote.

    Args:
        path: of the file.

    Returns:
        A tokenizer of the same kind, with the same ids.

    Raises:
        ValueError: the file holds no tokenizer.
    """
    content = json.loads(path.read_text("utf-8"))
    kind = content.get("kind") if isinstance(content, dict) else None
    if kind == "byte-pair":
        return BytePairTokenizer(content["merges"])
    if kind == "characters":
        return CharacterTokenizer(content["characters"])
    raise ValueError(f"{path}: kind must be 'byte-pair' or 'characters', got {kind!r}")


def _frame(ids: list[int], bos: bool, eos: bool) -> list[int]:
    return [BOS_ID] * bos + ids + [EOS_ID] * eos


def _ordinary(ids: Iterable[int], tokenizer: Tokenizer, also: int | None = None) -> list[int]:
    """Drop the special tokens, except ``also``; refuse what is no token."""
    kept = []
    for token in ids:
        if not 0 <= token < tokenizer.vocabulary_size:
            raise ValueError(f"token {token} is outside 0..{tokenizer.vocabulary_size - 1}")
        if token >= len(SPECIAL_TOKENS) or token == also:
            kept.append(token)
    return kept
