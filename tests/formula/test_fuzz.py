"""Random tokens and corrupted formulas: a value or a FormulaError with a place, within a second.

``FLOWER_FUZZ=100000 pytest tests/formula/test_fuzz.py`` tries that many of each kind.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
from test_spellings import SPELLINGS

from flower_formula import FormulaError, check, evaluate

COUNT = int(os.environ.get("FLOWER_FUZZ", "1500"))
TOKENS = [
    *"abcxyzijnQKVWT0123456789+-*/=()[]{}^_,;:.|<>&'中 ", "\\\\",
    *(rf"\{name}" for name in (
        "frac sqrt sum prod left( right) exp log max cdot odot top ldots infty in le neq lfloor "
        "rfloor alpha hat underset over lVert rVert mathrm{softmax} text{if} text{否则} mathbb{R} "
        "mathbb{E} begin{cases} end{cases} begin{aligned} end{aligned}"
    ).split()),
    "_{i}", r"^{\top}", "_{i=1}^{n}", "{9^{9^9}}",
]  # fmt: skip
VALUES = {
    "x": torch.randn(3), "z": torch.randn(3), "Q": torch.randn(3, 2), "K": torch.randn(4, 2),
    "V": torch.randn(4, 2), "W": torch.randn(2, 2), "a": 2.0, "b": 0.5, "c": 1.0,
}  # fmt: skip
SYMBOLS = ["x [n]", "z [n]", "Q [n, d]", "K [m, d]", "V [m, d]", "W [d, d]", "a", "b", "c"]


@contextmanager
def one_second(latex: str) -> Iterator[None]:
    def late(*_: object) -> None:
        pytest.fail(f"more than a second: {latex!r}")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def value_or_error(latex: str, run: Callable[[], object]) -> bool:
    """Whether there was a value; all but a value and a FormulaError is raised, with the text."""
    try:
        with one_second(latex):
            run()
    except FormulaError as error:
        start, end = error.span
        assert 0 <= start <= end, latex
        return False
    except Exception as error:
        raise AssertionError(f"{latex!r}: {error!r}") from error
    return True


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timer on this system")
def test_random_tokens() -> None:
    chosen = random.Random(1)
    values = 0
    for _ in range(COUNT):
        latex = "".join(chosen.choices(TOKENS, k=chosen.randint(1, 14)))
        latex = latex if chosen.random() < 0.5 else f"y = {latex}"
        values += value_or_error(latex, lambda: evaluate(latex, SYMBOLS, **VALUES))  # noqa: B023
    assert values > COUNT // 1000  # some of them mean something


def corrupted(latex: str, chosen: random.Random) -> str:
    for _ in range(chosen.randint(1, 3)):
        place = chosen.randrange(len(latex) + 1)
        kind = chosen.randrange(3)
        if kind == 0:
            latex = latex[:place] + latex[place + chosen.randint(1, 3) :]
        elif kind == 1:
            latex = latex[:place] + chosen.choice(TOKENS) + latex[place:]
        else:
            start = chosen.randrange(len(latex) + 1)
            latex = latex[:place] + latex[start : start + 12] + latex[place:]
    return latex


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timer on this system")
def test_corruptions_of_published_formulas() -> None:
    chosen = random.Random(2)
    names = list(SPELLINGS)
    for _ in range(COUNT):
        spelling = SPELLINGS[chosen.choice(names)]
        latex = corrupted(spelling.latex, chosen)
        value_or_error(
            latex,
            lambda: check(
                latex, spelling.function, spelling.symbols, library=spelling.library, count=3  # noqa: B023
            ),
        )  # fmt: skip
